//! `outlive doctor`: everything that can be wrong with a store is broken by hand, one thing at a time, in a store that holds running,
//! paused, queued and ended jobs and a pool with a session; it must be found, mended, and nothing of the rest touched or lost.

mod export;
mod histories;
mod jobs;
mod keys;
mod lives;
mod pools;
mod row;
mod site;
mod snapshot;
mod store;
mod words;
