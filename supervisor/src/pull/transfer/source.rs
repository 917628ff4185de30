//! The deeds of whoever fetches one file: its bytes, from a server, into its part.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use state_machine::protocol::pull::{Poured, Site, Source, Verified, begin_anew, keep};
use state_machine::pull::part::{Part, Run};
use state_machine::pull::word::Cause;

use super::ask::{Opened, Refusal, ask};
use super::crew::Crew;
use super::keeper::Keeper;
use super::stream::{Ended, write};
use crate::disk::{FsDisk, LockFile};
use crate::error::DiskError;
use crate::pull::http::{later, never};
use crate::pull::plan::Item;

/// How often a file is begun anew in one run of a fetcher before that is taken for a server that does not know what it has.
const RESTARTS: u32 = 3;
/// No run of a file that is split is shorter, in bytes: below that a connection of its own costs more than it brings.
const SHORTEST_RUN: u64 = 16 << 20;
/// How often the counts of several runs are looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Who fetches one file.
pub(super) struct Fetcher<'a> {
    crew: &'a Crew,
    item: &'a Item,
    /// How many connections it may have.
    connections: u64,
    disk: FsDisk,
    restarts: u32,
    /// Whether its server has shown that it cannot be asked for a range.
    has_no_ranges: bool,
    /// Whether its length was told to the voice.
    is_length_known: bool,
    /// Whether anything of it was here before.
    pub(super) has_resumed: bool,
}

/// What becomes of a transfer after a step of it.
enum Step {
    /// It goes on.
    Again,
    /// Nothing is missing.
    All,
    /// It stops.
    Not(Cause),
}

