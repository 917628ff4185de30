//! Somebody who only asks whether the store has a supervisor.

use state_machine::protocol::supervise::is_supervised;

use super::Outcome;
use crate::stage::Stage;

/// Ask.
pub(super) fn ask<D: Stage>(disk: &mut D) -> Result<Outcome, D::Fault> {
    Ok(if is_supervised(disk)? {
        Outcome::LeftToSupervisor
    } else {
        Outcome::Quiet
    })
}
