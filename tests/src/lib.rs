//! What the end-to-end tests share: a [`Bench`] with a store of its own, ways to run the command line against it, an
//! independent reader of what is on disk, a census of the processes that carry the bench's marker, and an audit of
//! everything that is left at the end.
//!
//! The reader and the audit share no code with the product: they know the format as documented, and nothing else.
//! Nothing here waits for a length of time; it waits for a condition, with a deadline.
//!
//! The binary under test keeps tapes of what its protocols do, and so does a test that uses the library. Each bench
//! replays its own when it is dropped.
//!
//! `OUTLIVE_TEST_ROUNDS` sets how often what is random is tried, `OUTLIVE_TEST_SEED` the moments that were chosen in an
//! earlier run. Tests that need root say so where they are skipped.

mod audit;
mod bench;
mod census;
mod client;
pub mod disks;
mod files;
mod job;
mod marks;
mod mounts;
mod port;
mod ran;
mod rounds;
mod server;
mod services;
mod supervised;
mod tape;
mod terminal;
mod until;

pub use audit::{LEGAL, is_terminal};
pub use bench::{Background, Bench, Bystander, DIE_AFTER, MARKER, TAPES, UNSYNCED};
pub use census::{Process, is_blocked, is_ignored, state_of};
pub use client::Client;
pub use files::{copy_program, could_lock, program_at, tree_of};
pub use job::Job;
pub use marks::{MARKING, Marks};
pub use mounts::{Cover, TmpFs};
pub use port::free_port;
pub use ran::Ran;
pub use rounds::{Dice, rounds};
pub use server::{Reply, Request, Served, Server};
pub use services::{Deceit, Guard, Hub, Nginx, Registry, Repo, Shelf, digest_of};
pub use supervised::Supervisor;
pub use tape::{Played, Refused};
pub use terminal::Terminal;
pub use until::{DEADLINE, until, until_some};

/// A bench for this test, with the binary that this package builds.
#[macro_export]
macro_rules! bench {
    () => {
        $crate::Bench::new(env!("CARGO_BIN_EXE_outlive-under-test"))
    };
}
