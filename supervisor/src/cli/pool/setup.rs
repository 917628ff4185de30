//! `outlive pool add`, `set`, `pause` and `resume`: how a pool is set up.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Arg, ArgMatches, Command, value_parser};
use state_machine::protocol::pool::Wish;
use state_machine::record::{Bytes, Ground, MAINTENANCE_TIMEOUT_MS, Upkeep};

use super::{Part, pool, pool_name};
use crate::cli::arguments::{duration, flag, option};
use crate::cli::spec::by_shell;
use crate::error::{DiskError, Error, Result};
use crate::store::Store;

pub(super) const ADD: Part = Part {
    declare: || {
        Command::new("add")
            .about("Make a pool")
            .args([pool(), slots().required(true)])
            .args(ground())
    },
    run: |store, matches| {
        let name = pool_name(matches)?;
        store.add_pool(&name, wish(matches, &Ground::NONE)?)?;
        Ok(0)
    },
};

pub(super) const SET: Part = Part {
    declare: || {
        Command::new("set")
            .about("Set a pool up otherwise; whoever is inside stays")
            .args([pool(), slots()])
            .args(ground())
            .args(unset())
    },
    run: |store, matches| {
        let name = pool_name(matches)?;
        let before = store.pool(&name)?.ground;
        let wish = wish(matches, &before)?;
        if wish == Wish::default() {
            let is_without = UNSET.iter().any(|flag| is_unset(matches, flag));
            if is_without {
                return Ok(0);
            }
            let why = "say what is to be otherwise: see outlive pool set --help";
            return Err(Error::Usage(why.into()).into());
        }
        store.set_pool(&name, wish)?;
        Ok(0)
    },
};

pub(super) const PAUSE: Part = Part {
    declare: || {
        Command::new("pause")
            .about("Admit no job and no session to a pool for now; those inside stay")
            .arg(pool())
    },
    run: |store, matches| set_paused(store, matches, true),
};

pub(super) const RESUME: Part = Part {
    declare: || {
        Command::new("resume")
            .about("Admit jobs and sessions to a pool again")
            .arg(pool())
    },
    run: |store, matches| set_paused(store, matches, false),
};

fn set_paused(store: &Store, matches: &ArgMatches, paused: bool) -> anyhow::Result<u8> {
    let wish = Wish {
        paused: Some(paused),
        ..Wish::default()
    };
    store.set_pool(&pool_name(matches)?, wish)?;
    Ok(0)
}

fn slots() -> Arg {
    // None at all would be a pause that looks like a pool.
    option("slots", "N", "How many slots it is to have").value_parser(value_parser!(u32).range(1..))
}

/// What its slots are to hold.
fn ground() -> Vec<Arg> {
    let command = |name: &'static str, help: &'static str| {
        option(name, "COMMAND", help).value_parser(value_parser!(OsString))
    };
    vec![
        option(
            "source",
            "REPOSITORY",
            "The git repository that its slots are worktrees of",
        )
        .value_parser(value_parser!(PathBuf)),
        command(
            "prepare",
            "Run by sh in the directory of a new slot, to fill it",
        ),
        command("reset", "Run by sh in a slot that is given back"),
        command("maintain", "Run by sh in a slot to keep it warm"),
        duration("timeout", "How long that may run [10m]"),
        duration("every", "How often a supervisor has it run [never]"),
    ]
}

/// The flags by which something is taken back.
const UNSET: [&str; 4] = ["no-prepare", "no-reset", "no-maintain", "no-every"];

/// What it is to have no more.
fn unset() -> Vec<Arg> {
    let none = |name: &'static str, of: &'static str, help: &'static str| {
        flag(name, help).conflicts_with(of)
    };
    vec![
        none("no-prepare", "prepare", "Prepare new slots no more"),
        none(
            "no-reset",
            "reset",
            "Run nothing in a slot that is given back",
        ),
        none("no-maintain", "maintain", "Have no maintenance command")
            .conflicts_with_all(["timeout", "every"]),
        none("no-every", "every", "Have it run by hand only"),
    ]
}

/// Whether this flag is given; 'add' has none of these.
fn is_unset(matches: &ArgMatches, flag: &str) -> bool {
    matches!(matches.try_get_one::<bool>(flag), Ok(Some(true)))
}

fn wish(matches: &ArgMatches, before: &Ground) -> Result<Wish> {
    // A command without a word is none.
    let shell = |name: &str| {
        if is_unset(matches, &format!("no-{name}")) {
            return Some(Vec::new());
        }
        let command = matches.get_one::<OsString>(name).cloned();
        command.map(|command| -> Vec<Bytes> {
            let words = by_shell(command).into_iter();
            words.map(|word| word.into_vec().into()).collect()
        })
    };
    let source = matches.get_one::<PathBuf>("source");
    let source = source.map(|path| absolute(path)).transpose()?;
    let prepare = shell("prepare");
    // The two are said together: who changes how new slots are prepared wants worktrees of the same source.
    let source = source.or_else(|| prepare.as_ref().and(before.source.clone()));
    if prepare.as_ref().is_some_and(Vec::is_empty) && source.is_none() {
        let why = "without a source and a command that prepares them its slots would have no place";
        return Err(Error::Usage(why.into()));
    }
    Ok(Wish {
        slots: matches.get_one::<u32>("slots").copied(),
        paused: None,
        ground: Ground {
            source,
            prepare,
            reset: shell("reset"),
            maintain: upkeep(matches, shell("maintain"), before)?,
        },
        new: false,
    })
}

fn upkeep(
    matches: &ArgMatches,
    command: Option<Vec<Bytes>>,
    before: &Ground,
) -> Result<Option<Upkeep>> {
    let ms = |name| {
        let time = matches.get_one::<Duration>(name);
        time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
    };
    let (timeout_ms, every_ms) = (ms("timeout"), ms("every"));
    let by_itself = !is_unset(matches, "no-every");
    let before = before.maintain.as_ref();
    let Some(command) = command.or_else(|| before.map(|upkeep| upkeep.command.clone())) else {
        if timeout_ms.is_some() || every_ms.is_some() {
            let why = "--timeout and --every are about a maintenance command; give --maintain too";
            return Err(Error::Usage(why.into()));
        }
        return Ok(None);
    };
    let upkeep = Upkeep {
        command,
        timeout_ms: timeout_ms
            .or(before.map(|upkeep| upkeep.timeout_ms))
            .unwrap_or(MAINTENANCE_TIMEOUT_MS),
        every_ms: every_ms
            .or(before.and_then(|upkeep| upkeep.every_ms))
            .filter(|_| by_itself),
    };
    if upkeep.command.is_empty() && before.is_none() {
        return Ok(None);
    }
    Ok((Some(&upkeep) != before).then_some(upkeep))
}

/// The source must be there now, so that a slip of the hand is not found out by whoever wants a slot.
fn absolute(path: &Path) -> Result<Bytes> {
    let real = path
        .canonicalize()
        .map_err(|error| DiskError::new("find", path, error))?;
    Ok(real.as_os_str().as_bytes().to_vec().into())
}
