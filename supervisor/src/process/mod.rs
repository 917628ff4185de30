//! The processes of a job: starting the command, knowing everything that descends from it, ending
//! all of it, and finding what outlived a dead worker; and running a command within bounds.
//!
//! Mechanics only. When to stop, what to record and how long to wait is the worker's business;
//! files of a job other than the descriptors handed in are nobody's here.

mod bounded;
mod cgroup;
mod heirs;
mod inside;
mod leader;
mod leftovers;
mod marked;
mod mask;
mod proc;
mod program;
mod signal;
mod spawn;
mod stdin;
mod tenants;
mod told;
mod tree;

#[cfg(test)]
pub(crate) mod testing;

pub(crate) use bounded::{Minder, Outcome, Ran, Work, environment, serve_on_stdin};
pub(crate) use cgroup::{
    Group, Unheld, hold_limits, leave_command, leave_jobs, place_for_group, what_is_not_held,
};
pub(crate) use heirs::Heirs;
pub(crate) use inside::{Census, census};
pub(crate) use leader::Leader;
pub(crate) use leftovers::{DIRECTORY_VARIABLE, Job, count, end};
pub(crate) use marked::{Marked, all_marked};
pub(crate) use mask::mask_all_but_faults;
pub(crate) use signal::{signal_everyone, signal_one};
pub(crate) use spawn::{CannotStart, Command, Waiting, fork_command};
pub(crate) use stdin::socket_on_stdin;
pub(crate) use tenants::{SLOT_VARIABLE, Tenancy, named};
pub(crate) use told::Told;
pub(crate) use tree::{
    Frozen, become_subreaper, freeze, is_empty, is_empty_after_reaping, kill_round, name_all,
    others, reap_adopted, signal_at_once, signal_lone, survivors, thaw,
};

/// When this process started, in clock ticks since boot; 0 where that cannot be read.
pub(crate) fn start_of_this_process() -> u64 {
    proc::Process::read(proc::own_pid()).map_or(0, |me| me.start)
}

/// The process that has this number now; none where there is no such process, or no such number.
fn numbered(pid: u32) -> Option<proc::Process> {
    let number = i32::try_from(pid).ok()?;
    proc::Process::read(rustix::process::Pid::from_raw(number)?)
}

/// Whether no process with this number does anything any more, or will in a moment. Who has the number of another that lives does not
/// count as gone.
pub(crate) fn is_gone(pid: u32) -> bool {
    numbered(pid).is_none_or(|it| it.is_dead() || it.is_being_killed())
}

/// Whether the process with this number that started then lives; `false` where that cannot be read.
pub(crate) fn lives(pid: u32, started: u64) -> bool {
    numbered(pid).is_some_and(|it| it.start == started && !it.is_dead())
}

/// A process for people: its number, its name, and whether it is stopped; none where it is gone.
pub(crate) fn described(pid: u32) -> Option<String> {
    let process = numbered(pid)?;
    let is_stopped = matches!(process.state, b'T' | b't');
    let how = if is_stopped {
        ", which is stopped,"
    } else {
        ""
    };
    Some(format!("process {pid} ({}){how}", process.comm.display()))
}

/// The process that has this file locked, as the kernel tells; none where it does not, or nobody has.
pub(crate) fn pid_that_locks(file: &std::path::Path) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;

    let found = std::fs::metadata(file).ok()?;
    let device = (
        rustix::fs::major(found.dev()),
        rustix::fs::minor(found.dev()),
    );
    let locked = format!("{:02x}:{:02x}:{}", device.0, device.1, found.ino());
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    // `1: FLOCK  ADVISORY  WRITE 1234 00:2a:11 0 EOF`; a waiter has an arrow behind its number.
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [_, "FLOCK", _, _, pid, place, ..] if *place == locked => pid.parse().ok(),
            _ => None,
        }
    })
}
