//! A recoverer: what a supervisor does to a job that it finds, and what `doctor --fix` does.

use state_machine::course::keep::{Order, put_in_order};
use state_machine::id::JobId;

use super::Outcome;
use super::keeper::{Keeping, see_that_it_is_in_order};
use crate::stage::Stage;

/// Put the job in order.
pub(super) fn recover<D: Stage>(
    disk: &mut D,
    id: &JobId,
    now_ms: u64,
) -> Result<Outcome, D::Fault> {
    Ok(match put_in_order(&mut Keeping::new(disk, now_ms), id)? {
        Order::Kept(kept) => {
            see_that_it_is_in_order(&kept);
            Outcome::Quiet
        }
        Order::Held => Outcome::Held,
        Order::Gone => Outcome::Gone,
        Order::Damaged => Outcome::Damaged,
    })
}
