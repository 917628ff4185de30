//! The rules about the slots of a pool and those who have them (R14 to R17, R23).

use std::collections::BTreeSet;

use state_machine::disk::{Dir, Name, Place, Read};
use state_machine::id::Token;
use state_machine::protocol::slot::look::{LookSlot, conclude};
use state_machine::protocol::slot::place::placement_lock;
use state_machine::record::{Holder, Outcome as Came, Slot};
use state_machine::slot::{State as SlotState, is_due};

use super::{Broken, Rule};
use crate::alone::{Trees, play};
use crate::effect::{Effect, Reply};
use crate::filesystem::{Filesystem, Owner};
use crate::role::slot::{SPAN_MS, Seen, Slots, place_of};
use crate::role::{Outcome, Part, Role, first_job, pool};
use crate::world::{State, World};

/// When whoever comes last looks for a slot, in ms.
const HEALS_AT_MS: u64 = 100;

/// How many effects one fresh process may need to find a slot.
const EFFECTS: u32 = 120;

/// What is broken by letting `effect` of `lane` happen to `before`, given what it came to.
pub fn by_effect(
    world: &World,
    before: &State,
    lane: u8,
    effect: &Effect,
    reply: &Reply,
) -> Vec<Broken> {
    let mut broken = Vec::new();
    let files = &before.machine.files;
    let me = Owner::Process(lane);
    if matches!(reply, Reply::Changed(change) if *change != state_machine::disk::Change::Done) {
        return broken;
    }
    match effect {
        Effect::Write(Place::File(Dir::Slot(at, number), Name::Slot | Name::NewSlot), _)
        | Effect::Rename(_, Place::File(Dir::Slot(at, number), Name::Slot))
            if !files.holds(me, &Dir::Slot(at.clone(), *number).at(Name::Occupancy)) =>
        {
            broken.push(Rule::R14.broken(format!("{effect} by one who does not have the slot")));
        }
        Effect::RenameNew(Place::Dir(Dir::Slot(_, number)), _)
        | Effect::Rename(Place::Dir(Dir::Slot(_, number)), _) => {
            let held = holders(before, *number).into_iter().next();
            broken.extend(held.map(|by| Rule::R14.broken(format!("{effect}, which is {by}'s"))));
        }
        Effect::Spawn(tree, _) => {
            let Some((number, _)) = place_of(tree) else {
                return broken;
            };
            let maintains = world
                .parts
                .get(usize::from(lane))
                .is_some_and(|part| part.role == Role::InSlots(Slots::Maintain));
            if files.holds(me, &placement_lock(&pool())) {
                broken.push(Rule::R15.broken(format!("{effect} while slots cannot be looked for")));
            }
            let record = record(files, number);
            if maintains
                && !record.as_ref().is_some_and(|slot| {
                    slot.state == SlotState::Maintaining && slot.attempt_started.is_some()
                })
            {
                broken.push(Rule::R17.broken(format!("{effect}, and no attempt is recorded")));
            }
            let now_ms = world
                .parts
                .get(usize::from(lane))
                .map_or(0, |part| part.now_ms);
            if maintains && record.is_some_and(|slot| !is_due(&slot, Some(SPAN_MS), now_ms)) {
                broken.push(Rule::R17.broken(format!("{effect}, and it is not due")));
            }
        }
        _ => {}
    }
    broken
}

/// What is broken in a state, whatever it came from.
pub fn in_state(world: &World, after: &State) -> Vec<Broken> {
    let mut broken = Vec::new();
    if !world.is_about_slots() {
        return broken;
    }
    let files = &after.machine.files;
    for number in 1..=2 {
        let held: Vec<_> = holders(after, number).into_iter().collect();
        if let [one, other, ..] = &held[..] {
            broken.push(Rule::R14.broken(format!("{one} and {other} have slot {number}")));
        }
    }
    let mut maintainers = 0;
    for (lane, process) in (0u8..).zip(&after.processes) {
        let me = Owner::Process(lane);
        if let Some((number, _)) = &process.standing.has
            && !files.holds(me, &Dir::Slot(pool(), *number).at(Name::Occupancy))
        {
            broken.push(Rule::R14.broken(format!(
                "slot {number} is believed to be had, without its lock"
            )));
        }
        if process.standing.maintains {
            maintainers += 1;
            if !files.holds(me, &Dir::Pool(pool()).at(Name::MaintainLock)) {
                broken.push(Rule::R15.broken("somebody maintains the pool without its lock"));
            }
        }
    }
    if maintainers > 1 {
        broken.push(Rule::R15.broken("two maintain one pool"));
    }
    broken.extend(robbed(after, files).map(|how| Rule::R23.broken(how)));
    broken
}

