//! A sweep of several jobs: what becomes of each, and that nothing of one is deleted before all removals are final (R8, R9).

// Only a part of it is needed here.
#[allow(dead_code)]
#[path = "support/fake.rs"]
mod fake;

use fake::{Fake, Fault, How, Image};
use state_machine::disk::{Dir, Name, Place};
use state_machine::id::{JobId, Ticket};
use state_machine::job::State;
use state_machine::protocol::forget::{Forgotten, Sweeping, Swept, sweep};
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

/// What a sweep has told of.
#[derive(Default)]
struct Told {
    /// Whether a fault is the end of who sweeps.
    dies: bool,
    trashed: Vec<Ticket>,
    failed: Vec<JobId>,
}

impl Sweeping<Fault> for Told {
    fn before(&mut self, trashed: &Ticket) {
        self.trashed.push(trashed.clone());
    }

    fn failed(&mut self, id: &JobId, fault: Fault) -> Result<(), Fault> {
        if self.dies {
            return Err(fault);
        }
        self.failed.push(id.clone());
        Ok(())
    }
}

#[test]
fn each_job_of_a_sweep_comes_to_what_it_would_alone() {
    let mut disk = store();
    let mut told = Told::default();
    let swept = sweep(&mut disk, &wanted(), &mut told);
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
    assert_eq!(told.trashed, [ticket("t0"), ticket("t1")]);
    assert!(told.failed.is_empty());
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
        let mut told = Told {
            dies: true,
            ..Told::default()
        };
        let swept = sweep(&mut disk, &wanted()[..1], &mut told);
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
        let trash = disk.image().names(&Dir::Trash);
        let mut before = Vec::new();
        let stubborn = collect(&mut disk, &ticket("c"), &mut |trashed| {
            before.push(trashed.as_str().as_bytes().to_vec());
        })
        .expect("nothing fails any more");
        assert!(stubborn.is_empty(), "died at {k}");
        assert_eq!(before, trash, "died at {k}");
        assert!(disk.image().names(&Dir::Trash).is_empty(), "died at {k}");
    }
}

#[test]
fn what_the_disk_does_not_let_be_done_with_one_job_keeps_nothing_of_the_others() {
    // The job that ended, with another of its kind after it.
    let jobs = [(id("1-ended"), ticket("t0")), (id("6-too"), ticket("t1"))];
    for k in 0.. {
        let mut disk = store();
        put(disk.image_mut(), &id("6-too"), State::Done);
        disk.fail_at(k, How::Before);
        let mut told = Told::default();
        let swept = sweep(&mut disk, &jobs, &mut told);
        if disk.is_armed() {
            break;
        }
        let Ok(swept) = swept else {
            // Only that it is made final is for all of them at once, and then nothing is deleted.
            assert!(told.trashed.is_empty() && told.failed.is_empty());
            continue;
        };
        assert_eq!(told.failed.len(), 1, "failed at {k}");
        for ((job, _), one) in jobs.iter().zip(&swept) {
            let name = job.as_str().as_bytes().to_vec();
            let stands = disk.image().names(&Dir::Jobs).contains(&name);
            match one.forgotten {
                Forgotten::Failed => assert_eq!(told.failed[0], *job),
                Forgotten::Trashed(_) => assert!(!stands, "failed at {k}"),
                ref other => panic!("{job} came to {other:?}, failed at {k}"),
            }
        }
    }
}
