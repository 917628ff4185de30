//! How long those wait who find others in their way: before every further try a little longer (R5). The model knows only that
//! they wait, so the rounds are looked at here.

// Only a part of it is needed here.
#[allow(dead_code)]
#[path = "support/fake.rs"]
mod fake;

use fake::{Fake, Handle, Image};
use state_machine::control::Request;
use state_machine::disk::{Create, Dir, Disk, Mode, Name, Open, Place};
use state_machine::id::{JobId, Key, Ticket};
use state_machine::protocol::claim::{CLAIM_ROUNDS, Claim, Tree, claim, claim_tree};
use state_machine::protocol::create::{Durable, Made, create};
use state_machine::protocol::request::{Asked, request};
use state_machine::protocol::start::{Started, start_numbered};
use state_machine::record::Descriptor;

const DESCRIPTOR: &[u8] = br#"{"id":"1-x","kind":{"command":{"argv":["true"],"cwd":"/","env":{}}},"display_name":"x","created_at_ms":100}"#;

fn descriptor() -> Descriptor {
    Descriptor::decode(DESCRIPTOR).expect("it decodes")
}

fn ticket() -> Ticket {
    Ticket::parse("t").expect("it is a ticket")
}

/// A store with a job in it that nobody holds.
fn with_job() -> (Fake, JobId) {
    let mut disk = Fake::on(Image::store());
    let made = create(&mut disk, &mut descriptor(), None, &ticket(), Durable::No);
    let Ok(Made::Job(made)) = made else {
        panic!("{made:?}");
    };
    let (id, lock) = (made.id().clone(), made.into_lock());
    disk.close(lock).expect("nothing fails");
    (disk, id)
}

/// Somebody who has the lock at `place` all the time; the file is made where there is none.
fn in_the_way(disk: &mut Fake, place: &Place, mode: Mode) -> Handle {
    let handle = match disk.create(place) {
        Ok(Create::Created(handle)) => handle,
        _ => match disk.open(place, mode) {
            Ok(Open::Opened(handle)) => handle,
            other => panic!("{other:?}"),
        },
    };
    assert_eq!(disk.lock(&handle, mode), Ok(true));
    handle
}

fn rounds(end: u32) -> Vec<u32> {
    (0..end).collect()
}

#[test]
fn a_claimer_waits_longer_for_readers_each_time() {
    let (mut disk, id) = with_job();
    let lock = Place::of_job(&id, Name::Lock);
    let _reader = in_the_way(&mut disk, &lock, Mode::Shared);
    let claimed = claim(&mut disk, &id);
    assert!(matches!(claimed, Ok(Claim::Owned)), "{claimed:?}");
    assert_eq!(disk.waits(), rounds(CLAIM_ROUNDS));
}

#[test]
fn a_claimer_of_the_tree_waits_longer_for_readers_each_time() {
    let (mut disk, id) = with_job();
    let tree = Place::of_job(&id, Name::Tree);
    let _reader = in_the_way(&mut disk, &tree, Mode::Shared);
    let claimed = claim_tree(&mut disk, &id);
    assert!(matches!(claimed, Ok(Tree::Leftovers)), "{claimed:?}");
    assert_eq!(disk.waits(), rounds(CLAIM_ROUNDS));
}

#[test]
fn nobody_waits_for_an_owner() {
    let (mut disk, id) = with_job();
    let lock = Place::of_job(&id, Name::Lock);
    let _owner = in_the_way(&mut disk, &lock, Mode::Exclusive);
    let claimed = claim(&mut disk, &id);
    assert!(matches!(claimed, Ok(Claim::Owned)), "{claimed:?}");
    assert_eq!(disk.waits(), [0; 0]);
}

#[test]
fn a_starter_waits_longer_for_the_key_each_time() {
    let mut disk = Fake::on(Image::store());
    let key = Key::of_task(b"/p", "t");
    let place = Dir::Keys.at(Name::KeyLock(key.clone()));
    let _starter = in_the_way(&mut disk, &place, Mode::Exclusive);
    let started = start_numbered(
        &mut disk,
        &mut descriptor(),
        &key,
        "t",
        &ticket(),
        Durable::No,
    );
    assert!(matches!(started, Ok(Started::Busy)), "{started:?}");
    let waits = disk.waits();
    assert!(!waits.is_empty());
    assert_eq!(waits, rounds(waits.len() as u32));
}

#[test]
fn a_client_waits_longer_for_the_holder_each_time() {
    let (mut disk, id) = with_job();
    // No holder ever throws it away.
    let control = Place::of_job(&id, Name::Control);
    disk.image_mut().put(&control, b"no request");
    let asked = request(&mut disk, &id, Request::Pause, &ticket());
    assert_eq!(asked, Ok(Asked::Crowded));
    let waits = disk.waits();
    assert!(!waits.is_empty());
    assert_eq!(waits, rounds(waits.len() as u32));
    let left = disk.image().names(&Dir::Staging);
    assert!(left.is_empty(), "R8: {left:?}");
}
