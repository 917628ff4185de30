//! What is remembered of ended jobs from one listing to the next, so that ten thousand of them need not all be read again: the
//! file `listing` in the root of the store. It is never the truth. What it says of a job counts only as long as nothing has come
//! into the job's directory or gone from it since its records were read, which the kernel is asked of each, every time; anything
//! else is read. A record is only ever replaced, so its directory tells. Who deletes it, writes over it or never writes it costs the next listing a little time, and nothing else.

use std::fmt;
use std::os::fd::OwnedFd;

use rustix::fs::{self, AtFlags, CWD, Mode, OFlags};
use serde_json::{Map, Value};
use state_machine::disk::Dir;
use state_machine::id::JobId;
use state_machine::liveness::needs_probe;
use state_machine::protocol::look::View;
use state_machine::record::{Damaged, Descriptor, Status};

use super::list::age;
use super::{Store, ticket};
use crate::clock;
use crate::disk::read_small;

/// The file, in the root of a store.
const FILE: &str = "listing";
/// It is not read when it is longer, in bytes.
const LIMIT: u64 = 1 << 30;
/// It is written anew once so many jobs would be added or dropped: fewer are read as fast as it is written.
const WORTH_WRITING: usize = 256;
/// How long ago a record must have changed to be remembered, in ns. A file system may stamp two changes within some
/// milliseconds with one time; of a file that old, no later change has the same.
const SETTLED_NS: i64 = 2_000_000_000;

/// What the file held: nothing, where it cannot be used.
pub(super) struct Remembered {
    text: String,
    looker: Looker,
}

/// Whoever asks what the directory of a job is now.
struct Looker {
    jobs: Option<OwnedFd>,
    /// The time at which the listing began, in ns since the epoch.
    now_ns: i64,
}

/// What tells the directory of a job from every other, and from what it was before: any change of the names in it changes the
/// time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    changed_ns: i64,
}

/// What the file says of one job, and is to say again.
pub(super) enum Line<'a> {
    /// It stands there already.
    Kept(&'a str),
    /// It is new.
    Learned(String),
}

impl Remembered {
    /// What is remembered of the jobs of a store.
    pub(super) fn of(store: &Store) -> Remembered {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Remembered {
            looker: Looker {
                jobs: fs::openat(CWD, store.jobs_dir(), flags, Mode::empty()).ok(),
                now_ns: i64::try_from(clock::now_ms())
                    .unwrap_or(i64::MAX)
                    .saturating_mul(1_000_000),
            },
            text: text(store).unwrap_or_default(),
        }
    }

    /// Whether there is anything to read.
    pub(super) fn is_there(store: &Store) -> bool {
        store.root().join(FILE).exists()
    }

    /// Every line, in the order of a listing.
    fn lines(&self) -> impl Iterator<Item = &str> {
        let whole = self.text.rfind('\n').map_or(0, |end| end + 1);
        self.text[..whole].lines().skip(1)
    }

    /// What is remembered of these jobs, which are in the order of a listing.
    pub(super) fn find(&self, ids: &[JobId]) -> Found<'_> {
        let mut lines = self.lines().peekable();
        let mut others = 0;
        let line_of = |id: &JobId| {
            let wanted = age(id.as_str());
            while lines.next_if(|line| age(id_in(line)) < wanted).is_some() {
                others += 1;
            }
            lines.next_if(|line| id_in(line) == id.as_str())
        };
        Found {
            lines: ids.iter().map(line_of).collect(),
            others: others + lines.count(),
        }
    }

    /// What is true about an ended job, where its directory is what it was when the line was written; without its
    /// environment.
    pub(super) fn view(&self, id: &JobId, line: &str) -> Option<View> {
        let mut parts = line.split('\t').skip(1);
        if self.looker.stamp(id)?.to_string() != parts.next()? {
            return None;
        }
        let descriptor = Descriptor::decode(parts.next()?.as_bytes()).ok()?;
        let status = Status::decode(parts.next()?.as_bytes()).ok()?;
        let view = View {
            state: status.state,
            descriptor,
            status,
            held: false,
            leftovers: false,
        };
        is_settled(&view).then_some(view)
    }

    /// What the directory of a job is, for [`learn`]: to be asked *before* its records are read, or what is read may be older
    /// than it is. Nothing, where it has changed too lately.
    pub(super) fn stamp(&self, id: &JobId) -> Option<Stamp> {
        let settled = self.looker.now_ns.saturating_sub(SETTLED_NS);
        self.looker
            .stamp(id)
            .filter(|stamp| stamp.changed_ns < settled)
    }

    /// Remember these and no others, where that is worth it. That it cannot be written is nobody's business.
    pub(super) fn write(&self, store: &Store, found: &Found<'_>, lines: &[Line<'_>]) {
        let is_new = |line: &&Line| matches!(line, Line::Learned(_));
        let learned = lines.iter().filter(is_new).count();
        if learned + found.others < WORTH_WRITING {
            return;
        }
        let mut text = header();
        for line in lines {
            text.push_str(match line {
                Line::Kept(line) => line,
                Line::Learned(line) => line,
            });
            text.push('\n');
        }
        let _ = replace(store, text.as_bytes());
    }
}

