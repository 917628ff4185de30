//! Handing a job that was just made to a worker: what every verb that starts one does before it tells anybody.

use super::exit;
use crate::error::Result;
use crate::store::{Held, Job, Store, exit_code};
use crate::worker::{Launched, Start, launch};

/// A job that was made, that survives a loss of power, and that a worker has.
pub(super) struct HandedOver {
    /// The job.
    pub(super) job: Job,
    /// Its worker.
    pub(super) launched: Launched,
    /// How its start went.
    pub(super) start: Start,
}

/// Hand a new job to a worker. When this returns, its command runs or could not be started.
pub(super) fn hand_over(store: &Store, held: Held) -> Result<HandedOver> {
    let job = store.job(held.holder.id());
    let mut launched = launch(&job, held)?;
    // The worker gets on while the creation is made to survive a loss of power; nobody is told of it before both.
    store.acknowledge()?;
    let start = launched.started().inspect_err(|error| {
        // Whoever is told that it failed must not find a job that waits to be resumed. Where not even that can be
        // recorded, the job reads interrupted, which is as true.
        let _ = job.fail_to_start(&error.to_string());
    })?;
    Ok(HandedOver {
        job,
        launched,
        start,
    })
}

/// Say why a job whose start is over did not run, and give the exit code for that.
pub(super) fn say_why_not(job: &Job) -> Result<u8> {
    let view = job.look()?;
    if let Some(message) = &view.status.message {
        exit::say(message);
    }
    Ok(exit_code(view.state, &view.status))
}
