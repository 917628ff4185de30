//! The socket of a supervisor, `supervisor.sock`, as the supervisor serves it. Nothing needs it to be right, only to be told
//! sooner: what is true is asked of the files.
//!
//! Whoever connects is of the same user or root, and is not trusted all the same: no line of his is longer than it may be, he
//! is not listened to while he does not read, and there is a limit to how many there are. What must never be here: a job's
//! files, and a wait that blocks the thread of the actors.

mod connection;
mod house;
mod report;
mod server;

pub use report::{PoolReport, StatusReport};
pub(crate) use server::{Server, serve};
