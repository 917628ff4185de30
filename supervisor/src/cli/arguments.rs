//! Arguments that several verbs take, and how their values are read.

use std::ffi::OsString;

use clap::{Arg, ArgAction, ArgMatches, value_parser};
use state_machine::units;

use super::scope::Scope;
use crate::error::Result;
use crate::store::{Job, Store};

/// `--json`.
pub(super) fn json() -> Arg {
    Arg::new("json")
        .long("json")
        .action(ArgAction::SetTrue)
        .help("Print JSON")
}

/// `--all`.
pub(super) fn all(help: &'static str) -> Arg {
    flag("all", help)
}

/// A flag.
pub(super) fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .action(ArgAction::SetTrue)
        .help(help)
}

/// An option whose value is a word.
pub(super) fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

/// An option whose value is a length of time.
pub(super) fn duration(name: &'static str, help: &'static str) -> Arg {
    option(name, "TIME", help).value_parser(units::duration)
}

/// JOB, once.
pub(super) fn job() -> Arg {
    Arg::new("job")
        .value_name("JOB")
        .required(true)
        .help("An id, a name, or an unambiguous prefix of an id")
}

/// JOB, any number of times.
pub(super) fn jobs() -> Arg {
    Arg::new("job")
        .value_name("JOB")
        .num_args(0..)
        .help("An id, a name, or an unambiguous prefix of an id")
}

/// The job that the argument names.
pub(super) fn find_job(store: &Store, matches: &ArgMatches) -> Result<Job> {
    // Clap has seen to it that there is one.
    let query = matches.get_one::<String>("job").map_or("", String::as_str);
    resolve(store, query)
}

/// Inside a project, its own jobs are meant first.
pub(super) fn resolve(store: &Store, query: &str) -> Result<Job> {
    match Scope::here(false) {
        Scope::All => store.resolve(query),
        here @ Scope::Project(_) => store.resolve_first(query, |view| here.holds(view)),
    }
}

/// The jobs that the arguments name, each once.
pub(super) fn find_jobs(store: &Store, matches: &ArgMatches) -> Result<Vec<Job>> {
    let mut jobs: Vec<Job> = Vec::new();
    for query in matches.get_many::<String>("job").unwrap_or_default() {
        let job = resolve(store, query)?;
        if !jobs.iter().any(|known| known.id() == job.id()) {
            jobs.push(job);
        }
    }
    Ok(jobs)
}

/// The command, byte for byte.
pub(super) fn command() -> Arg {
    Arg::new("command")
        .value_name("COMMAND")
        .required(true)
        .num_args(1..)
        .trailing_var_arg(true)
        .value_parser(value_parser!(OsString))
        .help(
            "The program and its arguments, passed on byte for byte; name a shell if you want one",
        )
}
