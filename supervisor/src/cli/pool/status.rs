//! `outlive pool status`: the slots of pools, who has them, and how they were maintained.

use clap::{ArgMatches, Command};
use state_machine::record::Outcome;
use state_machine::slot::State;

use super::{Part, pool, pool_if_named, slots_of};
use crate::cli::arguments::json;
use crate::cli::print;
use crate::slots::{PoolSlots, SlotStanding};
use crate::store::Store;

pub(super) const PART: Part = Part { declare, run };

fn declare() -> Command {
    Command::new("status")
        .about("The slots of a pool, or of all: who has them, and how they were maintained")
        .args([pool().required(false), json()])
}

fn run(store: &Store, matches: &ArgMatches) -> anyhow::Result<u8> {
    let pools = slots_of(store).standings(pool_if_named(matches)?.as_ref())?;
    if matches.get_flag("json") {
        print::json(&pools)?;
    } else {
        show(&pools)?;
    }
    Ok(0)
}

fn show(pools: &[PoolSlots]) -> std::io::Result<()> {
    let rows: Vec<[String; 6]> = pools
        .iter()
        .flat_map(|pool| pool.slots.iter().map(|slot| row(&pool.pool, slot)))
        .collect();
    print::columns(
        &["SLOT", "STATE", "HOLDER", "SINCE", "MAINTAINED", "ABOUT"],
        &rows,
    )
}

fn row(pool: &str, slot: &SlotStanding) -> [String; 6] {
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
    let maintained = match (&slot.last_maintained, slot.last_outcome) {
        (Some(stamp), Some(outcome)) => format!("{stamp} {}", words(outcome)),
        (stamp, _) => or_dash(stamp),
    };
    let about = match (slot.broken.as_ref().or(slot.astray.as_ref()), &slot.note) {
        (Some(why), _) => why.clone(),
        (None, Some(note)) => format!("{} ({note})", slot.path.display()),
        (None, None) => slot.path.display().to_string(),
    };
    [
        format!("{pool}/{}", slot.number),
        state(slot).into(),
        or_dash(&slot.holder),
        or_dash(&slot.since),
        maintained,
        about,
    ]
}

fn state(slot: &SlotStanding) -> &'static str {
    match slot.state {
        State::Idle if slot.returned => "idle",
        State::Idle => "idle, not given back",
        State::Claimed => "claimed",
        State::Maintaining => "maintaining",
        State::Broken => "broken",
    }
}

/// How maintenance ended, in words.
pub(super) fn words(outcome: Outcome) -> String {
    match outcome {
        Outcome::Succeeded => "succeeded".into(),
        Outcome::Failed { exit: Some(exit) } => format!("failed with {exit}"),
        Outcome::Failed { exit: None } => "could not be started".into(),
        Outcome::TimedOut => "timed out".into(),
        Outcome::Interrupted => "was interrupted".into(),
    }
}
