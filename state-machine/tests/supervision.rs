//! Being the supervisor of a store and ceasing to be it, and ending a job that can never start: with a death or a fault
//! at every effect.

// Only a part of it is needed here.
#[allow(dead_code)]
#[path = "support/fake.rs"]
mod fake;

use fake::{Fake, Fault, Handle, How, Image};
use state_machine::disk::{Dir, Disk, Mode, Name, Open, Place};
use state_machine::id::JobId;
use state_machine::job::State;
use state_machine::protocol::look::{Look, View, look};
use state_machine::protocol::recover::{Recovered, recover_job};
use state_machine::protocol::supervise::{
    Retired, Supervision, Unmet, claim_supervision, fail_unmet, is_asked, is_supervised, retire,
    supervisor_lock,
};
use state_machine::record::{Failure, History, Line, Status};

const POOLED: &str = r#"{"id":"1-x","kind":{"command":{"argv":["true"],"cwd":"/","env":{}}},"display_name":"x","pool":"p","created_at_ms":100}"#;

fn id() -> JobId {
    JobId::parse("1-x").expect("it is an id")
}

fn file(name: Name) -> Place {
    Place::of_job(&id(), name)
}

/// A store with one job, whose status says this state.
fn store(job: &str, state: State) -> Fake {
    let mut disk = Fake::on(Image::store());
    assert!(disk.mkdir(&Dir::Job(id())).is_ok());
    let image = disk.image_mut();
    image.put(&file(Name::Descriptor), job.as_bytes());
    image.put(&file(Name::Lock), b"");
    if state != State::Queued {
        let mut status = Status::queued(200);
        status.state = state;
        status.steps = 2;
        status.attempt = 1;
        status.ended_at_ms = state.is_terminal().then_some(200);
        image.put(&file(Name::Status), &status.encode());
        let lines = [State::Queued, state].map(|state| Line::state(200, state).encode());
        image.put(&file(Name::Events), &lines.concat());
    }
    disk
}

/// Somebody has this file locked.
fn locked(disk: &mut Fake, place: &Place, mode: Mode) -> Handle {
    let Ok(Open::Opened(lock)) = disk.open(place, mode) else {
        panic!("it stands");
    };
    assert_eq!(disk.lock(&lock, mode), Ok(true));
    lock
}

fn supervise(disk: &mut Fake) -> Handle {
    match claim_supervision(disk) {
        Ok(Supervision::Ours(lock)) => lock,
        other => panic!("nobody is it: {other:?}"),
    }
}

fn view(disk: &mut Fake) -> View {
    match look(disk, &id()) {
        Ok(Look::Job(view)) => *view,
        other => panic!("it can be read: {other:?}"),
    }
}

fn states(disk: &Fake) -> Vec<State> {
    let bytes = disk.image().bytes(&file(Name::Events));
    History::decode(bytes.unwrap_or_default())
        .states()
        .collect()
}

#[test]
fn there_is_one_supervisor_and_its_lock_falls_with_it() {
    let mut disk = Fake::on(Image::store());
    assert_eq!(is_supervised(&mut disk), Ok(false));
    let lock = supervise(&mut disk);
    assert_eq!(is_supervised(&mut disk), Ok(true));
    assert!(matches!(
        claim_supervision(&mut disk),
        Ok(Supervision::Taken)
    ));
    assert_eq!(disk.open_handles(), 1);
    drop(lock);
    assert_eq!(is_supervised(&mut disk), Ok(false));
    drop(supervise(&mut disk));
    assert!(disk.image().bytes(&supervisor_lock()).is_some(), "F18");
}

#[test]
fn whoever_only_asks_is_never_taken_for_a_supervisor() {
    let mut disk = Fake::on(Image::store());
    drop(supervise(&mut disk));
    let asking = locked(&mut disk, &supervisor_lock(), Mode::Shared);
    assert_eq!(is_supervised(&mut disk), Ok(false));
    // One that stays for ever is not one that only asks.
    assert!(matches!(
        claim_supervision(&mut disk),
        Ok(Supervision::Taken)
    ));
    drop(asking);
    assert_eq!(disk.open_handles(), 0);
}

