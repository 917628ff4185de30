//! The rules that one step can break: what an effect may do as things stand when it happens, and what must hold
//! in every state.

use state_machine::disk::{Change, Dir, Name, Place};
use state_machine::id::JobId;
use state_machine::job;

use super::{Broken, Rule, slot};
use crate::effect::{Effect, Reply};
use crate::filesystem::{Filesystem, Owner};
use crate::process::Process;
use crate::role::slot::place_of;
use crate::role::{Outcome, Part};
use crate::scene::Scene;
use crate::world::State;

/// What is broken by letting `effect` of `lane` happen to `before`, given what it came to.
pub fn by_effect(before: &State, lane: u8, effect: &Effect, reply: &Reply) -> Vec<Broken> {
    let mut broken = Vec::new();
    // An effect that finds nothing to work on harms nobody.
    if matches!(reply, Reply::Changed(change) if *change != Change::Done) {
        return broken;
    }
    let files = &before.machine.files;
    let me = Owner::Process(lane);
    match effect {
        Effect::Write(
            Place::File(Dir::Job(id), Name::Status | Name::NewStatus | Name::Events),
            _,
        )
        | Effect::Append(Dir::Job(id), ..)
        | Effect::Rename(_, Place::File(Dir::Job(id), Name::Status))
            if !files.holds(me, &Place::of_job(id, Name::Lock)) =>
        {
            broken.push(Rule::R2.broken(format!("{effect} without the lock")));
        }
        Effect::Rename(Place::Dir(Dir::Job(id)), _)
        | Effect::RenameNew(Place::Dir(Dir::Job(id)), _) => {
            broken.extend(why_not_dead(before, lane, id).map(|why| Rule::R9.broken(why)));
        }
        Effect::Unlink(Place::File(
            Dir::Job(_),
            Name::Descriptor | Name::Status | Name::Events | Name::Lock | Name::Tree,
        ))
        | Effect::Rmdir(Dir::Job(_)) => {
            broken.push(Rule::R8.broken(format!("{effect} in a job that can be seen")));
        }
        Effect::Rename(Place::Dir(dir @ Dir::Staged(_)), Place::Dir(Dir::Trashed(_)))
        | Effect::RenameNew(Place::Dir(dir @ Dir::Staged(_)), Place::Dir(Dir::Trashed(_)))
            if files.lockers(&dir.at(Name::Lock)).any(|who| who != me) =>
        {
            broken.push(Rule::R8.broken(format!("{effect} while its maker is at work")));
        }
        Effect::Lock(handle, mode) if !files.is_opened_for(me, *handle, *mode) => {
            broken.push(Rule::Handles.broken(format!("{effect} of what was opened to be read")));
        }
        Effect::Mkdir(Dir::Job(_)) => {
            broken.push(Rule::R10.broken(format!("{effect} makes a job of nothing")));
        }
        Effect::Release(handle) => {
            let mut sharers = files.sharers(me, *handle);
            let robbed = sharers.find(|who| matches!(who, Owner::Tree(_)));
            broken.extend(robbed.map(|_| Rule::R1.broken(format!("{effect}, which is a tree's"))));
        }
        // What works in a slot is no job's here, and commands of a session may work side by side.
        Effect::Spawn(id, _) if place_of(id).is_none() => {
            if before.machine.has_tree(id) {
                broken.push(Rule::R11.broken(format!("{effect} beside another")));
            }
            broken.extend(unpromised(files, id).map(|how| Rule::R13.broken(how)));
        }
        _ => {}
    }
    broken.extend(replaced(files, effect));
    broken
}

/// What is wrong with starting the command of the job now, as its record stands.
fn unpromised(files: &Filesystem, id: &JobId) -> Option<String> {
    let recorded = files.recorded(id);
    if recorded != job::State::Running {
        return Some(format!(
            "a command is started, and the record says {recorded}"
        ));
    }
    let attempt = files.status_of(id).map_or(0, |status| status.attempt);
    let descriptor = files.descriptor_of(id)?;
    // What a command is made of changes once at most.
    let anew = u32::from(!descriptor.watch.is_empty());
    let promised = descriptor.retry.max_attempts.max(1) + anew;
    (attempt > promised).then(|| format!("attempt {attempt} is made, and {promised} were promised"))
}

