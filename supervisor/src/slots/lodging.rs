//! A slot for somebody who lives as long as he works in it: his lock is his claim, and whatever he starts inherits it.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use state_machine::id::{JobId, PoolName};
use state_machine::protocol::slot::claim::claim_slot;
use state_machine::protocol::slot::give_back::{Condition, give_back};
use state_machine::protocol::slot::occupy::{Occupant, leave};
use state_machine::record::Holder;

use super::Slots;
use super::claimant::claim;
use super::token::new_token;
use super::yard::Yard;
use crate::disk::LockFile;
use crate::error::{Error, Result};
use crate::store::os_string;

/// A slot that is had as long as its lock is. Dropped, it is neither given back nor unlocked: whatever has inherited the lock
/// still has it, and whoever comes after that looks at what was left.
#[derive(Debug)]
pub(crate) struct Lodging {
    slots: Slots,
    occupant: Occupant<LockFile>,
    path: PathBuf,
    slot_dir: PathBuf,
    source: Option<PathBuf>,
}

impl Slots {
    /// Have an idle slot of a pool, as [`Slots::open_session`] does. `None` where the pool's slots have no place: they only
    /// count.
    pub(crate) fn lodge(&self, pool: &PoolName) -> Result<Option<Lodging>> {
        let mut yard = match self.yard(pool) {
            Ok(yard) => yard,
            Err(Error::NoPlace(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let occupant = yard.find()?;
        let number = occupant.number();
        let source = yard.setup.ground.source.as_ref();
        Ok(Some(Lodging {
            path: yard.place(number),
            slot_dir: yard.slot_dir(number),
            source: source.map(|source| os_string(source).into()),
            slots: self.clone(),
            occupant,
        }))
    }
}

impl Lodging {
    /// The number of the slot.
    pub(crate) fn number(&self) -> u32 {
        self.occupant.number()
    }

    /// The lock that is to be inherited.
    pub(crate) fn lock(&self) -> BorrowedFd<'_> {
        self.occupant.lock().as_fd()
    }

    /// The directory of the slot, for the environment of what runs in it.
    pub(crate) fn slot_dir(&self) -> &Path {
        &self.slot_dir
    }

    /// Where to work for somebody who would else work in `dir`: at the same place of the tree, if he is in the source and the
    /// slot has that, and at its top otherwise.
    pub(crate) fn place_of(&self, dir: &Path) -> PathBuf {
        let below = self.source.as_ref().and_then(|source| {
            let real = dir.canonicalize().ok()?;
            let below = real.strip_prefix(source).ok()?;
            Some(self.path.join(below))
        });
        below
            .filter(|below| below.is_dir())
            .unwrap_or_else(|| self.path.clone())
    }

    /// Say that the slot is this job's.
    pub(crate) fn claim(&mut self, job: &JobId) -> Result<()> {
        let pool = self.occupant.pool().clone();
        let claim = claim(new_token(&pool)?, Holder::Job(job.clone()));
        let mut disk = self.slots.store.disk();
        if claim_slot(&mut disk, &mut self.occupant, claim)? {
            Ok(())
        } else {
            Err(Error::Busy(format!("the pool {pool}")))
        }
    }

    /// Let the slot go without having worked in it.
    pub(crate) fn leave(self) -> Result<()> {
        Ok(leave(&mut self.slots.store.disk(), self.occupant)?)
    }

    /// Give the slot back, of whose lock nobody else has a copy any more. What would be lost is kept, and the slot with it. Where
    /// somebody still works in it, or it cannot be seen to now, it is left to whoever comes next.
    pub(crate) fn give_back(self) -> Result<()> {
        let mut yard = self.slots.yard(self.occupant.pool())?;
        let number = self.occupant.number();
        if !yard.tenancy(number).tenants().is_empty() {
            return Ok(());
        }
        let condition = match yard.reset(number, self.occupant.lock().as_fd()) {
            Ok(()) => Condition::Clean,
            Err(trouble) if Yard::is_of_slot(&trouble) => {
                Condition::Broken(yard.describe(&trouble))
            }
            Err(_) => return self.leave(),
        };
        Ok(give_back(
            &mut self.slots.store.disk(),
            self.occupant,
            condition,
        )?)
    }
}
