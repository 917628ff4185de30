//! `outlive pool repair`: make a broken slot usable again.

use clap::{Arg, ArgMatches, Command};

use super::close::{force, say_what_went};
use super::{Part, parse_pool, slots_of};
use crate::cli::arguments::flag;
use crate::error::{Error, Result};
use crate::store::Store;

pub(super) const PART: Part = Part { declare, run };

fn declare() -> Command {
    Command::new("repair")
        .about("Mend a broken slot; nothing that is landed nowhere is lost by that")
        .args([
            Arg::new("slot")
                .value_name("POOL/N")
                .required(true)
                .help("The slot, as 'pool status' names it"),
            flag(
                "force",
                "Discard what would be lost, or make it anew; say what that was",
            ),
        ])
}

fn run(store: &Store, matches: &ArgMatches) -> anyhow::Result<u8> {
    let word = matches.get_one::<String>("slot").map_or("", String::as_str);
    let (pool, number) = parse(word)?;
    let repaired = slots_of(store).repair(&pool, number, force(matches))?;
    say_what_went(&repaired.ended, &repaired.discarded);
    Ok(0)
}

fn parse(word: &str) -> Result<(state_machine::id::PoolName, u32)> {
    let usage = || Error::Usage(format!("'{word}' is no slot; write POOL/N, as in web/1"));
    let (pool, number) = word.split_once('/').ok_or_else(usage)?;
    Ok((parse_pool(pool)?, number.parse().map_err(|_| usage())?))
}
