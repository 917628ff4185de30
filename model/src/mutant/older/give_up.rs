//! A worker that tries once to record how its command has ended, and one that does not even try.

use state_machine::job::State;
use state_machine::protocol::claim::{Claim, Tree, claim, claim_tree};
use state_machine::protocol::create::Durable;
use state_machine::protocol::hold::{TakeOver, record, take_over};

use crate::effect::{Stopping, Until};
use crate::role::{CREATED_AT_MS, Outcome, Part};
use crate::stage::{News, Stage};

/// Run the job to its end. With `tries` the end is recorded if that works at once.
pub(super) fn run<D: Stage>(disk: &mut D, part: &Part, tries: bool) -> Result<Outcome, D::Fault> {
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
    let mut status = holder.status().clone();
    status.state = State::Running;
    record(disk, &mut holder, status.clone(), &[], Durable::No)?;
    disk.spawn(id, &tree)?;
    disk.close(tree)?;
    disk.wake(id, Until::CommandEnds, Stopping::No)?;
    disk.tell(News::Ended(id.clone(), State::Done));
    if tries {
        status.state = State::Done;
        if let Err(fault) = record(disk, &mut holder, status, &[], Durable::Yes) {
            disk.survive(fault)?;
        }
    }
    disk.close(holder.into_lock())?;
    Ok(Outcome::Quiet)
}
