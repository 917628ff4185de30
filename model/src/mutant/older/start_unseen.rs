//! A worker that starts the command of a job without asking whether processes of it are left.

use state_machine::disk::{Disk, Mode, Name, Open, Place};
use state_machine::job::State;
use state_machine::protocol::claim::{Claim, claim};
use state_machine::protocol::create::Durable;
use state_machine::protocol::hold::{TakeOver, record, take_over};

use crate::role::{CREATED_AT_MS, Outcome, Part};
use crate::stage::Stage;

/// Run the job.
pub(super) fn run<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    let Claim::Mine(lock) = claim(disk, &part.job)? else {
        return Ok(Outcome::Held);
    };
    let taken = take_over(disk, &part.job, lock, CREATED_AT_MS, part.now_ms)?;
    let TakeOver::Holder(mut holder) = taken else {
        return Ok(Outcome::Damaged);
    };
    let place = Place::of_job(&part.job, Name::Tree);
    let Open::Opened(tree) = Disk::open(disk, &place, Mode::Exclusive)? else {
        return Ok(Outcome::Gone);
    };
    let mut status = holder.status().clone();
    status.state = State::Running;
    record(disk, &mut holder, status, &[], Durable::No)?;
    disk.spawn(&part.job, &tree)?;
    disk.close(tree)?;
    disk.close(holder.into_lock())?;
    Ok(Outcome::Quiet)
}
