//! The arguments that describe a job, and the job that they describe. Every verb that makes one takes them.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use rustix::fs::Mode;
use rustix::process::umask;
use state_machine::config::Config;
use state_machine::id::Name;
use state_machine::record::{Limits, OnInterrupt, Output, PauseMode};
use state_machine::units;

use super::arguments::{command, duration, flag, option};
use crate::error::{DiskError, Error, Result};
use crate::output;
use crate::project::root_above;
use crate::store::JobSpec;

/// The smallest limit of a log, in bytes: below it, rotating would be all that is done.
const SMALLEST_LOG: u64 = 64 << 10;

/// The arguments, the command itself last.
pub(super) fn arguments() -> Vec<Arg> {
    vec![
        option("name", "NAME", "At most one job of this name is under way"),
        option("task", "TASK", "The task that this job runs"),
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
        .value_parser(units::size),
        option(
            "log-keep",
            "N",
            "Over how many older files beside the log that is spread [1]",
        )
        .value_parser(value_parser!(u32)),
        flag(
            "split-output",
            "Keep standard output and standard error apart",
        ),
        option(
            "memory",
            "SIZE",
            "The most memory that all of its processes may take together",
        )
        .value_parser(units::memory),
        option(
            "cpu",
            "PERCENT",
            "How much of a processor they may take together: 50%",
        )
        .value_parser(units::percent),
        option("pause", "HOW", "What a pause does [freeze]")
            .value_parser(PossibleValuesParser::new(["freeze", "stop"])),
        option(
            "on-interrupt",
            "WHAT",
            "What a supervisor does with the job once it is interrupted [leave]",
        )
        .value_parser(PossibleValuesParser::new(["leave", "resume"])),
        option(
            "success-codes",
            "CODES",
            "The exit codes that count as success [0]",
        )
        .value_parser(units::codes),
        option(
            "on-end",
            "COMMAND",
            "Run by sh once the job has ended, with its JSON on stdin",
        )
        .value_parser(value_parser!(OsString)),
        command(),
    ]
}

/// The job that the arguments describe; what they leave open is as the store is configured.
pub(super) fn from(matches: &ArgMatches, config: &Config) -> Result<JobSpec> {
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
        .and_then(|dir| root_above(&dir));
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
    let defaults = &config.defaults;
    let time = |name| matches.get_one::<Duration>(name).copied();
    // 0 asks for none, where the configuration has one.
    spec.timeout = time("timeout")
        .or(defaults.timeout)
        .filter(|time| !time.is_zero());
    spec.grace = time("grace").or(defaults.grace).unwrap_or(spec.grace);
    set_retry(&mut spec, matches);
    if let Some(file) = matches.get_one::<PathBuf>("stdin") {
        spec.stdin = Some(lasting(file)?);
    }
    let log_max = matches.get_one::<u64>("log-max").copied();
    spec.output.max_bytes = log_max.or(defaults.log_max).filter(|max| *max > 0);
    let log_keep = matches.get_one::<u32>("log-keep").copied();
    spec.output.keep = log_keep.or(defaults.log_keep);
    check_limits(&spec.output, log_keep.is_some())?;
    spec.output.split = matches.get_flag("split-output");
    spec.limits = Limits {
        memory_bytes: matches.get_one::<u64>("memory").copied(),
        cpu_percent: matches.get_one::<u32>("cpu").copied(),
    };
    spec.pause = match matches.get_one::<String>("pause").map(String::as_str) {
        Some("stop") => PauseMode::Stop,
        Some(_) => PauseMode::Freeze,
        None => defaults.pause.unwrap_or_default(),
    };
    if matches
        .get_one::<String>("on-interrupt")
        .is_some_and(|what| what == "resume")
    {
        spec.on_interrupt = OnInterrupt::Resume;
    }
    if let Some(codes) = matches.get_one::<Vec<u8>>("success-codes") {
        spec.success_codes.clone_from(codes);
    }
    spec.on_end = matches
        .get_one::<OsString>("on-end")
        .map(|command| by_shell(command.clone()));
    Ok(spec)
}

/// A command line that a shell is to read.
pub(super) fn by_shell(command: OsString) -> Vec<OsString> {
    vec!["sh".into(), "-c".into(), command]
}

/// Limits that could not be kept are said at once, not found out by a job.
pub(super) fn check_limits(limits: &Output, keep_asked: bool) -> Result<()> {
    match (limits.max_bytes, limits.keep) {
        (Some(max), _) if max < SMALLEST_LOG => Err(Error::Usage(format!(
            "a log of less than {SMALLEST_LOG} bytes cannot be kept; give --log-max at least 64K"
        ))),
        (Some(_), Some(keep)) if keep > output::MOST_KEPT => Err(Error::Usage(format!(
            "a log is spread over {} older files at most; {keep} were asked for",
            output::MOST_KEPT
        ))),
        (None, Some(_)) if keep_asked => Err(Error::Usage(
            "--log-keep says over how many files a limit is spread; give --log-max too".into(),
        )),
        _ => Ok(()),
    }
}

/// How often it is tried again, as the command line says it.
pub(super) fn set_retry(spec: &mut JobSpec, matches: &ArgMatches) {
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

/// Names that mean what this process has open.
const OWN: [&str; 4] = ["/dev/stdin", "/dev/fd", "/proc/self", "/proc/thread-self"];

/// The path of a file that is opened by another process, later.
fn lasting(file: &Path) -> Result<PathBuf> {
    let absolute =
        std::path::absolute(file).map_err(|error| DiskError::new("find", file, error))?;
    if !OWN.iter().any(|own| absolute.starts_with(own)) {
        return Ok(absolute);
    }
    match std::fs::canonicalize(&absolute) {
        Ok(real) if !real.starts_with("/proc") => Ok(real),
        _ => Err(Error::Usage(format!(
            "--stdin {}: that is no file here that the job could open later; write what it is to read to one",
            file.display()
        ))),
    }
}