#[test]
fn whatever_a_claim_dies_in_the_next_one_is_the_supervisor() {
    for how in How::ALL {
        for k in 0.. {
            let mut disk = Fake::on(Image::store());
            disk.fail_at(k, how);
            let claimed = claim_supervision(&mut disk);
            if disk.is_armed() {
                break;
            }
            assert!(matches!(claimed, Err(Fault)));
            drop(claimed);
            assert_eq!(disk.open_handles(), 0);
            drop(supervise(&mut disk));
        }
    }
}

/// Whether a supervisor that leaves such a store is it again.
fn stays(disk: &mut Fake) -> bool {
    let lock = supervise(disk);
    match retire(disk, lock) {
        Ok(Retired::Free) => false,
        Ok(Retired::Again(lock)) => {
            assert_eq!(is_supervised(disk), Ok(true));
            drop(lock);
            true
        }
        Err(Fault) => panic!("nothing fails"),
    }
}

#[test]
fn a_supervisor_leaves_only_what_needs_none() {
    let resuming = POOLED.replace(
        "\"pool\":\"p\"",
        "\"pool\":\"p\",\"on_interrupt\":\"resume\"",
    );
    let alone = POOLED.replace("\"pool\":\"p\",", "");
    assert!(!stays(&mut Fake::on(Image::store())));
    let cases = [
        (POOLED, State::Queued, true),
        (POOLED, State::Running, true),
        (POOLED, State::Paused, false),
        (POOLED, State::Interrupted, false),
        (&resuming, State::Interrupted, true),
        (POOLED, State::Done, false),
        (POOLED, State::Failed, false),
        (&alone, State::Queued, false),
        (&alone, State::Running, true),
        (&alone, State::Interrupted, false),
    ];
    for (job, state, stays_on) in cases {
        assert_eq!(stays(&mut store(job, state)), stays_on, "{job} {state}");
    }
    // Somebody works on it: it is waited for where its slot is needed, or where it is to be resumed.
    for (job, stays_on) in [(POOLED, true), (&resuming, true), (&alone, false)] {
        let mut disk = store(job, State::Running);
        let worker = locked(&mut disk, &file(Name::Lock), Mode::Exclusive);
        assert_eq!(stays(&mut disk), stays_on, "{job}");
        drop(worker);
    }
}

#[test]
fn what_was_asked_of_a_job_that_rests_is_not_left_lying() {
    for (name, word, stays_on) in [
        (Name::Control, "resume", true),
        (Name::Control, "cancel", true),
        (Name::Control, "nonsense", true),
        (Name::Control, "", false),
        (Name::Taken, "resume", true),
        (Name::Taken, "", false),
    ] {
        let mut disk = store(POOLED, State::Paused);
        disk.image_mut().put(&file(name.clone()), word.as_bytes());
        assert_eq!(is_asked(&mut disk, &id()), Ok(stays_on), "{name:?} {word}");
        assert_eq!(stays(&mut disk), stays_on, "{name:?} {word}");
    }
}

#[test]
fn a_job_that_cannot_be_read_keeps_nobody() {
    for name in [Name::Descriptor, Name::Status] {
        let mut disk = store(POOLED, State::Running);
        disk.image_mut().put(&file(name), b"{");
        assert!(!stays(&mut disk));
    }
}

#[test]
fn whatever_a_retiring_supervisor_dies_in_the_next_one_finds_the_job() {
    for how in How::ALL {
        for k in 0.. {
            let mut disk = store(POOLED, State::Queued);
            let lock = supervise(&mut disk);
            disk.fail_at(k, how);
            let retired = retire(&mut disk, lock);
            if disk.is_armed() {
                break;
            }
            assert!(matches!(retired, Err(Fault)));
            drop(retired);
            assert_eq!(disk.open_handles(), 0);
            assert!(stays(&mut disk));
        }
    }
}

const WHY: &str = "0-y is failed";

fn fail(disk: &mut Fake) -> Unmet {
    let unmet = fail_unmet(disk, &id(), WHY, 100, 300);
    unmet.expect("nothing fails")
}

