//! Making many jobs at once: all of them or none where nobody dies, each of them whole wherever somebody does, and who comes
//! after whom when an id is taken.

// Only a part of it is needed here.
#[allow(dead_code)]
#[path = "support/fake.rs"]
mod fake;

use fake::{Fake, Fault, How, Image};
use state_machine::disk::{Dir, Disk, Name, Place, Read};
use state_machine::id::{JobId, Ticket, slug};
use state_machine::job::State;
use state_machine::protocol::batch::create_batch;
use state_machine::protocol::claim::{Claim, claim};
use state_machine::protocol::look::{Look, look};
use state_machine::protocol::recover::collect;
use state_machine::protocol::settle::{LetGo, let_go};
use state_machine::record::{After, AfterWhen, Descriptor};

const DESCRIPTOR: &[u8] = br#"{"id":"1-x","kind":{"command":{"argv":["true"],"cwd":"/","env":{}}},"display_name":"x","pool":"p","created_at_ms":100}"#;

/// What is to be made: a job for each name, with the places of those in the batch that it comes after.
fn batch(jobs: &[(&str, &[usize])]) -> Vec<Descriptor> {
    let mut batch: Vec<Descriptor> = Vec::new();
    for (order, (name, after)) in (0..).zip(jobs) {
        let after = after.iter().map(|&at| After {
            job: batch[at].id.clone(),
            when: AfterWhen::Success,
        });
        let mut descriptor = Descriptor::decode(DESCRIPTOR).expect("it decodes");
        descriptor.after = after.collect();
        descriptor.id = JobId::new(100, &slug(name), order + 1);
        descriptor.display_name = (*name).into();
        descriptor.order = order;
        batch.push(descriptor);
    }
    batch
}

fn three() -> Vec<Descriptor> {
    batch(&[("a", &[]), ("b", &[0]), ("c", &[0, 1])])
}

fn ticket(word: &str) -> Ticket {
    Ticket::parse(word).expect("it is a ticket")
}

fn jobs(disk: &Fake) -> Vec<JobId> {
    let names = disk.image().names(&Dir::Jobs).into_iter();
    names
        .map(|name| JobId::parse(&String::from_utf8(name).expect("it is text")).expect("an id"))
        .collect()
}

/// A job that stands where one of the batch would.
fn taken(disk: &mut Fake, id: &JobId) {
    assert!(disk.mkdir(&Dir::Job(id.clone())).is_ok());
    let mut other = Descriptor::decode(DESCRIPTOR).expect("it decodes");
    other.id = id.clone();
    let dir = Dir::Job(id.clone());
    disk.image_mut()
        .put(&dir.at(Name::Descriptor), &other.encode());
    disk.image_mut().put(&dir.at(Name::Lock), b"");
}

/// Every job that can be seen is whole, and comes after none that is not there (R8).
fn assert_whole(disk: &mut Fake) {
    for id in jobs(disk) {
        let Ok(Look::Job(view)) = look(disk, &id) else {
            panic!("{id} is not whole");
        };
        assert_eq!(view.descriptor.id, id);
        assert_eq!(view.state, State::Queued);
        for after in view.descriptor.after {
            assert!(jobs(disk).contains(&after.job), "{id} comes after nobody");
        }
    }
}

#[test]
fn all_of_them_are_there_and_held_until_they_are_let_go() {
    let mut disk = Fake::on(Image::store());
    let mut descriptors = three();
    let made = create_batch(&mut disk, &mut descriptors, &ticket("t"));
    let holders = made.expect("nothing fails").expect("nobody is in the way");
    assert_eq!(descriptors, three(), "their ids were free");
    assert_whole(&mut disk);
    for (descriptor, holder) in descriptors.iter().zip(holders) {
        assert!(matches!(claim(&mut disk, &descriptor.id), Ok(Claim::Owned)));
        assert!(matches!(
            let_go(&mut disk, holder, 100, 100),
            Ok(LetGo::Free)
        ));
        assert!(matches!(
            claim(&mut disk, &descriptor.id),
            Ok(Claim::Mine(_))
        ));
    }
    assert_eq!(disk.open_handles(), 0);
    assert!(disk.image().names(&Dir::Staging).is_empty());
    let none = create_batch(&mut disk, &mut [], &ticket("t"));
    assert!(matches!(none, Ok(Some(held)) if held.is_empty()));
}

#[test]
fn a_death_or_a_fault_anywhere_leaves_only_whole_jobs_and_what_is_collected() {
    let mut seen = [false; 4];
    for how in How::ALL {
        for k in 0.. {
            let mut disk = Fake::on(Image::store());
            // One of them has to take another id on the way.
            taken(&mut disk, &three()[1].id);
            disk.fail_at(k, how);
            let made = create_batch(&mut disk, &mut three(), &ticket("t"));
            if disk.is_armed() {
                break;
            }
            assert!(matches!(made, Err(Fault)), "a fault was swallowed");
            drop(made);
            assert_eq!(disk.open_handles(), 0);
            assert_whole(&mut disk);
            assert_eq!(
                collect(&mut disk, &ticket("c"), &mut |_| {}),
                Ok(Vec::new())
            );
            assert!(disk.image().names(&Dir::Staging).is_empty(), "R8: staging");
            assert!(disk.image().names(&Dir::Trash).is_empty(), "R8: trash");
            assert_whole(&mut disk);
            seen[jobs(&disk).len() - 1] = true;
        }
    }
    assert_eq!(seen, [true; 4], "some of them, none and all");
}

