//! Mending a slot that was found broken: what only points to the wrong place is put right, what is missing is made anew, and what
//! would be lost is kept, unless it may be.

use std::os::fd::AsFd;

use state_machine::disk::Dir;
use state_machine::id::PoolName;
use state_machine::protocol::slot::mend::{Mending, mend, take_broken};
use state_machine::protocol::slot::occupy::{Occupant, leave};

use super::close::{Closed, end};
use super::yard::Yard;
use super::{Force, Slots};
use crate::disk::LockFile;
use crate::error::{Error, Result};
use crate::process::named;
use crate::store::ticket;
use crate::workspace::{Judgement, Trouble, erase};

/// What mending a slot came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// What was given up by force, a sentence each.
    pub discarded: Vec<String>,
    /// The processes that were ended by force, as they are named.
    pub ended: Vec<String>,
}

impl Slots {
    /// Mend a broken slot, so that it can be used again. Nothing that is landed nowhere is lost by that, but by force.
    ///
    /// # Errors
    ///
    /// [`Error::NotNow`] where it is not broken, or somebody has it; [`Error::Kept`] where it cannot be mended without a loss.
    pub fn repair(&self, pool: &PoolName, number: u32, force: Force) -> Result<Repaired> {
        let mut yard = self.yard(pool)?;
        let slot = yard.name_of(number);
        let mut disk = self.store.disk();
        let occupant = match take_broken(&mut disk, pool, number)? {
            Mending::Mine(occupant) => occupant,
            Mending::NotBroken => {
                return Err(Error::NotNow(format!("the slot {slot} is not broken")));
            }
            Mending::Held => return Err(Error::NotNow(format!("somebody has the slot {slot}"))),
            Mending::Gone => {
                return Err(Error::NotNow(format!("there is no slot {slot}")));
            }
            Mending::Damaged(why) => {
                return Err(Error::Kept {
                    slot,
                    why: format!("its record cannot be read: {why}"),
                });
            }
        };
        let mut closed = Closed::default();
        match yard.made_whole(&occupant, force, &mut closed) {
            Ok(()) => {
                mend(&mut disk, occupant)?;
                Ok(Repaired {
                    discarded: closed.discarded,
                    ended: closed.ended,
                })
            }
            Err(error) => {
                leave(&mut disk, occupant)?;
                Err(error)
            }
        }
    }
}

impl Yard<'_> {
    fn made_whole(
        &mut self,
        occupant: &Occupant<LockFile>,
        force: Force,
        closed: &mut Closed,
    ) -> Result<()> {
        let number = occupant.number();
        let held = occupant.lock().as_fd();
        let tenancy = self.tenancy(number);
        let tenants = tenancy.tenants();
        match force {
            Force::No if !tenants.is_empty() => return Err(Error::NotNow(named(&tenants))),
            Force::Yes if !tenants.is_empty() => end(&tenancy, &self.name_of(number), closed)?,
            _ => {}
        }
        let workspace = self.workspace(number);
        let mended = self
            .with_hands(held, |hands| workspace.mend(hands))
            .map_err(|trouble| self.failed(number, &trouble))?;
        let whole = match mended {
            Judgement::Sound | Judgement::Unfinished(_) => self.reset_or_make(number, occupant),
            Judgement::Work(_) if force == Force::Yes => self.discard(occupant, closed),
            Judgement::Broken(_) if force == Force::Yes => self.make_anew(occupant),
            Judgement::Broken(how) => Err(self.broken(occupant, how)),
            other => Err(Trouble::Kept(other)),
        };
        whole.map_err(|trouble| match trouble {
            Trouble::Kept(judgement @ Judgement::Work(_)) => Error::Kept {
                slot: self.name_of(number),
                why: format!(
                    "{judgement}; land it, or discard it with: outlive pool repair {} --force",
                    self.name_of(number)
                ),
            },
            Trouble::Kept(Judgement::Broken(how)) => Error::Kept {
                slot: self.name_of(number),
                why: format!(
                    "{how}; make it anew with: outlive pool repair {} --force",
                    self.name_of(number)
                ),
            },
            Trouble::Kept(judgement) => Error::Kept {
                slot: self.name_of(number),
                why: judgement.to_string(),
            },
            Trouble::Refused(how) => Error::Kept {
                slot: self.name_of(number),
                why: format!(
                    "{how}; once that is out of the way, make the slot anew with: outlive pool repair {} --force",
                    self.name_of(number)
                ),
            },
            trouble => self.failed(number, &trouble),
        })
    }

    /// What is to be said of a slot that is broken: how, or what is in it that would not be touched by force either.
    pub(super) fn broken(&mut self, occupant: &Occupant<LockFile>, how: String) -> Trouble {
        let workspace = self.workspace(occupant.number());
        let held = occupant.lock().as_fd();
        match self.with_hands(held, |hands| workspace.can_go(hands)) {
            Err(refused @ Trouble::Refused(_)) => refused,
            _ => Trouble::Kept(Judgement::Broken(how)),
        }
    }

    fn reset_or_make(&mut self, number: u32, occupant: &Occupant<LockFile>) -> Result<(), Trouble> {
        let held = occupant.lock().as_fd();
        match self.reset(number, held) {
            Err(Trouble::Kept(Judgement::Unfinished(_))) => self.cut(number, held),
            other => other,
        }
    }

    /// Take away what stands there, and make the slot's place anew.
    fn make_anew(&mut self, occupant: &Occupant<LockFile>) -> Result<(), Trouble> {
        let (number, held) = (occupant.number(), occupant.lock().as_fd());
        let workspace = self.workspace(number);
        let trash = self.store.disk().dir(&Dir::Trashed(ticket()));
        self.with_hands(held, |hands| workspace.remove(hands, &trash, true))?;
        erase(&trash)?;
        self.cut(number, held)
    }
}
