//! What the fetcher tells its worker: how far it is, a few times a second and only when that changed; and what else there is to
//! say, at once.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::net::{RecvFlags, recv};
use state_machine::pull::word::{Cause, Word};
use state_machine::record::{Account, Progress};

use crate::sys;

/// The shortest time between two words about how far it is.
const BETWEEN: Duration = Duration::from_millis(250);

/// Tells the worker. Shared by everybody who fetches.
pub(super) struct Voice {
    socket: OwnedFd,
    tally: Mutex<Tally>,
}

/// How far it is.
struct Tally {
    progress: Progress,
    account: Account,
    /// How many files there are whose length is not known yet, and how long the others are together, in bytes.
    unknown: u64,
    known_bytes: u64,
    said: Option<(Progress, Account)>,
    said_at: Instant,
    doing: Option<String>,
}

impl Tally {
    /// The whole is known once every file is.
    fn sum_up(&mut self) {
        self.progress.total_bytes = (self.unknown == 0).then_some(self.known_bytes);
    }
}

impl Voice {
    pub(super) fn new(socket: OwnedFd) -> Voice {
        let tally = Tally {
            progress: Progress::default(),
            account: Account::default(),
            unknown: 0,
            known_bytes: 0,
            said: None,
            said_at: Instant::now(),
            doing: None,
        };
        Voice {
            socket,
            tally: Mutex::new(tally),
        }
    }

    /// How many files there are to be, and how long each is where that is known, in bytes.
    pub(super) fn expect(&self, sizes: impl Iterator<Item = Option<u64>>) {
        let mut tally = self.tally();
        let mut files = 0;
        for size in sizes {
            files += 1;
            match size {
                Some(size) => tally.known_bytes = tally.known_bytes.saturating_add(size),
                None => tally.unknown += 1,
            }
        }
        tally.progress.files_total = Some(files);
        tally.sum_up();
        // What is here already is not counted yet, and was told by an earlier fetcher.
    }

    /// The length of a file is known now, in bytes, and was this before, where anything was.
    pub(super) fn learns(&self, before: Option<u64>, size: u64) {
        let mut tally = self.tally();
        match before {
            Some(before) => tally.known_bytes = tally.known_bytes.saturating_sub(before),
            None => tally.unknown = tally.unknown.saturating_sub(1),
        }
        tally.known_bytes = tally.known_bytes.saturating_add(size);
        tally.sum_up();
    }

    /// So many bytes have come.
    pub(super) fn fetched(&self, bytes: u64) {
        let mut tally = self.tally();
        tally.progress.done_bytes += bytes;
        tally.account.fetched_bytes += bytes;
        if tally.said_at.elapsed() >= BETWEEN {
            self.tell(&mut tally);
        }
    }

    /// So many bytes were there already.
    pub(super) fn reused(&self, bytes: u64) {
        let mut tally = self.tally();
        tally.progress.done_bytes += bytes;
        tally.account.reused_bytes += bytes;
    }

    /// So many bytes that were there are of no use; whether they were counted as done.
    pub(super) fn discarded(&self, bytes: u64, counted: bool, what: &str, why: &str) {
        let mut tally = self.tally();
        tally.account.discarded_bytes += bytes;
        if counted {
            tally.progress.done_bytes = tally.progress.done_bytes.saturating_sub(bytes);
        }
        self.say(&Word::Note(format!(
            "{what}: {bytes} bytes discarded, begun anew: {why}"
        )));
        self.tell(&mut tally);
    }

    /// Nothing has come for a while: say what came last.
    pub(super) fn is_silent(&self) {
        let mut tally = self.tally();
        if tally.said_at.elapsed() >= BETWEEN {
            self.tell(&mut tally);
        }
    }

    /// Say how far it is, now.
    pub(super) fn leaves(&self) {
        self.tell(&mut self.tally());
    }

    /// A file is whole.
    pub(super) fn file_done(&self) {
        let mut tally = self.tally();
        tally.progress.files_done += 1;
        if tally.said_at.elapsed() >= BETWEEN {
            self.tell(&mut tally);
        }
    }

    /// A request is made anew, for this reason, after a wait.
    pub(super) fn retries(&self, why: &str, wait: Duration) {
        let mut tally = self.tally();
        tally.account.retries += 1;
        self.say(&Word::Note(format!("asked again after {wait:?}: {why}")));
        self.tell(&mut tally);
    }

    /// A server allows no more than so many connections for this file.
    pub(super) fn has_fewer(&self, what: &str, connections: u64) {
        let mut tally = self.tally();
        tally.account.retries += 1;
        self.say(&Word::Note(format!(
            "{what}: a connection was refused; {connections} left"
        )));
    }

    /// What it is doing, for people.
    pub(super) fn doing(&self, line: Option<&str>) {
        let mut tally = self.tally();
        if tally.doing.as_deref() != line {
            tally.doing = line.map(str::to_owned);
            self.say(&Word::Doing(tally.doing.clone()));
        }
    }

    /// This belongs into the history.
    pub(super) fn note(&self, text: impl Into<String>) {
        self.say(&Word::Note(text.into()));
    }

    /// How many bytes are here.
    pub(super) fn done_bytes(&self) -> u64 {
        self.tally().progress.done_bytes
    }

    /// Say how far it is, and why it ends.
    pub(super) fn ends(&self, cause: Option<&Cause>) {
        self.tell(&mut self.tally());
        if let Some(cause) = cause {
            self.say(&Word::Cause(cause.clone()));
        }
    }

    /// Ask to be let register, and wait for it. `false` when nobody is there to let us.
    pub(super) fn may_register(&self) -> bool {
        self.tell(&mut self.tally());
        self.say(&Word::Register);
        let mut answer = [0; 16];
        rustix::io::retry_on_intr(|| recv(&self.socket, &mut answer[..], RecvFlags::empty()))
            .is_ok_and(|(length, _)| length > 0)
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        // A tally is whole between any two statements.
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, tally: &mut Tally) {
        if tally.progress.files_total.is_none() {
            // Until it is known what there is to be, what was told last time is true.
            return;
        }
        let now = (tally.progress, tally.account);
        tally.said_at = Instant::now();
        if tally.said != Some(now) {
            tally.said = Some(now);
            self.say(&Word::Moved(now.0, now.1));
        }
    }

    fn say(&self, word: &Word) {
        // A worker that is gone needs to know nothing, and whoever ends it ends us.
        let _ = sys::send(self.socket.as_fd(), &word.encode());
    }
}