/// Which record that cannot be read is written over or taken away, if one is (R21): it is reported and left, as only a
/// person can say what it was.
fn replaced(files: &Filesystem, effect: &Effect) -> Option<Broken> {
    let place = match effect {
        Effect::Rename(_, to) => to,
        Effect::Write(place, _) | Effect::Unlink(place) => place,
        _ => return None,
    };
    let is_record = matches!(
        place,
        Place::File(Dir::Job(_), Name::Descriptor | Name::Status)
            | Place::File(Dir::Keys, Name::Pointer(_))
            | Place::File(Dir::Pool(_), Name::Pool)
            | Place::File(Dir::Slot(..), Name::Slot)
            | Place::File(Dir::Sessions, Name::Session(_))
    );
    let unreadable = files.data(place).is_some_and(|data| data.is_garbage());
    (is_record && unreadable)
        .then(|| Rule::R21.broken(format!("{effect} replaces what cannot be read")))
}

/// Why the job may not be taken out of the listing now, if it may not (R9).
fn why_not_dead(before: &State, lane: u8, id: &JobId) -> Option<String> {
    let files = &before.machine.files;
    let recorded = files.recorded(id);
    if !recorded.is_terminal() {
        return Some(format!("a job that is {recorded} is swept"));
    }
    let mut others = (0u8..).zip(&before.processes).filter(|&(at, _)| at != lane);
    if others.any(|(_, process)| process.holds() == Some(id)) {
        return Some("a job is swept while somebody holds it".into());
    }
    let mut lockers = files.lockers(&Place::of_job(id, Name::Lock));
    if lockers.any(|who| who != Owner::Process(lane)) {
        return Some("a job is swept while somebody has its lock".into());
    }
    let unread = files.data(&Place::of_job(id, Name::Status));
    if unread.is_some_and(|data| data.is_garbage()) {
        return Some("a job is swept whose record cannot be read".into());
    }
    before
        .machine
        .has_tree(id)
        .then(|| "a job is swept while its tree lives".into())
}

/// What is broken in a state, whatever it came from.
pub fn in_state(after: &State) -> Vec<Broken> {
    let mut broken = Vec::new();
    let files = &after.machine.files;
    let mut held: Vec<&JobId> = Vec::new();
    for (lane, process) in (0u8..).zip(&after.processes) {
        broken.extend(forgotten_end(after, lane, process));
        let Some(id) = process.holds() else { continue };
        if !files.holds(Owner::Process(lane), &Place::of_job(id, Name::Lock)) {
            broken.push(Rule::R1.broken("a holder has no lock, or one on a file that is gone"));
        }
        if held.contains(&id) {
            broken.push(Rule::R1.broken("two hold one job"));
        }
        held.push(id);
    }
    broken
}

/// Whether a worker that is under way has seen the end of its command, and neither recorded it nor has what it takes to
/// go on trying (R13). One that was killed has seen nothing.
fn forgotten_end(after: &State, lane: u8, process: &Process) -> Option<Broken> {
    let files = &after.machine.files;
    let (id, _) = process.standing.ended.as_ref()?;
    let trying =
        process.is_under_way() && files.holds(Owner::Process(lane), &Place::of_job(id, Name::Lock));
    if trying {
        return None;
    }
    unrecorded(process, files).map(|how| Rule::R13.broken(how))
}

/// How an end that a process has seen is not recorded. A pause is no end: it can be taken back by whoever comes next.
fn unrecorded(process: &Process, files: &Filesystem) -> Option<String> {
    let (id, state) = process.standing.ended.as_ref()?;
    let recorded = files.recorded(id);
    let lost = state.is_terminal() && files.has_job(id) && recorded != *state;
    lost.then(|| format!("a command ended {state}, and the record says {recorded}"))
}

