//! A sweep of several jobs: what becomes of each, and that nothing of one is deleted before all removals are final (R8, R9).

// Only a part of it is needed here.
#[allow(dead_code)]
#[path = "support/fake.rs"]
mod fake;

use fake::{Fake, How, Image};
use state_machine::disk::{Dir, Name, Place};
use state_machine::id::{JobId, Ticket};
use state_machine::job::State;
use state_machine::protocol::forget::{Forgotten, Swept, sweep};
use state_machine::protocol::recover::collect;
use state_machine::record::Status;

const DESCRIPTOR: &[u8] = br#"{"id":"1-x","kind":{"command":{"argv":["true"],"cwd":"/","env":{}}},"display_name":"x","created_at_ms":100}"#;

fn id(text: &str) -> JobId {
    JobId::parse(text).expect("it is an id")
}

fn ticket(text: &str) -> Ticket {
    Ticket::parse(text).expect("it is a ticket")
}

/// A job that nobody holds, with its lock.
fn put(image: &mut Image, job: &JobId, state: State) {
    image.put_dir(&Place::Dir(Dir::Job(job.clone())));
    let mut status = Status::queued(200);
    status.state = state;
    image.put(&Place::of_job(job, Name::Descriptor), DESCRIPTOR);
    image.put(&Place::of_job(job, Name::Status), &status.encode());
    image.put(&Place::of_job(job, Name::Lock), b"");
}

/// Two that have ended, the second of which has a directory in it; one that waits; one whose descriptor is spoilt.
fn store() -> Fake {
    let mut image = Image::store();
    for (job, state) in [
        ("1-ended", State::Done),
        ("2-strange", State::Failed),
        ("3-waits", State::Queued),
        ("4-nameless", State::Done),
    ] {
        put(&mut image, &id(job), state);
    }
    let strange = Name::Other(b"kept".to_vec());
    image.put_dir(&Place::Dir(Dir::Outside(b"jobs/2-strange/kept".to_vec())));
    assert!(
        image
            .names(&Dir::Job(id("2-strange")))
            .contains(&strange.to_bytes())
    );
    image.overwrite(&Place::of_job(&id("4-nameless"), Name::Descriptor), b"{");
    Fake::on(image)
}

fn wanted() -> Vec<(JobId, Ticket)> {
    let jobs = ["1-ended", "2-strange", "3-waits", "4-nameless", "5-never"];
    let named = |(nth, job): (usize, &str)| (id(job), ticket(&format!("t{nth}")));
    jobs.into_iter().enumerate().map(named).collect()
}

#[test]
fn each_job_of_a_sweep_comes_to_what_it_would_alone() {
    let mut disk = store();
    let mut told = Vec::new();
    let swept = sweep(&mut disk, &wanted(), &mut |ticket| {
        told.push(ticket.clone())
    });
    let outcome = |forgotten, is_stubborn| Swept {
        forgotten,
        is_stubborn,
    };
    assert_eq!(
        swept.expect("nothing fails"),
        [
            outcome(Forgotten::Trashed(ticket("t0")), false),
            outcome(Forgotten::Trashed(ticket("t1")), true),
            outcome(Forgotten::NotEnded(State::Queued), false),
            outcome(Forgotten::Unknown, false),
            outcome(Forgotten::Gone, false),
        ]
    );
    assert_eq!(told, [ticket("t0"), ticket("t1")]);
    let left = disk.image().names(&Dir::Jobs);
    assert_eq!(left, [b"3-waits".to_vec(), b"4-nameless".to_vec()]);
    assert_eq!(disk.image().names(&Dir::Trash), [b"t1".to_vec()]);
    assert_eq!(disk.open_handles(), 0);
}

#[test]
fn a_sweep_that_dies_anywhere_leaves_jobs_that_are_whole_and_trash_that_is_collected() {
    for k in 0.. {
        let mut disk = store();
        disk.fail_at(k, How::After);
        let swept = sweep(&mut disk, &wanted()[..1], &mut |_| {});
        if swept.is_ok() {
            break;
        }
        let job = id("1-ended");
        if disk
            .image()
            .names(&Dir::Jobs)
            .contains(&b"1-ended".to_vec())
        {
            let descriptor = disk.image().bytes(&Place::of_job(&job, Name::Descriptor));
            assert_eq!(descriptor, Some(DESCRIPTOR), "died at {k}");
        }
        let stubborn = collect(&mut disk, &ticket("c")).expect("nothing fails any more");
        assert!(stubborn.is_empty(), "died at {k}");
        assert!(disk.image().names(&Dir::Trash).is_empty(), "died at {k}");
    }
}