impl<'a> Fetcher<'a> {
    pub(super) fn new(crew: &'a Crew, item: &'a Item, connections: u64) -> Fetcher<'a> {
        Fetcher {
            crew,
            item,
            connections,
            disk: FsDisk::new("/".into()),
            restarts: 0,
            has_no_ranges: false,
            is_length_known: item.size.is_some(),
            has_resumed: false,
        }
    }

    /// The length of the whole is known now.
    fn learn(&mut self, total_bytes: Option<u64>) {
        if let (Some(total), false) = (total_bytes, self.is_length_known) {
            self.is_length_known = true;
            self.crew.voice.learns(total);
        }
    }

    /// One request after the other.
    fn pour_one(
        &mut self,
        part: &LockFile,
        site: &Site,
        record: &mut Part,
        keeper: &mut Keeper,
    ) -> Result<Step, DiskError> {
        let nth = first_unfinished(record);
        let opened = match ask(&self.crew.http, self.item, record, nth, self.has_no_ranges) {
            Ok(opened) => opened,
            Err(refusal) => return self.refused(refusal, part, site, record, keeper),
        };
        if opened.whole {
            if record.done_bytes() > 0 || record.runs.len() > 1 {
                let why = "the server sent the whole file and not the rest of it";
                self.discard(part, site, record, keeper, why, opened.total_bytes)?;
            }
            record.etag.clone_from(&opened.etag);
            record.total_bytes = record.total_bytes.or(opened.total_bytes);
            keep(&mut self.disk, site, record)?;
        } else {
            record.total_bytes = record.total_bytes.or(opened.total_bytes);
        }
        self.learn(record.total_bytes);
        if record.total_bytes.is_none() && !opened.answer.has_an_end() && self.item.digest.is_none() {
            return Ok(Step::Not(never(format!(
                "{}: the server does not tell where the file ends, so it could be cut unseen; give its digest with --sha256",
                self.item.name()
            ))));
        }
        if self.is_worth_splitting(record, &opened) {
            // This answer is dropped for several of its kind.
            let last = record.runs.len() - 1;
            record.split(last, self.connections, SHORTEST_RUN);
            keep(&mut self.disk, site, record)?;
            return Ok(Step::Again);
        }
        let nth = nth.min(record.runs.len() - 1);
        let ended = self.write_here(opened, part, site, record, nth, keeper);
        keeper.keep(&mut self.disk, site, record)?;
        match ended {
            Ended::Well | Ended::Enough => {
                if record.total_bytes.is_none() {
                    record.total_bytes = Some(record.done_bytes());
                    self.learn(record.total_bytes);
                    keep(&mut self.disk, site, record)?;
                }
                if record.missing_in(nth).is_some_and(|missing| missing > 0) {
                    return Ok(self.failed("the server sent less than it had announced", 0));
                }
                Ok(Step::Again)
            }
            Ended::Cut(error) => Ok(self.failed(&format!("the connection was cut: {error}"), 0)),
            Ended::Unwritten(error) => Ok(Step::Not(self.unwritten(&error))),
        }
    }

    fn write_here(
        &mut self,
        mut opened: Opened,
        part: &LockFile,
        site: &Site,
        record: &mut Part,
        nth: usize,
        keeper: &mut Keeper,
    ) -> Ended {
        let file = match part.as_fd().try_clone_to_owned() {
            Ok(fd) => File::from(fd),
            Err(error) => return Ended::Unwritten(error),
        };
        let at = record.runs[nth].from + record.runs[nth].done;
        let limit = record.missing_in(nth);
        let (crew, disk) = (self.crew, &mut self.disk);
        write(opened.answer.body(), &file, at, limit, |bytes| {
            record.runs[nth].done += bytes;
            crew.voice.fetched(bytes);
            keeper
                .keep_if_due(disk, site, record)
                .map_err(|error| error.source)?;
            Ok(true)
        })
    }

    fn is_worth_splitting(&self, record: &Part, opened: &Opened) -> bool {
        let missing = record.missing_in(record.runs.len() - 1).unwrap_or(0);
        self.connections > 1
            && !self.has_no_ranges
            && record.runs.len() == 1
            && missing >= 2 * SHORTEST_RUN
            && (opened.has_ranges || !opened.whole)
            && (record.etag.is_some() || record.digest.is_some())
    }

    /// Several requests at once, one for each run that is not done.
    fn pour_many(
        &mut self,
        part: &LockFile,
        site: &Site,
        record: &mut Part,
        keeper: &mut Keeper,
    ) -> Result<Step, DiskError> {
        let file = File::from(part.as_fd().try_clone_to_owned().map_err(|error| {
            DiskError::new("share", &self.disk.path(&site.part()), error)
        })?);
        let done: Vec<AtomicU64> = record.runs.iter().map(|run| AtomicU64::new(run.done)).collect();
        let enough = AtomicBool::new(false);
        let (sender, outcomes) = channel();
        let asked = record.clone();
        let open: Vec<usize> = (0..asked.runs.len())
            .filter(|&nth| asked.missing_in(nth) != Some(0))
            .collect();
        let (crew, item) = (self.crew, self.item);
        let mut first_trouble = None;
        let mut kept = Ok(());
        std::thread::scope(|scope| {
            for &nth in &open {
                let (sender, asked, file) = (sender.clone(), &asked, &file);
                let (done, enough) = (&done[nth], &enough);
                scope.spawn(move || {
                    let mut asked = asked.clone();
                    let outcome = pour_run(crew, item, &mut asked, nth, file, done, enough);
                    // Whoever hears of it waits until all of us are gone.
                    let _ = sender.send(outcome);
                });
            }
            let mut running = open.len();
            while running > 0 {
                match outcomes.recv_timeout(LOOK) {
                    Ok(None) => running -= 1,
                    Ok(Some(trouble)) => {
                        running -= 1;
                        enough.store(true, Ordering::Relaxed);
                        first_trouble.get_or_insert(trouble);
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                count(record, &done);
                if kept.is_ok() {
                    kept = keeper.keep_if_due(&mut self.disk, site, record);
                    enough.fetch_or(kept.is_err(), Ordering::Relaxed);
                }
            }
        });
        kept?;
        count(record, &done);
        keeper.keep(&mut self.disk, site, record)?;
        match first_trouble {
            None => Ok(Step::Again),
            Some(Trouble::Refused(refusal)) => self.refused(refusal, part, site, record, keeper),
            Some(Trouble::Whole) => {
                self.has_no_ranges = true;
                Ok(Step::Again)
            }
            Some(Trouble::Unwritten(error)) => Ok(Step::Not(self.unwritten(&error))),
        }
    }

    /// The server has given nothing that is to be written.
    fn refused(
        &mut self,
        refusal: Refusal,
        part: &LockFile,
        site: &Site,
        record: &mut Part,
        keeper: &mut Keeper,
    ) -> Result<Step, DiskError> {
        match refusal {
            Refusal::Complete => {
                record.total_bytes = Some(record.done_bytes());
                self.learn(record.total_bytes);
                keep(&mut self.disk, site, record)?;
                Ok(Step::All)
            }
            Refusal::Restart(why) => {
                self.discard(part, site, record, keeper, &why, self.item.size)?;
                Ok(self.begun_anew(why))
            }
            Refusal::AskWhole(why) => {
                self.has_no_ranges = true;
                self.discard(part, site, record, keeper, &why, self.item.size)?;
                Ok(self.begun_anew(why))
            }
            Refusal::Later(why, after_ms) => Ok(self.failed(&why, after_ms)),
            Refusal::Never(cause) => Ok(Step::Not(cause)),
        }
    }

    /// What is here is of no use.
    fn discard(
        &mut self,
        part: &LockFile,
        site: &Site,
        record: &mut Part,
        keeper: &mut Keeper,
        why: &str,
        total_bytes: Option<u64>,
    ) -> Result<(), DiskError> {
        self.crew
            .voice
            .discarded(record.done_bytes(), true, &self.item.name(), why);
        begin_anew(self, part, site, record, self.item.size.or(total_bytes))?;
        keeper.begins_anew();
        Ok(())
    }

    fn begun_anew(&mut self, why: String) -> Step {
        self.restarts += 1;
        if self.restarts > RESTARTS {
            return Step::Not(later(format!(
                "{}: begun anew {RESTARTS} times, and each time {why}",
                self.item.name()
            )));
        }
        Step::Again
    }

    /// A request has failed: wait a little, or leave it to the worker to wait longer.
    fn failed(&self, why: &str, after_ms: u64) -> Step {
        match wait(self.crew, self.item, why, after_ms) {
            Ok(()) => Step::Again,
            Err(cause) => Step::Not(cause),
        }
    }

    fn unwritten(&self, error: &io::Error) -> Cause {
        unwritten(self.item, error)
    }
}

impl Source for Fetcher<'_> {
    type Disk = FsDisk;

    fn disk(&mut self) -> &mut FsDisk {
        &mut self.disk
    }

    fn length(&mut self, part: &LockFile) -> Result<u64, DiskError> {
        let length = rustix::fs::fstat(part).map(|stat| stat.st_size as u64);
        length.map_err(|error| DiskError::new("measure", self.item.name().as_ref(), error))
    }

    fn empty(&mut self, part: &LockFile) -> Result<(), DiskError> {
        let emptied = rustix::fs::ftruncate(part, 0);
        emptied.map_err(|error| DiskError::new("empty", self.item.name().as_ref(), error))
    }

    fn pour(&mut self, part: &LockFile, site: &Site, record: &mut Part) -> Result<Poured, DiskError> {
        self.learn(record.total_bytes);
        let mut keeper = Keeper::new(record);
        loop {
            let step = if record.is_complete() {
                Step::All
            } else if record.runs.len() > 1 && !self.has_no_ranges {
                self.pour_many(part, site, record, &mut keeper)?
            } else {
                self.pour_one(part, site, record, &mut keeper)?
            };
            match step {
                Step::Again => {}
                Step::All => return Ok(Poured::All),
                Step::Not(cause) => return Ok(Poured::Not(cause)),
            }
        }
    }

    fn verify(&mut self, part: &LockFile, record: &Part) -> Result<Verified, DiskError> {
        let length = self.length(part)?;
        if let Some(wanted) = self.item.size.or(record.total_bytes)
            && length != wanted
        {
            return Ok(Verified::Wrong(format!("it has {length} bytes and should have {wanted}")));
        }
        let Some(wanted) = &self.item.digest else {
            return Ok(Verified::Right);
        };
        let found = wanted
            .of(part, length)
            .map_err(|error| DiskError::new("read back", self.item.name().as_ref(), error))?;
        Ok(if found == *wanted {
            Verified::Right
        } else {
            Verified::Wrong(format!("it is {found} and should be {wanted}"))
        })
    }

    fn discards(&mut self, bytes: u64, why: &str) {
        let counted = self.has_resumed || bytes > 0 && self.crew.voice.fetched_bytes() > 0;
        self.crew
            .voice
            .discarded(bytes, counted, &self.item.name(), why);
    }

    fn reuses(&mut self, bytes: u64) {
        self.has_resumed = bytes > 0;
        self.crew.voice.reused(bytes);
    }
}