#[test]
fn whoever_comes_after_one_whose_id_is_taken_is_told_the_other_id() {
    let mut disk = Fake::on(Image::store());
    taken(&mut disk, &three()[0].id);
    let mut descriptors = three();
    let made = create_batch(&mut disk, &mut descriptors, &ticket("t"));
    assert!(matches!(made, Ok(Some(_))));
    let first = descriptors[0].id.clone();
    assert_ne!(first, three()[0].id);
    for descriptor in &descriptors {
        let read = disk.read_descriptor(&Dir::Job(descriptor.id.clone()));
        assert_eq!(read, Ok(Read::Value(descriptor.clone())));
    }
    let waited_for = |nth: usize| -> Vec<&JobId> {
        descriptors[nth]
            .after
            .iter()
            .map(|after| &after.job)
            .collect()
    };
    assert_eq!(waited_for(1), [&first]);
    assert_eq!(waited_for(2), [&first, &descriptors[1].id]);
}

#[test]
fn the_other_id_is_never_that_of_another_of_the_batch() {
    // The id that the last of them would get next is that of the first, which the middle one comes after.
    let mut disk = Fake::on(Image::store());
    let mut descriptors = batch(&[("x-1-3", &[]), ("y", &[0]), ("x", &[]), ("z", &[0, 2])]);
    let (first, third) = (descriptors[0].id.clone(), descriptors[2].id.clone());
    assert_eq!((first.as_str(), third.as_str()), ("100-x-1-3", "100-x-3"));
    taken(&mut disk, &third);
    let made = create_batch(&mut disk, &mut descriptors, &ticket("t"));
    assert!(matches!(made, Ok(Some(_))));
    assert_eq!(descriptors[0].id, first);
    assert_eq!(descriptors[1].after[0].job, first);
    assert_eq!(descriptors[3].after[0].job, first);
    assert_eq!(descriptors[3].after[1].job, descriptors[2].id);
    assert_ne!(descriptors[2].id, first);
    assert_whole(&mut disk);
}

#[test]
fn where_no_id_is_free_none_of_them_is_there() {
    let mut disk = Fake::on(Image::store());
    let mut descriptors = three();
    taken(&mut disk, &descriptors[1].id);
    for another in 1..=JobId::COLLISIONS {
        taken(&mut disk, &JobId::new(100, &format!("b-{another}"), 2));
    }
    let before = jobs(&disk);
    let made = create_batch(&mut disk, &mut descriptors, &ticket("t"));
    assert!(matches!(made, Ok(None)));
    assert_eq!(jobs(&disk), before);
    assert_eq!(disk.open_handles(), 0);
    for dir in [Dir::Staging, Dir::Trash] {
        assert!(disk.image().names(&dir).is_empty());
    }
}

#[test]
fn where_staging_has_no_room_none_of_them_is_there() {
    let mut disk = Fake::on(Image::store());
    // Whatever the second of them could be built as is there already.
    for nth in 0..8 {
        let staged = Dir::Staged(ticket("t").nth(1).nth(0).nth(nth));
        assert!(disk.mkdir(&staged).is_ok());
        disk.image_mut().put(&staged.at(Name::Lock), b"");
    }
    let made = create_batch(&mut disk, &mut three(), &ticket("t"));
    assert!(matches!(made, Ok(None)));
    assert!(jobs(&disk).is_empty());
    assert_eq!(disk.open_handles(), 0);
    assert_eq!(disk.image().names(&Dir::Staging).len(), 8);
}

#[test]
fn withdrawing_can_be_broken_off_anywhere() {
    for how in How::ALL {
        for k in 0.. {
            let mut disk = Fake::on(Image::store());
            let mut descriptors = three();
            taken(&mut disk, &descriptors[1].id);
            for another in 1..=JobId::COLLISIONS {
                taken(&mut disk, &JobId::new(100, &format!("b-{another}"), 2));
            }
            // Only what comes after the last id that was tried.
            disk.fail_at(200 + k, how);
            let made = create_batch(&mut disk, &mut descriptors, &ticket("t"));
            if disk.is_armed() {
                break;
            }
            assert!(matches!(made, Err(Fault)));
            drop(made);
            assert_whole(&mut disk);
            assert_eq!(
                collect(&mut disk, &ticket("c"), &mut |_| {}),
                Ok(Vec::new())
            );
            for dir in [Dir::Staging, Dir::Trash] {
                assert!(disk.image().names(&dir).is_empty());
            }
        }
    }
}

#[test]
fn a_descriptor_that_was_given_another_id_is_written_whole() {
    let mut disk = Fake::on(Image::store());
    taken(&mut disk, &three()[0].id);
    let mut descriptors = three();
    assert!(matches!(
        create_batch(&mut disk, &mut descriptors, &ticket("t")),
        Ok(Some(_))
    ));
    for descriptor in &descriptors {
        let place = Place::of_job(&descriptor.id, Name::Descriptor);
        let bytes = disk.image().bytes(&place).expect("it stands");
        assert_eq!(bytes, descriptor.encode());
    }
}
