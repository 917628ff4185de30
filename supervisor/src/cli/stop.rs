//! `outlive stop`: end jobs, leaving nothing of them behind.

use std::time::Duration;

use clap::{ArgMatches, Command};
use state_machine::protocol::look::View;

use super::arguments::{all, duration, flag, jobs, json, resolve};
use super::scope::Scope;
use super::wait::until_the_slot_is_left;
use super::{Verb, exit, print};
use crate::clock;
use crate::error::{Error, Result};
use crate::project::Tasks;
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
            "Stop jobs and wait until nothing of them is left. The name of a task of the project means its jobs and those of every task \
             that it needs, but for what another running task needs; what needs something ends before that does. Without a name, inside \
             a project: every job of the project. Exits with 1 when SIGKILL was needed.",
        )
        .args([
            jobs(),
            flag("only", "Of tasks, not what they need"),
            all("Everyone's jobs"),
            duration("timeout", "Wait no longer than this; the stop goes on"),
            json(),
        ])
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let store = Store::open_default()?;
    let named = matches.get_many::<String>("job").is_some();
    let (jobs, rounds) = if named {
        named_rounds(&store, matches)?
    } else {
        (Vec::new(), unfinished(&store, matches.get_flag("all"))?)
    };
    let timeout = matches.get_one::<Duration>("timeout");
    let until = timeout.map(|timeout| clock::since_boot() + *timeout);
    let rounds = [vec![jobs], rounds].concat();
    // Of a task, what has ended by itself meanwhile has ended as it was asked to.
    let code = stop_rounds(&rounds[..1], until, true);
    let code = code.max(stop_rounds(&rounds[1..], until, false));
    if matches.get_flag("json") {
        let reports: Vec<Report> = rounds
            .iter()
            .flatten()
            .filter_map(|job| Some(job.report(&job.look().ok()?)))
            .collect();
        print::json(&reports)?;
    }
    Ok(code)
}

/// Stop what is in each round, the next once that has ended, and say what there is to say. The exit code. All of them together are
/// waited for until a time since boot at most; what is left then is asked to end, and not waited for.
pub(super) fn stop_rounds(rounds: &[Vec<Job>], until: Option<Duration>, named: bool) -> u8 {
    let mut code = 0;
    for (job, stopped) in rounds.iter().flat_map(|round| stop_all(round, until)) {
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
    code
}

/// The jobs that the arguments name, each once, and those of the tasks that they name. Inside a project, a word that is a task means
/// the task.
fn named_rounds(store: &Store, matches: &ArgMatches) -> Result<(Vec<Job>, Vec<Vec<Job>>)> {
    let words: Vec<&str> = matches
        .get_many::<String>("job")
        .unwrap_or_default()
        .map(String::as_str)
        .collect();
    let tasks = tasks_of(&words)?;
    let is_task = |word: &&str| tasks.as_ref().is_some_and(|tasks| tasks.find(word).is_ok());
    let (named, others): (Vec<&str>, Vec<&str>) = words.into_iter().partition(is_task);
    let mut jobs: Vec<Job> = Vec::new();
    for query in others {
        let job = resolve(store, query)?;
        if !jobs.iter().any(|known| known.id() == job.id()) {
            jobs.push(job);
        }
    }
    let mut rounds = Vec::new();
    if let Some(tasks) = tasks.filter(|_| !named.is_empty()) {
        let views = store.list_outlines()?.jobs;
        rounds = tasks.rounds(store, &views, &named, matches.get_flag("only"));
        if rounds.is_empty() {
            return Err(Error::NotNow(format!(
                "no job of {} is under way",
                named.join(", ")
            )));
        }
    }
    let is_of_task = |job: &Job| {
        rounds
            .iter()
            .flatten()
            .any(|one: &Job| one.id() == job.id())
    };
    jobs.retain(|job| !is_of_task(job));
    Ok((jobs, rounds))
}

/// The tasks of the project that this is in, if any of the words could be one. Where its file is wrong, words are jobs: what runs can
/// be stopped whatever became of the file.
fn tasks_of(words: &[&str]) -> Result<Option<Tasks>> {
    let Scope::Project(root) = Scope::here(false) else {
        return Ok(None);
    };
    match Tasks::read(&root) {
        Ok(tasks) => Ok(Some(tasks)),
        Err(error) => {
            if !words.is_empty() {
                exit::say(&format!("{error}; only jobs are looked for"));
            }
            Ok(None)
        }
    }
}

/// The jobs that are meant when no name is given.
fn unfinished(store: &Store, all: bool) -> Result<Vec<Vec<Job>>> {
    let scope = Scope::here(all);
    if matches!(scope, Scope::All) && !all {
        return Err(Error::Usage(
            "name a job, or use --all; this is not inside a project".into(),
        ));
    }
    let views = store.list_outlines()?.jobs;
    if let Some(tasks) = tasks_of(&[])?.filter(|_| !all) {
        return Ok(tasks.rounds_of_all(store, &views));
    }
    let is_meant =
        |view: &&View| scope.holds(view) && (!view.state.is_terminal() || view.leftovers);
    let jobs = views.iter().filter(is_meant);
    Ok(vec![
        jobs.map(|view| store.job(&view.descriptor.id)).collect(),
    ])
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
fn stop_all(jobs: &[Job], until: Option<Duration>) -> Vec<(&Job, Result<Stopped>)> {
    let left = || until.map(|until| until.saturating_sub(clock::since_boot()));
    let asked: Vec<Result<Option<Stopped>>> = jobs.iter().map(Job::begin_stop).collect();
    jobs.iter()
        .zip(asked)
        .map(|(job, asked)| {
            let stopped = asked.and_then(|ended| match ended {
                Some(ended) => Ok(ended),
                None => job.see_stop_through(left()),
            });
            let stopped = stopped.and_then(|stopped| {
                leave_slot(job, left())?;
                Ok(stopped)
            });
            (job, stopped)
        })
        .collect()
}

/// Nothing is left of a job once its slot is left.
fn leave_slot(job: &Job, timeout: Option<Duration>) -> Result<()> {
    match job.look() {
        Ok(view) => until_the_slot_is_left(job.store(), &view, timeout),
        // A sweep was faster.
        Err(Error::Gone(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
