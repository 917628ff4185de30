//! `outlive pool`: the pools of a store, how they are set up, and their slots. Nobody is told of a change but the disk: a
//! supervisor that runs sees it there.

mod close;
mod exec;
mod list;
mod maintain;
mod open;
mod remove;
mod renew;
mod repair;
mod setup;
mod status;

use clap::{Arg, ArgMatches, Command};
use state_machine::id::{PoolName, Token};

use super::Verb;
use crate::error::{Error, Result};
use crate::slots::Slots;
use crate::store::Store;
use crate::worker::Launcher;

pub(super) const VERB: Verb = Verb {
    name: "pool",
    aliases: &[],
    declare,
    run,
};

/// A verb below `pool`.
struct Part {
    declare: fn() -> Command,
    run: fn(&Store, &ArgMatches) -> anyhow::Result<u8>,
}

/// Every one of them, in the order of the help.
const PARTS: &[Part] = &[
    list::PART,
    status::PART,
    open::PART,
    close::PART,
    exec::PART,
    renew::PART,
    maintain::PART,
    repair::PART,
    setup::ADD,
    setup::SET,
    setup::PAUSE,
    setup::RESUME,
    remove::PART,
];

fn declare(verb: Command) -> Command {
    verb.about("Pools, their slots, and sessions in them")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(PARTS.iter().map(|part| (part.declare)()))
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let store = Store::open_default()?;
    let Some((name, matches)) = matches.subcommand() else {
        return list::run(&store, matches);
    };
    let part = PARTS
        .iter()
        .find(|part| (part.declare)().get_name() == name);
    match part {
        Some(part) => (part.run)(&store, matches),
        // Clap knows no other.
        None => Err(Error::Usage(format!("there is no 'pool {name}'")).into()),
    }
}

/// The slots of the store. This process has one thread, so nothing has to be started for them.
fn slots_of(store: &Store) -> Slots {
    store.slots(&Launcher::this_program())
}

/// The pool that a verb is about.
fn pool() -> Arg {
    Arg::new("pool")
        .value_name("POOL")
        .required(true)
        .help("Letters, digits, '_' and '-'")
}

fn pool_name(matches: &ArgMatches) -> Result<PoolName> {
    // Clap has seen to it that there is one.
    parse_pool(matches.get_one::<String>("pool").map_or("", String::as_str))
}

fn pool_if_named(matches: &ArgMatches) -> Result<Option<PoolName>> {
    let word = matches.get_one::<String>("pool");
    word.map(|word| parse_pool(word)).transpose()
}

fn parse_pool(word: &str) -> Result<PoolName> {
    PoolName::parse(word).map_err(|why| Error::BadWord {
        word: word.to_owned(),
        why,
    })
}

/// The session that a verb is about.
fn token() -> Arg {
    Arg::new("token")
        .value_name("TOKEN")
        .required(true)
        .help("What 'pool open' printed")
}

fn token_of(matches: &ArgMatches) -> Result<Token> {
    let word = matches
        .get_one::<String>("token")
        .map_or("", String::as_str);
    Token::parse(word).map_err(|why| Error::BadWord {
        word: word.to_owned(),
        why,
    })
}
