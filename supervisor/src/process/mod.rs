//! The processes of a job: starting the command, knowing everything that descends from it, ending
//! all of it, and finding what outlived a dead worker; and running a command within bounds.
//!
//! Mechanics only. When to stop, what to record and how long to wait is the worker's business;
//! files of a job other than the descriptors handed in are nobody's here.

mod bounded;
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
mod tree;

#[cfg(test)]
pub(crate) mod testing;

pub(crate) use bounded::{Minder, Outcome, Ran, Work, environment, serve_on_stdin};
pub(crate) use inside::{Census, census};
pub(crate) use leader::Leader;
pub(crate) use leftovers::{DIRECTORY_VARIABLE, Job, count, end};
pub(crate) use marked::{Marked, all_marked};
pub(crate) use mask::mask_all_but_faults;
pub(crate) use signal::{signal_everyone, signal_one};
pub(crate) use spawn::{CannotStart, Command, Waiting, fork_command};
pub(crate) use stdin::socket_on_stdin;
pub(crate) use tree::{
    Frozen, become_subreaper, freeze, is_empty, is_empty_after_reaping, kill_round, name_all,
    others, reap_adopted, signal_at_once, signal_lone, survivors, thaw,
};
