//! A client: place the request, then try the lock. Where nobody holds the job the client settles the request
//! itself; where somebody does, that one looks again when it lets go (R6).

use state_machine::control::Request;
use state_machine::protocol::claim::{Claim, claim};
use state_machine::protocol::hold::{TakeOver, take_over};
use state_machine::protocol::request::{Asked, request};
use state_machine::protocol::settle::{Searched, Settled, settle};

use super::worker::{leave, tend_to};
use super::{CREATED_AT_MS, Outcome, Part};
use crate::stage::{News, Stage};

/// Ask `asked` of the job.
pub(super) fn ask<D: Stage>(
    disk: &mut D,
    part: &Part,
    asked: Request,
) -> Result<Outcome, D::Fault> {
    let id = &part.job;
    match request(disk, id, asked, &part.ticket)? {
        Asked::Placed => disk.tell(News::Accepted(id.clone(), asked)),
        Asked::Standing(standing) => disk.tell(News::Accepted(id.clone(), standing)),
        Asked::Ended(_) | Asked::TooLate => return Ok(Outcome::NeedsNone),
        Asked::Busy(_) => return Ok(Outcome::Busy),
        Asked::Crowded => return Ok(Outcome::Crowded),
        Asked::Gone => return Ok(Outcome::Gone),
        Asked::Damaged(_) => return Ok(Outcome::Damaged),
    }
    let lock = match claim(disk, id)? {
        Claim::Mine(lock) => lock,
        Claim::Owned => return Ok(Outcome::LeftToHolder),
        Claim::Gone => return Ok(Outcome::Gone),
    };
    disk.tell(News::Holds(id.clone()));
    let mut holder = match take_over(disk, id, lock, CREATED_AT_MS, part.now_ms)? {
        TakeOver::Holder(holder) => holder,
        TakeOver::Damaged(_) => {
            disk.tell(News::LetsGo);
            return Ok(Outcome::Damaged);
        }
    };
    if let Settled::LeftoversFirst(_) = settle(disk, &mut holder, Searched::No, part.now_ms)? {
        disk.tell(News::LetsGo);
        tend_to(disk, holder, part.now_ms)?;
    } else {
        leave(disk, holder, part.now_ms)?;
    }
    Ok(Outcome::Settled)
}
