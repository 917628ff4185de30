//! `outlive resume`: let a paused or interrupted job go on.

use std::time::Duration;

use clap::{ArgMatches, Command};
use state_machine::control::Request;
use state_machine::course::take::By;
use state_machine::job::State;

use super::arguments::{find_jobs, jobs};
use super::background::ensure_supervised;
use super::{Verb, exit};
use crate::clock;
use crate::error::{Error, Result};
use crate::store::{Job, Requested, Store};
use crate::worker::{Start, launch};

pub(super) const VERB: Verb = Verb {
    name: "resume",
    aliases: &[],
    declare,
    run,
};

/// How long a job that changes hands under us is looked at again, and how often.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(5);

fn declare(verb: Command) -> Command {
    verb.about("Let paused jobs go on, and run interrupted ones again")
        .long_about(
            "Let paused jobs go on, and run interrupted ones again. A job of a pool is queued again, and runs when a slot of \
             it is idle.",
        )
        .arg(jobs().required(true).num_args(1..))
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let store = Store::open_default()?;
    let mut code = 0;
    let mut is_queued = false;
    for job in find_jobs(&store, matches)? {
        match resume(&job) {
            Ok(resumed) => is_queued |= resumed == Resumed::Queued,
            Err(error) => {
                exit::say(&error.to_string());
                code = error.exit_code();
            }
        }
    }
    if is_queued {
        ensure_supervised(&store)?;
    }
    Ok(code)
}

/// What resuming a job came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resumed {
    /// A worker has it.
    Runs,
    /// Its pool admits it.
    Queued,
}

/// A job that somebody holds is asked to go on; one that nobody holds is run again, by its pool or by us.
pub(super) fn resume(job: &Job) -> Result<Resumed> {
    let deadline = clock::since_boot() + PATIENCE;
    while clock::since_boot() < deadline {
        let view = job.tend()?;
        let ended = Error::Ended {
            id: job.id().clone(),
            state: view.state,
        };
        if view.state.is_terminal() {
            return Err(ended);
        }
        if view.held && view.state == State::Running && view.status.stopping.is_none() {
            return Ok(Resumed::Runs);
        }
        let in_pool = view.descriptor.pool.is_some();
        if !view.held && in_pool && view.state == State::Queued {
            return Ok(Resumed::Queued);
        }
        if !view.held && !in_pool {
            match run_again(job) {
                Ok(true) => return Ok(Resumed::Runs),
                // Somebody else was faster, and is about to run it, or asks for something at every turn.
                Ok(false) | Err(Error::Busy(_)) => std::thread::sleep(PAUSE),
                Err(error) => return Err(error),
            }
            continue;
        }
        match job.request(Request::Resume) {
            // It is queued again, whatever has become of it since; or somebody has taken it just then.
            Ok(Requested::Accepted) if !view.held && job.is_answered() => {
                return Ok(Resumed::Queued);
            }
            Ok(Requested::Accepted) if !view.held => continue,
            Ok(Requested::Accepted) => {}
            Ok(Requested::Outranked) => {
                return Err(Error::NotNow(format!("{} is being stopped", job.id())));
            }
            // Everybody asks at once, and each of them is answered in turn.
            Err(Error::Busy(_)) => {
                std::thread::sleep(PAUSE);
                continue;
            }
            Err(error) => return Err(error),
        }
        let after = job.wait_until(None, |view| {
            view.state != State::Paused || !view.held || job.is_answered()
        })?;
        // Honoured, even where somebody else has paused the job since. One that is queued by it has no worker: whoever paused it
        // was about to leave, and has it for a moment still.
        let has_worker = after.held && after.state != State::Queued;
        if has_worker && !after.state.is_terminal() && job.is_answered() {
            return Ok(Resumed::Runs);
        }
    }
    Err(Error::Busy(job.id().to_string()))
}

/// Take the job and leave a worker on it; `false` when somebody else was faster.
fn run_again(job: &Job) -> Result<bool> {
    // What was asked of it before comes first: a cancel that nobody completed is completed, not run over (R6).
    job.settle()?;
    let Some(held) = job.take(By::Somebody, &|| true)? else {
        return Ok(false);
    };
    match launch(job, held)?.started()? {
        Start::Running => Ok(true),
        Start::Over => {
            let view = job.look()?;
            let why = view
                .status
                .message
                .unwrap_or_else(|| view.state.to_string());
            Err(Error::Worker(format!("{} did not run: {why}", job.id())))
        }
    }
}
