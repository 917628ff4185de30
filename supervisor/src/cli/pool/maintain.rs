//! `outlive pool maintain`: keep slots warm.

use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use clap::{ArgMatches, Command};
use serde::Serialize;
use state_machine::maintenance::{PoolReport, PoolResult, SlotResult};

use super::status::words;
use super::{Part, pool, pool_if_named, slots_of};
use crate::cli::arguments::{duration, flag, json};
use crate::cli::{exit, print};
use crate::error::DiskError;
use crate::process::Told;
use crate::store::Store;

pub(super) const PART: Part = Part { declare, run };

fn declare() -> Command {
    Command::new("maintain")
        .about("Run the maintenance command in every slot that is idle and due")
        .long_about(
            "Run the maintenance command of a pool, or of every pool, in each of its slots that is idle and due. Nobody \
             who wants a slot waits for that. Surplus slots are shed first. The exit code is 1 where a command failed or \
             timed out.",
        )
        .args([
            pool().required(false),
            flag("all", "Every pool; so it is where none is named").conflicts_with("pool"),
            duration(
                "older-than",
                "Only slots that were not maintained within this time",
            ),
            json(),
        ])
}

/// What was done, as it is printed.
#[derive(Serialize)]
struct Report<'a> {
    identities: Vec<Identity<'a>>,
}

#[derive(Serialize)]
struct Identity<'a> {
    identity: &'a str,
    outcome: &'a PoolResult,
}

fn run(store: &Store, matches: &ArgMatches) -> anyhow::Result<u8> {
    let older_than = matches.get_one::<Duration>("older-than").copied();
    let pool = pool_if_named(matches)?;
    let cannot_hear = |error| DiskError::new("hear", Path::new("signals"), error);
    let told = Told::listen().map_err(cannot_hear)?;
    let stop = told.as_fd().try_clone_to_owned().map_err(cannot_hear)?;
    let reports = slots_of(store)
        .until(stop)
        .maintain(pool.as_ref(), older_than)?;
    if matches.get_flag("json") {
        let identities = reports.iter().map(|report| Identity {
            identity: &report.pool,
            outcome: &report.result,
        });
        print::json(&Report {
            identities: identities.collect(),
        })?;
    } else {
        for report in &reports {
            show(report)?;
        }
    }
    // Who was told to end is ended, with what he did up to then said.
    told.obey().map_err(cannot_hear)?;
    let has_failed = reports.iter().any(PoolReport::has_failed);
    Ok(if has_failed { exit::FAILED } else { 0 })
}

fn show(report: &PoolReport) -> std::io::Result<()> {
    let pool = &report.pool;
    let (shed, slots) = match &report.result {
        PoolResult::NoMaintainCommand => {
            return print::line(&format!("{pool}: it has no maintenance command"));
        }
        PoolResult::NoSlots => return print::line(&format!("{pool}: it has no slots yet")),
        PoolResult::Claimed { by_pid } => {
            return print::line(&format!("{pool}: process {by_pid} is maintaining it"));
        }
        PoolResult::Visited { shed, slots } => (shed, slots),
    };
    for number in shed {
        print::line(&format!("{pool}/{number}: shed, as it was one too many"))?;
    }
    for slot in slots {
        let what = print::safe(&result(&slot.result)).into_owned();
        print::line(&format!("{pool}/{}: {what}", slot.slot))?;
    }
    Ok(())
}

fn result(result: &SlotResult) -> String {
    match result {
        SlotResult::NotDue { last_maintained } => format!("not due (maintained {last_maintained})"),
        SlotResult::InUse { by } => format!("in use by {by}"),
        SlotResult::Unavailable { by } => format!("unavailable: {by}"),
        SlotResult::Broken { why } => format!("broken: {why}"),
        SlotResult::Ran {
            outcome,
            duration_ms,
            artifact,
        } => format!(
            "{} after {}; {artifact}",
            words(*outcome),
            print::short(Duration::from_millis(*duration_ms))
        ),
    }
}
