//! What a job has left behind when its worker is dead: its processes are nobody's children that we
//! know of, and are recognised by what they inherited.
//!
//! Two marks: the variable that names the job's directory in the environment a process was started
//! with, and the locked description of the job's `tree` file among its open files. The first is cheap
//! and survives a program that closes every descriptor (R11); the second survives one that writes over
//! its environment. A pid from a record is no mark, and is not looked at.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::libc::{SIGCONT, SIGKILL, SIGTERM};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::proc::{self, Process};
use super::tree::name_all;
use crate::sys;

/// The variable that holds the job's directory in the environment of every process of its tree.
pub(crate) const DIRECTORY_VARIABLE: &str = "OUTLIVE_JOB_DIR";

/// How long [`end`] goes on after the grace is over before it names those that do not die.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// Longest sleep between two looks at the processes.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The same when none was found and it is only to be made sure of.
const MAKE_SURE: Duration = Duration::from_millis(1);

/// How many are waited for at a time: a descriptor each, of which there may be few.
const WAITED_FOR: usize = 64;

/// Looks that must find nothing, in a row, before the job counts as gone.
const QUIET_LOOKS: u32 = 2;

/// The same, on a machine where at every look some process was gone before it could be examined.
const QUIET_LOOKS_WHEN_BUSY: u32 = 6;

/// Whose processes are meant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job<'a> {
    /// The job's directory, byte for byte as its processes have it in their environment.
    pub(crate) dir: &'a Path,
    /// The job's `tree` file, open, where the descriptors of every process are to be searched too:
    /// ten times the work. Only an exclusive lock counts, so that one who merely probes is not taken
    /// for one of the job's. Held open because a number of an inode is no identity otherwise (F19).
    pub(crate) tree: Option<BorrowedFd<'a>>,
}

/// A process that belongs to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// Its number, at the time it was found.
    pub(crate) pid: Pid,
    /// Its short name.
    pub(crate) comm: OsString,
    /// When it started, in clock ticks since boot.
    pub(crate) start: u64,
}

/// What it took to end a job's leftovers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Whether some did not end by SIGTERM within the grace.
    pub(crate) forced: bool,
}

/// Every living process of the job but this one, as far as we may look into it.
pub(crate) fn find(job: &Job<'_>) -> io::Result<Vec<Found>> {
    let found = |it: Process| Found {
        pid: it.pid,
        comm: it.comm,
        start: it.start,
    };
    Ok(Marks::of(job)?
        .look(|_| {})
        .members
        .into_iter()
        .map(found)
        .collect())
}

/// How many [`find`] finds.
pub(crate) fn count(job: &Job<'_>) -> io::Result<usize> {
    Ok(find(job)?.len())
}

/// Ends every process of the job but this one: SIGTERM (and SIGCONT, so that a stopped one hears it),
/// up to `grace` for them to go, then SIGKILL until none is found.
///
/// Blocks for at most `grace` and ten seconds. The error after that names those that are left.
pub(crate) fn end(job: &Job<'_>, grace: Duration) -> io::Result<Ended> {
    let marks = Marks::of(job)?;
    let asked_until = Instant::now() + grace;
    if ask(&marks, asked_until) {
        return Ok(Ended { forced: false });
    }
    kill_all(&marks, Instant::now() + KILL_LIMIT)?;
    Ok(Ended { forced: true })
}

/// Asks each process once to end, those that turn up meanwhile too; says whether all were gone in
/// time.
fn ask(marks: &Marks, until: Instant) -> bool {
    let mut asked: Vec<Process> = Vec::new();
    let mut quiet = Quiet::default();
    loop {
        let mut open = Vec::new();
        let look = marks.look(|process| {
            let Some(pidfd) = marks.hold(process) else {
                return;
            };
            if !asked.iter().any(|one| one.is_same(process)) {
                // Gone already, or not ours to signal: the next look tells.
                let _ = sys::pidfd_kill(pidfd.as_fd(), SIGTERM);
                let _ = sys::pidfd_kill(pidfd.as_fd(), SIGCONT);
                asked.push(process.clone());
            }
            if open.len() < WAITED_FOR {
                open.push(pidfd);
            }
        });
        if quiet.after(&look) {
            return true;
        }
        let left = until.saturating_duration_since(Instant::now());
        if look.members.is_empty() {
            wait_for_one(&open, MAKE_SURE);
        } else if left.is_zero() {
            return false;
        } else {
            wait_for_one(&open, left.min(LOOK_AGAIN));
        }
    }
}

/// Kills what is found, look after look, until nothing is.
fn kill_all(marks: &Marks, until: Instant) -> io::Result<()> {
    let mut quiet = Quiet::default();
    let mut seen: Vec<Process> = Vec::new();
    loop {
        let mut open = Vec::new();
        // At once and not after the look: what forks and exits is elsewhere by then.
        let look = marks.look(|process| {
            let Some(pidfd) = marks.hold(process) else {
                return;
            };
            let _ = sys::pidfd_kill(pidfd.as_fd(), SIGKILL);
            if open.len() < WAITED_FOR {
                open.push(pidfd);
            }
        });
        if quiet.after(&look) {
            return Ok(());
        }
        if Instant::now() >= until {
            let left = name_all(&look.members);
            return Err(io::Error::other(format!("these do not end: {left}")));
        }
        let new = look
            .members
            .iter()
            .any(|one| !seen.iter().any(|old| old.is_same(one)));
        if !new {
            // All were hit before: give them the processor to die on.
            wait_for_one(&open, LOOK_AGAIN);
        }
        seen = look.members;
    }
}

