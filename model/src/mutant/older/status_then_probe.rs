//! A reader that does not read the record under the lock.

use state_machine::disk::{Dir, Disk, Name, Read};
use state_machine::job::State;
use state_machine::protocol::claim::{Held, probe};

use crate::role::{Outcome, Part};
use crate::stage::Stage;

/// Say what state the job is in.
pub(super) fn read<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    let dir = Dir::Job(part.job.clone());
    let recorded = match Disk::read_status(disk, &dir)? {
        Read::Value(status) => status.state,
        Read::Absent => State::Queued,
        Read::Damaged(_) => return Ok(Outcome::Damaged),
    };
    let held = probe(disk, &dir.at(Name::Lock))? == Held::Yes;
    Ok(Outcome::Saw(match recorded {
        State::Running if !held => State::Interrupted,
        recorded => recorded,
    }))
}
