//! The rules about files that are fetched (R12, R24), and what a loss of power must not take of them (R19).

use state_machine::disk::{Name, Place, Read};
use state_machine::pull::part::{Keep, Part as Record};

use super::{Broken, Rule};
use crate::alone::{Trees, play};
use crate::effect::Effect;
use crate::filesystem::{Data, Filesystem, Owner};
use crate::machine::Machine;
use crate::process::Process;
use crate::role::fetcher::{Wish, boot_name, final_place, keystone, site, tag};
use crate::role::{Outcome, Part, Role, first_job};
use crate::stage::Fetching;
use crate::world::{State, World};

/// How many effects one fresh process may need to fetch every file and put it into place.
const EFFECTS: u32 = 200;

/// A boot that is none: in it only what is synced counts.
const NO_BOOT: &str = "no boot";

/// What is broken by letting `effect` of `lane` happen to `before`.
pub fn by_effect(world: &World, before: &State, lane: u8, effect: &Effect) -> Vec<Broken> {
    let mut broken = Vec::new();
    let files = &before.machine.files;
    let has = |file: u8| files.holds(Owner::Process(lane), &site(file).part());
    match *effect {
        Effect::Pour(handle, file, at, version) => {
            if !has(file) {
                broken.push(Rule::R12.broken(format!("{effect}, by one who does not have it")));
            }
            if files.has(&site(file).whole()) {
                broken.push(Rule::R24.broken(format!("{effect}, and it is whole")));
            }
            let wish = wish_of(world);
            let boot = boot_name(before.machine.boot);
            let again = known(files, wish, file, &boot).is_some_and(|record| {
                record.etag == Some(tag(version)) && (at as u64) < record.done_bytes()
            });
            let told = before.processes.iter().any(|process| {
                let kept = process.standing.fetching.kept[usize::from(file)];
                kept.version == version && at < usize::from(kept.count)
            });
            let there = files.blocks_of(Owner::Process(lane), handle).get(at) == Some(&version);
            if again || told && there {
                broken.push(Rule::R24.broken(format!("{effect}, and it is there")));
            }
        }
        Effect::Shorten(..) if !(0..wish_of(world).files).any(has) => {
            broken.push(Rule::R12.broken(format!("{effect}, by one who does not have it")));
        }
        _ => {}
    }
    broken
}

/// What is broken in a state, whatever it came from.
pub fn in_state(world: &World, state: &State) -> Vec<Broken> {
    if !world.is_about_pulls() {
        return Vec::new();
    }
    let files = &state.machine.files;
    let wish = wish_of(world);
    let boot = boot_name(state.machine.boot);
    let mut broken = Vec::new();
    for file in 0..wish.files {
        for place in [site(file).whole(), final_place(file)] {
            if let Some(data) = files.data(&place)
                && !data.blocks().is_some_and(|blocks| wish.is_right(blocks))
            {
                let (place, data) = (crate::effect::path(&place), &**data);
                broken.push(Rule::R24.broken(format!("{place} is {data}")));
            }
        }
        broken.extend(ahead(files, wish, file, &boot).map(|how| Rule::R24.broken(how)));
    }
    if let Some(data) = files.data(&keystone().to) {
        if **data != Data::Raw(keystone().bytes) {
            broken.push(Rule::R24.broken(format!("what makes the files known is {}", **data)));
        }
        let missing = (0..wish.files).find(|&file| !files.has(&final_place(file)));
        broken.extend(
            missing.map(|file| Rule::R24.broken(format!("file {file} is known, and not there"))),
        );
    }
    broken
}

/// How the record of a file tells of bytes that are not there, if it does.
fn ahead(files: &Filesystem, wish: Wish, file: u8, boot: &str) -> Option<String> {
    let record = known(files, wish, file, boot)?;
    let blocks = files.data(&site(file).part())?.blocks()?;
    let told = record.etag.as_ref()?;
    let done = usize::try_from(record.done_bytes()).ok()?;
    let is_there = |block: &u8| tag(*block) == *told;
    let all = blocks
        .get(..done)
        .is_some_and(|told| told.iter().all(is_there));
    (!all).then(|| {
        format!("of file {file} {done} blocks of {told} are recorded, and it is {blocks:?}")
    })
}

