//! Patience with those who have a job for a moment only.

use std::time::Duration;

use state_machine::course::take::By;

use crate::clock;
use crate::error::{Error, Result};
use crate::store::{Held, Job};

/// How long, and how often, a job that never ran is tried to be taken.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(2);

/// Take a job to run it, unless `is_wanted` says that nobody wants that any more. One that never ran may be somebody's for a
/// moment: of a client that settles a request, or of a copy of the lock that outlives a killed holder (F55).
///
/// # Errors
///
/// As [`Job::take`], and when it has a worker.
pub(super) fn take_in_time(job: &Job, by: By, is_wanted: &dyn Fn() -> bool) -> Result<Held> {
    let deadline = clock::since_boot() + PATIENCE;
    loop {
        if let Some(held) = job.take(by, is_wanted)? {
            return Ok(held);
        }
        let never_ran = job.look()?.status.attempt == 0;
        if !never_ran || clock::since_boot() > deadline {
            return Err(Error::NotNow(format!("{} has a worker already", job.id())));
        }
        std::thread::sleep(PAUSE);
    }
}