/// What is remembered of the jobs that there are.
pub(super) struct Found<'a> {
    /// The line of each.
    pub(super) lines: Vec<Option<&'a str>>,
    /// How many lines there are of others.
    others: usize,
}

impl Found<'_> {
    /// Whether so many jobs are not remembered that it is worth learning of them.
    pub(super) fn is_worth_learning(&self) -> bool {
        let unknown = self.lines.iter().filter(|line| line.is_none());
        unknown.count() >= WORTH_WRITING
    }
}

/// The line of a job, where the same will be true about it as long as its directory is what it is. `view` has no environment.
pub(super) fn learn(stamp: &Stamp, view: &View) -> Option<Line<'static>> {
    if !is_settled(view) {
        return None;
    }
    let descriptor = brief(&view.descriptor.encode(), LEAST_DESCRIPTOR, |bytes| {
        Descriptor::decode(bytes).map(|least| least.encode())
    })?;
    let status = brief(&view.status.encode(), LEAST_STATUS, |bytes| {
        Status::decode(bytes).map(|least| least.encode())
    })?;
    let id = &view.descriptor.id;
    // In JSON, neither a tab nor the end of a line stands for itself within a string.
    let line = format!("{id}\t{stamp}\t{descriptor}\t{status}");
    Some(Line::Learned(line))
}

impl Looker {
    fn stamp(&self, id: &JobId) -> Option<Stamp> {
        let jobs = self.jobs.as_ref()?;
        let stat = fs::statat(jobs, id.as_str(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(Stamp {
            inode: stat.st_ino,
            changed_ns: changed_ns(&stat)?,
        })
    }
}

/// When a directory was last changed in any way, in ns since the epoch; nothing for a time that no machine has.
fn changed_ns(stat: &fs::Stat) -> Option<i64> {
    let ns = i64::try_from(stat.st_ctime_nsec).ok()?;
    stat.st_ctime.checked_mul(1_000_000_000)?.checked_add(ns)
}

impl fmt::Display for Stamp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.inode, self.changed_ns)
    }
}

/// Whether the records alone say everything, and for good: for any other job it matters who holds a lock.
fn is_settled(view: &View) -> bool {
    !needs_probe(&view.status) && !view.held && !view.leftovers
}

/// The smallest records: whatever else there is in one is what it is where nothing is said.
const LEAST_DESCRIPTOR: &str = r#"{"id":"0-job","kind":{"pull":{"provider":"","reference":"","destination":"","env":{}}},"display_name":"","created_at_ms":0}"#;
const LEAST_STATUS: &str = r#"{"state":"queued","updated_at_ms":0}"#;

/// A record without the fields that have the value that they have anyway. `again` reads a record and writes it.
fn brief(
    record: &[u8],
    least: &str,
    again: fn(&[u8]) -> Result<Vec<u8>, Damaged>,
) -> Option<String> {
    let least: Map<String, Value> = serde_json::from_slice(&again(least.as_bytes()).ok()?).ok()?;
    let mut fields: Map<String, Value> = serde_json::from_slice(record).ok()?;
    fields.retain(|field, value| least.get(field) != Some(value));
    let brief = serde_json::to_string(&fields).ok()?;
    // It must come to the same.
    (again(brief.as_bytes()).ok()? == record).then_some(brief)
}

/// The first line. What another version wrote may lack what this one knows. And no boot reads what another wrote, so that a loss
/// of power leaves nothing that could be taken for a line, and no file system hands out a stamp twice.
fn header() -> String {
    let (version, boot) = (env!("CARGO_PKG_VERSION"), clock::boot_id());
    format!("outlive {version} listing {boot}\n")
}

/// The file, where it is one of ours.
fn text(store: &Store) -> Option<String> {
    let bytes = read_small(&store.root().join(FILE), LIMIT).ok()??.ok()?;
    let text = String::from_utf8(bytes).ok()?;
    (text.starts_with(&header()) && !clock::boot_id().is_empty()).then_some(text)
}

/// The id that a line begins with.
fn id_in(line: &str) -> &str {
    line.split('\t').next().unwrap_or_default()
}

/// Put the file in its place as a whole: others may be reading it, or doing the same. What a crash leaves of it in `staging/` is
/// collected like anything else there.
fn replace(store: &Store, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;

    let aside = store.disk.dir(&Dir::Staging).join(ticket().as_str());
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&aside)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| std::fs::rename(&aside, store.root().join(FILE)));
    if written.is_err() {
        let _ = std::fs::remove_file(&aside);
    }
    written
}

impl Store {
    /// Forget what listings remember: who cleans up does not want the command lines of those jobs to stay.
    pub(crate) fn forget_remembered(&self) {
        let _ = std::fs::remove_file(self.root().join(FILE));
    }
}
