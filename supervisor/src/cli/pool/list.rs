//! `outlive pool list`: every pool, how much of it is taken, and who waits.

use clap::{ArgMatches, Command};

use super::{Part, slots_of};
use crate::cli::arguments::json;
use crate::cli::{exit, print};
use crate::store::{PoolStanding, Store};

pub(super) const PART: Part = Part { declare, run };

fn declare() -> Command {
    Command::new("list")
        .visible_alias("ls")
        .about("Every pool: its slots, how many are taken, how many jobs wait")
        .arg(json())
}

pub(super) fn run(store: &Store, matches: &ArgMatches) -> anyhow::Result<u8> {
    let (mut pools, damaged) = store.pool_standings()?;
    // Of slots that have a place, their locks say who has them: sessions and maintenance have them, too.
    for standing in slots_of(store).standings(None)? {
        if let Some(pool) = pools.iter_mut().find(|pool| pool.name == standing.pool) {
            pool.taken = standing.taken();
        }
    }
    if matches.get_flag("json") {
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
