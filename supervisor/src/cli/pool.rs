//! `outlive pool`: the pools of a store, and how they are set up. Nobody is told of a change but the disk: a supervisor that
//! runs sees it there.

use clap::{Arg, ArgMatches, Command, value_parser};
use state_machine::id::PoolName;
use state_machine::protocol::pool::Wish;

use super::arguments::{json, option};
use super::{Verb, exit, print};
use crate::error::{Error, Result};
use crate::store::{PoolStanding, Store, slots_of};

pub(super) const VERB: Verb = Verb {
    name: "pool",
    aliases: &[],
    declare,
    run,
};

fn declare(verb: Command) -> Command {
    verb.about("Show the pools whose slots admit queued jobs, and set them up")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([
            Command::new("list")
                .visible_alias("ls")
                .about("Every pool: its slots, how many are taken, how many jobs wait")
                .arg(json()),
            Command::new("add")
                .about("Make a pool")
                .args([name(), slots()]),
            Command::new("set")
                .about("Give a pool another number of slots; whoever is inside stays")
                .args([name(), slots()]),
            Command::new("pause")
                .about("Admit no job to a pool for now; those inside run on")
                .arg(name()),
            Command::new("resume")
                .about("Admit jobs to a pool again")
                .arg(name()),
            Command::new("remove")
                .about("Remove a pool that no job is in; one that is configured is then as it is configured")
                .arg(name()),
        ])
}

fn name() -> Arg {
    Arg::new("name")
        .value_name("POOL")
        .required(true)
        .help("Letters, digits, '_' and '-'")
}

fn slots() -> Arg {
    // None at all would be a pause that looks like a pool.
    option("slots", "N", "How many slots it is to have")
        .value_parser(value_parser!(u32).range(1..))
        .required(true)
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let store = Store::open_default()?;
    // Clap has seen to it that there is one of those declared above.
    let (verb, matches) = matches.subcommand().unwrap_or(("list", matches));
    if verb == "list" {
        return list(&store, matches.get_flag("json"));
    }
    let name = pool_name(matches)?;
    let slots = matches.try_get_one::<u32>("slots").ok().flatten().copied();
    match verb {
        "add" => store.add_pool(&name, slots.unwrap_or(1))?,
        "set" => store.set_pool(
            &name,
            Wish {
                slots,
                ..Wish::default()
            },
        )?,
        "pause" | "resume" => store.set_pool(
            &name,
            Wish {
                paused: Some(verb == "pause"),
                ..Wish::default()
            },
        )?,
        _ => remove(&store, &name)?,
    }
    Ok(0)
}

fn pool_name(matches: &ArgMatches) -> Result<PoolName> {
    let word = matches.get_one::<String>("name").map_or("", String::as_str);
    PoolName::parse(word).map_err(|why| Error::BadWord {
        word: word.to_owned(),
        why,
    })
}

fn remove(store: &Store, name: &PoolName) -> Result<()> {
    if let Some(setup) = store.remove_pool(name)? {
        exit::say(&format!(
            "the pool {name} is configured, and now as it is configured: slots {}",
            slots_of(&setup)
        ));
    }
    Ok(())
}

fn list(store: &Store, as_json: bool) -> anyhow::Result<u8> {
    let (pools, damaged) = store.pool_standings()?;
    if as_json {
        print::json(&pools)?;
    } else {
        show(&pools)?;
    }
    for damaged in &damaged {
        exit::say(&damaged.to_string());
    }
    Ok(u8::from(!damaged.is_empty()))
}

fn show(pools: &[PoolStanding]) -> std::io::Result<()> {
    let rows: Vec<[String; 5]> = pools
        .iter()
        .map(|pool| {
            [
                pool.name.clone(),
                pool.slots.to_string(),
                pool.taken.to_string(),
                pool.waiting.to_string(),
                condition(pool).to_owned(),
            ]
        })
        .collect();
    print::columns(&["POOL", "SLOTS", "TAKEN", "WAITING", "STATE"], &rows)
}

fn condition(pool: &PoolStanding) -> &'static str {
    match pool {
        PoolStanding {
            declared: false, ..
        } => "not there: only jobs name it",
        PoolStanding { paused: true, .. } => "paused",
        PoolStanding {
            configured: true, ..
        } => "open, configured",
        _ => "open",
    }
}