/// What has ended the runs of a file.
enum Trouble {
    /// The server does not give what was asked for.
    Refused(Refusal),
    /// It gives the whole instead.
    Whole,
    /// The file cannot be written.
    Unwritten(io::Error),
}

/// One run of several, until nothing of it is missing, or something happens that concerns the others too.
fn pour_run(
    crew: &Crew,
    item: &Item,
    asked: &mut Part,
    nth: usize,
    file: &File,
    done: &AtomicU64,
    enough: &AtomicBool,
) -> Option<Trouble> {
    while asked.missing_in(nth) != Some(0) && !enough.load(Ordering::Relaxed) {
        let mut opened = match ask(&crew.http, item, asked, nth, false) {
            Ok(opened) if opened.whole => return Some(Trouble::Whole),
            Ok(opened) => opened,
            Err(Refusal::Later(why, after_ms)) => match wait(crew, item, &why, after_ms) {
                Ok(()) => continue,
                Err(cause) => return Some(Trouble::Refused(Refusal::Never(cause))),
            },
            Err(refusal) => return Some(Trouble::Refused(refusal)),
        };
        let Run { from, done: had, .. } = asked.runs[nth];
        let limit = asked.missing_in(nth);
        let ended = write(opened.answer.body(), file, from + had, limit, |bytes| {
            asked.runs[nth].done += bytes;
            done.store(asked.runs[nth].done, Ordering::Relaxed);
            crew.voice.fetched(bytes);
            Ok(!enough.load(Ordering::Relaxed))
        });
        let why = match ended {
            Ended::Enough => return None,
            Ended::Unwritten(error) => return Some(Trouble::Unwritten(error)),
            Ended::Well if asked.missing_in(nth) == Some(0) => return None,
            Ended::Well => "the server sent less than it had announced".to_owned(),
            Ended::Cut(error) => format!("the connection was cut: {error}"),
        };
        if let Err(cause) = wait(crew, item, &why, 0) {
            return Some(Trouble::Refused(Refusal::Never(cause)));
        }
    }
    None
}

