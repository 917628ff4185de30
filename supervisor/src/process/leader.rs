//! The first process of a job: what its exit was, seen without reaping it, and reaping it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, WaitIdStatus, pidfd_open, waitid};
use state_machine::record::Exit;

use crate::sys;

/// Reads a wait status; none for one that is not an end (stopped, continued).
fn exit_of(status: &WaitIdStatus) -> Option<Exit> {
    let byte = |number: i32| u8::try_from(number & 0xff).ok();
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => byte(code).map(Exit::Code),
        (None, Some(signal)) => byte(signal).map(Exit::Signal),
        (None, None) => None,
    }
}

/// The command of a job, our child.
///
/// It is left a zombie until [`Leader::reap`]: as long as it is, its number and that of its group are
/// nobody else's (F41, F42).
#[derive(Debug)]
pub(crate) struct Leader {
    pid: Pid,
    pidfd: OwnedFd,
}

impl Leader {
    /// Takes hold of a child just forked. Nobody but this value may reap it (F40).
    pub(super) fn of_child(pid: Pid) -> io::Result<Leader> {
        let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
        Ok(Leader { pid, pidfd })
    }

    /// Its number: its own until reaped.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Readable once it has ended; for `poll`.
    pub(crate) fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// How it ended, if it has, leaving it a zombie.
    pub(crate) fn peek(&self) -> io::Result<Option<Exit>> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(self.wait(options)?.as_ref().and_then(exit_of))
    }

    /// Waits for its end, if it has not come yet, and gives up its number.
    pub(crate) fn reap(self) -> io::Result<Exit> {
        let status = self.wait(WaitIdOptions::EXITED)?;
        status.as_ref().and_then(exit_of).ok_or_else(|| {
            io::Error::other(format!(
                "process {} ended in a way that has no name",
                self.pid
            ))
        })
    }

    /// Ends it, whatever it does, and reaps it.
    pub(super) fn kill_and_reap(self) -> io::Result<Exit> {
        // A zombie takes the signal too; no other failure is possible for one's own child that has
        // not executed anything yet.
        sys::pidfd_kill(self.pidfd(), nix::libc::SIGKILL)?;
        self.reap()
    }

    fn wait(&self, options: WaitIdOptions) -> io::Result<Option<WaitIdStatus>> {
        Ok(retry_on_intr(|| {
            waitid(WaitId::PidFd(self.pidfd()), options)
        })?)
    }
}
