//! `outlive wait`: wait for jobs to end, and give the status of the one that counts.

use std::time::Duration;

use clap::{ArgMatches, Command};
use state_machine::id::PoolName;
use state_machine::job::State;
use state_machine::protocol::look::View;

use super::arguments::{duration, find_jobs, flag, jobs, json};
use super::{Verb, exit, print};
use crate::error::Result;
use crate::store::{Job, Report, Store, exit_code};
use crate::worker::Launcher;
use crate::{clock, error::Error};

pub(super) const VERB: Verb = Verb {
    name: "wait",
    aliases: &[],
    declare,
    run,
};

fn declare(verb: Command) -> Command {
    verb.about("Wait for jobs to end, and exit with the status of the first that did not end well")
        .args([
            jobs().required(true).num_args(1..),
            flag("any", "Wait for one of them only, and exit with its status"),
            duration("timeout", "Wait no longer than this"),
            json(),
        ])
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let store = Store::open_default()?;
    let jobs = find_jobs(&store, matches)?;
    let timeout = matches.get_one::<Duration>("timeout").copied();
    let deadline = timeout.map(|timeout| clock::since_boot() + timeout);
    let ended = if matches.get_flag("any") {
        vec![wait_for_any(&store, &jobs, timeout)?]
    } else {
        wait_for_all(&jobs, timeout)?
    };
    let left = || deadline.map(|deadline| deadline.saturating_sub(clock::since_boot()));
    for view in &ended {
        until_the_slot_is_left(&store, view, left())?;
    }
    if matches.get_flag("json") {
        let reports: Vec<Report> = ended
            .iter()
            .map(|view| Report::new(view, &store.job_dir(&view.descriptor.id)))
            .collect();
        print::json(&reports)?;
    }
    for view in ended.iter().filter(|view| view.state == State::Interrupted) {
        exit::say(&format!(
            "{} was interrupted; 'outlive resume' runs it again",
            view.descriptor.id
        ));
    }
    let codes = ended.iter().map(|view| exit_code(view.state, &view.status));
    Ok(codes.into_iter().find(|code| *code != 0).unwrap_or(0))
}

fn wait_for_all(jobs: &[Job], timeout: Option<Duration>) -> Result<Vec<View>> {
    let deadline = timeout.map(|timeout| clock::since_boot() + timeout);
    jobs.iter()
        .map(|job| {
            let left = deadline.map(|deadline| deadline.saturating_sub(clock::since_boot()));
            job.wait(left)
        })
        .collect()
}

/// Wait for the end of a job, and until its slot is left.
pub(super) fn to_the_end(job: &Job) -> Result<View> {
    let view = job.wait(None)?;
    until_the_slot_is_left(job.store(), &view, None)?;
    Ok(view)
}

/// Whoever waits for a job that works in a slot may want the slot next.
pub(super) fn until_the_slot_is_left(
    store: &Store,
    view: &View,
    timeout: Option<Duration>,
) -> Result<()> {
    let pool = view.descriptor.pool.as_deref();
    let (Some(pool), Some(number)) = (pool, view.status.slot) else {
        return Ok(());
    };
    match PoolName::parse(pool) {
        Ok(pool) if view.state.is_terminal() => store.slots(&Launcher::this_program()).until_left(
            &pool,
            number,
            &view.descriptor.id,
            timeout,
        ),
        _ => Ok(()),
    }
}

fn wait_for_any(store: &Store, jobs: &[Job], timeout: Option<Duration>) -> Result<View> {
    let deadline = timeout.map(|timeout| clock::since_boot() + timeout);
    let mut watch = None;
    loop {
        for job in jobs {
            let view = job.tend()?;
            if view.state.is_terminal() || view.state == State::Interrupted {
                return job.confirmed(view);
            }
        }
        let left = deadline.map(|deadline| deadline.saturating_sub(clock::since_boot()));
        if left == Some(Duration::ZERO) {
            return Err(Error::TimedOut("none of them has ended".into()));
        }
        match &mut watch {
            Some(watch) => {
                store.sleep(watch, left)?;
            }
            // One looks again once it stands.
            None => watch = Some(store.watch_states(jobs)),
        }
    }
}
