//! Taking slots out of their pool: those that are more than there are to be, and all of them where the pool goes.

use std::os::fd::AsFd;
use std::path::PathBuf;

use state_machine::disk::Dir;
use state_machine::id::{PoolName, Ticket};
use state_machine::protocol::slot::find::Finding;
use state_machine::protocol::slot::maintain::{Visit, shed, visit};
use state_machine::protocol::slot::mend::{Mending, take_broken};
use state_machine::protocol::slot::occupy::{Occupant, Why, leave};
use state_machine::protocol::slot::place::numbers;
use state_machine::protocol::slot::remove::remove_slot;

use super::close::Closed;
use super::inspect::Notes;
use super::who::in_the_way;
use super::yard::{Yard, is_there};
use super::{Force, Slots};
use crate::clock;
use crate::disk::LockFile;
use crate::error::{Error, Result};
use crate::process::named;
use crate::store::ticket;
use crate::workspace::{Judgement, Trouble, erase};

/// What removing slots came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removal {
    /// Those that are gone.
    pub removed: Vec<u32>,
    /// What was given up by force, a sentence each.
    pub discarded: Vec<String>,
    /// Those that stayed, each with the reason.
    pub left: Vec<Left>,
}

/// A slot that stayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Its number.
    pub slot: u32,
    /// Why.
    pub why: String,
}

impl Slots {
    /// Take the slots out of a pool that are more than it is to have: those that are idle and hold nothing that would be lost,
    /// highest number first. Their numbers.
    ///
    /// # Errors
    ///
    /// As [`Slots::open_session`], for the pool.
    pub fn shed(&self, pool: &PoolName) -> Result<Vec<u32>> {
        self.yard(pool)?.shed()
    }

    /// Take every slot out of a pool that nobody has. One that holds work, or is broken, goes by force only; one that somebody
    /// has stays.
    ///
    /// # Errors
    ///
    /// As [`Slots::shed`].
    pub fn remove_slots(&self, pool: &PoolName, force: Force) -> Result<Removal> {
        let mut yard = self.yard(pool)?;
        let mut removal = Removal::default();
        for number in numbers(&mut self.store.disk(), pool)?.into_iter().rev() {
            if let Err(why) = yard.remove(number, force, &mut removal) {
                removal.left.push(Left {
                    slot: number,
                    why: why.to_string(),
                });
            }
        }
        Ok(removal)
    }
}

