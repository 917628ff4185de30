//! Whoever closes a session, be it his or another's: what works in its slot is ended first.

use state_machine::id::Token;
use state_machine::protocol::slot::give_back::{Condition, give_back};
use state_machine::protocol::slot::session::{TakenBack, forget_session, take_back};

use super::{Outcome, tree_in};
use crate::effect::Search;
use crate::stage::{News, Stage};

/// Close the session with this token.
pub(super) fn close<D: Stage>(disk: &mut D, token: &Token) -> Result<Outcome, D::Fault> {
    // Whoever asks for it is done with the slot, whatever comes of it.
    disk.tell(News::EndsSession(token.clone()));
    for _ in 0..2 {
        match take_back(disk, token)? {
            TakenBack::Mine(occupant) => {
                let tree = tree_in(occupant.number(), token);
                disk.end_trees(&tree, Search::Holding)?;
                give_back(disk, occupant, Condition::Clean)?;
                return Ok(Outcome::Closed);
            }
            TakenBack::InUse(session) => {
                disk.end_trees(&tree_in(session.slot, token), Search::Holding)?;
            }
            TakenBack::NotOpen | TakenBack::Over(_) => return Ok(Outcome::NotOpen),
            TakenBack::Gone(_) => {
                forget_session(disk, token)?;
                return Ok(Outcome::Gone);
            }
            TakenBack::Damaged(..) => return Ok(Outcome::Damaged),
        }
    }
    Ok(Outcome::Held)
}
