//! Whoever waits for a job: one look, and where that shows an end, making sure of it before it is told of.

use state_machine::id::JobId;
use state_machine::protocol::look::{Look, confirm, look};

use super::Outcome;
use crate::stage::{News, Stage};

/// Tell of the end of the job, where it has ended.
pub(super) fn wait<D: Stage>(disk: &mut D, id: &JobId) -> Result<Outcome, D::Fault> {
    Ok(match look(disk, id)? {
        Look::Job(view) => {
            if view.state.is_terminal() {
                confirm(disk, id)?;
                disk.tell(News::Recorded(id.clone(), view.state));
            }
            Outcome::Saw(view.state)
        }
        Look::Gone => Outcome::Gone,
        Look::Damaged { .. } => Outcome::Damaged,
    })
}
