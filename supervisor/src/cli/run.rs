//! `outlive run`: make a job and start it now.

use clap::builder::PossibleValuesParser;
use clap::{ArgMatches, Command};
use state_machine::id::{Name, PoolName};
use state_machine::job::State;
use state_machine::protocol::look::View;

use super::announce::announce;
use super::arguments::{flag, json, option};
use super::hand_over::{Handed, HandedOver, begin_and_hand_over, begin_in, say_why_not};
use super::parting::say_if_interrupted;
use super::wait::to_the_end;
use super::{Verb, exit, spec};
use crate::error::{Error, Result};
use crate::process;
use crate::store::{Job, JobSpec, Store, exit_code};
use crate::worker::{Launched, Launcher, Start};

pub(super) const VERB: Verb = Verb {
    name: "run",
    aliases: &[],
    declare,
    run,
};

fn declare(verb: Command) -> Command {
    verb.about("Start a command as a job, and print the job's id")
        .args([
            flag("wait", "Wait for the end, and exit with the job's status"),
            flag("follow", "Print the job's output as it comes, and wait").short('f'),
            option(
                "if-running",
                "WHAT",
                "When a job of this name is under way [join]",
            )
            .value_parser(PossibleValuesParser::new(["join", "fail", "replace"]))
            .requires("name"),
            option(
                "pool",
                "POOL",
                "Run it in an idle slot of this pool, or not at all (exit code 7)",
            ),
            json(),
        ])
        .args(spec::arguments())
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let store = Store::open_default()?;
    let spec = spec::from(matches, &store.config()?)?;
    let if_running = matches
        .get_one::<String>("if-running")
        .map_or("join", String::as_str);
    loop {
        match begin(&store, spec.clone(), matches)? {
            Handed::New(handed) => {
                if let Some(unheld) = process::what_is_not_held(&spec.limits) {
                    exit::say(&unheld.to_string());
                }
                return tell(handed, matches);
            }
            Handed::UnderWay(view) if if_running == "replace" => {
                let job = store.job(&view.descriptor.id);
                exit::say(&format!("stopping {}", job.id()));
                match job.stop(None) {
                    Ok(_) | Err(Error::Gone(_)) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Handed::UnderWay(view) => return join(&store, &view, if_running, matches),
        }
    }
}

/// Make the job and start it, in a slot if that was asked for. Where none is idle, there is no job.
fn begin(store: &Store, mut spec: JobSpec, matches: &ArgMatches) -> Result<Handed> {
    let Some(word) = matches.get_one::<String>("pool") else {
        return begin_and_hand_over(store, spec);
    };
    let pool = PoolName::parse(word).map_err(|why| Error::BadWord {
        word: word.clone(),
        why,
    })?;
    spec.pool = Some(word.clone());
    let slots = store.slots(&Launcher::this_program());
    match slots.lodge(&pool)? {
        Some(lodging) => begin_in(store, spec, lodging),
        None => Err(Error::Usage(format!(
            "the slots of the pool {pool} have no place to work in: they only count who is queued; use outlive queue"
        ))),
    }
}

/// Tell of a new job.
fn tell(handed: HandedOver, matches: &ArgMatches) -> anyhow::Result<u8> {
    announce(&handed.job, matches)?;
    match handed.start {
        Start::Over => Ok(say_why_not(&handed.job)?),
        Start::Running => stay(&handed.job, Some(handed.launched), matches),
    }
}

/// A job of this name is under way.
fn join(store: &Store, view: &View, if_running: &str, matches: &ArgMatches) -> anyhow::Result<u8> {
    let id = &view.descriptor.id;
    let name = view.descriptor.name.as_ref().map_or("", Name::as_str);
    if if_running == "fail" {
        announce(&store.job(id), matches)?;
        return Err(Error::NotNow(format!("'{name}' is {} already, as {id}", view.state)).into());
    }
    if view.state == State::Interrupted {
        return Err(Error::NotNow(format!(
            "'{name}' is {id}, which was interrupted; resume it, stop it, or use --if-running replace"
        ))
        .into());
    }
    exit::say(&format!("'{name}' is {} already, as {id}", view.state));
    let job = store.job(id);
    announce(&job, matches)?;
    stay(&job, None, matches)
}

/// Stay with the job as far as that was asked for.
fn stay(job: &Job, launched: Option<Launched>, matches: &ArgMatches) -> anyhow::Result<u8> {
    let follows = matches.get_flag("follow");
    if !follows && !matches.get_flag("wait") {
        return Ok(0);
    }
    let id = job.id();
    say_if_interrupted(format!("{id} runs on; end it with: outlive stop {id}"))?;
    if follows {
        super::log::follow_job(job)?;
    }
    let ended = launched.and_then(|mut launched| {
        let code = launched.ended();
        // Whoever comes next may want the slot.
        launched.until_done();
        code
    });
    match (to_the_end(job), ended) {
        // Forgotten by a sweep the moment that it had ended: its worker has told us how.
        (Err(Error::Gone(_)), Some(code)) => Ok(code),
        (waited, _) => {
            let view = waited?;
            Ok(exit_code(view.state, &view.status))
        }
    }
}