/// What is broken in `after`, given what an effect or a death has made it of. `booted`: power has been lost, which may have
/// brought a spare back half filled.
pub fn changed(before: &State, after: &State, booted: bool) -> Vec<Broken> {
    let mut broken = Vec::new();
    let files = &after.machine.files;
    if before.machine.files == after.machine.files {
        return broken;
    }
    let touched = if booted {
        Vec::new()
    } else {
        files.touched_spares()
    };
    for number in touched {
        broken.push(Rule::R8.broken(format!("spare {number} is not as it was laid in")));
    }
    let mut names = Vec::new();
    for id in files.jobs() {
        let Some(descriptor) = files.descriptor_of(&id) else {
            let place = Place::of_job(&id, Name::Descriptor);
            if !files.data(&place).is_some_and(|data| data.is_garbage()) {
                broken.push(Rule::R8.broken(format!("{id} has no descriptor")));
            }
            continue;
        };
        if descriptor.id != id {
            let other = &descriptor.id;
            broken.push(Rule::R8.broken(format!("{id} has the descriptor of {other}")));
        }
        if !files.has(&Place::of_job(&id, Name::Lock)) {
            broken.push(Rule::R8.broken(format!("{id} has no lock")));
        }
        if let Some(name) = &descriptor.name
            && !files.recorded(&id).is_terminal()
        {
            if names.contains(&name) {
                broken.push(Rule::R12.broken("two unfinished jobs bear one name"));
            }
            names.push(name);
        }
        broken.extend(untold_tree(after, &id).map(|how| Rule::R11.broken(how)));
        broken.extend(history(files, &id).map(|how| Rule::R7.broken(how)));
        broken.extend(end(&before.machine.files, files, &id).map(|how| Rule::R7.broken(how)));
    }
    broken
}

/// Whether the job is recorded as ended while its tree lives, and the record does not say that something is left.
fn untold_tree(after: &State, id: &JobId) -> Option<String> {
    let status = after.machine.files.status_of(id)?;
    let untold = status.state.is_terminal() && status.leftovers.is_none();
    (untold && after.machine.has_tree(id))
        .then(|| format!("a job is {} while its tree lives", status.state))
}

/// What is wrong with the job's history, if anything is.
fn history(files: &Filesystem, id: &JobId) -> Option<String> {
    let status = files.data(&Place::of_job(id, Name::Status));
    if status.is_some_and(|status| status.is_broken()) {
        // What cannot be read says nothing.
        return None;
    }
    let states: Vec<_> = files.history_of(id)?.states().collect();
    let recorded = files.recorded(id);
    let first_is_wrong = states
        .first()
        .is_some_and(|&first| first != job::State::Queued);
    if first_is_wrong || states.windows(2).any(|two| !job::follows(two[0], two[1])) {
        return Some(format!("the history is {states:?}"));
    }
    let last = *states.last()?;
    job::path(last, recorded)
        .is_none()
        .then(|| format!("the history ends in {last}, the record says {recorded}"))
}

/// How an end was changed, if it was.
fn end(before: &Filesystem, after: &Filesystem, id: &JobId) -> Option<String> {
    let ended = before
        .status_of(id)
        .filter(|status| status.state.is_terminal())?;
    let same = after.status_of(id).is_some_and(|now| {
        (now.state, now.exit, now.ended_at_ms) == (ended.state, ended.exit, ended.ended_at_ms)
    });
    (!same).then(|| format!("a job that was {} is something else", ended.state))
}

/// How things stood when a process came to its end.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// What it did.
    pub part: &'a Part,
    /// The files then.
    pub files: &'a Filesystem,
    /// Whether nothing ever failed or was denied.
    pub smooth: bool,
    /// How the world began.
    pub scene: Scene,
    /// Whether commands may fail.
    pub failing: bool,
}

