//! Whoever opens a session, and closes it if it is one that comes to its end.

use state_machine::protocol::slot::enter::{Entered, enter};
use state_machine::protocol::slot::find::{Found, find};
use state_machine::protocol::slot::session::{Opened, open_session};
use state_machine::record::{Holder, Session};
use state_machine::stamp;

use super::closer::close;
use super::{Outcome, Part, Slots, claim_of, inspect, token_of, tree_in};
use crate::effect::{Stopping, Until};
use crate::role::pool;
use crate::stage::{News, Stage};

/// Open a session.
pub(super) fn open<D: Stage>(disk: &mut D, part: &Part, slots: Slots) -> Result<Outcome, D::Fault> {
    let occupant = match find(disk, &pool(), part.slots, part.now_ms, &mut inspect)? {
        Found::Slot(occupant) => occupant,
        Found::None(_) => return Ok(Outcome::NoSlot),
        Found::Busy => return Ok(Outcome::Busy),
    };
    let (number, token) = (occupant.number(), token_of(part.ticket.as_str()));
    disk.tell(News::Has(number, token.clone()));
    let session = Session {
        token: token.clone(),
        pool: pool(),
        slot: number,
        since: stamp::of_ms(part.now_ms),
        expires: (slots == Slots::OpenBriefly).then(|| stamp::of_ms(0)),
        note: None,
    };
    let claim = claim_of(part, Holder::Session);
    match open_session(disk, occupant, claim, &session, &part.ticket)? {
        Opened::Yes => {}
        Opened::Gone => return Ok(Outcome::Gone),
    }
    disk.tell(News::HasNot);
    if slots == Slots::OpenBriefly {
        return Ok(Outcome::Opened);
    }
    disk.tell(News::Opened(number, token.clone()));
    if slots == Slots::Open {
        return Ok(Outcome::Opened);
    }
    if let Entered::In(lock, _) = enter(disk, &token)? {
        let tree = tree_in(number, &token);
        disk.spawn(&tree, &lock)?;
        disk.close(lock)?;
        disk.wake(&tree, Until::CommandEnds, Stopping::No)?;
    }
    close(disk, &token)
}
