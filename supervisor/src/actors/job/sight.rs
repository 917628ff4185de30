//! What is seen of a job, and of those that it comes after. It is looked for on a thread that may block; no actor is here.

use state_machine::dependency::{self, waited_for};
use state_machine::disk::Place;
use state_machine::protocol::look::{Look as Looked, View, look, look_at};
use state_machine::protocol::supervise::is_asked;
use state_machine::record::{After, Descriptor};
use state_machine::supervise::{Need, need};

use crate::error::{Error, Result};
use crate::store::Job;

/// What was seen of a job.
pub(super) enum Sight {
    Job(Seen),
    Gone,
    Unreadable(Error),
}

/// A job that can be read.
pub(super) struct Seen {
    pub(super) view: Box<View>,
    pub(super) asked: bool,
    /// Where it waits to be admitted: what was found of those that it comes after.
    pub(super) after: Option<AfterSeen>,
}

/// What was found of jobs that a job comes after.
pub(super) struct AfterSeen {
    /// Those that were looked at.
    pub(super) looked_at: Vec<After>,
    /// Those of them that are still waited for, or why the job can never start.
    pub(super) open: std::result::Result<Vec<After>, String>,
}

/// Look at a job, and, of those that it comes after, at these, or at all where none are named.
pub(super) fn sight(job: &Job, known: Option<Descriptor>, ended: Option<Vec<After>>) -> Sight {
    try_sight(job, known, ended).unwrap_or_else(Sight::Unreadable)
}

fn try_sight(job: &Job, known: Option<Descriptor>, ended: Option<Vec<After>>) -> Result<Sight> {
    let mut disk = job.store().disk();
    let looked = match known {
        Some(descriptor) => look_at(&mut disk, descriptor)?,
        None => look(&mut disk, job.id())?,
    };
    let view = match looked {
        Looked::Job(view) => view,
        Looked::Gone => return Ok(Sight::Gone),
        Looked::Damaged { file, why } => {
            return Ok(Sight::Unreadable(Error::Damaged {
                path: disk.path(&Place::of_job(job.id(), file)),
                why: why.0,
            }));
        }
    };
    let asked = !view.held && is_asked(&mut disk, job.id())?;
    let awaits = need(&view, asked) == Need::Admission && view.status.attempt == 0;
    let after = awaits.then(|| {
        let looked_at = ended.unwrap_or_else(|| view.descriptor.after.clone());
        AfterSeen {
            open: waited_for(&looked_at, |after| seen(job, after)),
            looked_at,
        }
    });
    Ok(Sight::Job(Seen { view, asked, after }))
}

/// How a job that this one comes after stands.
fn seen(job: &Job, after: &After) -> dependency::Seen {
    let before = job.store().job(&after.job);
    // What comes after an end relies on it (R19).
    match before.look().and_then(|view| before.confirmed(view)) {
        Ok(view) => dependency::Seen::State(view.state),
        Err(Error::Gone(_)) => dependency::Seen::Gone,
        Err(_) => dependency::Seen::Damaged,
    }
}
