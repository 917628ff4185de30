//! A holder that lets the job go and then writes down how it left it.

use state_machine::disk::{Content, Dir, Disk, Name};
use state_machine::protocol::claim::{Claim, claim};
use state_machine::protocol::hold::{TakeOver, take_over};

use crate::role::{CREATED_AT_MS, Outcome, Part};
use crate::stage::Stage;

/// Hold the job for a moment, and record that afterwards.
pub(super) fn hold<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    let Claim::Mine(lock) = claim(disk, &part.job)? else {
        return Ok(Outcome::Held);
    };
    let taken = take_over(disk, &part.job, lock, CREATED_AT_MS, part.now_ms)?;
    let TakeOver::Holder(holder) = taken else {
        return Ok(Outcome::Damaged);
    };
    let content = Content::Status(Box::new(holder.status().clone()));
    disk.close(holder.into_lock())?;
    Disk::write(
        disk,
        &Dir::Job(part.job.clone()).at(Name::NewStatus),
        &content,
    )?;
    Ok(Outcome::Quiet)
}
