//! The rules about what is left when nobody moves any more (R6), and about what one fresh process makes of it
//! (R8, R22).

use state_machine::control::{Control, Request};
use state_machine::disk::{Dir, Name, Place, Read};
use state_machine::id::JobId;
use state_machine::job::State as JobState;
use state_machine::protocol::spare::SPARES;

use super::{Broken, Rule, pull, queue, slot};
use crate::alone::{Trees, play};
use crate::filesystem::Filesystem;
use crate::machine::Machine;
use crate::role::{Outcome, Part, Role, first_job};
use crate::world::{Patience, Power, State, World};

/// How many effects one fresh process may need for one job, or for one directory of litter.
const EFFECTS: u32 = 120;

/// What is broken in a state in which every process has ended or died.
pub fn at_rest(world: &World, state: &State) -> Vec<Broken> {
    let mut broken = Vec::new();
    let nothing_happened = state.crashes_left == world.crashes
        && state.faults_left == world.faults
        && state.may_lose_power == (world.power == Power::Lost);
    // Whoever comes upon a collector leaves it what that has touched, and it may have gone by already.
    let collected = world.parts.iter().any(|part| part.role == Role::Collector);
    if nothing_happened && !collected && !world.scene.has_litter() {
        broken.extend(litter(&state.machine.files));
        broken.extend(slot::litter(&state.machine.files));
    }
    if nothing_happened && world.patience == Patience::Fair {
        // Whoever had the lock last has seen to it: nobody else has to come.
        let files = &state.machine.files;
        // What hands have written may lie there for whoever comes next.
        if !world.parts.iter().any(|part| part.role.is_hand()) {
            let told = accepted(world, state);
            broken.extend(told.filter_map(|(_, id, request)| lost(files, id, request)));
        }
    }
    if world.patience == Patience::Fair && state.faults_left == world.faults {
        broken.extend(harmed(world, state));
    }
    broken.extend(queue::at_rest(world, state));
    broken.extend(slot::heals(world, state));
    broken.extend(pull::heals(world, state));
    broken.extend(heals(world, state));
    broken
}

/// Whether the only process that is no reader was told that somebody holds the job (R5).
fn harmed(world: &World, state: &State) -> Option<Broken> {
    let mut others = world
        .parts
        .iter()
        .zip(&state.processes)
        .filter(|(part, _)| !part.role.is_reader() && !part.role.is_onlooker());
    let (_, only) = others.next()?;
    let told = matches!(
        only.outcome(),
        Some(Outcome::Held | Outcome::LeftToHolder | Outcome::Leftovers | Outcome::NoSlot)
    );
    (told && others.next().is_none())
        .then(|| Rule::R5.broken("only readers were there, and it was told that the job is held"))
}

/// What one fresh process cannot mend, after everyone else has died.
pub fn heals(world: &World, state: &State) -> Vec<Broken> {
    if world.is_about_pulls() {
        // There are no jobs in it; what heals it is in `pull`.
        return Vec::new();
    }
    let mut machine = state.machine.clone();
    for lane in (0u8..).take(state.processes.len()) {
        machine.end_process(lane);
    }
    if let Err(too_long) = mend(world, &mut machine) {
        return vec![too_long];
    }
    let files = &machine.files;
    let jobs = files.jobs();
    let mut broken: Vec<_> = jobs.iter().filter_map(|id| unrest(files, id)).collect();
    let robbed = |id: &&JobId| {
        let before = state.machine.files.descriptor_of(id);
        before.is_some() && files.descriptor_of(id) != before
    };
    broken.extend(
        jobs.iter()
            .find(robbed)
            .map(|id| Rule::R22.broken(format!("recovery has taken the descriptor of {id} away"))),
    );
    broken.extend(litter(files));
    let accepted = accepted(world, state);
    broken.extend(accepted.filter_map(|(_, id, request)| lost(files, id, request)));
    broken
}

