//! Whoever maintains the slots of the pool.

use state_machine::protocol::slot::find::Finding;
use state_machine::protocol::slot::maintain::{
    Crew, Ended, Maintained, claim_maintenance, end_maintenance, maintain_slot,
};
use state_machine::protocol::slot::occupy::Occupant;
use state_machine::protocol::slot::place::numbers;
use state_machine::record::{Claim, Holder, Outcome as Came};
use state_machine::stamp;

use super::{Outcome, Part, SPAN_MS, claim_of, inspect, token_of, tree_in};
use crate::effect::Handle;
use crate::effect::{Search, Stopping, Until};
use crate::role::pool;
use crate::stage::{News, Stage};

/// Maintain every slot that is due.
pub(super) fn maintain<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    let Some(lock) = claim_maintenance(disk, &pool())? else {
        return Ok(Outcome::LeftToMaintainer);
    };
    disk.tell(News::Maintains(true));
    let mut outcome = Outcome::NotDue;
    for number in numbers(disk, &pool())? {
        let mut crew = OfPart(part);
        let done = maintain_slot(disk, &pool(), number, Some(SPAN_MS), part.now_ms, &mut crew)?;
        if let Maintained::Ran(_) = done {
            outcome = Outcome::Maintained;
        }
    }
    disk.tell(News::Maintains(false));
    end_maintenance(disk, lock)?;
    Ok(outcome)
}

struct OfPart<'a>(&'a Part);

impl<D: Stage> Crew<D> for OfPart<'_> {
    fn inspect(&mut self, disk: &mut D, occupant: &Occupant<Handle>) -> Result<Finding, D::Fault> {
        inspect(disk, occupant)
    }

    fn claim(&mut self, _: &Occupant<Handle>) -> Claim {
        claim_of(self.0, Holder::Maintenance)
    }

    fn run(&mut self, disk: &mut D, occupant: &Occupant<Handle>) -> Result<Ended, D::Fault> {
        let token = token_of(self.0.ticket.as_str());
        let tree = tree_in(occupant.number(), &token);
        disk.tell(News::Has(occupant.number(), token));
        disk.spawn(&tree, occupant.lock())?;
        disk.wake(&tree, Until::CommandEnds, Stopping::No)?;
        disk.end_trees(&tree, Search::Holding)?;
        disk.tell(News::HasNot);
        Ok(Ended {
            outcome: Came::Succeeded,
            now: stamp::of_ms(self.0.now_ms),
        })
    }
}
