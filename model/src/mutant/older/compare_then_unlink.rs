//! The older way to take a request: read it, honour it, and unlink it if it still reads the same.

use state_machine::control::{Control, Request};
use state_machine::disk::{Disk, Name, Place};
use state_machine::job::State;
use state_machine::protocol::claim::{Claim, claim};
use state_machine::protocol::create::Durable;
use state_machine::protocol::hold::{TakeOver, record, take_over};
use state_machine::protocol::settle::let_go;

use crate::role::{CREATED_AT_MS, Outcome, Part};
use crate::stage::Stage;

/// Hold the job and honour a pause that waits.
pub(super) fn honour<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    let lock = match claim(disk, &part.job)? {
        Claim::Mine(lock) => lock,
        Claim::Owned => return Ok(Outcome::Held),
        Claim::Gone => return Ok(Outcome::Gone),
    };
    let mut holder = match take_over(disk, &part.job, lock, CREATED_AT_MS, part.now_ms)? {
        TakeOver::Holder(holder) => holder,
        TakeOver::Damaged(_) => return Ok(Outcome::Damaged),
    };
    let control = Place::of_job(&part.job, Name::Control);
    let asked = Disk::read_control(disk, &control)?;
    let rests = holder.status().state != State::Queued;
    if asked == Some(Control::Asked(Request::Pause)) && !rests {
        let mut status = holder.status().clone();
        status.state = State::Paused;
        record(disk, &mut holder, status, &[], Durable::No)?;
        if disk.read_control(&control)? == asked {
            disk.unlink(&control)?;
        }
    }
    let_go(disk, holder, CREATED_AT_MS, part.now_ms)?;
    Ok(Outcome::Quiet)
}
