//! How a supervisor stands, as programs read it.

use serde::{Deserialize, Serialize};

use crate::actors::StatusOf;

/// How a supervisor stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusReport {
    /// Its process.
    pub pid: u32,
    /// Whether everything that was there at its start is known, so that it admits jobs.
    pub ready: bool,
    /// Whether it admits no job any more, and ends once nothing runs.
    pub draining: bool,
    /// Its pools, by name.
    pub pools: Vec<PoolReport>,
    /// How many jobs are queued.
    pub queued: usize,
    /// How many run.
    pub running: usize,
    /// How many are paused.
    pub paused: usize,
    /// How many have lost their worker and not ended.
    pub interrupted: usize,
    /// Why no job can be started, where that is so.
    pub trouble: Option<String>,
}

/// How a pool stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolReport {
    /// Its name.
    pub name: String,
    /// How many slots it has.
    pub slots: u32,
    /// How many of them somebody has.
    pub taken: u32,
    /// How many jobs wait for one.
    pub waiting: usize,
    /// Whether it admits no job for now.
    pub paused: bool,
}

impl StatusReport {
    /// What the actors say, of this process.
    pub(crate) fn new(status: StatusOf) -> StatusReport {
        StatusReport {
            pid: std::process::id(),
            ready: status.ready,
            draining: status.draining,
            pools: status
                .pools
                .into_iter()
                .map(|pool| PoolReport {
                    name: pool.name.into(),
                    slots: pool.slots,
                    taken: pool.taken,
                    waiting: pool.waiting,
                    paused: pool.paused,
                })
                .collect(),
            queued: status.queued,
            running: status.running,
            paused: status.paused,
            interrupted: status.interrupted,
            trouble: status.trouble,
        }
    }
}