fn assert_failed(disk: &mut Fake) {
    let view = view(disk);
    assert_eq!(view.state, State::Failed);
    assert_eq!(view.status.failure, Some(Failure::Dependency));
    assert_eq!(view.status.message.as_deref(), Some(WHY));
    assert!(view.status.ended_at_ms.is_some() && view.status.exit.is_none());
    assert_eq!(states(disk), [State::Queued, State::Failed]);
}

#[test]
fn a_job_that_can_never_start_ends_and_says_why() {
    let mut disk = store(POOLED, State::Queued);
    assert_eq!(fail(&mut disk), Unmet::Recorded);
    assert_eq!(disk.open_handles(), 0);
    assert_failed(&mut disk);
    assert_eq!(fail(&mut disk), Unmet::Not, "an end is final");
    assert_failed(&mut disk);
}

#[test]
fn one_that_somebody_has_or_that_is_not_queued_is_left_as_it_is() {
    let mut disk = store(POOLED, State::Queued);
    let worker = locked(&mut disk, &file(Name::Lock), Mode::Exclusive);
    assert_eq!(fail(&mut disk), Unmet::Not);
    drop(worker);
    for state in [
        State::Done,
        State::Cancelled,
        State::Paused,
        State::Interrupted,
    ] {
        let mut disk = store(POOLED, state);
        assert_eq!(fail(&mut disk), Unmet::Not);
        assert_eq!(view(&mut disk).state, state);
        assert_eq!(disk.open_handles(), 0);
    }
    let mut gone = Fake::on(Image::store());
    assert_eq!(fail(&mut gone), Unmet::Not);
    let mut damaged = store(POOLED, State::Queued);
    damaged.image_mut().put(&file(Name::Status), b"{");
    assert_eq!(fail(&mut damaged), Unmet::Not);
    assert_eq!(
        damaged.image().bytes(&file(Name::Status)),
        Some(&b"{"[..]),
        "R21"
    );
    assert_eq!((damaged.open_handles(), gone.open_handles()), (0, 0));
}

#[test]
fn its_end_answers_what_was_asked() {
    for word in ["cancel", "pause", "resume", "nonsense", ""] {
        let mut disk = store(POOLED, State::Queued);
        disk.image_mut().put(&file(Name::Control), word.as_bytes());
        assert_eq!(fail(&mut disk), Unmet::Recorded, "{word}");
        assert_failed(&mut disk);
    }
}

#[test]
fn of_one_that_ran_after_all_the_processes_come_first_and_its_request_stays() {
    let mut disk = store(POOLED, State::Running);
    disk.image_mut().put(&file(Name::Tree), b"");
    disk.image_mut().put(&file(Name::Control), b"cancel");
    let tree = locked(&mut disk, &file(Name::Tree), Mode::Exclusive);
    assert_eq!(fail(&mut disk), Unmet::LeftoversFirst);
    assert_eq!(view(&mut disk).state, State::Interrupted);
    assert_eq!(is_asked(&mut disk, &id()), Ok(true));
    drop(tree);
    assert!(matches!(
        recover_job(&mut disk, &id(), 400),
        Ok(Recovered::LeftoversFirst(..))
    ));
}

#[test]
fn whatever_ending_it_dies_in_it_is_queued_or_ended_and_the_next_one_ends_it() {
    for how in How::ALL {
        for k in 0.. {
            let mut disk = store(POOLED, State::Queued);
            disk.fail_at(k, how);
            let unmet = fail_unmet(&mut disk, &id(), WHY, 100, 300);
            if disk.is_armed() {
                break;
            }
            assert_eq!(unmet, Err(Fault), "a fault was swallowed");
            assert_eq!(disk.open_handles(), 0);
            assert!(matches!(
                view(&mut disk).state,
                State::Queued | State::Failed
            ));
            assert!(matches!(
                recover_job(&mut disk, &id(), 400),
                Ok(Recovered::Quiet)
            ));
            fail(&mut disk);
            assert_failed(&mut disk);
        }
    }
}
