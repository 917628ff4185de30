//! The command line: one file per verb, and this table of them. A verb parses, asks the store, and prints; what is true
//! and what may be done is decided below it.

mod announce;
mod arguments;
mod background;
mod check;
mod clean;
mod complete;
mod completions;
mod doctor;
mod events;
mod examples;
mod exit;
mod hand_over;
mod list;
mod log;
mod man;
mod minder;
mod parting;
mod pause;
mod pool;
mod print;
mod progress;
mod pull;
mod queue;
mod restart;
mod resume;
mod run;
mod scope;
mod serve;
mod signal;
mod spawner;
mod spec;
mod start;
mod status;
mod stop;
mod supervise;
mod supervisor;
mod terminal;
mod top;
mod up;
mod wait;
mod waiting;
mod when;
mod worker;

use std::ffi::OsString;
use std::mem::ManuallyDrop;
use std::process::ExitCode;

use clap::{ArgMatches, Command};

/// A verb: its declaration, and what it does. Its result is the exit code.
pub(crate) struct Verb {
    name: &'static str,
    aliases: &'static [&'static str],
    declare: fn(Command) -> Command,
    run: fn(&ArgMatches) -> anyhow::Result<u8>,
}

/// Every verb, in the order of the help.
const VERBS: &[Verb] = &[
    run::VERB,
    queue::VERB,
    pull::VERB,
    start::VERB,
    up::VERB,
    check::VERB,
    list::VERB,
    status::VERB,
    log::VERB,
    wait::VERB,
    pause::VERB,
    resume::VERB,
    stop::VERB,
    signal::VERB,
    restart::VERB,
    clean::VERB,
    events::VERB,
    top::VERB,
    pool::VERB,
    supervise::VERB,
    supervisor::VERB,
    serve::VERB,
    doctor::VERB,
    completions::VERB,
    man::VERB,
    worker::VERB,
    spawner::VERB,
    minder::VERB,
];

impl Verb {
    fn is_called(&self, word: &str) -> bool {
        self.name == word || self.aliases.contains(&word)
    }

    fn declare(&self) -> Command {
        let command = Command::new(self.name).visible_aliases(self.aliases);
        examples::shown(self.name, (self.declare)(command))
    }
}

/// The whole command line, as the parser needs it.
pub(crate) fn declare() -> Command {
    frame().subcommands(VERBS.iter().map(Verb::declare))
}

/// As [`declare`], without what is not for people.
fn declare_visible() -> Command {
    let verbs = VERBS.iter().map(Verb::declare);
    frame().subcommands(verbs.filter(|verb| !verb.is_hide_set()))
}

fn frame() -> Command {
    Command::new("outlive")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Durable jobs: commands that outlive whoever started them")
        .after_help(exit::TABLE)
        .subcommand_required(true)
        .arg_required_else_help(true)
}

/// Be the `outlive` command, with the arguments of this process.
pub fn main() -> ExitCode {
    crate::worker_if_asked();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if complete::answer(&arguments) {
        return ExitCode::SUCCESS;
    }
    let called = arguments
        .get(1)
        .and_then(|word| word.to_str())
        .and_then(|word| VERBS.iter().find(|verb| verb.is_called(word)));
    // Declaring one verb instead of all is time that every call saves, and memory that every worker forked from it
    // never has.
    let command = match called {
        Some(verb) => frame().subcommand(verb.declare()),
        None => declare(),
    };
    let matches = match command.try_get_matches_from(arguments) {
        // A process that is about to end need not take apart what it was told first.
        Ok(matches) => ManuallyDrop::new(matches),
        Err(error) => return exit::of_parsing(&error),
    };
    let Some((name, matches)) = matches.subcommand() else {
        return ExitCode::from(exit::USAGE);
    };
    let Some(verb) = VERBS.iter().find(|verb| verb.name == name) else {
        return ExitCode::from(exit::USAGE);
    };
    match (verb.run)(matches) {
        Ok(code) => ExitCode::from(code),
        Err(error) => exit::of(&error),
    }
}
