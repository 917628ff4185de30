//! Being told of changes by a supervisor. What is told is not even read: that something was told is the hint.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use state_machine::wire::{Ask, Interest, LONGEST_LINE};

use super::address::connect;
use crate::clock;

/// How long a supervisor may take to say that it tells. One that is there takes a millisecond.
const PATIENCE: Duration = Duration::from_millis(500);
/// How the line begins that says so.
const AGREED: &[u8] = br#"{"ok""#;

/// How long to wait at least, and at most, before one asks again who may still be there and did not agree.
const FIRST_RETRY: Duration = Duration::from_millis(200);
const LAST_RETRY: Duration = Duration::from_secs(10);

/// Who is asked to tell of what: the supervisor of a store, and its successors.
#[derive(Debug)]
pub(crate) struct Teller {
    root: PathBuf,
    interest: Interest,
    pause: Duration,
    /// Not before this, in time since boot.
    next: Duration,
}

impl Teller {
    /// The supervisor of the store at `root`, whoever it is.
    pub(crate) fn new(root: &Path, interest: Interest) -> Teller {
        Teller {
            root: root.to_owned(),
            interest,
            pause: FIRST_RETRY,
            next: Duration::ZERO,
        }
    }

    /// Ask it, unless it was asked only just now. The pauses become longer: one that is stopped takes connections and does not
    /// answer.
    pub(crate) fn ask(&mut self) -> Option<Subscription> {
        let now = clock::since_boot();
        if now < self.next {
            return None;
        }
        self.next = now + self.pause;
        self.pause = (2 * self.pause).min(LAST_RETRY);
        Subscription::begin(&self.root, self.interest.clone()).ok()
    }
}

/// What was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Nothing that was not known.
    Nothing,
    /// Something: look.
    Something,
    /// Nothing more will be: the supervisor is gone, does not answer, or has too many to tell.
    Lost,
}

/// A connection over which a supervisor tells of changes.
#[derive(Debug)]
pub(crate) struct Subscription {
    stream: UnixStream,
    /// Until when it must have agreed, in time since boot; `None` once it has.
    awaited: Option<Duration>,
    /// The beginning of its first line.
    first: Vec<u8>,
}

impl Subscription {
    /// Ask to be told. Does not wait: until the supervisor agrees, nothing is told, and that it does is the first thing
    /// that is heard. So whoever looks whenever something was heard has looked after it began to tell.
    ///
    /// # Errors
    ///
    /// When there is nobody to ask.
    fn begin(root: &Path, interest: Interest) -> io::Result<Subscription> {
        let mut stream = connect(root)?;
        let mut ask = Ask::Subscribe(interest).encode();
        if ask.len() > LONGEST_LINE {
            // So many jobs are nearly all of them.
            ask = Ask::Subscribe(Interest::default()).encode();
        }
        stream.write_all(&ask)?;
        Ok(Subscription {
            stream,
            awaited: Some(clock::since_boot() + PATIENCE),
            first: Vec::new(),
        })
    }

    /// How long to wait at most before [`Subscription::hear`] is called; `None` for as long as one likes.
    pub(crate) fn patience(&self) -> Option<Duration> {
        self.awaited
            .map(|until| until.saturating_sub(clock::since_boot()))
    }

    /// Hear what was told since the last call.
    pub(crate) fn hear(&mut self) -> Heard {
        let mut heard = Heard::Nothing;
        let mut buffer = [0; 4096];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Heard::Lost,
                Ok(length) => {
                    if self.awaited.is_some() && !self.has_agreed(&buffer[..length]) {
                        return Heard::Lost;
                    }
                    heard = Heard::Something;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return Heard::Lost,
            }
        }
        if self.patience() == Some(Duration::ZERO) {
            return Heard::Lost;
        }
        heard
    }

    /// Whether the first line is not that of a refusal, as far as it has come.
    fn has_agreed(&mut self, bytes: &[u8]) -> bool {
        let missing = AGREED.len() - self.first.len();
        self.first
            .extend_from_slice(&bytes[..bytes.len().min(missing)]);
        if self.first.len() == AGREED.len() {
            self.awaited = None;
        }
        AGREED.starts_with(&self.first)
    }
}

impl AsFd for Subscription {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
