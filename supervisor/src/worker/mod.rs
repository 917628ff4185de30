//! The worker of a job: one single-threaded process that holds the job's lock while the job runs, starts the command,
//! honours requests, and records the end. It sleeps in `poll` and wakes only for a reason.
//!
//! | file | what it is for |
//! |---|---|
//! | `launch` | making a worker by forking it, and what it says of its start |
//! | `early` | making one before its job can be seen |
//! | `launcher` | making one from an embedding program, by executing a program that forks it |
//! | `take` | taking a job to run it |
//! | `course` | the story of one job from its first attempt to its end |
//! | `attempt` | starting the command: files, tree lock, the child that waits for its record |
//! | `tree` | the tree of one attempt: what it is doing, and the stop that is under way |
//! | `oversee` | watching a tree: exits, requests, timers, the stages of a stop |
//! | `book` | recording, and recording again when the disk does not let us |
//! | `hook` | the command that is told of the end |
//! | `wake` | what all of it sleeps on |
//!
//! No rule about states is made here: what may follow what, and what is written in which order, comes from the pure
//! crate.

mod attempt;
mod book;
mod course;
mod early;
mod hook;
mod launch;
mod launcher;
mod oversee;
mod take;
mod tree;
mod wake;

pub(crate) use early::Early;
pub(crate) use launch::{Launched, Start, Terms, become_claiming_worker, launch};
pub use launcher::{Launcher, serve};
pub(crate) use launcher::{MARK, Role, remember_that_it_asks};
pub(crate) use wake::mask_all_but_faults;
