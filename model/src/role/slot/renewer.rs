//! Whoever lets a session expire later.

use state_machine::protocol::slot::enter::Entered;
use state_machine::protocol::slot::renew::{Renewed, renew as renew_session};
use state_machine::stamp;

use super::{Outcome, Part, token_of};
use crate::stage::{News, Stage};

/// Let it expire at a time that never comes here.
pub(super) fn renew<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    let token = token_of(part.closes);
    let expires = Some(stamp::of_ms(u64::MAX));
    Ok(match renew_session(disk, &token, expires, &part.ticket)? {
        Renewed::Is(session) => {
            disk.tell(News::Opened(session.slot, token));
            Outcome::Renewed
        }
        Renewed::Busy => Outcome::Busy,
        Renewed::Not(Entered::In(..)) => unreachable!("that is what it is when it was entered"),
        Renewed::Not(Entered::NotOpen | Entered::Over(_)) => Outcome::NotOpen,
        Renewed::Not(Entered::InUse(_)) => Outcome::Held,
        Renewed::Not(Entered::Gone(_)) => Outcome::Gone,
        Renewed::Not(Entered::Damaged(..)) => Outcome::Damaged,
    })
}
