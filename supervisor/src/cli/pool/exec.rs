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
use crate::slots::{Inside, OF_ANOTHER_REPOSITORY, SESSION_VARIABLE, settled};
use crate::store::Store;

pub(super) const PART: Part = Part { declare, run };

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
    for name in OF_ANOTHER_REPOSITORY {
        command.env_remove(name);
    }
    command.envs(settled(&inside.slot_dir, |name| std::env::var_os(name)));
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
