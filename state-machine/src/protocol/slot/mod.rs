//! Who has a slot: taking it, working in it, giving it back, maintaining it, taking it out of its pool (R14 to R17, R23).
//!
//! One lock says that somebody works in a slot: `occupancy`, which his whole tree inherits. It is taken alone, but by
//! commands of a session, which share it. A session itself belongs to no process: its file says that it is open. The record
//! of a slot is written by whoever has its lock alone, and what it says of a holder counts only while that holder's lock or
//! session is there.
//!
//! A pool's placement lock is held for as long as it takes to find a slot and never while anything else is done: no git, no
//! command, no sync (R15). What stands in a slot's directory is not known here; who takes a slot looks at that himself.

pub mod claim;
pub mod enter;
pub mod find;
pub mod give_back;
pub mod look;
pub mod maintain;
pub mod mend;
pub mod occupy;
pub mod place;
pub mod remove;
pub mod renew;
pub mod session;
mod write;
