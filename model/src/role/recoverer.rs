//! A recoverer: what a supervisor does to a job that it finds, and what `doctor --fix` does.

use state_machine::id::JobId;
use state_machine::protocol::recover::{Recovered, recover_job};

use super::Outcome;
use super::worker::{leave, settle_without_leftovers};
use crate::stage::Stage;

/// Put the job in order.
pub(super) fn recover<D: Stage>(
    disk: &mut D,
    id: &JobId,
    now_ms: u64,
) -> Result<Outcome, D::Fault> {
    Ok(match recover_job(disk, id, now_ms)? {
        Recovered::Quiet => Outcome::Quiet,
        Recovered::Held => Outcome::Held,
        Recovered::Gone => Outcome::Gone,
        Recovered::Damaged => Outcome::Damaged,
        Recovered::LeftoversFirst(mut holder) => {
            settle_without_leftovers(disk, &mut holder, id, now_ms)?;
            leave(disk, holder, now_ms)?;
            Outcome::Quiet
        }
    })
}
