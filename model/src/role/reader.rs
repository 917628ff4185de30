//! A reader: one look.

use state_machine::id::JobId;
use state_machine::protocol::look::{Look, look};

use super::Outcome;
use crate::stage::Stage;

/// Say what state the job is in.
pub(super) fn read<D: Stage>(disk: &mut D, id: &JobId) -> Result<Outcome, D::Fault> {
    Ok(match look(disk, id)? {
        Look::Job(view) => Outcome::Saw(view.state),
        Look::Gone => Outcome::Gone,
        Look::Damaged { .. } => Outcome::Damaged,
    })
}
