//! What is so now, for those who show it: the rows of all jobs and the slots of pools, kept as they are.
//!
//! A [`Live`] hears of what changes and reads that again and nothing else: an ended job is not looked at again unless
//! something is heard of it, and while nothing changes nobody wakes. It is a descriptor that can be waited for together
//! with keys and connections. Whenever that can be read, [`Live::update`] is to be called, which does not wait; it says what is
//! another one now. Nothing is changed here, not even what somebody asked of a job that nobody holds completed, as that can take its
//! time: who shows what is so must not be late. What must never be here: how anything is shown, a thread, and a decision about a job.
//!
//! ```text
//! let mut live = Live::open(&store)?;
//! loop {
//!     draw(live.jobs(), live.pools());
//!     loop {
//!         poll(&[live.as_fd(), keys]);
//!         if !live.update()?.is_nothing() { break }
//!     }
//! }
//! ```
//!
//! In a runtime, hear of the descriptor with [`readable`](crate::reactor::readable), and clear its readiness *before* the update: what
//! comes meanwhile is told again.

mod ear;
mod jobs;
mod places;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::path::Path;
use std::sync::Arc;

use state_machine::config::PoolSetup;
use state_machine::id::{JobId, PoolName};
use state_machine::protocol::look::View;

use self::ear::{Ear, Heard};
use self::jobs::{Jobs, is_settled};
use crate::clock;
use crate::error::{DiskError, Error, Result};
use crate::slots::{self, PoolSlots};
use crate::store::{PoolStanding, Store, standings};

/// What is so now in a store. See the module.
#[derive(Debug)]
pub(crate) struct Live {
    store: Store,
    ear: Ear,
    jobs: Jobs,
    /// What cannot be read, in words, by its entry in the directory of jobs.
    damaged: BTreeMap<String, String>,
    setups: BTreeMap<PoolName, PoolSetup>,
    slots: Vec<PoolSlots>,
    /// Why pools are not known, where they cannot be read.
    pools_damaged: Option<String>,
}

/// What is another one than before.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// These jobs: something about them, or they have come or gone ([`Live::job`] tells).
    pub(crate) jobs: BTreeSet<JobId>,
    /// Something was added to, or became of, the output of these jobs, which are [followed](Live::follow).
    pub(crate) output: BTreeSet<JobId>,
    /// Pools, their slots, or whether there is a supervisor.
    pub(crate) pools: bool,
    /// What cannot be read.
    pub(crate) damaged: bool,
}

impl Changes {
    /// Whether all is as it was.
    pub(crate) fn is_nothing(&self) -> bool {
        *self == Changes::default()
    }
}

impl Live {
    /// What is so now in this store, and from now on.
    ///
    /// # Errors
    ///
    /// When the jobs cannot be listed, or the process has no descriptor left. What cannot be read of one job or of the pools
    /// hides nothing else: [`Live::damaged`]. That there is no inotify is no error: changes are seen later then.
    pub(crate) fn open(store: &Store) -> Result<Live> {
        let ear = Ear::new(store).map_err(|error| DiskError::new("watch", store.root(), error))?;
        Live::with(store, ear)
    }

    fn with(store: &Store, ear: Ear) -> Result<Live> {
        let mut live = Live {
            store: store.clone(),
            ear,
            jobs: Jobs::default(),
            damaged: BTreeMap::new(),
            setups: BTreeMap::new(),
            slots: Vec::new(),
            pools_damaged: None,
        };
        let mut changes = Changes::default();
        live.look_at_all(&mut changes)?;
        live.look_at_pools(&mut changes);
        Ok(live)
    }

    /// The store.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Every job, oldest first, without its environment.
    pub(crate) fn jobs(&self) -> impl DoubleEndedIterator<Item = &Arc<View>> {
        self.jobs.rows()
    }

    /// One job; nothing where it is gone or cannot be read.
    pub(crate) fn job(&self, id: &JobId) -> Option<&Arc<View>> {
        self.jobs.row(id)
    }

    /// How every pool stands, by name, those that only a job still names among them. Of slots that have a place, their locks
    /// say who has them.
    pub(crate) fn pools(&self) -> Vec<PoolStanding> {
        let unfinished = self.jobs.unsettled().filter_map(|id| self.jobs.row(id));
        let mut pools = standings(&self.setups, unfinished.map(AsRef::as_ref));
        for of_pool in &self.slots {
            if let Some(pool) = pools.iter_mut().find(|pool| pool.name == of_pool.pool) {
                pool.taken = of_pool.taken();
            }
        }
        pools
    }

    /// The slots of those pools whose slots have a place.
    pub(crate) fn slots(&self) -> &[PoolSlots] {
        &self.slots
    }

    /// What cannot be read, each in a line.
    pub(crate) fn damaged(&self) -> impl Iterator<Item = &str> {
        let lines = self.damaged.values().chain(&self.pools_damaged);
        lines.map(String::as_str)
    }

    /// Say in [`Changes::output`] when this job prints, from now on. What is in its log is the caller's to read, after this.
    pub(crate) fn follow(&mut self, id: &JobId) {
        self.ear.follow(id, true);
    }

    /// Say it no more.
    pub(crate) fn unfollow(&mut self, id: &JobId) {
        self.ear.follow(id, false);
        if self.jobs.row(id).is_none_or(|view| is_settled(view)) {
            self.ear.forget_job(id);
        }
    }

