//! `outlive stop`: end jobs, leaving nothing of them behind.

use std::time::Duration;

use clap::{ArgMatches, Command};

use super::arguments::{all, duration, find_jobs, jobs, json};
use super::scope::Scope;
use super::{Verb, exit, print};
use crate::error::{Error, Result};
use crate::store::{Job, Report, Stopped, Store};

pub(super) const VERB: Verb = Verb {
    name: "stop",
    aliases: &["cancel"],
    declare,
    run,
};

fn declare(verb: Command) -> Command {
    verb.about("Stop jobs and wait until nothing of them is left")
        .long_about(
            "Stop jobs and wait until nothing of them is left. Without a name, inside a project: every job of the \
             project. Exits with 1 when SIGKILL was needed.",
        )
        .args([
            jobs(),
            all("Everyone's jobs"),
            duration("timeout", "Wait no longer than this; the stop goes on"),
            json(),
        ])
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let store = Store::open_default()?;
    let named = matches.get_many::<String>("job").is_some();
    let jobs = if named {
        find_jobs(&store, matches)?
    } else {
        unfinished(&store, matches.get_flag("all"))?
    };
    let timeout = matches.get_one::<Duration>("timeout").copied();
    let mut code = 0;
    for (job, stopped) in stop_all(&jobs, timeout) {
        let worse = match stopped {
            Ok(stopped) if stopped.already && named => {
                exit::say(&format!("{} has ended ({})", job.id(), stopped.state));
                exit::REFUSED
            }
            Ok(stopped) if stopped.forced => {
                exit::say(&format!("{} ended only by SIGKILL", job.id()));
                exit::FAILED
            }
            Ok(_) => 0,
            Err(error) => {
                exit::say(&advise(job, &error));
                error.exit_code()
            }
        };
        code = code.max(worse);
    }
    if matches.get_flag("json") {
        let reports: Vec<Report> = jobs
            .iter()
            .filter_map(|job| Some(job.report(&job.look().ok()?)))
            .collect();
        print::json(&reports)?;
    }
    Ok(code)
}

/// The jobs that are meant when no name is given.
fn unfinished(store: &Store, all: bool) -> Result<Vec<Job>> {
    let scope = Scope::here(all);
    if matches!(scope, Scope::All) && !all {
        return Err(Error::Usage(
            "name a job, or use --all; this is not inside a project".into(),
        ));
    }
    let listing = store.list_outlines()?;
    Ok(listing
        .jobs
        .iter()
        .filter(|view| scope.holds(view) && (!view.state.is_terminal() || view.leftovers))
        .map(|view| store.job(&view.descriptor.id))
        .collect())
}

/// What went wrong, and what helps where the request itself has no room on the disk.
fn advise(job: &Job, error: &Error) -> String {
    match error {
        Error::Disk(disk) if disk.source.kind() == std::io::ErrorKind::StorageFull => {
            format!(
                "{error}; 'outlive signal --tree {} TERM' needs no room",
                job.id()
            )
        }
        _ => error.to_string(),
    }
}

/// Ask all of them first, so that their graces run side by side; then wait for each.
fn stop_all(jobs: &[Job], timeout: Option<Duration>) -> Vec<(&Job, Result<Stopped>)> {
    let asked: Vec<Result<Option<Stopped>>> = jobs.iter().map(Job::begin_stop).collect();
    jobs.iter()
        .zip(asked)
        .map(|(job, asked)| {
            let stopped = asked.and_then(|ended| match ended {
                Some(ended) => Ok(ended),
                None => job.see_stop_through(timeout),
            });
            (job, stopped)
        })
        .collect()
}
