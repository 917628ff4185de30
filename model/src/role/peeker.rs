//! Somebody who has a copy of the description of the job's lock for a moment, and does not know: who reads the links in
//! `/proc/<pid>/fd` of its holder, or a child that its holder has started and that has not closed it yet (F55).

use state_machine::disk::{Disk, Name, Place};
use state_machine::id::JobId;

use super::Outcome;
use crate::stage::Stage;

/// Have the copy, and close it.
pub(super) fn peek<D: Stage>(disk: &mut D, id: &JobId) -> Result<Outcome, D::Fault> {
    match disk.peek(&Place::of_job(id, Name::Lock))? {
        Some(copy) => {
            Disk::close(disk, copy)?;
            Ok(Outcome::Peeked)
        }
        None => Ok(Outcome::Quiet),
    }
}
