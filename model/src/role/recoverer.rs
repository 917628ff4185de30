//! A recoverer: what a supervisor does to a job that it finds, and what `doctor --fix` does.

use state_machine::id::JobId;
use state_machine::protocol::recover::{Recovered, recover_job};

use super::Outcome;
use super::worker::tend_to;
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
        Recovered::LeftoversFirst(holder) => {
            tend_to(disk, holder, now_ms)?;
            Outcome::Quiet
        }
    })
}
