//! The rules of outlive: what a job and a slot may become, what the files of a store hold, and every
//! protocol that changes or reads them.
//!
//! Two rules hold in this crate. Every transition, every rule and every protocol is written here and nowhere
//! else. And nothing here knows who runs it: there is no file system, no clock, no process, no thread and no
//! randomness; time, tokens and the [`Disk`](disk::Disk) come in as arguments. So the model checks the very
//! functions that ship.
//!
//! | room | what it is for |
//! |---|---|
//! | [`job`], [`slot`] | states, events and the two transition tables |
//! | [`record`] | what the files hold: descriptor, status, history, slot record |
//! | [`id`] | job ids, names, keys and how they are made from what people type |
//! | [`config`], [`units`] | the configuration of a store; times and sizes as people write them |
//! | [`control`] | requests and their order of strength |
//! | [`liveness`] | what a reader concludes from a record and a lock |
//! | [`retry`], [`retention`], [`resolve`] | backoff; what a sweep takes; what a query names |
//! | [`supervise`], [`dependency`], [`schedule`] | what one job needs; what those come to that it comes after; which job gets which slot |
//! | [`place`] | where things are in a store |
//! | [`disk`] | the trait: one effect that the operating system makes atomic per method |
//! | [`protocol`] | one file per protocol, each an ordinary function over a disk |
//! | [`course`] | what a worker does from the first attempt to the end, over its deeds |
//! | [`pull`] | what references, answers of servers and unfinished files mean |
//! | [`project`], [`pattern`] | what a project file says and what follows from it; patterns for paths |
//! | [`nearest`](mod@nearest) | the word that was probably meant |
//! | [`wire`] | what is said over the socket of a supervisor |
//! | [`call`], [`tape`] | which protocol began, with what; what a recorded run says, line by line |

#![forbid(unsafe_code)]

pub mod call;
pub mod config;
pub mod control;
pub mod course;
pub mod dependency;
pub mod disk;
pub mod id;
pub mod job;
pub mod liveness;
pub mod maintenance;
pub mod nearest;
pub mod pattern;
pub mod place;
pub mod project;
pub mod protocol;
pub mod pull;
pub mod record;
pub mod resolve;
pub mod retention;
pub mod retry;
pub mod schedule;
pub mod slot;
pub mod stamp;
pub mod supervise;
pub mod tape;
pub mod units;
pub mod wire;
