//! A worker that a supervisor forks and that runs what it has claimed, whoever supervises by then.

use crate::role::keeper::Asks;
use crate::role::{Outcome, Part, worker};
use crate::stage::Stage;

/// Wait to be forked, and run the job: the next supervisor may have seen it wait, and given its slot to another (R20).
pub(super) fn work<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    let job = disk.await_errand()?;
    let part = Part {
        job,
        ..part.clone()
    };
    worker::work(disk, &part, Asks::Nobody)
}
