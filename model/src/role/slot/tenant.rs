//! Whoever runs a job in a slot: the worker's part that is about the slot.

use state_machine::protocol::slot::claim::claim_slot;
use state_machine::protocol::slot::find::{Found, find};
use state_machine::protocol::slot::give_back::{Condition, give_back};
use state_machine::record::Holder;

use super::{Outcome, Part, claim_of, inspect, token_of, tree_in};
use crate::effect::{Search, Stopping, Until};
use crate::role::pool;
use crate::stage::{News, Stage};

/// Run a job in a slot.
pub(super) fn run<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    let mut occupant = match find(disk, &pool(), part.slots, part.now_ms, &mut inspect)? {
        Found::Slot(occupant) => occupant,
        Found::None(_) => return Ok(Outcome::NoSlot),
        Found::Busy => return Ok(Outcome::Busy),
    };
    let token = token_of(part.ticket.as_str());
    disk.tell(News::Has(occupant.number(), token.clone()));
    if !claim_slot(
        disk,
        &mut occupant,
        claim_of(part, Holder::Job(part.job.clone())),
    )? {
        return Ok(Outcome::Gone);
    }
    let tree = tree_in(occupant.number(), &token);
    disk.spawn(&tree, occupant.lock())?;
    disk.wake(&tree, Until::CommandEnds, Stopping::No)?;
    disk.end_trees(&tree, Search::Holding)?;
    disk.tell(News::HasNot);
    give_back(disk, occupant, Condition::Clean)?;
    Ok(Outcome::Ran)
}
