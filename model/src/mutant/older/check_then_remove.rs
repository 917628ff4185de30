//! The older sweep: it decides without the lock, and then acts.

use state_machine::disk::{Change, Dir, Disk, Name, Place, Read};
use state_machine::protocol::claim::{Held, probe};
use state_machine::protocol::forget::purge;

use crate::role::{Outcome, Part};
use crate::stage::Stage;

/// Sweep the job if it is paused or has ended and nobody holds it, as it was a moment ago.
pub(super) fn sweep<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    let dir = Dir::Job(part.job.clone());
    let state = match Disk::read_status(disk, &dir)? {
        Read::Value(status) => status.state,
        Read::Absent => return Ok(Outcome::Gone),
        Read::Damaged(_) => return Ok(Outcome::Damaged),
    };
    if state.is_live() {
        return Ok(Outcome::NothingToDo(state));
    }
    if probe(disk, &dir.at(Name::Lock))? == Held::Yes {
        return Ok(Outcome::Held);
    }
    let trashed = Place::Dir(Dir::Trashed(part.ticket.clone()));
    if disk.rename_new(&Place::Dir(dir), &trashed)? != Change::Done {
        return Ok(Outcome::Gone);
    }
    purge(disk, &part.ticket)?;
    Ok(Outcome::Swept)
}
