//! The older way to let a job go: close the lock, and look whether something was asked meanwhile. Where somebody else has
//! a copy of the description (F55), the lock is not free yet: the client that asks just then is told that somebody holds
//! the job, and nobody is left who would look.

use state_machine::disk::{Disk, Name, Place};
use state_machine::protocol::claim::{Claim, claim};

use crate::role::{Outcome, Part};
use crate::stage::{News, Stage};

/// Hold the job for a moment, with nothing to do to it.
pub(super) fn hold<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    loop {
        let Claim::Mine(lock) = claim(disk, &part.job)? else {
            return Ok(Outcome::Held);
        };
        disk.tell(News::Holds(part.job.clone(), lock));
        disk.close(lock)?;
        if !Disk::exists(disk, &Place::of_job(&part.job, Name::Control))? {
            return Ok(Outcome::Quiet);
        }
    }
}
