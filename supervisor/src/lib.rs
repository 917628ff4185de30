//! Durable jobs for Linux: commands that outlive their starter, one directory each, with the truth on disk and in file
//! locks and in no process.
//!
//! An embedding program opens a [`Store`], starts jobs from [`JobSpec`]s, and asks [`Job`]s how they are. No server needs
//! to run. What may happen to a job, and every step on disk, is in the crate `state_machine`; this crate lends it a real
//! file system, real processes and a command line.
//!
//! Rooms, from the bottom: `error`, `clock`, `sys` (the only unsafe code), [`disk`] (the trait on a file system), `process`
//! (the tree of a command), `output` (its log), `dial` (the
//! client's end of a supervisor's socket), `inotify` and `watch` (notices of change), [`store`] (jobs), `live` (what is so now, for those who
//! show it), [`worker`] (the
//! process that runs one), `pull` (the process that makes a
//! transfer), [`spawner`] (the process that forks workers for a supervisor), `executed` (what this program was
//! executed as), `watcher`, `actors`, `socket` and [`supervisor`] (the long-running process), `project` (tasks of a project, made
//! into jobs), `doctor` (whether a store is as it must be), `page` (what is so now, for browsers), [`cli`] (one file per verb).

mod actors;
pub mod clock;
mod dial;
mod doctor;
mod error;
mod executed;
mod inotify;
mod live;
mod output;
mod page;
mod process;
mod project;
mod pull;
mod reactor;
mod socket;
mod sys;
mod watch;
mod watcher;
mod workspace;

pub mod cli;
pub mod disk;
pub mod slots;
pub mod spawner;
pub mod store;
pub mod supervisor;
pub mod worker;

pub use error::{DiskError, Error, Result};
pub use executed::worker_if_asked;
pub use state_machine;
pub use store::{Job, JobSpec, PullSpec, Store};
pub use supervisor::Supervisor;
