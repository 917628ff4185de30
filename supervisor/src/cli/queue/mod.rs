//! `outlive queue`: make jobs that are started when slots of their pools are idle.

mod line;
mod many;
mod room;

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use state_machine::id::PoolName;
use state_machine::record::{After, AfterWhen};

use super::announce::announce;
use super::arguments::{duration, flag, json, option, resolve};
use super::background::ensure_supervised;
use super::parting::say_if_interrupted;
use super::wait::to_the_end;
use super::{Verb, exit, print, spec, when};
use crate::error::{Error, Result};
use crate::store::{
    IfRunning, Job, JobSpec, StartTime, Store, exit_code, see_that_it_can_be_joined, under_way,
};

pub(super) const VERB: Verb = Verb {
    name: "queue",
    aliases: &[],
    declare,
    run,
};

fn declare(verb: Command) -> Command {
    verb.about("Queue a command, to be started when a slot of its pool is idle; print the job's id")
        .long_about(
            "Queue a command, to be started when a slot of its pool is idle, and print the job's id. With --from, queue many \
             at once: each line of the file is a JSON object that describes a job, and the flags are for those that do not \
             say otherwise.",
        )
        .args(arguments())
        .args([
            flag("wait", "Wait for the end, and exit with the job's status"),
            flag(
                "follow",
                "Print the job's output once it has been started and until it ends, and exit with its status",
            )
            .short('f')
            .conflicts_with("from"),
            option(
                "if-running",
                "WHAT",
                "When a job of this name is under way [join]",
            )
            .value_parser(PossibleValuesParser::new(["join", "fail", "replace"])),
            flag("no-supervisor", "Start no supervisor, where there is none"),
            json(),
        ])
        .args(spec::arguments().into_iter().map(or_from))
}

/// With `--from`, the lines of the file have the commands and the names.
fn or_from(argument: Arg) -> Arg {
    match argument.get_id().as_str() {
        "command" => argument
            .required(false)
            .required_unless_present("from")
            .conflicts_with("from"),
        "name" => argument.conflicts_with("from"),
        _ => argument,
    }
}

/// What only queued jobs have.
fn arguments() -> Vec<Arg> {
    vec![
        option(
            "from",
            "FILE",
            "Queue a job for each line of this file of JSON objects; - is standard input",
        )
        .value_parser(value_parser!(PathBuf)),
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
    if let Some(source) = matches.get_one::<PathBuf>("from") {
        return many::run(&store, &spec, source, matches);
    }
    if spec.name.is_none() && matches.contains_id("if-running") {
        return Err(Error::Usage("--if-running is about a name; give --name too".into()).into());
    }
    let job = queue(&store, &spec, if_running(matches))?;
    let supervised = supervise(&store, matches);
    announce(&job, matches)?;
    supervised?;
    let follows = matches.get_flag("follow");
    if !follows && !matches.get_flag("wait") {
        return Ok(0);
    }
    let id = job.id();
    say_if_interrupted(format!(
        "{id} runs on, or waits for its turn; end it with: outlive stop {id}"
    ))?;
    if follows {
        super::log::follow_job(&job)?;
    }
    let view = to_the_end(&job)?;
    Ok(exit_code(view.state, &view.status))
}

fn if_running(matches: &ArgMatches) -> IfRunning {
    match matches.get_one::<String>("if-running").map(String::as_str) {
        Some("fail") => IfRunning::Fail,
        Some("replace") => IfRunning::Replace,
        _ => IfRunning::Join,
    }
}

/// Queue a job, or find the one that stands for it (R12).
fn queue(store: &Store, spec: &JobSpec, if_running: IfRunning) -> anyhow::Result<Job> {
    loop {
        let (job, is_new) = store.queue(spec.clone())?;
        if is_new {
            return Ok(job);
        }
        match if_running {
            IfRunning::Replace => {
                exit::say(&format!("stopping {}", job.id()));
                job.make_way()?;
            }
            IfRunning::Fail => {
                print::line(job.id().as_str())?;
                return Err(under_way(&job.look()?).into());
            }
            IfRunning::Join => {
                let view = job.look()?;
                see_that_it_can_be_joined(&view)?;
                exit::say(&under_way(&view).to_string());
                return Ok(job);
            }
        }
    }
}

/// See to it that somebody admits the job, unless that is not wanted.
fn supervise(store: &Store, matches: &ArgMatches) -> Result<()> {
    if !matches.get_flag("no-supervisor") {
        return ensure_supervised(store);
    }
    if !store.is_supervised()? {
        exit::say("queued, and started once there is a supervisor: outlive supervise");
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
        spec.after.push(existing(store, wish)?);
    }
    if let Some(delay) = matches.get_one::<Duration>("delay") {
        spec.start = StartTime::In(*delay);
    }
    if let Some(time) = matches.get_one::<String>("at") {
        spec.start = StartTime::At(when::instant_ms(time)?);
    }
    Ok(())
}

/// A job of the store that another is to come after.
fn existing(store: &Store, wish: &str) -> Result<After> {
    let (query, when) = after_word(wish);
    let job = resolve(store, query)?.id().clone();
    Ok(After { job, when })
}

/// `JOB[:success|failure|end]`. A job whose name has a colon is meant where nothing else follows it.
fn after_word(wish: &str) -> (&str, AfterWhen) {
    match wish.rsplit_once(':') {
        Some((query, "success")) => (query, AfterWhen::Success),
        Some((query, "failure")) => (query, AfterWhen::Failure),
        Some((query, "end")) => (query, AfterWhen::End),
        _ => (wish, AfterWhen::Success),
    }
}
