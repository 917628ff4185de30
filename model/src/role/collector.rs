//! A collector: clear what crashes left in `staging/` and `trash/`.

use state_machine::id::Ticket;
use state_machine::protocol::recover::collect;

use super::Outcome;
use crate::stage::Stage;

/// Clear both.
pub(super) fn clear<D: Stage>(disk: &mut D, ticket: &Ticket) -> Result<Outcome, D::Fault> {
    collect(disk, ticket, &mut |_| {})?;
    Ok(Outcome::Quiet)
}
