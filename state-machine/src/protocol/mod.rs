//! The protocols: what happens on disk, effect by effect. Each is an ordinary function that reads from top to
//! bottom, and deterministic: it has no input but its arguments and the disk's replies, so that it can be
//! replayed from its start.
//!
//! Two locks carry everything. `lock` says that somebody is responsible for the job; `tree` says that a
//! process of its command still lives, and is held by those processes alone. Others may share the description of either
//! (F2, F6). So `tree` is only ever closed. `lock` is given up for everybody by the one who is responsible, when he is done
//! (F55), and only closed by one who has handed it over.

pub mod batch;
pub mod book;
pub mod claim;
pub mod create;
pub mod forget;
pub mod hold;
mod lock;
pub mod look;
pub mod pool;
pub mod pull;
pub mod recover;
pub mod request;
pub mod settle;
pub mod slot;
pub mod spare;
pub mod start;
pub mod supervise;
