//! A page for browsers on this machine, and metrics: what is so now in a store, over HTTP on a loopback address.
//!
//! It is a reader like any other: nothing needs it, and whatever ends it changes nothing. What changes a job is done by a process of
//! its own, which is this program with the verb that a person would have typed. Everything that comes from a browser is bounded, and nothing is
//! kept for one that is slow but the names of what it has not been shown. What must never be here: a decision about a
//! job, and a job's own words inside of HTML (they go out as JSON and plain text).
//!
//! - `address.rs`: where may be listened, and for whom a request is meant; `peer.rs`, `diagnosis.rs`: which user is at the other end;
//!   `secret.rs`: the token of those who may change something.
//! - `serve.rs`: takes connections, and how many; `answer.rs`: what each address of the page is; `reply.rs`: an answer and its headers.
//! - `house.rs`: what is so now, and who is to be told; `stream.rs`: one browser that is told of changes.
//! - `jobs.rs`, `log.rs`, `metrics.rs`, `change.rs`: what can be asked for. `front.rs`: the page itself.

mod address;
mod answer;
mod change;
mod diagnosis;
mod front;
mod house;
mod jobs;
mod log;
mod metrics;
mod peer;
mod reply;
mod secret;
mod serve;
mod stream;

pub(crate) use address::loopback;
pub(crate) use house::House;
pub(crate) use secret::Secret;
pub(crate) use serve::serve;
