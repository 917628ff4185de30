//! The deeds of whoever fetches one file: its bytes, from a server, into its part.

use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};

use state_machine::protocol::pull::{Poured, Site, Source, Verified, begin_anew, keep};
use state_machine::pull::part::Part;
use state_machine::pull::word::Cause;

use super::ask::{Opened, Refusal, ask};
use super::crew::Crew;
use super::keeper::{EACH, Keeper};
use super::room::{NoRoom, keep_room};
use super::run::{News, Streamed, Trouble, has_name, wait};
use crate::disk::{FsDisk, LockFile};
use crate::error::DiskError;
use crate::pull::http::{later, never};
use crate::pull::landing::{cause_of, no_room};
use crate::pull::plan::Item;

/// How often a file is begun anew in one run of a fetcher before that is taken for a server that does not know what it has.
const RESTARTS: u32 = 3;
/// No run of a file that is split is shorter, in bytes: below that a connection of its own costs more than it brings.
const SHORTEST_RUN: u64 = 16 << 20;
/// How much of a full disk is given back for the record of what has arrived, in bytes.
const ROOM: u64 = 128 << 10;

/// Who fetches one file.
pub(super) struct Fetcher<'a> {
    crew: &'a Crew,
    item: &'a Item,
    /// How many connections it may have.
    connections: u64,
    disk: FsDisk,
    restarts: u32,
    /// Whether its server has refused some of them while it gave over others.
    has_fewer: bool,
    /// Whether its server has shown that it cannot be asked for a range.
    has_no_ranges: bool,
    /// The length that the voice was told last, in bytes.
    told_length: Option<u64>,
    /// Whether what is here of it is counted in the progress.
    is_counted: bool,
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
            has_fewer: false,
            has_no_ranges: false,
            told_length: item.size,
            is_counted: false,
            has_resumed: false,
        }
    }

    /// It stands whole, and somebody else may have fetched it, or we in an earlier life: then it is reused.
    pub(super) fn counts_whole(&mut self, site: &Site) {
        let found = std::fs::metadata(self.disk.path(&site.whole()));
        if !self.is_counted
            && let Ok(found) = found
        {
            self.learn(Some(found.len()));
            self.reuses(found.len());
        }
    }

    /// The length of the whole is known now.
    fn learn(&mut self, total_bytes: Option<u64>) {
        if let Some(total) = total_bytes
            && self.told_length != total_bytes
        {
            self.crew.voice.learns(self.told_length, total);
            self.told_length = total_bytes;
        }
    }

    /// Ask for what is missing. What the answer says of the whole is recorded before a byte of it is written.
    fn pour_more(
        &mut self,
        part: &LockFile,
        site: &Site,
        record: &mut Part,
        keeper: &mut Keeper,
    ) -> Result<Step, DiskError> {
        if record.done_bytes() > 0 && !has_name(record) {
            let why = "the server names no version of it, so the rest could be of another";
            self.discard(part, site, record, keeper, why, self.item.size)?;
        }
        if record.runs.len() > 1 {
            return self.pour_runs(part, site, record, keeper, None);
        }
        match ask(&self.crew.http, self.item, record, 0, self.has_no_ranges) {
            Ok(opened) => self.pour_opened(opened, part, site, record, keeper),
            Err(refusal) => self.refused(refusal, part, site, record, keeper),
        }
    }

    /// There is an answer. It may be that to a run of several, and the whole.
    fn pour_opened(
        &mut self,
        opened: Opened,
        part: &LockFile,
        site: &Site,
        record: &mut Part,
        keeper: &mut Keeper,
    ) -> Result<Step, DiskError> {
        if opened.whole {
            if record.done_bytes() > 0 || record.runs.len() > 1 {
                let why = "the server sent the whole file and not the rest of it";
                self.discard(part, site, record, keeper, why, opened.total_bytes)?;
            }
            // An earlier answer, of which nothing came, may have told of another version.
            record.etag.clone_from(&opened.etag);
            record.total_bytes = self.item.size.or(opened.total_bytes);
            keep(&mut self.disk, site, record)?;
        } else {
            record.total_bytes = record.total_bytes.or(opened.total_bytes);
        }
        self.learn(record.total_bytes);
        if record.total_bytes.is_none() && !opened.has_an_end && self.item.digest.is_none() {
            return Ok(Step::Not(never(format!(
                "{}: the server does not tell where the file ends, so it could be cut unseen; give its digest with --sha256",
                self.item.name()
            ))));
        }
        if self.is_worth_splitting(record, &opened) {
            // This answer is read as far as the first run goes.
            record.split(0, self.connections, SHORTEST_RUN);
            keep(&mut self.disk, site, record)?;
        }
        self.pour_runs(part, site, record, keeper, Some(opened))
    }

    fn is_worth_splitting(&self, record: &Part, opened: &Opened) -> bool {
        self.connections > 1
            && !self.has_no_ranges
            && record.missing_in(0).unwrap_or(0) >= 2 * SHORTEST_RUN
            && (opened.has_ranges || !opened.whole)
            && has_name(record)
    }

    /// A thread for each connection, which takes one run that is not done after the other; the first may have its answer already. The
    /// record is kept meanwhile, also while all of them are silent.
    ///
    /// A server may allow fewer connections than we make: one that is refused ends, and those that are not fetch its run.
    fn pour_runs(
        &mut self,
        part: &LockFile,
        site: &Site,
        record: &mut Part,
        keeper: &mut Keeper,
        mut first: Option<Opened>,
    ) -> Result<Step, DiskError> {
        if let Err(NoRoom { missing, free }) = keep_room(part, record) {
            let at = self.disk.path(&site.part());
            return Ok(Step::Not(no_room(&at, missing, free)));
        }
        let file = part.as_fd().try_clone_to_owned();
        let file =
            file.map_err(|error| DiskError::new("share", &self.disk.path(&site.part()), error))?;
        let file = File::from(file);
        let done: Vec<AtomicU64> = record
            .runs
            .iter()
            .map(|run| AtomicU64::new(run.done))
            .collect();
        let (enough, brought) = (AtomicBool::new(false), AtomicU64::new(0));
        let (sender, outcomes) = channel();
        let asked = record.clone();
        let open = |nth: &usize| asked.missing_in(*nth) != Some(0);
        let open: VecDeque<usize> = (0..asked.runs.len()).filter(open).collect();
        let connections = open
            .len()
            .min(usize::try_from(self.connections).unwrap_or(1));
        let open = Mutex::new(open);
        let (crew, item) = (self.crew, self.item);
        let _open = crew.leaving.opens(sender.clone());
        let mut first_trouble = None;
        let mut kept = Ok(());
        std::thread::scope(|scope| {
            for _ in 0..connections {
                let (sender, file, asked) = (sender.clone(), &file, &asked);
                let (open, done, brought, enough) = (&open, &done, &brought, &enough);
                // The first answer is that to the first run, and goes with it.
                let (mut opened, mut begins) = (first.take(), next_of(open));
                scope.spawn(move || {
                    while let Some(nth) = begins
                        .take()
                        .or_else(|| next_of(open))
                        .filter(|_| !enough.load(Ordering::Relaxed))
                    {
                        let mut asked = asked.clone();
                        asked.runs[nth].done = done[nth].load(Ordering::Relaxed);
                        let run = Streamed {
                            crew,
                            item,
                            asked,
                            nth,
                            file,
                            done: &done[nth],
                            brought,
                            keeper: sender.clone(),
                            enough,
                        };
                        if let Some(trouble) = run.pour(opened.take()) {
                            give_back(open, nth);
                            // Whoever hears of it waits until all of us are gone.
                            let _ = sender.send(News::Over(Some(trouble)));
                            return;
                        }
                    }
                    let _ = sender.send(News::Over(None));
                });
            }
            let mut running = connections;
            while running > 0 {
                let news = outcomes.recv_timeout(EACH);
                count(record, &done);
                match news {
                    Ok(News::Much) => keeper.hurry(),
                    Err(RecvTimeoutError::Timeout) => crew.voice.is_silent(),
                    Ok(News::Over(None)) => running -= 1,
                    Ok(News::Over(Some(trouble))) => {
                        running -= 1;
                        let has_others = running > 0 || brought.load(Ordering::Relaxed) > 0;
                        if connections > 1 && has_others && trouble.is_of_one_connection() {
                            self.connections = (running as u64).max(1);
                            self.has_fewer = true;
                            crew.voice.has_fewer(&item.name(), self.connections);
                            continue;
                        }
                        enough.store(true, Ordering::Relaxed);
                        first_trouble.get_or_insert(trouble);
                    }
                    Ok(News::Leave(_told)) => {
                        // Where the disk does not let us, it is fetched again.
                        let _ = keeper.keep(&mut self.disk, site, record);
                        crew.voice.leaves();
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                if kept.is_ok() {
                    kept = keeper.keep_if_due(&mut self.disk, site, record);
                    enough.fetch_or(kept.is_err(), Ordering::Relaxed);
                }
            }
        });
        count(record, &done);
        if let Some(Trouble::Unwritten(error)) = first_trouble {
            let error = DiskError::new("write", &self.disk.path(&site.part()), error);
            return Ok(Step::Not(self.unwritten(&error, part, site, record)));
        }
        if let Err(error) = kept {
            return Ok(Step::Not(self.unwritten(&error, part, site, record)));
        }
        keeper.keep(&mut self.disk, site, record)?;
        match first_trouble {
            Some(trouble @ Trouble::Refused(_)) if self.has_fewer && self.waits(&trouble) => {
                Ok(Step::Again)
            }
            Some(Trouble::Refused(refusal)) => self.refused(refusal, part, site, record, keeper),
            Some(Trouble::Whole(opened)) => {
                self.connections = 1;
                self.pour_opened(*opened, part, site, record, keeper)
            }
            Some(Trouble::Nameless(why)) => Ok(self.failed(&why, 0)),
            Some(Trouble::Unwritten(_)) | None => {
                if record.total_bytes.is_none() {
                    // By how it was framed, that was all.
                    record.total_bytes = Some(record.done_bytes());
                    self.learn(record.total_bytes);
                    keep(&mut self.disk, site, record)?;
                }
                Ok(Step::Again)
            }
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
                if record.runs.len() > 1 {
                    // It would be the same again: some servers name the version of a whole only.
                    self.connections = 1;
                }
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

    /// The last connection is refused, of a server that allows few: it may not have seen yet that the one before it has ended.
    /// Whether it is to be asked again soon.
    fn waits(&self, trouble: &Trouble) -> bool {
        trouble.is_of_one_connection()
            && wait(
                self.crew,
                self.item,
                "the server allows no further connection",
                0,
            )
            .is_ok()
    }

    /// The disk does not let us write. Where it is full, the record of what has arrived needs a little of its room.
    fn unwritten(
        &mut self,
        error: &DiskError,
        part: &LockFile,
        site: &Site,
        record: &mut Part,
    ) -> Cause {
        let cause = cause_of(error);
        if let Cause::NoRoom { .. } = cause {
            let end = record.give_back(ROOM);
            // Where that fails too, what has arrived since the last record is fetched again.
            let _ = rustix::fs::ftruncate(part, end);
            let _ = keep(&mut self.disk, site, record);
        }
        cause
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

    fn pour(
        &mut self,
        part: &LockFile,
        site: &Site,
        record: &mut Part,
    ) -> Result<Poured, DiskError> {
        self.is_counted = true;
        self.learn(record.total_bytes);
        let mut keeper = Keeper::new(record);
        loop {
            let step = if record.is_complete() {
                Step::All
            } else {
                self.pour_more(part, site, record, &mut keeper)?
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
            return Ok(Verified::Wrong(format!(
                "it has {length} bytes and should have {wanted}"
            )));
        }
        if let Some(wanted) = &self.item.digest {
            let found = wanted
                .of(part, length)
                .map_err(|error| DiskError::new("read back", self.item.name().as_ref(), error))?;
            if found != *wanted {
                return Ok(Verified::Wrong(format!(
                    "it is {found} and should be {wanted}"
                )));
            }
        }
        // Until now it was its owner's alone.
        rustix::fs::fchmod(part, self.crew.mode)
            .map_err(|error| DiskError::new("give a mode to", self.item.name().as_ref(), error))?;
        Ok(Verified::Right)
    }

    fn discards(&mut self, bytes: u64, why: &str) {
        let counted = self.is_counted;
        self.crew
            .voice
            .discarded(bytes, counted, &self.item.name(), why);
    }

    fn reuses(&mut self, bytes: u64) {
        self.is_counted = true;
        self.has_resumed = bytes > 0;
        self.crew.voice.reused(bytes);
    }
}

/// The next run that nobody fetches.
fn next_of(open: &Mutex<VecDeque<usize>>) -> Option<usize> {
    // It is whole between any two statements.
    let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
    open.pop_front()
}

fn give_back(open: &Mutex<VecDeque<usize>>, nth: usize) {
    let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
    open.push_front(nth);
}

/// Take over what the runs have done.
fn count(record: &mut Part, done: &[AtomicU64]) {
    for (run, done) in record.runs.iter_mut().zip(done) {
        run.done = done.load(Ordering::Relaxed);
    }
}
