//! `outlive clean`: forget ended jobs, and collect what crashes left behind.

use std::time::Duration;

use clap::{ArgMatches, Command, value_parser};
use serde::Serialize;
use state_machine::config::Keep;
use state_machine::id::JobId;

use super::arguments::{all, duration, find_jobs, jobs, json, option};
use super::scope::Scope;
use super::{Verb, exit, print};
use crate::error::{Error, Result};
use crate::store::{Job, Kept, Store, Swept};

pub(super) const VERB: Verb = Verb {
    name: "clean",
    aliases: &[],
    declare,
    run,
};

fn declare(verb: Command) -> Command {
    verb.about("Forget ended jobs, and print the ids of those forgotten")
        .long_about(
            "Forget ended jobs with everything that is kept of them, their output too. Without a name: those of the \
             project, or outside of any project everyone's. A job is kept when either option keeps it; without options, \
             as the store's configuration says.",
        )
        .args([
            jobs(),
            option("keep", "N", "Keep the N that ended last")
                .value_parser(value_parser!(usize))
                .conflicts_with("job"),
            duration("older-than", "Keep those that ended no longer ago than this")
                .conflicts_with("job"),
            all("Everyone's jobs").conflicts_with("job"),
            json(),
        ])
}

fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let store = Store::open_default()?;
    let named = matches.get_many::<String>("job").is_some();
    let swept = if named {
        forget(&store, &find_jobs(&store, matches)?)?
    } else {
        sweep(&store, matches)?
    };
    if !swept.forgotten.is_empty() {
        store.forget_remembered();
    }
    let collected = store.collect();
    for kept in &swept.kept {
        exit::say(&format!("{} is kept: {}", kept.id, kept.why));
    }
    if matches.get_flag("json") {
        print::json(&Cleaned::from(&swept))?;
    } else {
        for id in &swept.forgotten {
            print::line(id.as_str())?;
        }
    }
    for left in &swept.left {
        exit::say(&format!("something is left of what is forgotten: {left}"));
    }
    collected?;
    let refused = named && !swept.kept.is_empty();
    Ok(match refused {
        true => exit::REFUSED,
        false => u8::from(!swept.left.is_empty()),
    })
}

fn sweep(store: &Store, matches: &ArgMatches) -> Result<Swept> {
    let scope = Scope::here(matches.get_flag("all"));
    let older_than = matches.get_one::<Duration>("older-than");
    let asked = Keep {
        keep: matches.get_one::<usize>("keep").copied(),
        older_than: older_than.copied(),
    };
    // What is asked for here stands alone; the configured retention is for when nothing is.
    let keep = if asked == Keep::default() {
        store.config()?.retention
    } else {
        asked
    };
    store.sweep(keep.retention(), |view| scope.holds(view))
}

/// Forget exactly these, or say of each why not.
fn forget(store: &Store, jobs: &[Job]) -> Result<Swept> {
    let ids: Vec<JobId> = jobs.iter().map(|job| job.id().clone()).collect();
    let mut swept = store.forget(&ids)?;
    for job in jobs {
        let is_told = swept.forgotten.contains(job.id())
            || swept.kept.iter().any(|kept| &kept.id == job.id());
        // One without a lock file is passed over as if it were gone: nobody can ever hold it.
        if !is_told && !matches!(job.look(), Err(Error::Gone(_))) {
            swept.kept.push(Kept {
                id: job.id().clone(),
                why: format!(
                    "it is damaged; remove {} if nothing in it is of use",
                    job.dir().display()
                ),
            });
        }
    }
    Ok(swept)
}

/// What a cleaning did, as JSON shows it.
#[derive(Debug, Serialize)]
struct Cleaned<'a> {
    forgotten: &'a [JobId],
    kept: Vec<Left<'a>>,
}

#[derive(Debug, Serialize)]
struct Left<'a> {
    id: &'a JobId,
    why: &'a str,
}

impl<'a> From<&'a Swept> for Cleaned<'a> {
    fn from(swept: &'a Swept) -> Cleaned<'a> {
        let left = |kept: &'a Kept| Left {
            id: &kept.id,
            why: &kept.why,
        };
        Cleaned {
            forgotten: &swept.forgotten,
            kept: swept.kept.iter().map(left).collect(),
        }
    }
}