/// Sleeps until one of the processes has ended, or the time is up.
fn wait_for_one(processes: &[OwnedFd], limit: Duration) {
    let mut ends: Vec<PollFd<'_>> = processes
        .iter()
        .map(|pidfd| PollFd::new(pidfd, PollFlags::IN))
        .collect();
    let limit = Timespec::try_from(limit).ok();
    // However it returns, the next look tells what there is.
    let _ = poll(&mut ends, limit.as_ref());
}

/// Whether nothing was found often enough in a row.
#[derive(Default)]
struct Quiet {
    looks: u32,
    sure: u32,
}

impl Quiet {
    fn after(&mut self, look: &Look) -> bool {
        if !look.members.is_empty() {
            *self = Quiet::default();
            return false;
        }
        self.looks += 1;
        self.sure = if look.missed { 0 } else { self.sure + 1 };
        self.sure >= QUIET_LOOKS || self.looks >= QUIET_LOOKS_WHEN_BUSY
    }
}

/// One look at all processes.
pub(super) struct Look {
    members: Vec<Process>,
    /// Whether one could not be examined, because it was ending or executing another program: it may
    /// have been the job's, and have left a child.
    pub(super) missed: bool,
}

/// What the processes of a job are known by.
pub(super) struct Marks {
    variable: Vec<u8>,
    /// Device and inode of the tree file.
    tree: Option<(u64, u64)>,
}

impl Marks {
    pub(super) fn of(job: &Job<'_>) -> io::Result<Marks> {
        let tree = match job.tree {
            Some(fd) => {
                let file = File::from(fd.try_clone_to_owned()?).metadata()?;
                Some((file.dev(), file.ino()))
            }
            None => None,
        };
        let variable = proc::marker(DIRECTORY_VARIABLE, job.dir.as_os_str());
        Ok(Marks { variable, tree })
    }

    /// Examines every process, and shows those of the job to `meet` the moment they are found.
    pub(super) fn look(&self, mut meet: impl FnMut(&Process)) -> Look {
        let me = proc::own_pid();
        let mut look = Look {
            members: Vec::new(),
            missed: false,
        };
        for pid in proc::all().into_iter().filter(|&pid| pid != me) {
            let Some(process) = Process::read(pid) else {
                look.missed = true;
                continue;
            };
            if process.is_dead() || process.kernel {
                continue;
            }
            match self.are_on(pid) {
                Some(true) => {
                    meet(&process);
                    look.members.push(process);
                }
                Some(false) => {}
                None => look.missed = true,
            }
        }
        look
    }

    /// Whether `pid` carries one of the marks; none when that cannot be told now.
    pub(super) fn are_on(&self, pid: Pid) -> Option<bool> {
        match proc::has_in_environment(pid, &self.variable) {
            Some(true) => Some(true),
            _ if self.tree.is_some_and(|tree| holds_lock(pid, tree)) => Some(true),
            unmarked => unmarked,
        }
    }

    /// A descriptor of exactly this process, if it still is one of the job's: opened first and asked
    /// after, so that it cannot name whoever has the number now (F38).
    pub(super) fn hold(&self, process: &Process) -> Option<OwnedFd> {
        let pidfd = pidfd_open(process.pid, PidfdFlags::empty()).ok()?;
        let same = Process::read(process.pid).is_some_and(|now| now.is_same(process));
        (same && self.are_on(process.pid) == Some(true)).then_some(pidfd)
    }
}

/// Whether `pid` has a descriptor of that file through which the file is locked exclusively.
pub(super) fn holds_lock(pid: Pid, file: (u64, u64)) -> bool {
    let Ok(descriptors) = std::fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    descriptors.flatten().any(|descriptor| {
        // Through the link, which leads to the open file itself, under whatever name.
        let Ok(target) = std::fs::metadata(descriptor.path()) else {
            return false;
        };
        (target.dev(), target.ino()) == file && is_locked_through(pid, &descriptor.file_name())
    })
}

/// Whether the open file description behind a descriptor has an exclusive flock.
fn is_locked_through(pid: Pid, descriptor: &OsString) -> bool {
    let path = Path::new("/proc")
        .join(pid.to_string())
        .join("fdinfo")
        .join(descriptor);
    let Ok(text) = std::fs::read_to_string(path) else {
        return false;
    };
    // `lock:  1: FLOCK  ADVISORY  WRITE 1234 00:2a:11 0 EOF`
    text.lines()
        .filter(|line| line.starts_with("lock:"))
        .any(|line| line.contains(" FLOCK ") && line.contains(" WRITE "))
}

#[cfg(test)]
mod tests;
