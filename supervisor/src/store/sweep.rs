//! Forgetting ended jobs, and collecting what crashes left behind.

use state_machine::disk::{Dir, Disk, Place, Read};
use state_machine::id::JobId;
use state_machine::protocol::forget::{Forgotten, forget, make_final, purge};
use state_machine::protocol::recover::collect;
use state_machine::retention::{Ended, Retention};

use super::{Store, ticket};
use crate::clock;
use crate::error::{Error, Result};
use crate::workspace::erase;

/// What a sweep did.
#[derive(Debug, Default)]
pub struct Swept {
    /// The jobs that are forgotten.
    pub forgotten: Vec<JobId>,
    /// The jobs that could not be, each with the reason.
    pub kept: Vec<Kept>,
}

/// A job that a sweep had to keep.
#[derive(Debug)]
pub struct Kept {
    /// The job.
    pub id: JobId,
    /// Why.
    pub why: String,
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

    /// Forget these jobs, where they have ended and nothing of them is left (R9).
    pub fn forget(&self, ids: &[JobId]) -> Result<Swept> {
        let mut disk = self.disk();
        let mut swept = Swept::default();
        let mut trashed = Vec::new();
        for id in ids {
            if let Some(why) = self.damage_of(id)? {
                swept.kept.push(Kept {
                    id: id.clone(),
                    why,
                });
                continue;
            }
            let why = match forget(&mut disk, id, &ticket())? {
                Forgotten::Trashed(ticket) => {
                    trashed.push(ticket);
                    swept.forgotten.push(id.clone());
                    continue;
                }
                // Another sweep was faster.
                Forgotten::Gone => continue,
                Forgotten::Held => "it is held: something of it still runs".into(),
                Forgotten::NotEnded(state) => format!("it has not ended ({state})"),
                Forgotten::Leftovers => "processes of it are left; stop it first".into(),
                Forgotten::Damaged => "its record cannot be read".into(),
            };
            swept.kept.push(Kept {
                id: id.clone(),
                why,
            });
        }
        if !trashed.is_empty() {
            make_final(&mut disk)?;
        }
        for ticket in trashed {
            crate::pull::discard(&self.disk.dir(&Dir::Trashed(ticket.clone())));
            if !purge(&mut disk, &ticket)? {
                self.purge_stubborn(&ticket)?;
            }
        }
        Ok(swept)
    }

    /// Why nobody can say what this is, if its descriptor cannot be read: then it is not ours to delete (R21).
    fn damage_of(&self, id: &JobId) -> Result<Option<String>> {
        let dir = Dir::Job(id.clone());
        let mut disk = self.disk();
        Ok(match disk.read_descriptor(&dir)? {
            Read::Value(_) => None,
            Read::Absent if !disk.exists(&Place::Dir(dir.clone()))? => None,
            Read::Absent | Read::Damaged(_) => Some(format!(
                "its job.json cannot be read; remove {} if nothing in it is of use",
                self.disk.dir(&dir).display()
            )),
        })
    }

    /// Collect what crashes left in `staging/` and `trash/` (R8).
    pub fn collect(&self) -> Result<()> {
        for ticket in collect(&mut self.disk(), &ticket())? {
            self.purge_stubborn(&ticket)?;
        }
        Ok(())
    }

    /// Delete a trashed directory that holds directories: a person put them there, and forgot the job with them.
    fn purge_stubborn(&self, ticket: &state_machine::id::Ticket) -> Result<()> {
        let path = self
            .disk
            .dir(&state_machine::disk::Dir::Trashed(ticket.clone()));
        erase(&path).map_err(|trouble| Error::Place {
            slot: path.display().to_string(),
            why: trouble.to_string(),
        })
    }
}
