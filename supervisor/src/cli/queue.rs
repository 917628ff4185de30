//! `outlive queue`: make a job that is started when a slot of its pool is idle.

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use state_machine::id::PoolName;
use state_machine::record::{After, AfterWhen};
use std::time::Duration;

use super::arguments::{duration, flag, json, option};
use super::background::ensure_supervised;
use super::{Verb, exit, print, spec, when};
use crate::error::{Error, Result};
use crate::store::{JobSpec, StartTime, Store};

pub(super) const VERB: Verb = Verb {
    name: "queue",
    aliases: &[],
    declare,
    run,
};

fn declare(verb: Command) -> Command {
    verb.about("Queue a command, to be started when a slot of its pool is idle; print the job's id")
        .args(arguments())
        .args([
            flag("no-supervisor", "Start no supervisor, where there is none"),
            json(),
        ])
        .args(spec::arguments())
}

/// What only queued jobs have.
fn arguments() -> Vec<Arg> {
    vec![
        option(
            "pool",
            "POOL",
            "The pool whose slots admit the job [default]",
        ),
        option("priority", "N", "Higher goes first [0]")
            .value_parser(value_parser!(i32))
            .allow_negative_numbers(true),
        option("slots", "N", "How many slots it takes [1]")
            .value_parser(value_parser!(u32).range(1..)),
        Arg::new("after")
            .long("after")
            .value_name("JOB[:success|failure|end]")
            .action(ArgAction::Append)
            .help("Not before this job has ended so [success]"),
        duration("delay", "Not before so much time has passed").conflicts_with("at"),
        option(
            "at",
            "TIME",
            "Not before then: 2026-12-24T18:00, 18:30, or with a zone",
        ),
    ]
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let store = Store::open_default()?;
    let mut spec = spec::from(matches, &store.config()?)?;
    set(&mut spec, &store, matches)?;
    let (job, is_new) = store.queue(spec)?;
    if !is_new {
        exit::say(&format!("{} is under way already", job.id()));
    }
    let supervised = supervise(&store, matches);
    if matches.get_flag("json") {
        print::json(&job.report(&job.look()?))?;
    } else {
        print::line(job.id().as_str())?;
    }
    supervised?;
    Ok(0)
}

/// See to it that somebody admits the job, unless that is not wanted.
fn supervise(store: &Store, matches: &ArgMatches) -> Result<()> {
    if !matches.get_flag("no-supervisor") {
        return ensure_supervised(store);
    }
    if !store.is_supervised()? {
        exit::say("queued; it is started once there is a supervisor: outlive supervise");
    }
    Ok(())
}

fn set(spec: &mut JobSpec, store: &Store, matches: &ArgMatches) -> Result<()> {
    let pool = matches.get_one::<String>("pool");
    let pool = match pool {
        None => PoolName::default(),
        Some(word) => PoolName::parse(word).map_err(|why| Error::BadWord {
            word: word.clone(),
            why,
        })?,
    };
    spec.pool = Some(pool.into());
    spec.slots = matches.get_one("slots").copied().unwrap_or(1);
    spec.priority = matches.get_one("priority").copied().unwrap_or(0);
    for wish in matches.get_many::<String>("after").unwrap_or_default() {
        spec.after.push(after(store, wish)?);
    }
    if let Some(delay) = matches.get_one::<Duration>("delay") {
        spec.start = StartTime::In(*delay);
    }
    if let Some(time) = matches.get_one::<String>("at") {
        spec.start = StartTime::At(when::instant_ms(time)?);
    }
    Ok(())
}

/// `JOB[:success|failure|end]`. A job whose name has a colon is meant where nothing else follows it.
fn after(store: &Store, wish: &str) -> Result<After> {
    let (query, when) = match wish.rsplit_once(':') {
        Some((query, "success")) => (query, AfterWhen::Success),
        Some((query, "failure")) => (query, AfterWhen::Failure),
        Some((query, "end")) => (query, AfterWhen::End),
        _ => (wish, AfterWhen::Success),
    };
    let job = store.resolve(query)?.id().clone();
    Ok(After { job, when })
}
