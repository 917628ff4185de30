//! What a creation lends out while it waits for the disk, and what a spare does to it.

// Only a part of it is needed here.
#[allow(dead_code)]
#[path = "support/fake.rs"]
mod fake;

use fake::{Fake, Image};
use state_machine::disk::{Dir, Disk, Name, Place};
use state_machine::id::{JobId, Ticket};
use state_machine::protocol::create::{Durable, Made, create, create_while};
use state_machine::protocol::spare::{LaidIn, SPARES, lay_in};
use state_machine::record::Descriptor;

const DESCRIPTOR: &[u8] = br#"{"id":"1-x","kind":{"command":{"argv":["true"],"cwd":"/","env":{}}},"display_name":"x","created_at_ms":100}"#;

fn descriptor() -> Descriptor {
    Descriptor::decode(DESCRIPTOR).expect("it decodes")
}

fn ticket(word: &str) -> Ticket {
    Ticket::parse(word).expect("it is a ticket")
}

/// Make a job and say its id, and the ids that were lent out meanwhile.
fn make(disk: &mut Fake, word: &str) -> (JobId, Vec<JobId>) {
    let mut lent = Vec::new();
    let made = create_while(
        disk,
        &mut descriptor(),
        None,
        &ticket(word),
        Durable::Yes,
        &mut |job| {
            assert!(matches!(job.dir, Dir::Staged(_)));
            lent.push(job.descriptor.id.clone());
        },
    );
    match made {
        Ok(Made::Job(made)) => (made.id().clone(), lent),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_job_is_lent_out_once_and_its_id_may_be_taken() {
    let mut disk = Fake::on(Image::store());
    let (first, lent) = make(&mut disk, "a");
    assert_eq!(lent, std::slice::from_ref(&first));
    let (second, lent) = make(&mut disk, "b");
    assert_eq!(
        lent,
        std::slice::from_ref(&first),
        "it is lent out under its first id only"
    );
    assert_ne!(second, first);
}

#[test]
fn spares_are_laid_in_until_there_are_enough_and_each_serves_one_creation() {
    let mut disk = Fake::on(Image::store());
    for nth in 0..SPARES {
        assert_eq!(
            lay_in(&mut disk, &ticket(&format!("l{nth}"))),
            Ok(LaidIn::Yes)
        );
    }
    assert_eq!(lay_in(&mut disk, &ticket("more")), Ok(LaidIn::No));
    for left in (0..SPARES).rev() {
        let (id, _) = make(&mut disk, &format!("t{left}"));
        assert_eq!(disk.image().names(&Dir::Spares).len(), usize::from(left));
        // A second id is filled in over the first, and no trace of that is left.
        let bytes = disk.image().bytes(&Place::of_job(&id, Name::Descriptor));
        let read = Descriptor::decode(bytes.expect("it has one")).expect("it decodes");
        assert_eq!(read.id, id);
    }
    let (_, lent) = make(&mut disk, "without");
    assert_eq!(lent.len(), 1);
    assert!(disk.image().names(&Dir::Staging).is_empty());
}

#[test]
fn a_descriptor_that_does_not_fit_takes_the_spare_and_is_written_whole() {
    let mut disk = Fake::on(Image::store());
    assert_eq!(lay_in(&mut disk, &ticket("l")), Ok(LaidIn::Yes));
    let mut long = descriptor();
    long.project = Some("x".repeat(100_000).as_str().into());
    let made = create(&mut disk, &mut long, None, &ticket("a"), Durable::Yes);
    let Ok(Made::Job(made)) = made else {
        panic!("{made:?}");
    };
    assert!(disk.image().names(&Dir::Spares).is_empty());
    let read = disk.read_descriptor(&Dir::Job(made.id().clone()));
    assert_eq!(read, Ok(state_machine::disk::Read::Value(long)));
}
