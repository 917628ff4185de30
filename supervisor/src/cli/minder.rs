//! `outlive minder`: what a program with threads executes to have commands run within bounds. Not for people.

use clap::{ArgMatches, Command};

use super::Verb;
use crate::process::serve_on_stdin;

pub(super) const VERB: Verb = Verb {
    name: "minder",
    aliases: &[],
    declare,
    run,
};

fn declare(verb: Command) -> Command {
    verb.about("Run commands within bounds for the process at the other end of standard input")
        .hide(true)
}

fn run(_: &ArgMatches) -> anyhow::Result<u8> {
    serve_on_stdin()?;
    Ok(0)
}
