//! A sweeper: forget the job, make that final, delete it.

use state_machine::id::{JobId, Ticket};
use state_machine::protocol::forget::{Forgotten, forget, make_final, purge};

use super::Outcome;
use crate::stage::Stage;

/// Sweep the job if it has ended.
pub(super) fn sweep<D: Stage>(
    disk: &mut D,
    id: &JobId,
    ticket: &Ticket,
) -> Result<Outcome, D::Fault> {
    Ok(match forget(disk, id, ticket)? {
        Forgotten::Trashed(ticket) => {
            make_final(disk)?;
            purge(disk, &ticket)?;
            Outcome::Swept
        }
        Forgotten::Gone => Outcome::Gone,
        Forgotten::Held => Outcome::Held,
        Forgotten::NotEnded(state) => Outcome::NothingToDo(state),
        Forgotten::Leftovers => Outcome::Leftovers,
        Forgotten::Damaged => Outcome::Damaged,
    })
}
