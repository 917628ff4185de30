//! Running a command within bounds: it gets a session of its own and a time, what it writes goes to files and never through
//! a pipe, and when this says how it ended, nothing that it ever started is left.
//!
//! A tree can only be ended for certain by a process that all its orphans come to, that has one thread, and that has no other
//! children (see `tree`). The caller is none of these for sure, so a helper is: the *minder*, a fork of the caller where that
//! has one thread, and else a program that is executed for it. The two hold the ends of a socket: a minder whose caller is gone
//! ends what it minds and leaves, so that a caller who is killed leaves nothing running either.
//!
//! Nothing here knows what is run, nor why; what a command is to find in its environment is settled by the caller.

mod message;
mod serve;

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, WaitOptions, waitpid};
use state_machine::record::Exit;

use self::message::{Answer, Order};
use crate::sys::{self, Forked};

pub(crate) use self::serve::serve_on_stdin;

/// What is shown as the command line of a minder.
const TITLE: &str = "outlive minder";

/// A command, and the bounds within which it is run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work<'a> {
    /// Program and arguments, byte for byte; no shell.
    pub(crate) argv: &'a [OsString],
    /// The whole environment: see [`environment`].
    pub(crate) env: &'a [(OsString, OsString)],
    /// The directory it starts in.
    pub(crate) cwd: &'a Path,
    /// Its file mode creation mask, or that of this process.
    pub(crate) umask: Option<u32>,
    /// What it reads; nothing if there is none.
    pub(crate) stdin: Option<BorrowedFd<'a>>,
    /// A file for what it prints.
    pub(crate) stdout: BorrowedFd<'a>,
    /// A file for its complaints; the same, opened for appending, keeps both as they came.
    pub(crate) stderr: BorrowedFd<'a>,
    /// A locked description that everything it starts inherits, and the minder keeps until all of that is gone.
    pub(crate) held: Option<BorrowedFd<'a>>,
    /// How long it may take.
    pub(crate) timeout: Duration,
    /// How long it has after SIGTERM before everything is killed.
    pub(crate) grace: Duration,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It exited with 0.
    Succeeded,
    /// It ended in any other way, or was never started: then there is no exit, and what it would have written its complaints to
    /// says why.
    Failed {
        /// How it ended.
        exit: Option<Exit>,
    },
    /// Its time was over, and it was ended.
    TimedOut,
    /// The caller was told to stop, and it was ended.
    Stopped,
}

/// What became of a command. Nothing that it started is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ran {
    /// How it ended.
    pub(crate) outcome: Outcome,
    /// How long it ran by itself, in milliseconds of a clock that counts suspend; ending what it left is not counted.
    pub(crate) duration_ms: u64,
    /// What it had left running when it ended by itself, and which was ended: the first few by pid and name.
    pub(crate) leftovers: Option<String>,
    /// Why it was not started.
    pub(crate) cannot_start: Option<String>,
}

impl Ran {
    /// Whether it exited with 0.
    pub(crate) fn succeeded(&self) -> bool {
        self.outcome == Outcome::Succeeded
    }
}

/// This process's environment for a command: without any `GIT_…`, which a hook or an alias of git leaves behind and which would
/// make every git in the command work on somebody else's repository, and with `extra`, which comes first and replaces.
pub(crate) fn environment(extra: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    let extra: Vec<(OsString, OsString)> = extra
        .iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    let is_kept = |name: &OsString| {
        !name.as_encoded_bytes().starts_with(b"GIT_")
            && name != "OUTLIVE_EXEC"
            && !extra.iter().any(|(new, _)| new == name)
    };
    let inherited: Vec<_> = std::env::vars_os()
        .filter(|(name, _)| is_kept(name))
        .collect();
    extra.into_iter().chain(inherited).collect()
}

/// A helper process that runs commands for this one, one at a time. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Minder {
    socket: OwnedFd,
    process: Process,
}

/// The process of a minder, by how it is reaped.
#[derive(Debug)]
enum Process {
    Forked(Pid),
    Executed(Child),
}

impl Minder {
    /// Forks one. This process must have one thread, and, where it looks after a tree of its own, has to be done with that:
    /// a minder is a child of it.
    pub(crate) fn fork() -> io::Result<Minder> {
        let (ours, theirs) = pair()?;
        match sys::fork()? {
            Forked::Parent(pid) => Ok(Minder {
                socket: ours,
                process: Process::Forked(pid),
            }),
            Forked::Child => {
                let _guard = sys::NeverUnwind;
                // What this was a copy of has locks and sockets open that must not live on here.
                sys::close_from(3, &[theirs.as_raw_fd()]);
                std::mem::forget(ours);
                let _ = serve::be_a_stranger();
                sys::exit_now(i32::from(serve::serve(theirs).is_err()))
            }
        }
    }

    /// Executes one: `program` is told to be a minder, and hears us on its standard input.
    pub(crate) fn execute(mut program: std::process::Command) -> io::Result<Minder> {
        let (ours, theirs) = pair()?;
        let child = program
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        // The other copy of their end goes with the command, so that its end is heard.
        drop(program);
        Ok(Minder {
            socket: ours,
            process: Process::Executed(child),
        })
    }

    /// Runs a command, and returns when nothing of it is left. When `stop` is readable, it is ended: SIGTERM to everything,
    /// the grace, SIGKILL; nothing is read from it.
    ///
    /// # Errors
    ///
    /// When no process can be made, when the minder was lost, which is no end anybody asked for and may leave processes that
    /// have [`Work::held`], and when processes do not die of SIGKILL: these are named.
    pub(crate) fn run(&mut self, work: &Work<'_>, stop: Option<BorrowedFd<'_>>) -> io::Result<Ran> {
        message::send_work(&self.socket, work)?;
        let mut stop = stop;
        loop {
            let woken = self.sleep(stop)?;
            if woken.stop {
                // A minder that is gone is found out just below.
                let _ = message::send_order(&self.socket, Order::Stop);
                stop = None;
            }
            if woken.answered {
                return message::receive_answer(&self.socket)?.map_or_else(
                    || Err(io::Error::other("what ran the command was lost")),
                    Answer::into_ran,
                );
            }
        }
    }

    fn sleep(&self, stop: Option<BorrowedFd<'_>>) -> io::Result<Woken> {
        let mut fds = vec![PollFd::new(&self.socket, PollFlags::IN)];
        fds.extend(stop.map(|stop| PollFd::from_borrowed_fd(stop, PollFlags::IN)));
        match poll(&mut fds, None) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Woken::default()),
            Err(error) => return Err(error.into()),
        }
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        Ok(Woken {
            answered: fds.first().is_some_and(is_ready),
            stop: fds.get(1).is_some_and(is_ready),
        })
    }
}

/// Why a caller woke.
#[derive(Default)]
struct Woken {
    answered: bool,
    stop: bool,
}

impl Drop for Minder {
    fn drop(&mut self) {
        // Before it is waited for, as this is what it ends of. The descriptor is closed by its owner, who has another then.
        let _ = rustix::net::shutdown(self.socket.as_fd(), rustix::net::Shutdown::Both);
        match &mut self.process {
            Process::Forked(pid) => {
                // No child any more if the caller has SIGCHLD ignored, which is as good.
                let _ = retry_on_intr(|| waitpid(Some(*pid), WaitOptions::empty()));
            }
            Process::Executed(child) => {
                let _ = child.wait();
            }
        }
    }
}

fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

#[cfg(test)]
mod tests;
