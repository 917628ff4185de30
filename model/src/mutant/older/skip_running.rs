//! A holder that forgets to record that the job runs.

use state_machine::job::State;
use state_machine::protocol::claim::{Claim, claim};
use state_machine::protocol::create::Durable;
use state_machine::protocol::hold::{TakeOver, record, take_over};

use crate::role::{CREATED_AT_MS, Outcome, Part};
use crate::stage::Stage;

/// Record the end of a queued job.
pub(super) fn end<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    let Claim::Mine(lock) = claim(disk, &part.job)? else {
        return Ok(Outcome::Held);
    };
    let taken = take_over(disk, &part.job, lock, CREATED_AT_MS, part.now_ms)?;
    let TakeOver::Holder(mut holder) = taken else {
        return Ok(Outcome::Damaged);
    };
    let mut status = holder.status().clone();
    status.state = State::Done;
    record(disk, &mut holder, status, &[], Durable::No)?;
    disk.close(holder.into_lock())?;
    Ok(Outcome::Brought(State::Done))
}