    /// See what has changed since the last call. Does not wait; to be called whenever the descriptor can be read. Changes that
    /// come one upon the other are seen together, at most 20 ms after the first of them.
    ///
    /// # Errors
    ///
    /// When the jobs cannot be listed. What was seen before stays, and it is tried again a second later.
    pub(crate) fn update(&mut self) -> Result<Changes> {
        let began = clock::worked();
        let heard = self.ear.hear().map_err(|error| self.deaf(error))?;
        let mut changes = Changes::default();
        if heard.is_nothing() {
            return Ok(changes);
        }
        let looked = self.look(heard, &mut changes);
        if looked.is_err() {
            self.ear.look_again();
        }
        let took = clock::worked().saturating_sub(began);
        self.ear.rest(took).map_err(|error| self.deaf(error))?;
        looked.map(|()| changes)
    }

    fn deaf(&self, error: io::Error) -> Error {
        DiskError::new("watch", self.store.root(), error).into()
    }

    fn look(&mut self, heard: Heard, changes: &mut Changes) -> Result<()> {
        if heard.pools {
            self.look_at_pools(changes);
        }
        changes.output = heard.output;
        if heard.lost {
            return self.look_at_all(changes);
        }
        let mut ids = heard.jobs;
        if heard.unsure {
            ids.extend(self.jobs.unsettled().cloned());
            self.look_for_others(&mut ids)?;
        }
        self.look_at(ids.into_iter().collect(), changes);
        Ok(())
    }

    /// Which jobs have come or gone, without being told.
    fn look_for_others(&self, ids: &mut BTreeSet<JobId>) -> Result<()> {
        let there: BTreeSet<JobId> = self.store.ids()?.into_iter().collect();
        ids.extend(self.jobs.ids().filter(|id| !there.contains(*id)).cloned());
        let is_new = |id: &JobId| self.jobs.row(id).is_none();
        ids.extend(there.into_iter().filter(is_new));
        Ok(())
    }

    /// Look at every job, what has ended only where it is not remembered.
    fn look_at_all(&mut self, changes: &mut Changes) -> Result<()> {
        let (views, damaged) = self.store.show_all(|view| view)?;
        let gone: BTreeSet<JobId> = {
            let there: BTreeSet<&JobId> = views.iter().map(|view| &view.descriptor.id).collect();
            let ids = self.jobs.ids().filter(|id| !there.contains(id));
            ids.cloned().collect()
        };
        for id in &gone {
            self.forget(id, changes);
        }
        let jobs_dir = self.store.jobs_dir();
        let damaged: BTreeMap<String, String> = damaged
            .iter()
            .map(|error| (entry_of(error, &jobs_dir), error.to_string()))
            .collect();
        changes.damaged |= damaged != self.damaged;
        self.damaged = damaged;
        // Those of whom nothing was heard so far are looked at again, now that something is.
        let mut again: Vec<JobId> = Vec::new();
        for view in views {
            let id = view.descriptor.id.clone();
            if !is_settled(&view) {
                self.ear.watch_job(&id);
                again.push(id.clone());
            }
            if self.jobs.put(view) {
                changes.jobs.insert(id);
            }
        }
        let damaged = self
            .damaged
            .keys()
            .filter_map(|entry| JobId::parse(entry).ok());
        again.extend(damaged);
        self.look_at(again, changes);
        Ok(())
    }

    /// Look at these jobs.
    fn look_at(&mut self, ids: Vec<JobId>, changes: &mut Changes) {
        for id in &ids {
            // The watch stands before the look.
            self.ear.watch_job(id);
        }
        for (id, looked) in ids.iter().zip(self.store.outlines(&ids)) {
            let healed = match &looked {
                Err(error) if !matches!(error, Error::Gone(_)) => {
                    let why = error.to_string();
                    let before = self.damaged.insert(id.to_string(), why.clone());
                    changes.damaged |= before.is_none_or(|before| before != why);
                    false
                }
                _ => self.damaged.remove(id.as_str()).is_some(),
            };
            changes.damaged |= healed;
            match looked {
                Ok(view) => {
                    if is_settled(&view) {
                        self.ear.forget_job(id);
                    }
                    if self.jobs.put(view) {
                        changes.jobs.insert(id.clone());
                    }
                }
                Err(Error::Gone(_)) => self.forget(id, changes),
                // It is watched: who mends it is heard.
                Err(_) => {
                    if self.jobs.remove(id) {
                        changes.jobs.insert(id.clone());
                    }
                }
            }
        }
    }

    fn forget(&mut self, id: &JobId, changes: &mut Changes) {
        self.ear.forget_job(id);
        if self.jobs.remove(id) {
            changes.jobs.insert(id.clone());
        }
    }

    fn look_at_pools(&mut self, changes: &mut Changes) {
        // The watches stand before the look.
        self.ear.watch_pools();
        let looked = self.store.pools().and_then(|setups| {
            let slots = slots::standings(&self.store, &setups)?;
            Ok((setups, slots))
        });
        match looked {
            Ok((setups, slots)) => {
                self.setups = setups;
                self.slots = slots;
                changes.damaged |= self.pools_damaged.take().is_some();
            }
            Err(error) => {
                let why = Some(error.to_string());
                changes.damaged |= self.pools_damaged != why;
                self.pools_damaged = why;
            }
        }
        // Also when it is only that there is a supervisor now, or none any more.
        changes.pools = true;
    }
}

impl AsFd for Live {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ear.as_fd()
    }
}

impl AsRawFd for Live {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

/// The entry of the directory of jobs that an error is about; what it says, where it is about none.
fn entry_of(error: &Error, jobs_dir: &Path) -> String {
    let path = match error {
        Error::Damaged { path, .. } => path,
        Error::Disk(error) => &error.path,
        other => return other.to_string(),
    };
    let entry = path.strip_prefix(jobs_dir).ok();
    let entry = entry.and_then(|path| path.components().next());
    entry.map_or_else(
        || error.to_string(),
        |entry| entry.as_os_str().to_string_lossy().into_owned(),
    )
}