/// What is broken by what a process came to.
pub fn by_outcome(process: &Process, end: End<'_>) -> Vec<Broken> {
    let Some(outcome) = process.outcome() else {
        return Vec::new();
    };
    let role = end.part.role;
    let mut broken = Vec::new();
    if outcome == Outcome::Damaged && !end.scene.has_garbage() {
        broken.push(Rule::R8.broken("a record is damaged"));
    }
    if role.is_reader() && end.scene.is_unreadable() && end.smooth && outcome != Outcome::Damaged {
        broken.push(Rule::R21.broken("what cannot be read is not reported"));
    }
    if end.smooth && outcome == Outcome::Brought(job::State::Failed) {
        broken.extend(unrun(end).map(|how| Rule::R18.broken(how)));
    }
    if end.smooth && outcome == Outcome::Busy && role.is_maker() {
        broken.push(Rule::R18.broken("a job that nothing keeps from being made is not made"));
    }
    // A collector goes by once, and takes at most one of the tries of a request away.
    if end.smooth && outcome == Outcome::Crowded {
        broken
            .push(Rule::R18.broken("a request that nothing keeps from being placed is not placed"));
    }
    if role.is_onlooker() && end.smooth {
        broken.extend(slot::untrue(process.truths, outcome));
    }
    broken.extend(unrecorded(process, end.files).map(|how| Rule::R13.broken(how)));
    broken.extend(unfinished(process, outcome, end).map(|how| Rule::R7.broken(how)));
    if role.is_reader() {
        broken.extend(untrue(process, outcome, end.smooth));
    } else if outcome == Outcome::Gone && !end.scene.is_without_job() {
        let stands = end.files.has_job(&end.part.job);
        broken.extend(stands.then(|| Rule::R3.broken("a job that is there is called gone")));
    }
    broken
}

/// Why a job that a worker has brought to failed is one that was not run as it should have been.
fn unrun(end: End<'_>) -> Option<String> {
    let id = &end.part.job;
    if !end.failing {
        return Some("a job that nothing keeps from running is not run".into());
    }
    let status = end.files.status_of(id)?;
    if status.failure.is_some() {
        return Some("a command that nothing keeps from being started is not started".into());
    }
    let attempt = status.attempt;
    let promised = end.files.descriptor_of(id)?.retry.max_attempts.max(1);
    (attempt < promised).then(|| format!("{promised} attempts were promised, and {attempt} made"))
}

/// Whether a worker has left a job without having written its history to the end. One that could not record that the
/// command runs has nothing to tell.
fn unfinished(process: &Process, outcome: Outcome, end: End<'_>) -> Option<String> {
    let Outcome::Brought(state) = outcome else {
        return None;
    };
    // Somebody else may have it by now; whoever left it in an end has had the last word.
    let (id, _) = process.standing.recorded.as_ref()?;
    let history = end.files.history_of(id)?;
    let states: Vec<_> = history.states().collect();
    (state.is_terminal() && states.last() != Some(&state))
        .then(|| format!("a worker leaves a job {state}, and its history is {states:?}"))
}

/// What a reader said must have been true at some instant while it looked (R3, R4).
fn untrue(process: &Process, outcome: Outcome, smooth: bool) -> Option<Broken> {
    let said = match outcome {
        Outcome::Saw(state) => Some(state),
        Outcome::Gone => None,
        _ => return None,
    };
    if process.truths & bit(said) != 0 {
        return None;
    }
    if !smooth && said.is_some_and(|said| said != job::State::Interrupted) {
        // What cannot be opened counts as held (R3), so a job may look alive to whoever is kept from looking.
        return None;
    }
    let rule = if said == Some(job::State::Interrupted) {
        Rule::R3
    } else {
        Rule::R4
    };
    let said = said.map_or("gone", job::State::word);
    Some(rule.broken(format!(
        "a reader says {said}, which was not true while it looked"
    )))
}

/// The bit that stands for a true state, or for a job that is not there.
pub fn bit(truth: Option<job::State>) -> u8 {
    truth.map_or(1 << 7, |state| {
        let at = job::State::ALL.iter().position(|&known| known == state);
        1 << at.unwrap_or(7)
    })
}