/// Who has a slot: those who believe it, the sessions that are open in it, and what works in it. Each is known by its token.
fn holders(state: &State, number: u32) -> BTreeSet<Token> {
    let has = state
        .processes
        .iter()
        .filter_map(|process| process.standing.has.clone());
    let works = state
        .machine
        .trees()
        .iter()
        .filter_map(|tree| place_of(&tree.job));
    has.chain(open(state))
        .chain(works)
        .filter(|&(at, _)| at == number)
        .map(|(_, token)| token)
        .collect()
}

/// The sessions whose holders were told that they are open, and that nobody closes.
fn open(state: &State) -> impl Iterator<Item = (u32, Token)> + '_ {
    let closed = |token: &Token| {
        let mut all = state.processes.iter();
        all.any(|process| process.standing.closed.as_ref() == Some(token))
    };
    let opened = state
        .processes
        .iter()
        .filter_map(|process| process.standing.opened.clone());
    opened.filter(move |(_, token)| !closed(token))
}

/// How an open session has lost its slot, if one has (R23).
fn robbed(state: &State, files: &Filesystem) -> Option<String> {
    open(state).find_map(|(number, token)| {
        let file = Dir::Sessions.at(Name::Session(token.clone()));
        let session = files.data(&file).map(|data| data.session());
        if !matches!(session, Some(Read::Value(_))) {
            return Some(format!("session {token} is open, and nothing says so"));
        }
        let holder = record(files, number)
            .and_then(|slot| slot.claim)
            .map(|claim| claim.token);
        (holder.as_ref() != Some(&token))
            .then(|| format!("slot {number} is session {token}'s, and its record says {holder:?}"))
    })
}

/// What a loss of power has taken that was promised, or has made look as if it were clean.
pub fn lost(before: &State, after: &State) -> Vec<Broken> {
    let files = &after.machine.files;
    let mut broken: Vec<Broken> = robbed(after, files)
        .map(|how| Rule::R19.broken(how))
        .into_iter()
        .collect();
    for tree in before.machine.trees() {
        if let Some((number, _)) = place_of(&tree.job)
            && record(files, number).is_some_and(|slot| slot.returned)
        {
            broken.push(Rule::R19.broken(format!(
                "slot {number} was worked in, and reads as given back"
            )));
        }
    }
    broken
}

/// What is left of a session that is over, where nobody was kept from anything: nobody would see to it.
pub fn litter(files: &Filesystem) -> Option<Broken> {
    let names = files.list(&Dir::Sessions).unwrap_or_default();
    let tokens = names
        .iter()
        .filter_map(|name| Token::parse(name.to_text()?.strip_suffix(".json")?).ok());
    let is_void = |token: &Token| {
        let Some(Read::Value(session)) = files
            .data(&Dir::Sessions.at(Name::Session(token.clone())))
            .map(|data| data.session())
        else {
            return false;
        };
        let holder = record(files, session.slot).and_then(|slot| slot.claim);
        holder.is_none_or(|claim| claim.token != *token)
    };
    let mut void = tokens.filter(is_void);
    void.next()
        .map(|token| Rule::R23.broken(format!("session {token} is over, and its file stands")))
}

