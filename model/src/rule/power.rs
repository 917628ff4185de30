//! What a loss of power must not take (R19).

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use state_machine::disk::{Name, Place, Read};
use state_machine::id::JobId;

use super::{Broken, Rule, pull, rest, slot};
use crate::filesystem::Filesystem;
use crate::shared::hash_of;
use crate::world::{Power, State, World};

/// How much may lie unsynced at once: every way in which it may come out is tried, and at worst they double with each.
const UNSYNCED: usize = 24;

/// The files, with what was promised about them, of which it is known that they survive every loss of power. Many
/// states share them, as nothing of a process survives.
#[derive(Clone, Debug, Default)]
pub struct Survivors(Arc<Mutex<HashSet<u64>>>);

impl Survivors {
    fn contains(&self, key: u64) -> bool {
        self.0.lock().is_ok_and(|known| known.contains(&key))
    }

    fn insert(&self, key: u64) {
        if let Ok(mut known) = self.0.lock() {
            known.insert(key);
        }
    }
}

/// What is broken by some loss of power in this state.
pub fn judge(world: &World, state: &State) -> Vec<Broken> {
    let files = &state.machine.files;
    if world.power == Power::Steady || !files.has_medium() {
        return Vec::new();
    }
    let promised: Vec<_> = state
        .processes
        .iter()
        .map(|process| (&process.standing.acknowledged, &process.standing.recorded))
        .filter(|(made, ended)| !made.is_empty() || ended.is_some())
        .collect();
    let sessions: Vec<_> = state
        .processes
        .iter()
        .map(|process| (&process.standing.opened, &process.standing.closed))
        .filter(|(opened, closed)| opened.is_some() || closed.is_some())
        .collect();
    let works = state.machine.trees();
    let fetched: Vec<_> = state
        .processes
        .iter()
        .map(|process| process.standing.fetching)
        .filter(|fetching| *fetching != Default::default())
        .collect();
    let web = (state.machine.web.version, state.machine.boot);
    let key = hash_of(&(files, promised, sessions, works, fetched, web));
    if world.survivors.contains(key) {
        return Vec::new();
    }
    if files.unsynced() > UNSYNCED {
        return vec![Rule::Bounded.broken("more lies unsynced than can be tried in every way")];
    }
    for image in files.images() {
        let after = reboot(state, image);
        let mut broken = lost(state, &after);
        broken.extend(rest::heals(world, &after));
        broken.extend(slot::lost(state, &after));
        broken.extend(slot::heals(world, &after));
        broken.extend(pull::lost(world, state, &after));
        broken.extend(pull::heals(world, &after));
        if !broken.is_empty() {
            return broken;
        }
    }
    world.survivors.insert(key);
    Vec::new()
}

/// The state after a loss of power that has left these files: every process that has begun is gone, and those that have
/// not begin after the boot.
pub fn reboot(before: &State, files: Filesystem) -> State {
    let mut after = before.clone();
    after.machine = before.machine.rebooted(files);
    after.may_lose_power = false;
    for process in &mut after.processes {
        if process.is_under_way() {
            process.die();
        }
        // That a request was accepted is no promise about a loss of power.
        process.standing.accepted = None;
        process.standing.holds = None;
        // What was not synced may be gone.
        process.standing.fetching.kept = Default::default();
    }
    after
}

/// What is broken in `after`, which a loss of power has made of `before`.
fn lost(before: &State, after: &State) -> Vec<Broken> {
    let (was, is) = (&before.machine.files, &after.machine.files);
    let mut broken = Vec::new();
    for process in &before.processes {
        for id in &process.standing.acknowledged {
            // One that was swept may be gone.
            let swept = !was.has_job(id);
            if !swept && !is_whole(is, id) {
                broken.push(Rule::R19.broken(format!("{id} was acknowledged, and is not whole")));
            }
        }
        if let Some((id, state)) = &process.standing.recorded
            && state.is_terminal()
            && is.has_job(id)
            && is.recorded(id) != *state
        {
            let now = is.recorded(id);
            broken.push(Rule::R19.broken(format!("{id} was recorded as {state}, and is {now}")));
        }
    }
    for number in is.robbed_spares() {
        broken.push(Rule::R19.broken(format!("spare {number} has lost its lock or its room")));
    }
    for id in is.jobs() {
        broken.extend(torn(is, &id).map(|what| Rule::R19.broken(what)));
    }
    broken
}

fn is_whole(files: &Filesystem, id: &JobId) -> bool {
    files.descriptor_of(id).is_some() && files.has(&Place::of_job(id, Name::Lock))
}

/// Which record of the job cannot be read.
fn torn(files: &Filesystem, id: &JobId) -> Option<String> {
    let unreadable = |name: Name| match name {
        Name::Descriptor => matches!(
            files.data(&Place::of_job(id, name))?.descriptor(),
            Read::Damaged(_)
        )
        .then_some("descriptor"),
        _ => matches!(
            files.data(&Place::of_job(id, name))?.status(),
            Read::Damaged(_)
        )
        .then_some("status"),
    };
    let what = unreadable(Name::Descriptor).or_else(|| unreadable(Name::Status))?;
    Some(format!("the {what} of {id} is torn"))
}
