//! `outlive worker`: what an embedding program's launcher runs. Not for people.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command, value_parser};

use super::Verb;
use crate::worker::serve;

pub(super) const VERB: Verb = Verb {
    name: "worker",
    aliases: &[],
    declare,
    run,
};

fn declare(verb: Command) -> Command {
    verb.about("Leave a worker on the job in a directory")
        .hide(true)
        .arg(
            Arg::new("dir")
                .value_name("DIR")
                .required(true)
                .value_parser(value_parser!(PathBuf)),
        )
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    if let Some(dir) = matches.get_one::<PathBuf>("dir") {
        serve(dir)?;
    }
    Ok(0)
}
