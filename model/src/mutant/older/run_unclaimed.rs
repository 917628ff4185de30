//! A worker that takes it that a job is its own because it was admitted: it records that it runs without having claimed it.

use state_machine::disk::{Content, Dir, Disk, Name};
use state_machine::job::State;
use state_machine::protocol::claim::{Tree, claim_tree};
use state_machine::record::Status;

use crate::role::{CREATED_AT_MS, Outcome, Part};
use crate::stage::Stage;

/// Wait to be forked, and start the job's command.
pub(super) fn run<D: Stage>(disk: &mut D, _: &Part) -> Result<Outcome, D::Fault> {
    let id = disk.await_errand()?;
    let Tree::Mine(tree) = claim_tree(disk, &id)? else {
        return Ok(Outcome::Leftovers);
    };
    let mut status = Status::queued(CREATED_AT_MS);
    status.state = State::Running;
    let dir = Dir::Job(id.clone());
    let new = dir.at(Name::NewStatus);
    Disk::write(disk, &new, &Content::Status(Box::new(status)))?;
    Disk::rename(disk, &new, &dir.at(Name::Status))?;
    disk.spawn(&id, &tree)?;
    disk.close(tree)?;
    Ok(Outcome::Quiet)
}
