//! File systems that are wrong in one thing each, the kind of thing that a model is easily wrong in. The comparison must
//! find each of them soon, or it compares nothing.

use std::time::Duration;

use outlive_model::effect::{Effect, Reply};
use outlive_model::filesystem::{Filesystem, Owner};
use outlive_tests::Dice;
use state_machine::disk::{Change, Fill, Mode};

use crate::compare::{Met, random, shrink};
use crate::sides::{Apply, Real};

/// Within so many scripts a lie must be found.
const SOON: u64 = 5_000;

fn rename_new_replaces(files: &mut Filesystem, owner: Owner, effect: &Effect) -> Reply {
    match effect {
        Effect::RenameNew(from, to) => {
            files.apply(owner, &Effect::Rename(from.clone(), to.clone()))
        }
        other => files.apply(owner, other),
    }
}

/// F34.
fn a_rename_to_a_second_name_takes_the_first(
    files: &mut Filesystem,
    owner: Owner,
    effect: &Effect,
) -> Reply {
    let reply = files.apply(owner, effect);
    if let (Effect::Rename(from, to), Reply::Changed(Change::Done)) = (effect, &reply)
        && from != to
        && files.has(from)
    {
        files.apply(owner, &Effect::Unlink(from.clone()));
    }
    reply
}

fn a_removed_name_stays(files: &mut Filesystem, owner: Owner, effect: &Effect) -> Reply {
    match effect {
        Effect::Unlink(place) if files.has(place) => {
            let mut forgotten = files.clone();
            forgotten.apply(owner, effect)
        }
        other => files.apply(owner, other),
    }
}

/// A file is made in the place of the other, as if written to the side and renamed: who has it open keeps the old one.
fn a_write_makes_a_new_file(files: &mut Filesystem, owner: Owner, effect: &Effect) -> Reply {
    if let Effect::Write(place, _) = effect
        && files.has(place)
    {
        files.apply(owner, &Effect::Unlink(place.clone()));
    }
    files.apply(owner, effect)
}

fn a_shared_lock_is_always_granted(files: &mut Filesystem, owner: Owner, effect: &Effect) -> Reply {
    match (effect, files.apply(owner, effect)) {
        (Effect::Lock(_, Mode::Shared), Reply::Is(false)) => Reply::Is(true),
        (_, reply) => reply,
    }
}

/// F17.
fn a_file_stands_where_any_does(files: &mut Filesystem, owner: Owner, effect: &Effect) -> Reply {
    match effect {
        Effect::Stands(_, place) => Reply::Is(files.has(place)),
        other => files.apply(owner, other),
    }
}

/// As traditional locks do, and these do not (F1, F14).
fn a_process_never_excludes_itself(files: &mut Filesystem, owner: Owner, effect: &Effect) -> Reply {
    let reply = files.apply(owner, effect);
    let only_itself = files.in_the_way_of(owner).all(|who| who == owner);
    match (effect, reply) {
        (Effect::Lock(_, Mode::Exclusive), Reply::Is(false)) => Reply::Is(only_itself),
        (_, reply) => reply,
    }
}

fn a_torn_line_is_always_mended(files: &mut Filesystem, owner: Owner, effect: &Effect) -> Reply {
    match effect {
        Effect::Append(dir, lines, _) => {
            files.apply(owner, &Effect::Append(dir.clone(), lines.clone(), true))
        }
        other => files.apply(owner, other),
    }
}

fn a_full_directory_can_be_removed(files: &mut Filesystem, owner: Owner, effect: &Effect) -> Reply {
    match (effect, files.apply(owner, effect)) {
        (Effect::Rmdir(_), Reply::Changed(Change::NotEmpty)) => Reply::Changed(Change::Done),
        (_, reply) => reply,
    }
}

/// As if it were a write: what is shorter than the record makes room for it.
fn a_fill_finds_room(files: &mut Filesystem, owner: Owner, effect: &Effect) -> Reply {
    match (effect, files.apply(owner, effect)) {
        (Effect::Fill(place, data), Reply::Filled(Fill::NoRoom)) => {
            files.apply(owner, &Effect::Write(place.clone(), data.clone()));
            Reply::Filled(Fill::Done)
        }
        (_, reply) => reply,
    }
}

/// The room is gone once something is in it.
fn a_fill_takes_the_room_away(files: &mut Filesystem, owner: Owner, effect: &Effect) -> Reply {
    let reply = files.apply(owner, effect);
    if let (Effect::Fill(place, data), Reply::Filled(Fill::Done)) = (effect, &reply) {
        files.apply(owner, &Effect::Write(place.clone(), data.clone()));
    }
    reply
}

/// Who has the file open keeps the old one.
fn a_fill_makes_a_new_file(files: &mut Filesystem, owner: Owner, effect: &Effect) -> Reply {
    if let Effect::Fill(place, data) = effect
        && let Some(there) = files.data(place)
        && data.length() <= there.length()
    {
        let there = (**there).clone();
        files.apply(owner, &Effect::Unlink(place.clone()));
        files.apply(owner, &Effect::Write(place.clone(), there));
    }
    files.apply(owner, effect)
}

/// As if a shell only added to the file.
fn a_hand_empties_nothing(files: &mut Filesystem, owner: Owner, effect: &Effect) -> Reply {
    match effect {
        Effect::HandOpen(place) if files.data(place).is_some() => {
            files.apply(owner, &Effect::Open(place.clone(), Mode::Exclusive))
        }
        other => files.apply(owner, other),
    }
}

const LIES: &[(&str, Apply)] = &[
    ("rename_new replaces", rename_new_replaces),
    (
        "a rename to a second name takes the first",
        a_rename_to_a_second_name_takes_the_first,
    ),
    ("a removed name stays", a_removed_name_stays),
    ("a write makes a new file", a_write_makes_a_new_file),
    (
        "a shared lock is always granted",
        a_shared_lock_is_always_granted,
    ),
    ("a file stands where any does", a_file_stands_where_any_does),
    (
        "a process never excludes itself",
        a_process_never_excludes_itself,
    ),
    ("a torn line is always mended", a_torn_line_is_always_mended),
    (
        "a full directory can be removed",
        a_full_directory_can_be_removed,
    ),
    ("a fill finds room", a_fill_finds_room),
    ("a fill takes the room away", a_fill_takes_the_room_away),
    ("a fill makes a new file", a_fill_makes_a_new_file),
    ("a hand empties nothing", a_hand_empties_nothing),
];

#[test]
fn a_model_that_is_wrong_is_found_out() {
    let scratch = tempfile::tempdir().expect("a scratch directory can be made");
    let mut real = Real::new(scratch.path());
    // Here a lock that should be free may well be a lie.
    real.patience = Duration::from_millis(5);
    let dice = Dice::new();
    for (name, apply) in LIES {
        let mut met = Met::default();
        let found = (0..SOON).find_map(|nth| {
            let made = random(&mut real, *apply, dice.nth(nth), false, &mut met);
            made.err().map(|course| (nth, course))
        });
        let Some((nth, course)) = found else {
            panic!("{name}: not found in {SOON} scripts");
        };
        let differ = shrink(&mut real, *apply, course);
        println!("{name}: found in script {nth}\n{}\n", differ.told);
        assert!(differ.steps.len() <= 12, "{name} is shown in few steps");
    }
}
