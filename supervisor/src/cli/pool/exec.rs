//! `outlive pool exec`: run a command in the slot of a session. This process becomes the command, so that its streams, its
//! signals and its exit status are passed through by being its own.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;

use clap::{ArgMatches, Command};
use rustix::io::{FdFlags, fcntl_setfd};

use super::{Part, slots_of, token, token_of};
use crate::cli::arguments::command;
use crate::cli::exit;
use crate::error::DiskError;
use crate::process::SLOT_VARIABLE;
use crate::slots::{Inside, SESSION_VARIABLE};
use crate::store::Store;

pub(super) const PART: Part = Part { declare, run };

/// What git passes on to its hooks and aliases, and would have every git in the slot work on somebody else's repository.
const OF_ANOTHER_REPOSITORY: [&str; 12] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// git's own maintenance would go on in the slot when the command is done.
const QUIET: [(&str, &str); 2] = [("gc.auto", "0"), ("maintenance.auto", "false")];

fn declare() -> Command {
    Command::new("exec")
        .about("Run a command in the slot of a session")
        .long_about(
            "Run a command in the slot of a session, and be it: its input, its output and its exit status are passed \
             through. It starts in the slot, unless you stand in it already. As long as anything of it lives, nobody \
             else gets the slot.",
        )
        .args([token(), command()])
}

fn run(store: &Store, matches: &ArgMatches) -> anyhow::Result<u8> {
    let token = token_of(matches)?;
    let inside = slots_of(store).enter(&token)?;
    let mut words = matches.get_many::<OsString>("command").unwrap_or_default();
    // Clap has seen to it that there is one.
    let program = words.next().cloned().unwrap_or_default();
    let mut command = std::process::Command::new(&program);
    command.args(words).env(SESSION_VARIABLE, token.as_str());
    command.env(SLOT_VARIABLE, &inside.slot_dir);
    for name in OF_ANOTHER_REPOSITORY {
        command.env_remove(name);
    }
    keep_git_quiet(&mut command);
    if !stands_in(&inside) {
        command.current_dir(&inside.path);
    }
    // What becomes the command takes the lock along, and so does everything that it starts.
    fcntl_setfd(&inside.lock, FdFlags::empty())
        .map_err(|error| DiskError::new("inherit", &inside.path, error))?;
    let error = command.exec();
    exit::say(&format!("cannot run {}: {error}", program.display()));
    Ok(match error.kind() {
        ErrorKind::NotFound => 127,
        _ => 126,
    })
}

fn stands_in(inside: &Inside) -> bool {
    let real = inside.path.canonicalize();
    match (std::env::current_dir(), real) {
        (Ok(here), Ok(path)) => here.starts_with(path),
        _ => false,
    }
}

fn keep_git_quiet(command: &mut std::process::Command) {
    let count = std::env::var("GIT_CONFIG_COUNT").ok();
    let count: usize = count.and_then(|count| count.parse().ok()).unwrap_or(0);
    for (nth, (key, value)) in QUIET.into_iter().enumerate() {
        command.env(format!("GIT_CONFIG_KEY_{}", count + nth), key);
        command.env(format!("GIT_CONFIG_VALUE_{}", count + nth), value);
    }
    command.env("GIT_CONFIG_COUNT", (count + QUIET.len()).to_string());
}