/// The requests that were accepted, with who asked. One that was written by hand is accepted where it stands; whoever
/// looks at the job next settles it. Who was told in the end that the job cannot be read was told of nothing else: what he has
/// placed waits until somebody has mended that.
fn accepted<'a>(
    world: &'a World,
    state: &'a State,
) -> impl Iterator<Item = (&'a Part, &'a JobId, Request)> {
    let both = world.parts.iter().zip(&state.processes);
    let both = both.filter(|(_, process)| process.outcome() != Some(Outcome::Damaged));
    both.filter_map(|(part, process)| {
        let (id, request) = process.standing.accepted.as_ref()?;
        Some((part, id, *request))
    })
}

/// How an accepted request was lost, if it was: it neither took effect nor was answered.
fn lost(files: &Filesystem, id: &JobId, request: Request) -> Option<Broken> {
    if !files.has_job(id) || files.recorded(id).is_terminal() {
        return None;
    }
    if request == Request::Cancel {
        let recorded = files.recorded(id);
        return Some(Rule::R6.broken(format!("a cancel was accepted, and the job is {recorded}")));
    }
    let unread = files.asked_of(id, Name::Control).is_some();
    unread.then(|| Rule::R6.broken(format!("a {request} was accepted, and lies unread")))
}

/// Let a fresh process recover every job and clear what lies about.
fn mend(world: &World, machine: &mut Machine) -> Result<(), Broken> {
    let part = |role, job: &JobId| Part {
        edit: world.edit,
        ..Part::new(role, job.clone(), "mend", 100)
    };
    for id in machine.files.jobs() {
        let recoverer = part(Role::Recoverer, &id);
        play(
            machine,
            &recoverer,
            EFFECTS,
            Trees::End,
            Some(&world.coverage),
        )
        .map_err(|_| Rule::R22.broken(format!("recovering {id} takes too long")))?;
    }
    let collector = part(Role::Collector, &first_job());
    play(
        machine,
        &collector,
        EFFECTS,
        Trees::End,
        Some(&world.coverage),
    )
    .map_err(|_| Rule::R22.broken("collecting takes too long"))?;
    Ok(())
}

/// What is not as it should be with a job that was recovered.
fn unrest(files: &Filesystem, id: &JobId) -> Option<Broken> {
    // What cannot be read is left for a person (R21).
    let garbage = |name| {
        let data = files.data(&Place::of_job(id, name));
        data.is_some_and(|data| data.is_garbage())
    };
    let ended = files
        .history_of(id)
        .and_then(|history| history.last_state())
        .is_some_and(JobState::is_terminal);
    let emptied = ended && files.status_of(id).is_some_and(|status| status.lost);
    if garbage(Name::Status) || garbage(Name::Descriptor) || emptied {
        return None;
    }
    let recorded = files.recorded(id);
    if recorded == JobState::Running {
        return Some(Rule::R22.broken("a recovered job is recorded as running"));
    }
    let last = files
        .history_of(id)
        .and_then(|history| history.last_state());
    if last.unwrap_or(JobState::Queued) != recorded {
        let how = format!("the record says {recorded}, the history ends in {last:?}");
        return Some(Rule::R7.broken(how));
    }
    // An empty file asks for nothing.
    let asks = |name| !matches!(files.asked_of(id, name), None | Some(Control::Empty));
    (asks(Name::Taken) || asks(Name::Control) && !recorded.is_terminal())
        .then(|| Rule::R6.broken("a request is unanswered after recovery"))
}

fn litter(files: &Filesystem) -> Option<Broken> {
    let trash = files.tickets(&Dir::Trash);
    let mut staging = files.tickets(&Dir::Staging).into_iter();
    // A name that a job had on its way in, and that a loss of power has brought back, is left alone.
    let left =
        !trash.is_empty() || staging.any(|ticket| !files.is_job(&Place::Dir(Dir::Staged(ticket))));
    if left {
        return Some(Rule::R8.broken("something is left in staging or trash"));
    }
    let brought_back = |number: &u8| {
        let descriptor = files.data(&Dir::Spare(*number).at(Name::Descriptor));
        match descriptor.map(|data| data.descriptor()) {
            Some(Read::Value(descriptor)) => !files.has_job(&descriptor.id),
            _ => false,
        }
    };
    (0..SPARES)
        .find(brought_back)
        .map(|number| Rule::R8.broken(format!("spare {number} is left, and nobody takes it")))
}
