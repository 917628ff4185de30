//! Whoever looks at the first slot.

use state_machine::protocol::slot::look::{LookSlot, look_at_slot};

use super::{Outcome, Seen};
use crate::role::pool;
use crate::stage::Stage;

/// Look at it.
pub(super) fn look<D: Stage>(disk: &mut D) -> Result<Outcome, D::Fault> {
    Ok(match look_at_slot(disk, &pool(), 1)? {
        LookSlot::Slot(view) => Outcome::SawSlot(Seen::from(&view.standing)),
        LookSlot::Gone => Outcome::Gone,
        LookSlot::Damaged(_) => Outcome::Damaged,
    })
}
