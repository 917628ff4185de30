//! Whoever takes the slots out of the pool that are more than there are to be.

use state_machine::protocol::forget::purge;
use state_machine::protocol::slot::maintain::shed as shed_slots;

use super::{Outcome, Part, inspect};
use crate::role::pool;
use crate::stage::Stage;

/// Take them out, and delete them.
pub(super) fn shed<D: Stage>(disk: &mut D, part: &Part, most: u32) -> Result<Outcome, D::Fault> {
    let gone = shed_slots(disk, &pool(), most, part.now_ms, &part.ticket, &mut inspect)?;
    for (_, ticket) in &gone {
        purge(disk, ticket)?;
    }
    Ok(if gone.is_empty() {
        Outcome::Quiet
    } else {
        Outcome::Shed
    })
}
