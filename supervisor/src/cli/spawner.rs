//! `outlive spawner`: what a supervisor's launcher runs. Not for people.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command, value_parser};

use super::Verb;
use crate::spawner::serve;

pub(super) const VERB: Verb = Verb {
    name: "spawner",
    aliases: &[],
    declare,
    run,
};

fn declare(verb: Command) -> Command {
    verb.about("Fork workers for the supervisor at the other end of standard input")
        .hide(true)
        .arg(
            Arg::new("root")
                .value_name("ROOT")
                .required(true)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("open-files")
                .value_name("LIMIT")
                .help("Soft limit of open files for workers and commands; '-' leaves it")
                .required(true),
        )
        .arg(Arg::new("room").value_name("ROOM").help("Room for titles"))
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let open_files = matches.get_one::<String>("open-files");
    if let Some(root) = matches.get_one::<PathBuf>("root") {
        serve(root, open_files.and_then(|limit| limit.parse().ok()))?;
    }
    Ok(0)
}
