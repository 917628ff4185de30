//! A sweeper: forget the job, make that final, delete it.

use state_machine::id::{JobId, Ticket};
use state_machine::protocol::forget::{Forgotten, Sweeping, sweep as sweep_all};

use super::Outcome;
use crate::stage::Stage;

/// One job is swept, and a fault ends that.
struct Alone;

impl<F> Sweeping<F> for Alone {
    fn before(&mut self, _trashed: &Ticket) {}

    fn failed(&mut self, _id: &JobId, fault: F) -> Result<(), F> {
        Err(fault)
    }
}

/// Sweep the job if it has ended.
pub(super) fn sweep<D: Stage>(
    disk: &mut D,
    id: &JobId,
    ticket: &Ticket,
) -> Result<Outcome, D::Fault> {
    let jobs = [(id.clone(), ticket.clone())];
    let swept = sweep_all(disk, &jobs, &mut Alone)?;
    // One job, one outcome.
    let outcome = swept.into_iter().next().map(|swept| swept.forgotten);
    Ok(match outcome.unwrap_or(Forgotten::Gone) {
        Forgotten::Trashed(_) => Outcome::Swept,
        Forgotten::Gone => Outcome::Gone,
        Forgotten::Held => Outcome::Held,
        Forgotten::NotEnded(state) => Outcome::NothingToDo(state),
        Forgotten::Leftovers => Outcome::Leftovers,
        Forgotten::Damaged | Forgotten::Unknown | Forgotten::Failed => Outcome::Damaged,
    })
}
