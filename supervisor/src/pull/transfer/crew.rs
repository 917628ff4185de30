//! Everybody who fetches for one job: a thread for each connection, which takes one file after the other.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::process::umask;
use state_machine::disk::Dir;
use state_machine::protocol::pull::{Fetched, Site, fetch};
use state_machine::pull::part::Wanted;
use state_machine::pull::word::Cause;

use super::leaving::{self, Leaving};
use super::patience::Patience;
use super::source::Fetcher;
use crate::error::DiskError;
use crate::pull::http::{Http, later, never};
use crate::pull::landing::cause_of;
use crate::pull::plan::{Item, Plan};
use crate::pull::voice::Voice;

/// How often a part is looked at that somebody else has.
const LOOK: Duration = Duration::from_millis(200);

/// What they share.
pub(in crate::pull) struct Crew {
    /// Who is asked.
    pub(in crate::pull) http: Http,
    /// Whom they tell.
    pub(in crate::pull) voice: Arc<Voice>,
    /// How often they try.
    pub(super) patience: Patience,
    /// Who is to be told when this process ends.
    pub(super) leaving: Leaving,
    /// The boot that this is.
    boot: String,
    /// The directory of unfinished files.
    staging: Dir,
    /// What others may do with what was fetched.
    pub(in crate::pull) mode: Mode,
    /// The directory below which everything belongs.
    root: PathBuf,
}

impl Crew {
    /// Those who fetch into this directory.
    pub(in crate::pull) fn new(http: Http, voice: Arc<Voice>, plan: &Plan) -> Crew {
        use std::os::unix::ffi::OsStrExt;
        Crew {
            http,
            voice,
            patience: Patience::default(),
            leaving: Leaving::default(),
            boot: crate::clock::boot_id(),
            staging: Dir::Outside(plan.staging.as_os_str().as_bytes().to_vec()),
            mode: mode(),
            root: plan.root.clone(),
        }
    }

    /// Where a file is while it is not registered.
    pub(in crate::pull) fn site(&self, item: &Item) -> Site {
        Site {
            staging: self.staging.clone(),
            key: item.key.clone(),
        }
    }
}

/// Fetch every file, over so many connections at a time. The first that cannot be had ends it: whoever is still at work is ended
/// with this process.
pub(in crate::pull) fn fetch_all(
    crew: &Arc<Crew>,
    items: &Arc<Vec<Item>>,
    connections: usize,
) -> Result<(), Cause> {
    leaving::end_in_order(crew);
    let threads = connections.min(items.len()).max(1);
    let each = (connections / threads).max(1) as u64;
    let next = Arc::new(AtomicUsize::new(0));
    let (sender, outcomes) = channel();
    for _ in 0..threads {
        let (crew, items, next) = (Arc::clone(crew), Arc::clone(items), Arc::clone(&next));
        let sender = sender.clone();
        std::thread::spawn(move || fetch_in_turn(&crew, &items, &next, each, &sender));
    }
    drop(sender);
    // One for each file, and the channel is closed when nobody is left.
    let mut done = 0;
    loop {
        match outcomes.recv_timeout(LOOK) {
            Ok(outcome) => {
                outcome?;
                done += 1;
            }
            // A server may be silent before its first byte, and what is here is to be told of.
            Err(RecvTimeoutError::Timeout) => crew.voice.is_silent(),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    if done == items.len() {
        Ok(())
    } else {
        // A thread that panics ends the process where panics abort.
        Err(later("a part of the fetcher has failed"))
    }
}

fn fetch_in_turn(
    crew: &Crew,
    items: &[Item],
    next: &AtomicUsize,
    connections: u64,
    sender: &Sender<Result<(), Cause>>,
) {
    while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
        let outcome = fetch_one(crew, item, connections);
        let goes_on = outcome.is_ok();
        if sender.send(outcome).is_err() || !goes_on {
            return;
        }
    }
}

fn fetch_one(crew: &Crew, item: &Item, connections: u64) -> Result<(), Cause> {
    let site = crew.site(item);
    let digest = item.digest.as_ref().map(ToString::to_string);
    let source = crate::pull::http::shown_whole(&item.url);
    let wanted = Wanted {
        source: &source,
        digest: digest.as_deref(),
        total_bytes: item.size,
        boot: &crew.boot,
    };
    let mut fetcher = Fetcher::new(crew, item, connections);
    let mut is_second = false;
    loop {
        // Whoever fetched the same, and was waited for, may have put it into place.
        if is_there_already(crew, item).map_err(|error| cause_of(&error))? {
            crew.voice.file_done();
            return Ok(());
        }
        match fetch(&mut fetcher, &site, &wanted).map_err(|error| cause_of(&error))? {
            Fetched::Whole => {
                fetcher.counts_whole(&site);
                crew.voice.file_done();
                return Ok(());
            }
            Fetched::Busy => {
                let line = format!("{}: another transfer fetches the same file", item.name());
                crew.voice.doing(Some(&line));
                std::thread::sleep(LOOK);
            }
            Fetched::Not(cause) => return Err(cause),
            // What was here before may have been wrong. What was fetched from its first byte is what the server has.
            Fetched::Wrong(_) if fetcher.has_resumed && !is_second => is_second = true,
            Fetched::Wrong(why) => {
                return Err(never(format!(
                    "{}: {why}; it was not put into place",
                    item.name()
                )));
            }
        }
    }
}

/// Whether the file stands under its final name, and is what is wanted. Only a digest can tell.
fn is_there_already(crew: &Crew, item: &Item) -> Result<bool, DiskError> {
    let Some(wanted) = &item.digest else {
        return Ok(false);
    };
    let path = crew.root.join(item.path.iter().collect::<PathBuf>());
    let failed = |error| DiskError::new("read", &path, error);
    // What is no file may never be opened otherwise.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut options = File::options();
    let file = match options.read(true).custom_flags(flags).open(&path) {
        Ok(file) => file,
        // Nothing, a link, or nothing that we may read: it is made, or replaced.
        Err(_) => return Ok(false),
    };
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() || item.size.is_some_and(|size| size != found.len()) {
        return Ok(false);
    }
    if wanted.of(&file, found.len()).map_err(failed)? != *wanted {
        return Ok(false);
    }
    if item.size.is_none() {
        crew.voice.learns(None, found.len());
    }
    crew.voice.reused(found.len());
    Ok(true)
}

/// The mode of a new file, as the mask of whoever asked for it has it. For a process that has no other thread yet.
fn mode() -> Mode {
    let mask = umask(Mode::empty());
    umask(mask);
    Mode::from_raw_mode(0o666) & !mask
}