/// What is recorded of an unfinished file, as whoever comes in this boot takes it.
fn known(files: &Filesystem, wish: Wish, file: u8, boot: &str) -> Option<Record> {
    let length = files.data(&site(file).part())?.blocks()?.len() as u64;
    let read = |place: &Place| match files.data(place) {
        Some(data) => data.part(),
        None => Read::Absent,
    };
    let (last, synced) = (site(file).record(), site(file).synced_record());
    match Record::judge_both(read(&last), read(&synced), length, &wish.wanted(boot)) {
        Keep::Some(record) => Some(record),
        Keep::Nothing { .. } => None,
    }
}

fn wish_of(world: &World) -> Wish {
    world
        .parts
        .first()
        .map_or_else(Wish::default, |part| part.wish)
}

/// What is broken by what the process of `lane` came to. `smooth`: nothing ever failed or was denied.
pub fn by_outcome(world: &World, after: &State, lane: u8, smooth: bool) -> Vec<Broken> {
    let outcome = after.processes[usize::from(lane)].outcome();
    let wish = wish_of(world);
    let why = match outcome {
        Some(Outcome::Refused) if !(wish.digest && after.machine.web.version > 1) => {
            "what the server has is refused"
        }
        Some(Outcome::LeftToFetcher) if world.parts.len() == 1 => "nobody else fetches it",
        Some(Outcome::Cut) if world.web.cuts_left == 0 => "nothing keeps it from being fetched",
        Some(Outcome::TakenAway) if !has_discarder(world) => "a whole file is gone",
        Some(Outcome::Discarded)
            if world.parts[usize::from(lane)].after_others
                && unfinished(&after.machine.files).next().is_some() =>
        {
            "something is left of what was discarded"
        }
        _ => return Vec::new(),
    };
    match smooth {
        true => vec![Rule::R18.broken(why)],
        false => Vec::new(),
    }
}

fn has_discarder(world: &World) -> bool {
    world.parts.iter().any(|part| part.role == Role::Discarder)
}

/// What a loss of power has taken that was promised.
pub fn lost(world: &World, before: &State, after: &State) -> Vec<Broken> {
    if !world.is_about_pulls() {
        return Vec::new();
    }
    let (was, is) = (&before.machine.files, &after.machine.files);
    let wish = wish_of(world);
    let mut broken = in_state(world, after);
    for file in 0..wish.files {
        let stands = is.has(&site(file).whole()) || is.has(&final_place(file));
        for fetching in promised(world, before) {
            let whole = fetching.whole[usize::from(file)] && was.has(&site(file).whole());
            if whole && !stands {
                broken.push(Rule::R19.broken(format!("file {file} was whole, and is gone")));
            }
            let synced = fetching.synced[usize::from(file)];
            let holds = |files| {
                known(files, wish, file, NO_BOOT).is_some_and(|record| {
                    let enough = record.done_bytes() >= u64::from(synced.count);
                    record.etag == Some(tag(synced.version)) && enough
                })
            };
            if synced.count > 0 && holds(was) && !stands && !holds(is) {
                broken.push(Rule::R19.broken(format!(
                    "{} blocks of file {file} were recorded as synced, and are not",
                    synced.count
                )));
            }
            if fetching.registered && !(is.has(&final_place(file)) && is.has(&keystone().to)) {
                broken.push(Rule::R19.broken(format!("file {file} was in place, and is not")));
            }
        }
    }
    broken
}

/// What was promised since somebody began to discard, if anybody did.
fn promised<'a>(world: &World, state: &'a State) -> impl Iterator<Item = &'a Fetching> {
    let both = world.parts.iter().zip(&state.processes);
    let has_discarded =
        |(part, process): (&Part, &Process)| part.role == Role::Discarder && process.has_begun();
    let last = both
        .collect::<Vec<_>>()
        .into_iter()
        .rposition(has_discarded);
    let since = state.processes.iter().skip(last.unwrap_or(0));
    since.map(|process| &process.standing.fetching)
}

