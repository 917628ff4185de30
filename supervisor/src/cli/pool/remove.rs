//! `outlive pool remove`: take a pool away, and its slots first.

use clap::{ArgMatches, Command};
use state_machine::id::PoolName;

use super::close::{force, say_what_went};
use super::{Part, pool, pool_name, slots_of};
use crate::cli::arguments::flag;
use crate::cli::exit;
use crate::error::{Error, Result};
use crate::slots::Force;
use crate::store::Store;

pub(super) const PART: Part = Part { declare, run };

fn declare() -> Command {
    Command::new("remove")
        .about("Remove a pool that nobody is in; one that is configured is then as it is configured")
        .long_about(
            "Remove a pool that no job and no session is in, and its slots with it. A slot that is broken or holds work \
             that is landed nowhere is kept, and then the pool is, too.",
        )
        .args([
            pool(),
            flag(
                "force",
                "Discard what slots hold that is landed nowhere; say what that was",
            ),
        ])
}

fn run(store: &Store, matches: &ArgMatches) -> anyhow::Result<u8> {
    let name = pool_name(matches)?;
    if store.pool(&name)?.ground.has_place() {
        remove_slots(store, &name, force(matches))?;
    }
    if let Some(setup) = store.remove_pool(&name)? {
        exit::say(&format!(
            "the pool {name} is configured, and now as it is configured: slots {}",
            crate::store::slots_of(&setup)
        ));
    }
    Ok(0)
}

fn remove_slots(store: &Store, name: &PoolName, force: Force) -> Result<()> {
    let removal = slots_of(store).remove_slots(name, force)?;
    say_what_went(&[], &removal.discarded);
    if removal.left.is_empty() {
        return Ok(());
    }
    let left: Vec<String> = removal
        .left
        .iter()
        .map(|left| format!("{name}/{} stays ({})", left.slot, left.why))
        .collect();
    Err(Error::Kept {
        slot: format!("the pool {name} is not removed"),
        why: left.join("; "),
    })
}