/// Wait before a request is made again; or why it is not, now.
fn wait(crew: &Crew, item: &Item, why: &str, after_ms: u64) -> Result<(), Cause> {
    let why = format!("{}: {why}", item.name());
    if after_ms > 0 {
        // That is for the record, and may be longer than anybody keeps a process for.
        return Err(Cause::Later { why, after_ms });
    }
    let fetched = crew.voice.fetched_bytes();
    let pause = crew.patience.after_failure(fetched).ok_or_else(|| later(why.clone()))?;
    crew.voice.retries(&why, pause);
    std::thread::sleep(pause);
    Ok(())
}

fn unwritten(item: &Item, error: &io::Error) -> Cause {
    let why = format!("{}: {}", item.name(), crate::pull::landing::plainly(error));
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Cause::NoRoom { why },
        _ => never(why),
    }
}

/// The first run of which something is missing.
fn first_unfinished(record: &Part) -> usize {
    let unfinished = |&nth: &usize| record.missing_in(nth) != Some(0);
    (0..record.runs.len()).find(unfinished).unwrap_or(0)
}

/// Take over what the runs have done.
fn count(record: &mut Part, done: &[AtomicU64]) {
    for (run, done) in record.runs.iter_mut().zip(done) {
        run.done = done.load(Ordering::Relaxed);
    }
}
