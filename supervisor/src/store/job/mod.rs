//! One job: what is true about it. Asking, holding and waiting have files of their own.

mod ask;
mod hold;
mod later;
mod wait;

use std::path::PathBuf;

use state_machine::disk::{Dir, Disk, Place, Read};
use state_machine::id::JobId;
use state_machine::job::State;
use state_machine::protocol::look::{Look, View, look};
use state_machine::record::{Descriptor, History, Line};

use super::{Report, Store};
use crate::error::{Error, Result};

pub use ask::{Requested, Stopped};
pub use later::Events;

/// A job of a store, whether or not it is still there: what is true about it is looked up each time.
///
/// ```no_run
/// use outlive::state_machine::job::State;
/// use outlive::{JobSpec, Store};
///
/// # let store = Store::open("/srv/store")?;
/// let (job, _) = store.queue(JobSpec::command(["sleep", "60"]))?;
/// assert_eq!(job.look()?.state, State::Queued);
/// // Nothing of it is left when this returns.
/// let stopped = job.stop(None)?;
/// assert_eq!(stopped.state, State::Cancelled);
/// assert_eq!(job.events()?.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Job {
    store: Store,
    id: JobId,
}

impl Job {
    pub(super) fn new(store: Store, id: JobId) -> Job {
        Job { store, id }
    }

    /// The id of the job.
    pub fn id(&self) -> &JobId {
        &self.id
    }

    /// The store that the job is in.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The directory of the job.
    pub fn dir(&self) -> PathBuf {
        self.store.job_dir(&self.id)
    }

    /// What is true about the job. Changes nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Gone`] when it was forgotten, [`Error::Damaged`] when a record of it cannot be read.
    pub fn look(&self) -> Result<View> {
        match look(&mut self.store.disk(), &self.id)? {
            Look::Job(view) => Ok(*view),
            Look::Gone => Err(Error::Gone(self.id.clone())),
            Look::Damaged { file, why } => Err(Error::Damaged {
                path: self.store.disk.path(&Place::of_job(&self.id, file)),
                why: why.0,
            }),
        }
    }

    /// What is true about the job, after completing what was asked of it if nobody else will: a stop whose worker
    /// was killed half way is completed by the next one to look.
    ///
    /// # Errors
    ///
    /// As [`Job::look`]. Where something was asked and cannot be completed, what is true is returned all the same.
    pub fn tend(&self) -> Result<View> {
        let view = self.look()?;
        self.tend_view(view)
    }

    /// As [`Job::tend`], for a job that was just looked at.
    pub fn tend_view(&self, view: View) -> Result<View> {
        let is_over = view.state.is_terminal() && !view.leftovers;
        if view.held || is_over || !self.has_request()? {
            return Ok(view);
        }
        match self.settle() {
            Ok(_) => self.look(),
            Err(_) => Ok(view),
        }
    }

    /// The job as programs read it.
    pub fn report(&self, view: &View) -> Report {
        Report::new(view, &self.dir())
    }

    /// The history of the job: every line that can be read, and the states that are true and not in it yet (the
    /// history is written after the record).
    pub fn events(&self) -> Result<Vec<Line>> {
        let mut disk = self.store.disk();
        let dir = Dir::Job(self.id.clone());
        let status = disk.read_status(&dir)?;
        let mut history = disk.read_history(&dir)?;
        if history.lines.is_empty() {
            let created_at_ms = match disk.read_descriptor(&dir)? {
                Read::Value(descriptor) => descriptor.created_at_ms,
                Read::Damaged(_) => return Ok(history.lines),
                Read::Absent => return Err(Error::Gone(self.id.clone())),
            };
            history
                .lines
                .push(Line::state(created_at_ms, State::Queued));
        }
        if let Read::Value(status) = status
            && let Some(last) = history.last_state()
            && status.state.is_terminal()
            && !last.is_terminal()
        {
            history
                .lines
                .push(Line::state(status.updated_at_ms, status.state));
        }
        Ok(history.lines)
    }

    /// The history as it is on disk, for a check of it.
    pub(crate) fn raw_history(&self) -> Result<History> {
        Ok(self.store.disk().read_history(&Dir::Job(self.id.clone()))?)
    }

    pub(crate) fn descriptor(&self) -> Result<Descriptor> {
        match self
            .store
            .disk()
            .read_descriptor(&Dir::Job(self.id.clone()))?
        {
            Read::Value(descriptor) => Ok(descriptor),
            Read::Absent => Err(Error::Gone(self.id.clone())),
            Read::Damaged(why) => Err(Error::Damaged {
                path: self.dir().join("job.json"),
                why: why.0,
            }),
        }
    }
}
