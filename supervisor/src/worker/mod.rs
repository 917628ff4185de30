//! The worker of a job: one single-threaded process that holds the job's lock while the job runs, starts the command,
//! honours requests, and records the end. It sleeps in `poll` and wakes only for a reason.
//!
//! | file | what it is for |
//! |---|---|
//! | `launch` | making a worker by forking it, and what it says of its start |
//! | `early` | making one before its job can be seen |
//! | `next` | going on to another job |
//! | `launcher` | making one from an embedding program, by executing a program that forks it |
//! | `take` | taking a job to run it |
//! | `driver` | driving the course of one job, which is [`state_machine::course`], and letting the job go |
//! | `deeds` | what the deeds of a course are on this machine |
//! | `attempt` | starting the command: files, environment, the child that waits for its record |
//! | `tree` | the tree of one attempt: what it is doing, and the stop that is under way |
//! | `oversee` | watching a tree: exits, timers, output, the stages of a stop |
//! | `book` | recording, and recording again when the disk does not let us |
//! | `hook` | the commands that are told of the end |
//! | `sources` | whether what the command is made of has changed |
//! | `notices` | what the command says of itself |
//! | `wake` | what all of it sleeps on |
//!
//! No rule about states is made here: what may follow what, what is done and written in which order, and what a request
//! means when, comes from the pure crate.

mod attempt;
mod book;
mod deeds;
mod driver;
mod early;
mod fetcher;
mod hook;
mod launch;
mod launcher;
mod next;
mod notices;
mod oversee;
mod sources;
mod take;
mod tree;
mod wake;

pub(crate) use early::Early;
pub(crate) use launch::{Asked, FULL, Launched, Start, become_claiming_worker, launch, launch_in};
pub use launcher::{Launcher, serve};
pub(crate) use launcher::{MARK, Role, remember_that_it_asks};
pub(crate) use next::{ask, take as take_message};
