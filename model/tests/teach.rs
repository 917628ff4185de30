//! How the model works, by hand: one protocol, one effect after the other. Read this first.

use outlive_model::effect::{Effect, Reply};
use outlive_model::filesystem::Owner;
use outlive_model::machine::{Machine, Nature};
use outlive_model::past::Past;
use outlive_model::replay::{Asking, Remembering, Stop};
use outlive_model::role::first_job;
use outlive_model::scene::Scene;
use state_machine::disk::{Mode, Name, Open, Place};
use state_machine::protocol::claim::{Claim, claim};

/// Call the shipped protocol from its beginning with these replies, and say what it wants next.
fn next_effect(past: &Past) -> Result<Claim<u8>, Box<Effect>> {
    let mut disk = Asking {
        host: Remembering::new(past, None),
        syncs: true,
    };
    claim(&mut disk, &first_job()).map_err(|stop| match stop {
        Stop::Wants(wanted) => Box::new(wanted.effect),
        Stop::Failed => panic!("nothing fails here"),
    })
}

fn wanted(past: &Past) -> Effect {
    *next_effect(past).expect_err("it has not come to its end")
}

#[test]
fn a_claim_is_what_it_asks_for_and_what_it_is_told() {
    let lock = Place::of_job(&first_job(), Name::Lock);

    // A process that has been told nothing wants its first effect.
    let past = Past::default();
    assert_eq!(wanted(&past), Effect::Open(lock.clone(), Mode::Exclusive));

    // Told that the file is open as 0, it asks for the lock; told so, whether the file still stands there.
    let past = past.and(Reply::Opened(Open::Opened(0)));
    assert_eq!(wanted(&past), Effect::Lock(0, Mode::Exclusive));
    let past = past.and(Reply::Is(true));
    assert_eq!(wanted(&past), Effect::Stands(0, lock));

    // With that it has come to its end.
    assert_eq!(next_effect(&past.and(Reply::Is(true))), Ok(Claim::Mine(0)));
}

#[test]
fn the_replies_come_from_a_modelled_machine() {
    let mut machine: Machine = Scene::Queued.machine(Nature::default(), false);
    let mut past = Past::default();
    let mut said = Vec::new();
    let claimed = loop {
        match next_effect(&past) {
            Ok(claimed) => break claimed,
            Err(effect) => {
                let reply = machine.apply(0, &effect);
                said.push(format!("{effect} -> {reply}"));
                past = past.and(reply);
            }
        }
    };
    assert_eq!(claimed, Claim::Mine(0));
    assert_eq!(
        said,
        [
            "open jobs/1-j/lock -> 0",
            "lock 0 exclusive -> yes",
            "stands 0 jobs/1-j/lock -> yes",
        ]
    );
    // The lock is there as long as the process is.
    let lock = Place::of_job(&first_job(), Name::Lock);
    assert!(machine.files.holds(Owner::Process(0), &lock));
    machine.end_process(0);
    assert!(!machine.files.holds(Owner::Process(0), &lock));
}

#[test]
fn two_pasts_with_the_same_replies_are_the_same() {
    let replies = || [Reply::Is(true), Reply::Done];
    let one: Past = replies().into_iter().collect();
    let other: Past = replies().into_iter().collect();
    assert_eq!(one, other);
    assert_ne!(one, other.and(Reply::Done));
    assert_eq!(one.replies(), [&Reply::Is(true), &Reply::Done]);
}
