//! A sweeper: forget the job, make that final, delete it.

use state_machine::id::{JobId, Ticket};
use state_machine::protocol::forget::{Forgotten, sweep as sweep_all};

use super::Outcome;
use crate::stage::Stage;

/// Sweep the job if it has ended.
pub(super) fn sweep<D: Stage>(
    disk: &mut D,
    id: &JobId,
    ticket: &Ticket,
) -> Result<Outcome, D::Fault> {
    let jobs = [(id.clone(), ticket.clone())];
    let swept = sweep_all(disk, &jobs, &mut |_| {})?;
    // One job, one outcome.
    let outcome = swept.into_iter().next().map(|swept| swept.forgotten);
    Ok(match outcome.unwrap_or(Forgotten::Gone) {
        Forgotten::Trashed(_) => Outcome::Swept,
        Forgotten::Gone => Outcome::Gone,
        Forgotten::Held => Outcome::Held,
        Forgotten::NotEnded(state) => Outcome::NothingToDo(state),
        Forgotten::Leftovers => Outcome::Leftovers,
        Forgotten::Damaged | Forgotten::Unknown => Outcome::Damaged,
    })
}
