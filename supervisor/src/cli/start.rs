//! `outlive start`: start tasks of a project, with all that they need.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use clap::{Arg, ArgMatches, Command};
use rustix::fs::Mode;
use rustix::process::umask;
use serde::Serialize;

use super::arguments::json;
use super::parting::say_if_interrupted;
use super::scope::tasks_here;
use super::{Verb, exit, print};
use crate::error::Result;
use crate::project::{News, Outcome, Starter, Tasks, Tell};
use crate::store::{Report, Store};

pub(super) const VERB: Verb = Verb {
    name: "start",
    aliases: &[],
    declare,
    run,
};

fn declare(verb: Command) -> Command {
    verb.about("Start tasks of the project, with all that they need, and wait until they are ready")
        .long_about(
            "Start tasks of the project, each once everything that it needs is ready, and wait until all of them are. What runs \
             already is joined. Without a name: every task. Prints the name and the job of each, with a tab between. Exits with 1 where \
             one is not ready.",
        )
        .args([
            Arg::new("task")
                .value_name("TASK")
                .num_args(0..)
                .help("A task of outlive.toml"),
            json(),
        ])
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let tasks = tasks_here()?;
    let wanted = wanted(&tasks, matches)?;
    let store = Store::open_default()?;
    say_if_interrupted("what was started runs on; end it with: outlive stop".into())?;
    let as_json = matches.get_flag("json");
    let outcomes = start(&store, &tasks, &wanted, own_mask(), &|name, news| {
        tell(name, news);
        if let (News::Came(Outcome::Ready { job, .. }), false) = (news, as_json) {
            // A reader that has gone away is told nothing more.
            let _ = print::line(&format!("{}\t{}", print::safe(name), job.id()));
        }
    })?;
    if as_json {
        print::json(&reports(&outcomes))?;
    }
    Ok(exit_code(&outcomes))
}

/// The tasks that the arguments name; all where they name none.
pub(super) fn wanted<'a>(tasks: &'a Tasks, matches: &ArgMatches) -> Result<Vec<&'a str>> {
    match matches.get_many::<String>("task") {
        None => Ok(tasks.project().tasks.keys().map(String::as_str).collect()),
        Some(words) => words.map(|word| Ok(tasks.find(word)?.0)).collect(),
    }
}

/// The mask of whoever starts tasks, which is for them. What we make ourselves from here on is for its owner's eyes only.
pub(super) fn own_mask() -> u32 {
    umask(Mode::from_raw_mode(0o077)).as_raw_mode()
}

/// Start these tasks, with this file mode creation mask.
pub(super) fn start(
    store: &Store,
    tasks: &Tasks,
    wanted: &[&str],
    mask: u32,
    told: &Tell<'_>,
) -> Result<BTreeMap<String, Outcome>> {
    start_until(store, tasks, wanted, mask, &AtomicBool::new(false), told)
}

/// As [`start`], but nothing more is started once `is_over` says so.
pub(super) fn start_until(
    store: &Store,
    tasks: &Tasks,
    wanted: &[&str],
    mask: u32,
    is_over: &AtomicBool,
    told: &Tell<'_>,
) -> Result<BTreeMap<String, Outcome>> {
    let starter = Starter {
        tasks,
        store,
        config: &store.config()?,
        umask: mask,
        is_over,
    };
    Ok(starter.start(wanted, told))
}

/// Say what people should know of a start.
pub(super) fn tell(name: &str, news: News<'_>) {
    let outcome = match news {
        News::Begun { .. } => return,
        News::Served(address) => {
            exit::say(&format!(
                "{name}: something else answers at {address} already, and may be taken for it"
            ));
            return;
        }
        News::Unlimited(why) => {
            exit::say(&format!("{name}: {why}"));
            return;
        }
        News::Untold(why) => {
            exit::say(&format!("{name} is ready; hooks.ready: {why}"));
            return;
        }
        News::Came(outcome) => outcome,
    };
    match outcome {
        Outcome::Ready { joined: false, .. } => {}
        Outcome::Ready { job, joined: true } => {
            exit::say(&format!("{name} runs already, as {}", job.id()));
        }
        Outcome::Failed { job, why } => {
            let log = job
                .as_ref()
                .map(|job| format!("; see: outlive log {}", job.id()));
            exit::say(&format!("{name}: {why}{}", log.unwrap_or_default()));
        }
        // It may run already.
        Outcome::Skipped { why } => exit::say(&format!("{name} is left as it is: {why}")),
    }
}

/// 1 where a task is not ready.
pub(super) fn exit_code(outcomes: &BTreeMap<String, Outcome>) -> u8 {
    if outcomes.values().all(Outcome::is_ready) {
        0
    } else {
        exit::FAILED
    }
}

/// What starting a task came to, for scripts.
#[derive(Serialize)]
struct Started<'a> {
    task: &'a str,
    outcome: &'static str,
    why: Option<&'a str>,
    job: Option<Report>,
}

fn reports(outcomes: &BTreeMap<String, Outcome>) -> Vec<Started<'_>> {
    outcomes
        .iter()
        .map(|(task, outcome)| report(task, outcome))
        .collect()
}

fn report<'a>(task: &'a str, outcome: &'a Outcome) -> Started<'a> {
    let (word, why) = match outcome {
        Outcome::Ready { joined: false, .. } => ("ready", None),
        Outcome::Ready { joined: true, .. } => ("joined", None),
        Outcome::Failed { why, .. } => ("failed", Some(why.as_str())),
        Outcome::Skipped { why } => ("skipped", Some(why.as_str())),
    };
    let job = outcome.job();
    Started {
        task,
        outcome: word,
        why,
        job: job.and_then(|job| Some(job.report(&job.look().ok()?))),
    }
}
