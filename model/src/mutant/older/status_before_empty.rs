//! A worker that records the end of a job it was asked to cancel, and ends the tree then.

use state_machine::job::State;
use state_machine::protocol::claim::{Claim, Tree, claim, claim_tree};
use state_machine::protocol::create::Durable;
use state_machine::protocol::hold::{TakeOver, record, take_over};

use crate::effect::{Known, Stopping, Until, Wake};
use crate::role::{CREATED_AT_MS, Outcome, Part};
use crate::stage::Stage;

/// Run the job until something is asked.
pub(super) fn run<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    let id = &part.job;
    let Claim::Mine(lock) = claim(disk, id)? else {
        return Ok(Outcome::Held);
    };
    let TakeOver::Holder(mut holder) = take_over(disk, id, lock, CREATED_AT_MS, part.now_ms)?
    else {
        return Ok(Outcome::Damaged);
    };
    let Tree::Mine(tree) = claim_tree(disk, id)? else {
        return Ok(Outcome::Leftovers);
    };
    let mut enter = |disk: &mut D, state| {
        let mut status = holder.status().clone();
        status.state = state;
        record(disk, &mut holder, status, &[], Durable::No)
    };
    enter(disk, State::Running)?;
    disk.spawn(id, &tree)?;
    disk.close(tree)?;
    if disk.wake(id, Until::CommandEnds, Stopping::No)? == Wake::Asked {
        enter(disk, State::Cancelled)?;
        disk.stop(Known::Running)?;
    }
    disk.close(holder.into_lock())?;
    Ok(Outcome::Quiet)
}
