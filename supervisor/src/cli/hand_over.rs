//! Handing a job that was just made to a worker: what every verb that starts one does before it tells anybody.

use state_machine::protocol::look::View;

use super::exit;
use crate::error::Result;
use crate::slots::Lodging;
use crate::store::{Begun, Job, JobSpec, Store, Unacknowledged, exit_code};
use crate::worker::{Early, Launched, Start, launch, launch_in};

/// A job that was made, that survives a loss of power, and that a worker has.
pub(super) struct HandedOver {
    /// The job.
    pub(super) job: Job,
    /// Its worker.
    pub(super) launched: Launched,
    /// How its start went.
    pub(super) start: Start,
}

/// What beginning a job came to.
pub(super) enum Handed {
    /// It is new, and its command runs, is on its way, or could not be started.
    New(HandedOver),
    /// An unfinished job bears its name already.
    UnderWay(Box<View>),
}

/// Make a job and have a worker run it. The worker is made first, and gets ready while the job is synced.
pub(super) fn begin_and_hand_over(store: &Store, spec: JobSpec) -> Result<Handed> {
    let mut early: Option<Early> = None;
    let begun = store.begin_while(spec, &mut |job| {
        if let Some(earlier) = early.take() {
            earlier.dismiss();
        }
        early = Early::fork(store, &job);
    });
    match begun {
        Ok(Begun::New(made)) => match early.take() {
            Some(early) if early.is_for(made.id()) => publish(store, *made, early),
            early => {
                // The id was taken: it has prepared the command of another.
                early.into_iter().for_each(Early::dismiss);
                hand_over(store, *made)
            }
        }
        .map(Handed::New),
        Ok(Begun::UnderWay(view)) => {
            early.into_iter().for_each(Early::dismiss);
            Ok(Handed::UnderWay(view))
        }
        Err(error) => {
            if let Some(early) = early.take() {
                early.dismiss();
                // It had the lock of what was begun.
                let _ = store.collect();
            }
            Err(error)
        }
    }
}

/// Let a worker that waits for its job go on. When this returns, its command runs, is on its way, or could not be
/// started.
fn publish(store: &Store, made: Unacknowledged, early: Early) -> Result<HandedOver> {
    let job = store.job(made.id());
    match store.acknowledge(made) {
        // The lock is the worker's alone now: should it die, everybody is to see that.
        Ok(held) => drop(held),
        Err(error) => {
            early.dismiss();
            // It could not be recorded while that one had the lock.
            let _ = job.fail_to_start(&error.to_string());
            return Err(error);
        }
    }
    let mut launched = early.publish();
    let start = started(&job, &mut launched)?;
    Ok(HandedOver {
        job,
        launched,
        start,
    })
}

fn started(job: &Job, launched: &mut Launched) -> Result<Start> {
    launched.started().inspect_err(|error| {
        // Whoever is told that it failed must not find a job that waits to be resumed. Where not even that can be
        // recorded, the job reads interrupted, which is as true.
        let _ = job.fail_to_start(&error.to_string());
    })
}

/// Hand a new job to a worker. When this returns, its command runs, is on its way, or could not be
/// started.
pub(super) fn hand_over(store: &Store, made: Unacknowledged) -> Result<HandedOver> {
    let held = store.acknowledge(made)?;
    let job = store.job(held.holder.id());
    let mut launched = launch(&job, held)?;
    let start = started(&job, &mut launched)?;
    Ok(HandedOver {
        job,
        launched,
        start,
    })
}

/// Make a job and have a worker run it in this slot. The slot is let go where nothing comes of that.
pub(super) fn begin_in(store: &Store, spec: JobSpec, mut lodging: Lodging) -> Result<Handed> {
    let held = match store.begin(spec) {
        Ok(Begun::New(made)) => store.acknowledge(*made),
        Ok(Begun::UnderWay(view)) => {
            lodging.leave()?;
            return Ok(Handed::UnderWay(view));
        }
        Err(error) => Err(error),
    };
    let held = match held {
        Ok(held) => held,
        Err(error) => {
            lodging.leave()?;
            return Err(error);
        }
    };
    let job = store.job(held.holder.id());
    if let Err(error) = lodging.claim(job.id()) {
        // Nobody is told that it failed by a job that waits to be resumed. Our own lock would refuse us.
        drop(held);
        let _ = job.fail_to_start(&error.to_string());
        return Err(error);
    }
    let mut launched = launch_in(&job, held, Some(lodging))?;
    let start = started(&job, &mut launched)?;
    Ok(Handed::New(HandedOver {
        job,
        launched,
        start,
    }))
}

/// Say why a job whose start is over did not run, and give the exit code for that.
pub(super) fn say_why_not(job: &Job) -> Result<u8> {
    let view = job.look()?;
    if let Some(message) = &view.status.message {
        exit::say(message);
    }
    Ok(exit_code(view.state, &view.status))
}
