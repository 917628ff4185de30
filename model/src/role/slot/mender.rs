//! Whoever finds a slot broken, and whoever mends one.

use state_machine::protocol::slot::find::{Finding, find};
use state_machine::protocol::slot::mend::{Mending, mend, take_broken};

use super::{Outcome, Part};
use crate::role::pool;
use crate::stage::Stage;

/// Look for a slot, and find each broken.
pub(super) fn find_broken<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    let mut broken = |_: &mut D, _: &_| Ok(Finding::Broken("it is".into()));
    find(disk, &pool(), part.slots, part.now_ms, &mut broken)?;
    Ok(Outcome::NoSlot)
}

/// Mend the first slot.
pub(super) fn mend_first<D: Stage>(disk: &mut D) -> Result<Outcome, D::Fault> {
    Ok(match take_broken(disk, &pool(), 1)? {
        Mending::Mine(occupant) => match mend(disk, occupant)? {
            true => Outcome::Mended,
            false => Outcome::Gone,
        },
        Mending::NotBroken => Outcome::Quiet,
        Mending::Held => Outcome::Held,
        Mending::Gone => Outcome::Gone,
        Mending::Damaged(_) => Outcome::Damaged,
    })
}
