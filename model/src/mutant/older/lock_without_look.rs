//! A claim that trusts the lock on whatever file it has open. When that file is not the one at the path any
//! more, the lock is one on nothing (F17).

use state_machine::disk::{Disk, Mode, Name, Open, Place};

use crate::role::{Outcome, Part};
use crate::stage::{News, Stage};

/// Hold the job for a moment.
pub(super) fn hold<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    let place = Place::of_job(&part.job, Name::Lock);
    let Open::Opened(lock) = Disk::open(disk, &place, Mode::Exclusive)? else {
        return Ok(Outcome::Gone);
    };
    if !disk.lock(&lock, Mode::Exclusive)? {
        disk.close(lock)?;
        return Ok(Outcome::Held);
    }
    disk.tell(News::Holds(part.job.clone(), lock));
    disk.exists(&place)?;
    disk.close(lock)?;
    Ok(Outcome::Quiet)
}
