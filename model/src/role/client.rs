//! A client: place the request, then put the job in order. Where nobody holds the job the client settles the request
//! itself by that; where somebody does, that one looks again when it lets go (R6).

use state_machine::control::Request;
use state_machine::protocol::request::{Asked, request};

use super::recoverer::recover;
use super::{Outcome, Part};
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
    Ok(match recover(disk, id, part.now_ms)? {
        Outcome::Quiet => Outcome::Settled,
        Outcome::Held => Outcome::LeftToHolder,
        other => other,
    })
}
