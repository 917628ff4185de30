//! The rules about supervisors and the jobs that wait for them (R18, R20), and about pools (R21).

use state_machine::disk::{Dir, Name, Read};
use state_machine::id::JobId;
use state_machine::job::State as JobState;
use state_machine::protocol::supervise::supervisor_lock;
use state_machine::record::{AfterWhen, OnInterrupt};

use super::{Broken, Rule};
use crate::effect::Effect;
use crate::filesystem::{Filesystem, Owner};
use crate::role::{Change, Outcome, Part, Role, SLOTS, pool};
use crate::world::{Patience, State, World};

/// What is broken by the start of a command.
pub fn by_effect(world: &World, before: &State, effect: &Effect) -> Vec<Broken> {
    let Effect::Spawn(id, _) = effect else {
        return Vec::new();
    };
    let files = &before.machine.files;
    let mut broken = Vec::new();
    if has_supervisor(world) && !lost_a_worker(world, before) && times_begun(files, id) > 1 {
        broken.push(Rule::R20.broken(format!("{id} is started again, and no worker was lost")));
    }
    let descriptor = files.descriptor_of(id);
    let after = descriptor
        .map(|descriptor| &descriptor.after[..])
        .unwrap_or_default();
    for one in after {
        let state = files.recorded(&one.job);
        if one.when == AfterWhen::Success && state != JobState::Done {
            let first = &one.job;
            broken.push(Rule::R18.broken(format!("{id} comes after {first}, which is {state}")));
        }
    }
    broken
}

/// What is broken in a state, whatever it came from.
pub fn in_state(after: &State) -> Vec<Broken> {
    let files = &after.machine.files;
    let mut broken = Vec::new();
    let mut supervisors = 0;
    for (lane, process) in (0u8..).zip(&after.processes) {
        if process.standing.supervises {
            supervisors += 1;
            if !files.holds(Owner::Process(lane), &supervisor_lock()) {
                broken.push(Rule::R20.broken("a supervisor has no lock"));
            }
        }
    }
    if supervisors > 1 {
        broken.push(Rule::R20.broken("two supervise one store"));
    }
    let mut forked = 0;
    let mut commands = 0;
    for tree in after.machine.trees().iter().filter(|tree| tree.command) {
        // What a worker has left that was killed is in no slot: nobody holds its job.
        let worker = after.processes.get(usize::from(tree.lane));
        commands += u32::from(worker.is_some_and(|worker| worker.is_under_way()));
        forked += u32::from(after.machine.errand_of(tree.lane).is_some());
    }
    // Where nobody was forked, nobody was admitted.
    if forked > 0 && commands > SLOTS {
        broken.push(Rule::R20.broken(format!("{commands} commands run in {SLOTS} slots")));
    }
    broken
}

/// What is broken in a state in which nobody moves any more.
pub fn at_rest(world: &World, state: &State) -> Vec<Broken> {
    let mut broken = Vec::new();
    if state.faults_left != world.faults || world.patience != Patience::Fair {
        return broken;
    }
    let files = &state.machine.files;
    let supervised = state
        .processes
        .iter()
        .any(|process| process.standing.supervises);
    if has_supervisor(world) && !supervised && !lost(world, state, Role::supervises) {
        let left = files.jobs().into_iter().find(|id| is_left(files, id));
        broken.extend(left.map(|id| {
            let recorded = files.recorded(&id);
            Rule::R18.broken(format!("{id} is {recorded}, and nobody sees to it"))
        }));
    }
    broken.extend(forgotten_change(world, state));
    broken
}

/// Whether a job waits for a supervisor.
fn is_left(files: &Filesystem, id: &JobId) -> bool {
    let Some(descriptor) = files.descriptor_of(id) else {
        return false;
    };
    match files.recorded(id) {
        JobState::Queued | JobState::Running => true,
        JobState::Interrupted => descriptor.on_interrupt == OnInterrupt::Resume,
        _ => false,
    }
}

/// Which change of a pool was made, and is not there (R21).
fn forgotten_change(world: &World, state: &State) -> Option<Broken> {
    let changes: Vec<Change> = world
        .parts
        .iter()
        .zip(&state.processes)
        .filter(|(_, process)| process.outcome() == Some(Outcome::Changed))
        .filter_map(|(part, _)| match part.role {
            Role::Changer(change) => Some(change),
            _ => None,
        })
        .collect();
    let is_forgetful = |part: &&Part| part.role == Role::Changer(Change::Forget);
    let forgetful = world.parts.iter().filter(is_forgetful).count();
    if forgetful > 0 && forgetful < world.parts.len() || changes.is_empty() {
        // Whichever of them came last.
        return None;
    }
    let data = state.machine.files.data(&Dir::Pool(pool()).at(Name::Pool));
    let recorded = data.map(|data| data.pool());
    let kept = |change: &Change| match (&recorded, change) {
        (Some(Read::Value(pool)), Change::TwoSlots) => pool.slots == Some(2),
        (Some(Read::Value(pool)), Change::Pause) => pool.paused,
        (None, Change::Forget) => true,
        _ => false,
    };
    let gone = changes.iter().find(|change| !kept(change))?;
    Some(Rule::R21.broken(format!("{gone:?} was made, and the pool is {recorded:?}")))
}

/// How often the history of a job says that it was begun.
fn times_begun(files: &Filesystem, id: &JobId) -> usize {
    let history = files.history_of(id);
    let states = history.into_iter().flat_map(|history| history.states());
    states.filter(|&state| state == JobState::Running).count()
}

fn has_supervisor(world: &World) -> bool {
    world.parts.iter().any(|part| part.role.supervises())
}

/// Whether one who runs commands was killed.
fn lost_a_worker(world: &World, state: &State) -> bool {
    lost(world, state, |role| {
        role.is_forked() || role == Role::Worker
    })
}

fn lost(world: &World, state: &State, is: impl Fn(Role) -> bool) -> bool {
    let mut both = world.parts.iter().zip(&state.processes);
    both.any(|(part, process)| is(part.role) && process.is_dead())
}
