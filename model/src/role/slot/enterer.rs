//! Whoever lets a command work in a session.

use state_machine::id::Token;
use state_machine::protocol::slot::enter::{Entered, enter};

use super::{Outcome, tree_in};
use crate::effect::{Stopping, Until};
use crate::stage::Stage;

/// Let a command work in the session with this token, and stay until it has ended.
pub(super) fn enter_and_work<D: Stage>(disk: &mut D, token: &Token) -> Result<Outcome, D::Fault> {
    Ok(match enter(disk, token)? {
        Entered::In(lock, session) => {
            let tree = tree_in(session.slot, token);
            disk.spawn(&tree, &lock)?;
            disk.close(lock)?;
            disk.wake(&tree, Until::CommandEnds, Stopping::No)?;
            Outcome::Ran
        }
        Entered::NotOpen | Entered::Over(_) => Outcome::NotOpen,
        Entered::InUse(_) => Outcome::Held,
        Entered::Gone(_) => Outcome::Gone,
        Entered::Damaged(..) => Outcome::Damaged,
    })
}
