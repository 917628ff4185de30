//! Forgetting ended jobs, and collecting what crashes left behind.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use state_machine::disk::{Dir, Disk, Read};
use state_machine::id::{JobId, Ticket};
use state_machine::job::State;
use state_machine::protocol::forget::{Forgotten, Sweeping, sweep};
use state_machine::protocol::recover::collect;
use state_machine::retention::{Ended, Retention};

use super::{Store, ticket};
use crate::clock;
use crate::error::{DiskError, Error, Result};
use crate::workspace::erase;

/// How long a worker is waited for that has recorded an end and has not left the job yet, and the pauses meanwhile.
const LEAVING: Duration = Duration::from_secs(1);
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// What a sweep did.
#[derive(Debug, Default)]
pub struct Swept {
    /// The jobs that are forgotten.
    pub forgotten: Vec<JobId>,
    /// The jobs that could not be, each with the reason.
    pub kept: Vec<Kept>,
    /// Why something is left in the trash of jobs that are forgotten. Whoever collects next tries again.
    pub left: Vec<Error>,
}

impl Swept {
    fn keep(&mut self, id: JobId, why: impl Into<String>) {
        let why = why.into();
        self.kept.push(Kept { id, why });
    }
}

/// Why a job is kept that somebody holds.
const HELD: &str = "it is held: something of it still runs";

/// A job that a sweep had to keep.
#[derive(Debug)]
pub struct Kept {
    /// The job.
    pub id: JobId,
    /// Why.
    pub why: String,
}

/// Sweeps a store. What the disk does not let be done with one job keeps nothing of the others.
struct Sweeper<'a> {
    store: &'a Store,
    /// The last fault with each.
    faults: BTreeMap<JobId, DiskError>,
}

impl Sweeping<DiskError> for Sweeper<'_> {
    fn before(&mut self, trashed: &Ticket) {
        self.store.discard(trashed);
    }

    fn failed(&mut self, id: &JobId, fault: DiskError) -> std::result::Result<(), DiskError> {
        self.faults.insert(id.clone(), fault);
        Ok(())
    }
}

impl Store {
    /// Forget the ended jobs that `retention` lets go, of those that `chosen` picks.
    pub fn sweep(
        &self,
        retention: Retention,
        chosen: impl Fn(&state_machine::protocol::look::View) -> bool,
    ) -> Result<Swept> {
        let ended: Vec<Ended> = self
            .list()?
            .jobs
            .iter()
            .filter(|view| view.state.is_terminal() && chosen(view))
            .map(|view| Ended {
                id: view.descriptor.id.clone(),
                ended_at_ms: view.status.ended_at_ms.unwrap_or(view.status.updated_at_ms),
            })
            .collect();
        self.forget(&retention.takes(ended, clock::now_ms()))
    }

    /// Forget these jobs, where they have ended and nothing of them is left (R9). A worker that has recorded an end has a moment to
    /// leave: who waited for the end may be faster.
    pub fn forget(&self, ids: &[JobId]) -> Result<Swept> {
        let mut swept = Swept::default();
        let mut held = self.forget_now(ids, &mut swept)?;
        let until = clock::since_boot() + LEAVING;
        let mut pause = FIRST_PAUSE;
        loop {
            held.retain(|id| self.is_being_left(id, &mut swept));
            if held.is_empty() || clock::since_boot() >= until {
                break;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
            held = self.forget_now(&held, &mut swept)?;
        }
        for id in held {
            swept.keep(id, HELD);
        }
        Ok(swept)
    }

    /// Whether a job that somebody holds has ended, so that he is about to leave it. Why another one is kept is noted.
    fn is_being_left(&self, id: &JobId, swept: &mut Swept) -> bool {
        match self.job(id).look() {
            Ok(view) if view.state.is_terminal() => return true,
            Ok(_) => swept.keep(id.clone(), HELD),
            // He was another sweep, and faster.
            Err(Error::Gone(_)) => {}
            Err(error) => swept.keep(id.clone(), error.to_string()),
        }
        false
    }

    /// Forget those of these jobs that can be forgotten now. Returns those that somebody holds.
    fn forget_now(&self, ids: &[JobId], swept: &mut Swept) -> Result<Vec<JobId>> {
        let jobs: Vec<_> = ids.iter().map(|id| (id.clone(), ticket())).collect();
        let mut sweeper = Sweeper {
            store: self,
            faults: BTreeMap::new(),
        };
        let outcomes = sweep(&mut self.disk(), &jobs, &mut sweeper)?;
        let mut faults = sweeper.faults;
        let mut held = Vec::new();
        for ((id, ticket), outcome) in jobs.into_iter().zip(outcomes) {
            let fault = faults.remove(&id);
            let why = match outcome.forgotten {
                Forgotten::Trashed(_) => {
                    swept.left.extend(fault.map(Error::from));
                    if outcome.is_stubborn {
                        swept.left.extend(self.purge_stubborn(&ticket).err());
                    }
                    swept.forgotten.push(id);
                    continue;
                }
                Forgotten::Failed => fault.map_or_else(String::new, |fault| fault.to_string()),
                // Another sweep was faster.
                Forgotten::Gone => continue,
                Forgotten::Held => {
                    held.push(id);
                    continue;
                }
                Forgotten::NotEnded(state) if self.is_described(&id)? => {
                    // Nobody holds it: whoever made it run is gone.
                    let state = match state {
                        State::Running => State::Interrupted,
                        state => state,
                    };
                    format!("it has not ended ({state}); stop it first")
                }
                Forgotten::Leftovers => "processes of it are left; stop it first".into(),
                Forgotten::Damaged => "its record cannot be read".into(),
                Forgotten::NotEnded(_) | Forgotten::Unknown => format!(
                    "its job.json cannot be read; remove {} if nothing in it is of use",
                    self.job_dir(&id).display()
                ),
            };
            swept.keep(id, why);
        }
        Ok(held)
    }

    /// Whether a job says what it is. One that does not has no end to wait for.
    fn is_described(&self, id: &JobId) -> Result<bool> {
        let read = self.disk().read_descriptor(&Dir::Job(id.clone()))?;
        Ok(matches!(read, Read::Value(_)))
    }

    /// Collect what crashes left in `staging/` and `trash/` (R8).
    pub fn collect(&self) -> Result<()> {
        let mut before = |trashed: &Ticket| self.discard(trashed);
        let mut left = None;
        for ticket in collect(&mut self.disk(), &ticket(), &mut before)? {
            // What is left of one keeps nothing of the others.
            left = left.or(self.purge_stubborn(&ticket).err());
        }
        left.map_or(Ok(()), Err)
    }

    /// Remove what a pull in the trash has left beside its destination, which is known by its record only.
    fn discard(&self, trashed: &Ticket) {
        crate::pull::discard(&self.trashed(trashed), &self.jobs_dir());
    }

    /// Delete a trashed directory that holds directories: a person put them there, and forgot the job with them.
    fn purge_stubborn(&self, ticket: &Ticket) -> Result<()> {
        let path = self.trashed(ticket);
        erase(&path).map_err(|trouble| Error::Place {
            slot: path.display().to_string(),
            why: trouble.to_string(),
        })
    }

    fn trashed(&self, ticket: &Ticket) -> PathBuf {
        self.disk.dir(&Dir::Trashed(ticket.clone()))
    }
}
