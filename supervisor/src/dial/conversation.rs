//! Asking a supervisor something, and its answer. Nothing here waits longer than it is told to.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::Deserialize;
use serde_json::Value;
use state_machine::wire::{Ask, Lines};

use super::address::connect;
use crate::clock;

/// How long an answer may be, in bytes: that about many pools is.
const LONGEST_ANSWER: usize = 8 << 20;

/// What a supervisor answered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    /// As asked.
    Ok(Value),
    /// Why not.
    Refused(String),
}

/// An answer as it is written. Fields that only a later version knows are passed over.
#[derive(Deserialize)]
struct Written {
    ok: Option<Value>,
    error: Option<String>,
}

/// A connection to a supervisor.
#[derive(Debug)]
pub(crate) struct Conversation {
    stream: UnixStream,
    lines: Lines,
}

impl Conversation {
    /// Connect. Does not wait.
    ///
    /// # Errors
    ///
    /// When there is no socket, nobody serves it, or too many wait to be heard (`WouldBlock`).
    pub(crate) fn begin(root: &Path) -> io::Result<Conversation> {
        Ok(Conversation {
            stream: connect(root)?,
            lines: Lines::up_to(LONGEST_ANSWER),
        })
    }

    /// Ask, and wait for the answer until `deadline`, in time since boot.
    ///
    /// # Errors
    ///
    /// `TimedOut`; `UnexpectedEof` when the supervisor has gone; `InvalidData` when the answer is none.
    pub(crate) fn ask(&mut self, ask: &Ask, deadline: Duration) -> io::Result<Reply> {
        // A request is far shorter than the kernel's buffer, and the last one was answered: it never blocks.
        self.stream.write_all(&ask.encode())?;
        loop {
            let line = self.lines.next_line();
            let line = line.map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))?;
            if let Some(line) = line {
                return read(&line);
            }
            self.wait(Some(deadline))?;
            if self.receive()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Wait until the supervisor has closed the connection, as it does when it ends; no longer than until `deadline`.
    ///
    /// # Errors
    ///
    /// `TimedOut`.
    pub(crate) fn see_it_end(&mut self, deadline: Option<Duration>) -> io::Result<()> {
        loop {
            self.wait(deadline)?;
            let ended = self.receive().unwrap_or(true);
            // Nothing that it says now is of interest.
            self.lines = Lines::up_to(LONGEST_ANSWER);
            if ended {
                return Ok(());
            }
        }
    }

    /// Sleep until something has come in.
    fn wait(&self, deadline: Option<Duration>) -> io::Result<()> {
        loop {
            let left = deadline.map(|deadline| deadline.saturating_sub(clock::since_boot()));
            let timeout = left.map(Timespec::try_from).transpose();
            let timeout = timeout.map_err(|_| Errno::INVAL)?;
            match poll(
                &mut [PollFd::new(&self.stream, PollFlags::IN)],
                timeout.as_ref(),
            ) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Take what has come in. Says whether that was the end.
    fn receive(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 8192];
        match self.stream.read(&mut buffer) {
            Ok(0) => Ok(true),
            Ok(length) => {
                self.lines.push(&buffer[..length]);
                Ok(false)
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

fn read(line: &[u8]) -> io::Result<Reply> {
    match serde_json::from_slice(line) {
        Ok(Written {
            error: Some(why), ..
        }) => Ok(Reply::Refused(why)),
        Ok(Written { ok: Some(ok), .. }) => Ok(Reply::Ok(ok)),
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "neither ok nor error",
        )),
        Err(error) => Err(io::Error::new(io::ErrorKind::InvalidData, error)),
    }
}
