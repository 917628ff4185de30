//! `outlive run`: make a job and start it now.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use rustix::fs::Mode;
use rustix::process::umask;
use state_machine::id::Name;
use state_machine::job::State;
use state_machine::protocol::look::View;
use state_machine::record::PauseMode;

use super::arguments::{command, duration, flag, json, option, parse_codes, parse_size};
use super::{Verb, code, exit, print, scope};
use crate::error::{DiskError, Error, Result};
use crate::output;
use crate::store::{Begun, Held, Job, JobSpec, Store};
use crate::worker::{Launched, Start, launch};

pub(super) const VERB: Verb = Verb {
    name: "run",
    aliases: &[],
    declare,
    run,
};

fn declare(verb: Command) -> Command {
    let words = |words: &'static [&'static str]| PossibleValuesParser::new(words);
    verb.about("Start a command as a job, and print the job's id")
        .args([
            option("name", "NAME", "At most one job of this name is under way"),
            option("task", "TASK", "The task that this job runs"),
            flag("wait", "Wait for the end, and exit with the job's status"),
            flag("follow", "Print the job's output as it comes, and wait").short('f'),
            duration("timeout", "How long an attempt may run"),
            option("retry", "N", "How often a failed attempt is tried again")
                .value_parser(value_parser!(u32)),
            duration(
                "backoff",
                "The longest wait before the first retry; it doubles [1s]",
            ),
            duration("backoff-max", "No wait is longer than this [1m]"),
            duration(
                "grace",
                "How long a stop waits between SIGTERM and SIGKILL [10s]",
            ),
            Arg::new("env")
                .long("env")
                .short('e')
                .value_name("NAME=VALUE")
                .action(ArgAction::Append)
                .value_parser(value_parser!(OsString))
                .help("Set a variable; NAME alone passes this one on"),
            flag("clean-env", "Start from an empty environment"),
            option("cwd", "DIR", "The working directory").value_parser(value_parser!(PathBuf)),
            option("stdin", "FILE", "What the command reads [the null device]")
                .value_parser(value_parser!(PathBuf)),
            option(
                "log-max",
                "SIZE",
                "The most that is kept of all output together",
            )
            .value_parser(parse_size),
            option(
                "log-keep",
                "N",
                "Over how many older files beside the log that is spread [1]",
            )
            .value_parser(value_parser!(u32).range(0..=i64::from(output::MOST_KEPT)))
            .requires("log-max"),
            flag(
                "split-output",
                "Keep standard output and standard error apart",
            ),
            option("pause", "HOW", "What a pause does [freeze]")
                .value_parser(words(&["freeze", "stop"])),
            option(
                "success-codes",
                "CODES",
                "The exit codes that count as success [0]",
            )
            .value_parser(parse_codes),
            option(
                "if-running",
                "WHAT",
                "When a job of this name is under way [join]",
            )
            .value_parser(words(&["join", "fail", "replace"]))
            .requires("name"),
            option(
                "on-end",
                "COMMAND",
                "Run by sh once the job has ended, with its JSON on stdin",
            )
            .value_parser(value_parser!(OsString)),
            json(),
            command(),
        ])
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let store = Store::open_default()?;
    let spec = spec(matches)?;
    let if_running = matches
        .get_one::<String>("if-running")
        .map_or("join", String::as_str);
    loop {
        match store.begin(spec.clone())? {
            Begun::New(held) => return start(&store, *held, matches),
            Begun::UnderWay(view) if if_running == "replace" => {
                let job = store.job(&view.descriptor.id);
                exit::say(&format!("stopping {}", job.id()));
                match job.stop(None) {
                    Ok(_) | Err(Error::Gone(_)) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Begun::UnderWay(view) => return join(&store, &view, if_running, matches),
        }
    }
}

/// Hand a new job to a worker, and tell of it when its command runs.
fn start(store: &Store, held: Held, matches: &ArgMatches) -> anyhow::Result<u8> {
    let job = store.job(held.holder.id());
    let mut launched = launch(&job, held)?;
    // The worker gets on while the creation is made to survive a loss of power; nobody is told of it before both.
    store.acknowledge()?;
    let start = launched.started()?;
    announce(&job, matches)?;
    match start {
        Start::Over => {
            let view = job.look()?;
            if let Some(message) = &view.status.message {
                exit::say(message);
            }
            Ok(code::of(&view))
        }
        Start::Running => stay(&job, Some(launched), matches),
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

/// Print the id, where scripts read it.
fn announce(job: &Job, matches: &ArgMatches) -> anyhow::Result<()> {
    if matches.get_flag("follow") {
        eprintln_id(job);
    } else if matches.get_flag("json") {
        print::json(&job.report(&job.look()?))?;
    } else {
        print::line(job.id().as_str())?;
    }
    Ok(())
}

/// With `--follow`, standard output is the job's.
fn eprintln_id(job: &Job) {
    use std::io::Write;
    // Whoever closed standard error does not want to know.
    let _ = writeln!(std::io::stderr(), "{}", job.id());
}

/// Stay with the job as far as that was asked for.
fn stay(job: &Job, launched: Option<Launched>, matches: &ArgMatches) -> anyhow::Result<u8> {
    if matches.get_flag("follow") {
        super::log::follow_job(job)?;
    } else if !matches.get_flag("wait") {
        return Ok(0);
    }
    if let Some(mut launched) = launched {
        launched.ended();
    }
    Ok(code::of(&job.wait(None)?))
}

fn spec(matches: &ArgMatches) -> Result<JobSpec> {
    let argv = matches
        .get_many::<OsString>("command")
        .unwrap_or_default()
        .cloned();
    let mut spec = JobSpec::command(argv);
    let here = std::env::current_dir();
    let here = here.map_err(|error| DiskError::new("find", Path::new("."), error));
    spec.cwd = match matches.get_one::<PathBuf>("cwd") {
        Some(dir) if dir.is_absolute() => dir.clone(),
        Some(dir) => here?.join(dir),
        None => here?,
    };
    spec.project = std::env::current_dir()
        .ok()
        .and_then(|dir| scope::project_of(&dir));
    // The command gets the mask of whoever submitted it; what we make ourselves is for its owner's eyes only.
    spec.umask = Some(umask(Mode::from_raw_mode(0o077)).as_raw_mode());
    set_environment(&mut spec, matches)?;
    if let Some(name) = matches.get_one::<String>("name") {
        let name = Name::parse(name).map_err(|why| Error::BadWord {
            word: name.clone(),
            why,
        })?;
        spec.name = Some(name);
    }
    spec.task = matches.get_one::<String>("task").cloned();
    spec.timeout = matches.get_one::<Duration>("timeout").copied();
    if let Some(grace) = matches.get_one::<Duration>("grace") {
        spec.grace = *grace;
    }
    set_retry(&mut spec, matches);
    if let Some(file) = matches.get_one::<PathBuf>("stdin") {
        let absolute = std::path::absolute(file);
        spec.stdin = Some(absolute.map_err(|error| DiskError::new("find", file, error))?);
    }
    spec.output.max_bytes = matches.get_one::<u64>("log-max").copied();
    spec.output.keep = matches.get_one::<u32>("log-keep").copied();
    spec.output.split = matches.get_flag("split-output");
    if matches
        .get_one::<String>("pause")
        .is_some_and(|how| how == "stop")
    {
        spec.pause = PauseMode::Stop;
    }
    if let Some(codes) = matches.get_one::<Vec<u8>>("success-codes") {
        spec.success_codes.clone_from(codes);
    }
    spec.on_end = matches
        .get_one::<OsString>("on-end")
        .map(|command| vec!["sh".into(), "-c".into(), command.clone()]);
    Ok(spec)
}

fn set_retry(spec: &mut JobSpec, matches: &ArgMatches) {
    let ms = |name: &str| {
        matches
            .get_one::<Duration>(name)
            .map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
    };
    let retry = &mut spec.retry;
    if let Some(again) = matches.get_one::<u32>("retry") {
        retry.max_attempts = again.saturating_add(1);
    }
    retry.backoff_ms = ms("backoff").unwrap_or(retry.backoff_ms);
    retry.max_backoff_ms = ms("backoff-max").unwrap_or(retry.max_backoff_ms);
}

fn set_environment(spec: &mut JobSpec, matches: &ArgMatches) -> Result<()> {
    if matches.get_flag("clean-env") {
        spec.env.0.clear();
    }
    for setting in matches.get_many::<OsString>("env").unwrap_or_default() {
        let bytes = setting.as_bytes();
        match bytes.iter().position(|byte| *byte == b'=') {
            Some(0) => {
                return Err(Error::Usage("--env needs a name before the '='".into()));
            }
            Some(equals) => spec.env.set(&bytes[..equals], &bytes[equals + 1..]),
            None => {
                if let Some(value) = std::env::var_os(OsStr::from_bytes(bytes)) {
                    spec.env.set(bytes, value.as_bytes());
                }
            }
        }
    }
    Ok(())
}
