//! The supervisor's end: executing a spawner, asking it, hearing from it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};
use state_machine::id::JobId;

use super::message::{Answer, Ask, LONGEST, Word, encode};
use crate::error::{Error, Result};
use crate::store::Store;
use crate::worker::{Launcher, Role};

/// An argument that says nothing. Workers show their job in place of the spawner's arguments, which leave no room for that
/// in a store with a short path.
const ROOM: &str =
    "....................................................................................";

/// How long a spawner may take until it can be asked. It takes a millisecond.
const START_LIMIT: Duration = Duration::from_secs(10);

/// A spawner, as its supervisor has it. It ends when this is dropped; the workers that it has forked live on.
#[derive(Debug)]
pub struct Spawner {
    socket: OwnedFd,
    /// There until it is dropped.
    process: Option<Child>,
}

impl Spawner {
    /// Execute a spawner for the jobs of `store`, and return when it can be asked.
    ///
    /// `open_files` is the soft limit of open files that workers and commands are to have, where this process has raised
    /// its own; `None` leaves them what this process has.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] when the launcher starts workers only, [`Error::Worker`] when the program cannot be executed, says
    /// that it can be no spawner, or says nothing.
    pub fn start(store: &Store, launcher: &Launcher, open_files: Option<u64>) -> Result<Spawner> {
        let mut command = launcher.command(Role::Spawner)?;
        command.arg(store.root());
        command.arg(open_files.map_or("-".into(), |limit| limit.to_string()));
        command.arg(ROOM);
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        let (ours, theirs) = pair.map_err(|error| failed(&error))?;
        let process = command
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| failed(&error))?;
        // The other copy of the other end goes with the command, so that its end is heard.
        drop(command);
        let spawner = Spawner {
            socket: ours,
            process: Some(process),
        };
        spawner.hear_that_it_is_ready()?;
        Ok(spawner)
    }

    /// The process of the spawner.
    pub fn pid(&self) -> u32 {
        // Only `drop` takes it.
        self.process.as_ref().map_or(0, Child::id)
    }

    /// Ask for a worker on a job that waits to be run: one that is queued, or that has lost its worker. Many threads may
    /// ask at once. A job is not to be asked for again before it is refused, or left by the worker that was forked for it.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] when the spawner has enough to do: ask again when it has answered something. Any
    /// other error means that it is gone, and so will [`Spawner::receive`].
    pub fn ask(&self, job: &JobId, slot: Option<u32>) -> io::Result<()> {
        let ask = Ask {
            job: job.clone(),
            slot,
        };
        send(
            &self.socket,
            &encode(&ask),
            SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
        )?;
        Ok(())
    }

    /// The next answer, without waiting for one: `None` when there is none now. The descriptor of this can be read when
    /// there is.
    ///
    /// # Errors
    ///
    /// When the socket cannot be read, or what is said on it is not understood. Then the spawner is of no more use.
    pub fn receive(&self) -> io::Result<Option<Answer>> {
        match self.word()? {
            Heard::Word(word) => match word.into_answer() {
                Some(answer) => Ok(Some(answer)),
                None => Err(io::Error::other("a spawner begins again")),
            },
            Heard::Nothing => Ok(None),
            Heard::End => Ok(Some(Answer::Gone)),
        }
    }

    fn word(&self) -> io::Result<Heard> {
        let mut buffer = [0_u8; LONGEST];
        loop {
            match recv(&self.socket, &mut buffer, RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Ok(Heard::End),
                Ok((length, _)) => {
                    let word = serde_json::from_slice(&buffer[..length])?;
                    return Ok(Heard::Word(word));
                }
                Err(Errno::AGAIN) => return Ok(Heard::Nothing),
                // It ended before it had read all that it was asked; what it said can still be read.
                Err(Errno::INTR | Errno::CONNRESET) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn hear_that_it_is_ready(&self) -> Result<()> {
        let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
        let limit = Timespec::try_from(START_LIMIT).ok();
        loop {
            match poll(&mut fds, limit.as_ref()) {
                Ok(0) => return Err(failed(&"it says nothing")),
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(failed(&error)),
            }
        }
        match self.word().map_err(|error| failed(&error))? {
            Heard::Word(Word::Ready { .. }) => Ok(()),
            Heard::Word(Word::Unfit { unfit }) => Err(failed(&unfit)),
            Heard::Word(_) | Heard::Nothing | Heard::End => {
                Err(failed(&"the program that was executed is no spawner"))
            }
        }
    }
}

/// What was heard.
enum Heard {
    Word(Word),
    /// Nothing now.
    Nothing,
    /// Nothing any more.
    End,
}

fn failed(why: &dyn std::fmt::Display) -> Error {
    Error::Worker(format!("the spawner was not started: {why}"))
}

impl AsFd for Spawner {
    /// What can be read when there is an answer. Nothing else is to be done with it.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for Spawner {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        // Told so here, as the descriptor itself may be closed a moment later than this.
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        let Some(mut process) = self.process.take() else {
            return;
        };
        if matches!(process.try_wait(), Ok(Some(_))) {
            return;
        }
        // It ends by itself, but one that is stopped does so who knows when. It must not stay a zombie then, and this must
        // not wait; where there is no thread to be had, it is a zombie until this process ends.
        let _ = std::thread::Builder::new()
            .name("spawner-end".into())
            .stack_size(64 << 10)
            .spawn(move || process.wait());
    }
}
