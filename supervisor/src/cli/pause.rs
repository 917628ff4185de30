//! `outlive pause`: stop a job, keeping what is worth keeping.

use std::time::Duration;

use clap::{ArgMatches, Command};
use state_machine::control::Request;
use state_machine::job::State;

use super::arguments::{duration, find_jobs, jobs};
use super::{Verb, exit};
use crate::error::{Error, Result};
use crate::store::{Job, Requested, Store};

pub(super) const VERB: Verb = Verb {
    name: "pause",
    aliases: &[],
    declare,
    run,
};

fn declare(verb: Command) -> Command {
    verb.about("Pause jobs: freeze them, or end them to be run again, as they were made")
        .args([
            jobs().required(true).num_args(1..),
            duration("timeout", "Wait no longer than this for it to take effect"),
        ])
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let store = Store::open_default()?;
    let timeout = matches.get_one::<Duration>("timeout").copied();
    let mut code = 0;
    for job in find_jobs(&store, matches)? {
        if let Err(error) = pause(&job, timeout) {
            exit::say(&error.to_string());
            code = error.exit_code();
        }
    }
    Ok(code)
}

fn pause(job: &Job, timeout: Option<Duration>) -> Result<()> {
    let outranked = || Error::NotNow(format!("{} is being stopped", job.id()));
    if job.request(Request::Pause)? == Requested::Outranked {
        return Err(outranked());
    }
    // What counts is that the request was honoured: somebody else may have resumed the job since.
    let view = job.wait_until(timeout, |view| {
        view.state == State::Paused || view.state.is_terminal() || job.is_answered()
    })?;
    if view.state.is_terminal() {
        return Err(Error::Ended {
            id: job.id().clone(),
            state: view.state,
        });
    }
    Ok(())
}
