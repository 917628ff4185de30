//! A worker that a supervisor forks: it learns its job by that, claims it like any other worker, and asks, once it has it,
//! whether its supervisor lives.

use super::keeper::Asks;
use super::{Outcome, Part, worker};
use crate::stage::Stage;

/// Wait to be forked, and run the job.
pub(super) fn work<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    let job = disk.await_errand()?;
    let part = Part {
        job,
        ..part.clone()
    };
    worker::work(disk, &part, Asks::ItsSupervisor)
}