/// What one fresh process cannot bring to its end, after everyone else has died: it fetches what is missing, puts everything
/// into place, and leaves nothing behind. What is whole it does not ask for.
pub fn heals(world: &World, state: &State) -> Vec<Broken> {
    if !world.is_about_pulls() {
        return Vec::new();
    }
    let mut machine = state.machine.clone();
    for lane in (0u8..).take(state.processes.len()) {
        machine.end_process(lane);
    }
    let wish = wish_of(world);
    let is_here = |file: u8| {
        let there = machine.files.data(&final_place(file));
        let there = there.and_then(|data| data.blocks());
        let is_placed = wish.digest && there.is_some_and(|blocks| wish.is_right(blocks));
        is_placed || machine.files.has(&site(file).whole())
    };
    let all_here = (0..wish.files).all(is_here);
    machine.web.is_silent = all_here;
    machine.web.cuts_left = 0;
    let part = Part {
        edit: world.edit,
        wish,
        syncs: true,
        ..Part::new(Role::Fetcher, first_job(), "heal", 100)
    };
    let discarder = Part {
        role: Role::Discarder,
        ..part.clone()
    };
    let discards = |machine: &mut Machine| {
        let discarded = play(
            machine,
            &discarder,
            EFFECTS,
            Trees::End,
            Some(&world.coverage),
        );
        discarded == Ok(Outcome::Discarded) && unfinished(&machine.files).next().is_none()
    };
    if !discards(&mut machine.clone()) {
        return vec![Rule::R22.broken("something is left of what was discarded")];
    }
    let Ok(outcome) = play(
        &mut machine,
        &part,
        EFFECTS,
        Trees::End,
        Some(&world.coverage),
    ) else {
        return vec![Rule::R22.broken("fetching takes too long")];
    };
    let may_refuse = wish.digest && machine.web.version > 1 && !all_here;
    let mut broken = Vec::new();
    match outcome {
        Outcome::Registered => {}
        Outcome::Refused if may_refuse => {}
        other if all_here => broken.push(Rule::R24.broken(format!(
            "everything is here, and whoever registers it has {other:?}"
        ))),
        other => broken.push(Rule::R22.broken(format!("whoever fetches it now has {other:?}"))),
    }
    broken.extend(litter(&machine.files, wish, outcome).map(|how| Rule::R22.broken(how)));
    let mut healed = state.clone();
    healed.machine = machine;
    broken.extend(in_state(world, &healed));
    if !discards(&mut healed.machine) {
        broken.push(Rule::R22.broken("something is left of what was discarded then"));
    }
    broken
}

/// What lies where unfinished files are, by name.
fn unfinished(files: &Filesystem) -> impl Iterator<Item = Name> {
    let names = files.list(&site(0).staging).unwrap_or_default();
    // The next version of what makes the files known is written anew by whoever registers next.
    names
        .into_iter()
        .filter(|name| site(0).staging.at(name.clone()) != keystone().new)
}

/// What is left that should not be, after one has fetched everything: anything but a part in which nothing is, which somebody
/// else has made for a file that was in place by then, and known by its digest. One that was refused is gone, and others are
/// whole.
fn litter(files: &Filesystem, wish: Wish, outcome: Outcome) -> Option<String> {
    let is_litter = |name: &Name| {
        let bytes = name.to_bytes();
        let is_whole = outcome != Outcome::Registered && bytes.ends_with(b".whole");
        let data = files.data(&site(0).staging.at(name.clone()));
        let is_empty = bytes.ends_with(b".part") && data.is_some_and(|data| **data == Data::Empty);
        !(is_whole || is_empty && wish.digest)
    };
    let litter = unfinished(files).find(is_litter)?;
    Some(format!(
        "{} is left",
        String::from_utf8_lossy(&litter.to_bytes())
    ))
}