/// What is broken where nobody moves any more: the slots of the dead are not had by whoever comes then (R16), or what they
/// were doing is not recorded (R17).
pub fn heals(world: &World, state: &State) -> Vec<Broken> {
    if !world.is_about_slots() || !state.machine.trees().is_empty() {
        return Vec::new();
    }
    let mut machine = state.machine.clone();
    for lane in (0u8..).take(state.processes.len()) {
        machine.end_process(lane);
    }
    let before = machine.files.clone();
    let most = world.parts.iter().map(|part| part.slots).max().unwrap_or(2);
    let part = Part {
        slots: most,
        edit: world.edit,
        ..Part::new(Role::InSlots(Slots::Open), first_job(), "heal", HEALS_AT_MS)
    };
    let Ok(outcome) = play(
        &mut machine,
        &part,
        EFFECTS,
        Trees::End,
        Some(&world.coverage),
    ) else {
        return vec![Rule::R16.broken("finding a slot takes too long")];
    };
    let taken = (1..=most)
        .filter(|&number| is_taken(&before, number))
        .count();
    let mut broken = Vec::new();
    if taken < most as usize && outcome != Outcome::Opened {
        broken.push(Rule::R16.broken(format!(
            "{taken} of {most} slots are anybody's, and who comes then has {outcome:?}"
        )));
    }
    for number in 1..=most {
        let (was, is) = (record(&before, number), record(&machine.files, number));
        let (Some(was), Some(is)) = (was, is) else {
            continue;
        };
        if was.state == SlotState::Maintaining
            && was != is
            && is.last_outcome != Some(Came::Interrupted)
        {
            broken.push(Rule::R17.broken("an attempt that was cut off is not recorded"));
        }
    }
    broken
}

/// Whether a slot is somebody's who need not be alive, or cannot be read.
fn is_taken(files: &Filesystem, number: u32) -> bool {
    let place = Dir::Slot(pool(), number).at(Name::Slot);
    match files.data(&place).map(|data| data.slot(number)) {
        Some(Read::Value(slot)) => slot.state == SlotState::Broken || session_of(files, &slot),
        Some(Read::Damaged(_)) => true,
        Some(Read::Absent) | None => false,
    }
}

/// Whether the session that a slot is claimed by is open, and has not expired.
fn session_of(files: &Filesystem, slot: &Slot) -> bool {
    let Some(claim) = slot
        .claim
        .as_ref()
        .filter(|claim| claim.holder == Holder::Session)
    else {
        return false;
    };
    let place = Dir::Sessions.at(Name::Session(claim.token.clone()));
    match files.data(&place).map(|data| data.session()) {
        Some(Read::Value(session)) => !session.has_expired(HEALS_AT_MS),
        Some(Read::Damaged(_)) => true,
        Some(Read::Absent) | None => false,
    }
}

fn record(files: &Filesystem, number: u32) -> Option<Slot> {
    match files
        .data(&Dir::Slot(pool(), number).at(Name::Slot))?
        .slot(number)
    {
        Read::Value(slot) => Some(slot),
        Read::Absent | Read::Damaged(_) => None,
    }
}

/// What is broken by what a process came to that looks at a slot: what it said must have been true at some instant while it
/// looked (R16).
pub fn untrue(truths: u8, outcome: Outcome) -> Option<Broken> {
    let said = match outcome {
        Outcome::SawSlot(seen) => Some(seen),
        Outcome::Gone => None,
        _ => return None,
    };
    (truths & bit(said) == 0).then(|| {
        Rule::R16.broken(format!(
            "an onlooker says {said:?}, which was not true while it looked"
        ))
    })
}

/// The bit that stands for how a slot is, or for one that is not there.
pub fn bit(truth: Option<Seen>) -> u8 {
    match truth {
        None => 1 << 7,
        Some(Seen::Idle) => 1,
        Some(Seen::Left) => 1 << 1,
        Some(Seen::Session) => 1 << 2,
        Some(Seen::Claimed) => 1 << 3,
        Some(Seen::Held) => 1 << 4,
        Some(Seen::Broken) => 1 << 5,
    }
}

/// How the first slot is at this instant, as the shipped code concludes it from what is all of that instant.
pub fn truth(files: &Filesystem) -> Option<Seen> {
    let lock = Dir::Slot(pool(), 1).at(Name::Occupancy);
    if !files.has(&lock) {
        return None;
    }
    let held = files.lockers(&lock).next().is_some();
    let record = match record(files, 1) {
        Some(slot) => Read::Value(slot),
        None => Read::Absent,
    };
    let token = match &record {
        Read::Value(slot) => slot.claim.as_ref().map(|claim| claim.token.clone()),
        Read::Absent | Read::Damaged(_) => None,
    };
    let session = token
        .and_then(|token| files.data(&Dir::Sessions.at(Name::Session(token))))
        .map_or(Read::Absent, |data| data.session());
    match conclude(1, record, session, held) {
        LookSlot::Slot(view) => Some(Seen::from(&view.standing)),
        LookSlot::Gone | LookSlot::Damaged(_) => None,
    }
}
