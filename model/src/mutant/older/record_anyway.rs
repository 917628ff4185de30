//! A writer of a history that wants its line to be there, whatever has become of the job.

use state_machine::disk::{Change, Dir, Disk, Name};
use state_machine::job::State;
use state_machine::protocol::claim::probe;
use state_machine::record::Line;

use crate::role::{Outcome, Part};
use crate::stage::Stage;

/// Look at the lock, and append a line where the job has gone meanwhile.
pub(super) fn note<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    let dir = Dir::Job(part.job.clone());
    probe(disk, &dir.at(Name::Lock))?;
    if !disk.exists(&dir.at(Name::Lock))? && disk.mkdir(&dir)? == Change::Done {
        let lines = [Line::state(part.now_ms, State::Queued)];
        Disk::append(disk, &dir, &lines, false)?;
    }
    Ok(Outcome::Quiet)
}
