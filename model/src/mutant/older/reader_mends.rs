//! A reader that mends what it sees: it has no lock, and the job may be anybody's by then.

use state_machine::disk::{Dir, Disk};
use state_machine::job::State;
use state_machine::protocol::look::{Look, look};
use state_machine::record::Line;

use crate::role::{Outcome, Part};
use crate::stage::Stage;

/// Say what state the job is in, and write into its history that it was interrupted.
pub(super) fn read<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    let Look::Job(view) = look(disk, &part.job)? else {
        return Ok(Outcome::Gone);
    };
    if view.state == State::Interrupted {
        let lines = [Line::state(part.now_ms, State::Interrupted)];
        Disk::append(disk, &Dir::Job(part.job.clone()), &lines, false)?;
    }
    Ok(Outcome::Quiet)
}
