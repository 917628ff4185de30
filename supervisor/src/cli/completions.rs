//! `outlive completions`: what a shell needs to complete a command line. It asks this program each time, so that jobs, tasks and pools
//! are those that there are then.

use std::io::{self, Write};

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command};

use super::{Verb, complete};

pub(super) const VERB: Verb = Verb {
    name: "completions",
    aliases: &[],
    declare,
    run,
};

fn declare(verb: Command) -> Command {
    verb.about(
        "Print what makes a shell complete command lines, names of jobs, tasks and pools too",
    )
    .arg(
        Arg::new("shell")
            .value_name("SHELL")
            .required(true)
            .value_parser(PossibleValuesParser::new(complete::shells()))
            .help("The shell to print it for"),
    )
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    // Clap has seen to it that there is one.
    let shell = matches
        .get_one::<String>("shell")
        .map_or("", String::as_str);
    io::stdout()
        .lock()
        .write_all(&complete::registration(shell)?)?;
    Ok(0)
}
