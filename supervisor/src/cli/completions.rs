//! `outlive completions`: what a shell needs to complete a command line.

use std::io::{self, Write};

use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::{Shell, generate};

use super::{Verb, declare_visible};

pub(super) const VERB: Verb = Verb {
    name: "completions",
    aliases: &[],
    declare,
    run,
};

fn declare(verb: Command) -> Command {
    verb.about("Print the completions for a shell").arg(
        Arg::new("shell")
            .value_name("SHELL")
            .required(true)
            .value_parser(value_parser!(Shell))
            .help("The shell to print them for"),
    )
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let mut script = Vec::new();
    if let Some(shell) = matches.get_one::<Shell>("shell") {
        // Into memory first: the generator panics where it cannot write.
        generate(*shell, &mut declare_visible(), "outlive", &mut script);
    }
    io::stdout().lock().write_all(&script)?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_shell_is_told_of_every_verb_but_the_hidden() {
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            generate(*shell, &mut declare_visible(), "outlive", &mut script);
            let script = String::from_utf8(script).unwrap();
            assert!(script.contains("restart"), "{shell}");
            assert!(!script.contains("worker"), "{shell}");
        }
    }
}
