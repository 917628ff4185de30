//! Closing a session: its slot is emptied of processes, looked through for work, reset, and given back.

use std::os::fd::AsFd;

use state_machine::id::Token;
use state_machine::protocol::slot::give_back::{Condition, give_back};
use state_machine::protocol::slot::occupy::{Occupant, leave};
use state_machine::protocol::slot::session::{TakenBack, forget_session, take_back};
use state_machine::record::Session;

use super::yard::{Yard, lock_path, slot_dir};
use super::{Force, GRACE, Slots};
use crate::disk::LockFile;
use crate::error::{Error, Result};
use crate::process::{Tenancy, named};
use crate::workspace::{Judgement, Trouble};

/// How often a slot is tried to be taken back from processes that are ended.
const ROUNDS: u32 = 5;

/// What closing a session came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Closed {
    /// What was given up by force, a sentence each.
    pub discarded: Vec<String>,
    /// The processes that were ended by force, as they are named.
    pub ended: Vec<String>,
    /// What is wrong with the slot, which nobody gets until it is mended.
    pub broken: Option<String>,
}

impl Slots {
    /// Close a session, and give its slot back to the pool. Nothing of its holder is lost by that, but by force.
    ///
    /// # Errors
    ///
    /// [`Error::NoSession`] where none is open with this token; [`Error::NotNow`] while a process works in the slot;
    /// [`Error::Kept`] where something would be lost, or the slot was taken away. The session is still open then.
    pub fn close_session(&self, token: &Token, force: Force) -> Result<Closed> {
        let mut disk = self.store.disk();
        let mut closed = Closed::default();
        for _ in 0..ROUNDS {
            match take_back(&mut disk, token)? {
                TakenBack::Mine(occupant) => return self.empty(occupant, token, force, closed),
                TakenBack::InUse(session) => self.make_way(&session, force, &mut closed)?,
                TakenBack::Gone(_) if force == Force::Yes => {
                    forget_session(&mut disk, token)?;
                    return Ok(closed);
                }
                TakenBack::Gone(session) => return Err(self.taken_away(&session)),
                TakenBack::NotOpen | TakenBack::Over(_) => {
                    return Err(Error::NoSession(token.clone()));
                }
                TakenBack::Damaged(place, why) => {
                    return Err(Error::Damaged {
                        path: disk.path(&place),
                        why: why.0,
                    });
                }
            }
        }
        Err(Error::Busy(format!("the slot of session {token}")))
    }

    /// End those who have the slot's lock, or say who they are.
    fn make_way(&self, session: &Session, force: Force, closed: &mut Closed) -> Result<()> {
        let Session { pool, slot, .. } = session;
        let dir = slot_dir(&self.store, pool, *slot);
        let tenancy =
            Tenancy::of(&dir, &dir.join("worktree")).with_lock(lock_path(&self.store, pool, *slot));
        if force == Force::Yes {
            return end(&tenancy, &format!("{pool}/{slot}"), closed);
        }
        Err(in_use(&session.token, &named(&tenancy.tenants())))
    }

    fn empty(
        &self,
        occupant: Occupant<LockFile>,
        token: &Token,
        force: Force,
        mut closed: Closed,
    ) -> Result<Closed> {
        let mut yard = self.yard(occupant.pool())?;
        match yard.emptied(&occupant, token, force, &mut closed) {
            Ok(()) => {
                let condition = match &closed.broken {
                    None => Condition::Clean,
                    Some(why) => Condition::Broken(why.clone()),
                };
                give_back(&mut self.store.disk(), occupant, condition)?;
                Ok(closed)
            }
            Err(error) => {
                leave(&mut self.store.disk(), occupant)?;
                Err(error)
            }
        }
    }
}

impl Yard<'_> {
    /// Empty a slot, of processes first, and bring it to a fresh state.
    fn emptied(
        &mut self,
        occupant: &Occupant<LockFile>,
        token: &Token,
        force: Force,
        closed: &mut Closed,
    ) -> Result<()> {
        let number = occupant.number();
        let tenancy = self.tenancy(number);
        let tenants = tenancy.tenants();
        match force {
            Force::No if !tenants.is_empty() => return Err(in_use(token, &named(&tenants))),
            Force::Yes if !tenants.is_empty() => end(&tenancy, &self.name_of(number), closed)?,
            _ => {}
        }
        // An earlier close may have ended half way, and its holder have gone on with his work.
        self.workspace(number)
            .disown_reset()
            .map_err(|trouble| self.failed(number, &trouble))?;
        let fresh = match self.reset(number, occupant.lock().as_fd()) {
            Err(Trouble::Kept(Judgement::Work(_))) if force == Force::Yes => {
                self.discard(occupant, closed)
            }
            other => other,
        };
        let slot = self.name_of(number);
        match fresh {
            Ok(()) => Ok(()),
            Err(Trouble::Kept(work @ Judgement::Work(_))) => Err(Error::Kept {
                slot,
                why: format!(
                    "{work}; land it, or discard it with: outlive pool close {token} --force"
                ),
            }),
            // The session's holder has to say what becomes of it; a failure of the pool's own command is none of his.
            Err(trouble) if Yard::is_of_slot(&trouble) => {
                let why = self.describe(&trouble);
                let is_own = matches!(trouble, Trouble::Chore { .. });
                if force == Force::No && !is_own {
                    return Err(Error::Kept {
                        slot,
                        why: format!(
                            "{why}; put it right, or give it up as broken with: outlive pool close {token} --force"
                        ),
                    });
                }
                closed.broken = Some(why);
                Ok(())
            }
            // Who cannot wait until that passes is let go; what is in the slot stays, and is seen to by a repair.
            Err(trouble) if force == Force::Yes && is_outside(&trouble) => {
                closed.broken = Some(self.describe(&trouble));
                Ok(())
            }
            Err(trouble) => Err(self.failed(number, &trouble)),
        }
    }

    /// Give up what is in a slot.
    pub(super) fn discard(
        &mut self,
        occupant: &Occupant<LockFile>,
        closed: &mut Closed,
    ) -> Result<(), Trouble> {
        let (number, held) = (occupant.number(), occupant.lock().as_fd());
        let workspace = self.workspace(number);
        let discarded = self.with_hands(held, |hands| workspace.discard(hands))?;
        closed.discarded.extend(discarded);
        self.reset(number, held)
    }
}

/// Whether something is in the way that is no matter of the slot, and may stay so: its source is gone, or git cannot do what it
/// should.
fn is_outside(trouble: &Trouble) -> bool {
    matches!(
        trouble,
        Trouble::NotNow(_)
            | Trouble::Git { .. }
            | Trouble::TimedOut { .. }
            | Trouble::Kept(Judgement::Unclear(_))
    )
}

/// End everybody who works in a slot.
pub(super) fn end(tenancy: &Tenancy, slot: &str, closed: &mut Closed) -> Result<()> {
    let ended = tenancy.end(GRACE).map_err(|error| Error::Place {
        slot: slot.to_owned(),
        why: error.to_string(),
    })?;
    closed.ended.extend(ended.iter().map(ToString::to_string));
    Ok(())
}

fn in_use(token: &Token, who: &str) -> Error {
    let who = if who.is_empty() { "a process" } else { who };
    Error::NotNow(format!(
        "somebody works in the slot of session {token}: {who}; let it end or leave, or end it with: outlive pool close {token} --force (which discards what is not landed, too)"
    ))
}