impl Yard<'_> {
    pub(super) fn shed(&mut self) -> Result<Vec<u32>> {
        let mut disk = self.store.disk();
        let (pool, most) = (self.pool.clone(), self.most());
        let ticket = ticket();
        let mut notes = Notes::default();
        let mut places = Vec::new();
        let gone = shed(
            &mut disk,
            &pool,
            most,
            clock::now_ms(),
            &ticket,
            &mut |_, occupant| {
                let finding = self.fit_to_go(occupant, &mut notes);
                if finding == Finding::Sound && occupant.expired().is_none() {
                    return Ok(match self.take_place_away(occupant, false, &mut places) {
                        Ok(()) => Finding::Sound,
                        Err(trouble) => Finding::Busy(trouble.to_string()),
                    });
                }
                Ok(finding)
            },
        )?;
        let tickets = gone.iter().map(|(_, ticket)| ticket);
        for path in tickets.map(|ticket| self.trashed(ticket)).chain(places) {
            throw_away(&path)?;
        }
        Ok(gone.into_iter().map(|(number, _)| number).collect())
    }

    /// As an inspection, but that nothing is made for what is to go.
    fn fit_to_go(&mut self, occupant: &Occupant<LockFile>, notes: &mut Notes) -> Finding {
        if self.was_never_had(occupant.number()) {
            return Finding::Sound;
        }
        // Also in one that was given back: somebody may stand there.
        let tenants = self.tenancy(occupant.number()).tenants();
        if !tenants.is_empty() {
            return Finding::Busy(named(&tenants));
        }
        self.inspect(occupant, notes)
    }

    /// Move what stands in a slot into the trash, and have its source forget it, before the slot itself goes: another one of
    /// its number may be made at any time after that.
    fn take_place_away(
        &mut self,
        occupant: &Occupant<LockFile>,
        force: bool,
        places: &mut Vec<PathBuf>,
    ) -> Result<(), Trouble> {
        let workspace = self.workspace(occupant.number());
        let trash = self.trashed(&ticket());
        let held = occupant.lock().as_fd();
        self.with_hands(held, |hands| workspace.remove(hands, &trash, force))?;
        places.push(trash);
        Ok(())
    }

    fn trashed(&self, ticket: &Ticket) -> PathBuf {
        self.store.disk().dir(&Dir::Trashed(ticket.clone()))
    }

    /// Remove one slot, or say why it stays.
    fn remove(&mut self, number: u32, force: Force, removal: &mut Removal) -> Result<()> {
        let mut disk = self.store.disk();
        let occupant = match visit(&mut disk, &self.pool, number, None, clock::now_ms())? {
            Visit::Due(occupant) => occupant,
            Visit::Gone => return Ok(()),
            Visit::Taken(Why::Broken(why)) => match self.take_broken(number, force, &why)? {
                Some(occupant) => occupant,
                None => return Ok(()),
            },
            Visit::Taken(why) => return Err(Error::NotNow(in_the_way(number, &why))),
            Visit::NotDue(_) | Visit::Busy => {
                return Err(self.busy());
            }
        };
        let mut places = Vec::new();
        let taken = self.empty_for_good(&occupant, force, removal, &mut places);
        if let Err(error) = taken {
            leave(&mut disk, occupant)?;
            return Err(error);
        }
        let ticket = ticket();
        if remove_slot(&mut disk, occupant, &ticket)? {
            removal.removed.push(number);
            places.push(self.trashed(&ticket));
        }
        for path in &places {
            throw_away(path)?;
        }
        Ok(())
    }

    fn take_broken(
        &self,
        number: u32,
        force: Force,
        why: &str,
    ) -> Result<Option<Occupant<LockFile>>> {
        let slot = self.name_of(number);
        if force == Force::No {
            return Err(Error::Kept {
                slot,
                why: format!("it is broken: {why}"),
            });
        }
        match take_broken(&mut self.store.disk(), &self.pool, number)? {
            Mending::Mine(occupant) => Ok(Some(occupant)),
            Mending::Gone => Ok(None),
            Mending::NotBroken | Mending::Held => Err(Error::NotNow(format!("{slot} is held"))),
            Mending::Damaged(why) => Err(Error::Kept {
                slot,
                why: format!("its record cannot be read: {why}"),
            }),
        }
    }

    fn empty_for_good(
        &mut self,
        occupant: &Occupant<LockFile>,
        force: Force,
        removal: &mut Removal,
        places: &mut Vec<PathBuf>,
    ) -> Result<()> {
        let number = occupant.number();
        let slot = self.name_of(number);
        if occupant.expired().is_some() {
            let why = "a session in it has expired and is still open; close it first".into();
            return Err(Error::Kept { slot, why });
        }
        let tenants = self.tenancy(number).tenants();
        if !tenants.is_empty() {
            return Err(Error::NotNow(named(&tenants)));
        }
        let taken = match self.take_place_away(occupant, false, places) {
            // Force is only advised where it would help.
            Err(Trouble::Kept(Judgement::Broken(how))) if force == Force::No => {
                Err(self.broken(occupant, how))
            }
            taken => taken,
        };
        match taken {
            Ok(()) => Ok(()),
            Err(trouble @ (Trouble::Kept(_) | Trouble::NotNow(_))) if force == Force::Yes => {
                let discarded = match &trouble {
                    Trouble::Kept(Judgement::Work(work)) => {
                        // For what can be put aside. What cannot be given up one by one goes with the rest.
                        let _ = self.discard(occupant, &mut Closed::default());
                        work.iter().map(ToString::to_string).collect()
                    }
                    // Nothing was begun in it, or begun to be taken away.
                    Trouble::Kept(Judgement::Unfinished(_)) => Vec::new(),
                    other => vec![format!("whatever was in it, unseen: {other}")],
                };
                let gone = self.take_place_away(occupant, true, places);
                gone.map_err(|trouble| self.failed(number, &trouble))?;
                let named = discarded.iter().map(|what| format!("{slot}: {what}"));
                removal.discarded.extend(named);
                Ok(())
            }
            Err(Trouble::Kept(judgement)) if !is_there(&self.place(number)) => {
                // There is nothing to be lost any more, but perhaps commits that only its registration leads to.
                Err(Error::Kept {
                    slot,
                    why: format!("{judgement}; give it up with --force"),
                })
            }
            Err(Trouble::Kept(judgement)) => Err(Error::Kept {
                slot,
                why: format!("{judgement}; discard it with --force"),
            }),
            Err(trouble @ Trouble::NotNow(_)) => Err(Error::Kept {
                slot,
                why: format!("{trouble}; give it up with --force"),
            }),
            Err(trouble) => Err(self.failed(number, &trouble)),
        }
    }
}

/// Delete what lies in the trash.
fn throw_away(path: &std::path::Path) -> Result<()> {
    erase(path).map_err(|trouble| Error::Place {
        slot: path.display().to_string(),
        why: trouble.to_string(),
    })
}
