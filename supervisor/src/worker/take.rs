//! Taking a job to run it, with patience for those who have it for a moment only.

use std::time::Duration;

use state_machine::disk::{Dir, Disk, Read};
use state_machine::job::State;

use crate::clock;
use crate::error::{Error, Result};
use crate::store::{Held, Job};

/// How long, and how often, a job that never ran is tried to be taken.
const HOLD_PATIENCE: Duration = Duration::from_secs(2);
const HOLD_PAUSE: Duration = Duration::from_millis(2);

/// Take the job. One that never ran may be somebody's for a moment: of a client that settles a request, or of a copy of
/// the lock that outlives a killed holder (F55).
pub(super) fn hold_in_time(job: &Job) -> Result<Option<Held>> {
    let deadline = clock::since_boot() + HOLD_PATIENCE;
    loop {
        if let Some(held) = job.hold_to_run()? {
            return Ok(Some(held));
        }
        let never_ran = job.look()?.status.attempt == 0;
        if !never_ran || clock::since_boot() > deadline {
            return Ok(None);
        }
        std::thread::sleep(HOLD_PAUSE);
    }
}

/// Take a job that waits to be run: it is queued, or has lost its worker. That is asked again under the lock, as it may
/// have been stopped meanwhile.
///
/// # Errors
///
/// When it has ended or is paused, has a worker, is gone, or cannot be read. Then nothing was done to it.
pub(super) fn hold_to_start(job: &Job) -> Result<Held> {
    // First without the lock: nobody is to be kept from a job that is not to be started anyway.
    match job
        .store()
        .disk()
        .read_status(&Dir::Job(job.id().clone()))?
    {
        Read::Value(status) => see_that_it_waits(job, status.state)?,
        // It was never held.
        Read::Absent => {}
        Read::Damaged(why) => {
            return Err(Error::Damaged {
                path: job.dir().join("status.json"),
                why: why.0,
            });
        }
    }
    let held = hold_in_time(job)?
        .ok_or_else(|| Error::NotNow(format!("{} has a worker already", job.id())))?;
    match see_that_it_waits(job, held.holder.status().state) {
        Ok(()) => Ok(held),
        Err(why) => {
            job.let_go(held)?;
            Err(why)
        }
    }
}

/// Whether a job in this recorded state may be started by nobody's word but the queue's. A record that says running is of
/// a worker that is there, which the lock tells, or of one that is lost.
fn see_that_it_waits(job: &Job, recorded: State) -> Result<()> {
    match recorded {
        State::Queued | State::Interrupted | State::Running => Ok(()),
        State::Paused => Err(Error::NotNow(format!("{} is paused", job.id()))),
        State::Done | State::Failed | State::Cancelled => Err(Error::Ended {
            id: job.id().clone(),
            state: recorded,
        }),
    }
}
