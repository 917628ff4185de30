//! Bytes from a server into a part: several files at once, and several runs of a long one. What is done with a part, and in
//! which order, is in [`state_machine::protocol::pull`]; this is the [`Source`](state_machine::protocol::pull::Source) of it.

mod ask;
mod crew;
mod keeper;
mod leaving;
mod patience;
mod room;
mod run;
mod source;
mod stream;

pub(super) use crew::{Crew, fetch_all};
