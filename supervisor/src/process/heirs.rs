//! What is left of a command whose minder was killed: it is nobody's, and has the locked description that it inherited, so that
//! what was locked for it stays locked. It is known by that description and by a mark of that one command in its environment,
//! both: whoever else has the lock is never taken for it. Nothing here knows what was locked.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::libc::SIGKILL;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::leftovers::holds_lock;
use super::proc::{self, Process};
use super::tree::name_all;
use crate::sys;

/// The longest sleep between two looks at those that were killed.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A command by what everything that it started has.
#[derive(Debug)]
pub(crate) struct Heirs {
    mark: Vec<u8>,
    /// Device and inode of the locked file.
    file: (u64, u64),
}

/// Who but this process has the file locked.
enum Holders {
    Nobody,
    /// What is left of the command, and nobody else. A process that is just becoming another program cannot be told yet.
    Heirs(Vec<Process>),
    /// Somebody else, too: he sees to it.
    Others,
}

impl Heirs {
    /// Of a command that was started with this variable, and has inherited the exclusive lock of this file.
    pub(crate) fn of(variable: &str, value: &OsStr, file: &Path) -> io::Result<Heirs> {
        let found = std::fs::metadata(file)?;
        Ok(Heirs {
            mark: proc::marker(variable, value),
            file: (found.dev(), found.ino()),
        })
    }

    /// Kill all of them, as their first process was, look after look until none is found. `false` where somebody else has the
    /// lock, too: they are his to end, and are left to him.
    ///
    /// # Errors
    ///
    /// When some do not die within `limit`: it names them.
    pub(crate) fn kill(&self, limit: Duration) -> io::Result<bool> {
        let until = Instant::now() + limit;
        loop {
            let heirs = match self.holders() {
                Holders::Nobody => return Ok(true),
                Holders::Others => return Ok(false),
                Holders::Heirs(heirs) => heirs,
            };
            let held: Vec<OwnedFd> = heirs.iter().filter_map(|one| self.hold(one)).collect();
            for one in &held {
                // Gone already, or not ours to signal: the next look tells.
                let _ = sys::pidfd_kill(one.as_fd(), SIGKILL);
            }
            if Instant::now() >= until {
                let left = name_all(&heirs);
                return Err(io::Error::other(format!("these do not end: {left}")));
            }
            wait_for_one(&held);
        }
    }

    fn holders(&self) -> Holders {
        let me = proc::own_pid();
        let mut heirs = Vec::new();
        for pid in proc::all().into_iter().filter(|&pid| pid != me) {
            if !holds_lock(pid, self.file) {
                continue;
            }
            let Some(process) = Process::read(pid).filter(|it| !it.is_dead()) else {
                continue;
            };
            if self.is_marked(pid) == Some(false) {
                return Holders::Others;
            }
            heirs.push(process);
        }
        if heirs.is_empty() {
            Holders::Nobody
        } else {
            Holders::Heirs(heirs)
        }
    }

    fn is_marked(&self, pid: Pid) -> Option<bool> {
        proc::has_in_environment(pid, &self.mark)
    }

    /// A descriptor of exactly this process, if it still is one of them: opened first and asked after, so that it cannot name
    /// whoever has the number now (F38).
    fn hold(&self, process: &Process) -> Option<OwnedFd> {
        let pidfd = pidfd_open(process.pid, PidfdFlags::empty()).ok()?;
        let is_same = Process::read(process.pid).is_some_and(|now| now.is_same(process));
        (is_same && self.is_marked(process.pid) == Some(true)).then_some(pidfd)
    }
}

/// Sleep until one of them has ended, or for a moment.
fn wait_for_one(processes: &[OwnedFd]) {
    let mut ends: Vec<PollFd<'_>> = processes
        .iter()
        .map(|pidfd| PollFd::new(pidfd, PollFlags::IN))
        .collect();
    let limit = Timespec::try_from(LOOK_AGAIN).ok();
    // However it returns, the next look tells what there is.
    let _ = poll(&mut ends, limit.as_ref());
}
