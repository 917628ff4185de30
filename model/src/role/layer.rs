//! A layer: lay in a directory for a job to come, as a worker does at the end of its job.

use state_machine::id::Ticket;
use state_machine::protocol::spare::{LaidIn, lay_in};

use super::Outcome;
use crate::stage::Stage;

/// Lay in one, if there are not enough.
pub(super) fn lay<D: Stage>(disk: &mut D, ticket: &Ticket) -> Result<Outcome, D::Fault> {
    Ok(match lay_in(disk, ticket)? {
        LaidIn::Yes => Outcome::LaidIn,
        LaidIn::No => Outcome::Busy,
    })
}
