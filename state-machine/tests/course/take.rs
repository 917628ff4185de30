//! Taking a job to run it.

use state_machine::control::Request;
use state_machine::course::take::{By, Taken, take};
use state_machine::disk::{Disk, Name};
use state_machine::job::State;

use crate::fake::{Handle, How};
use crate::keeper::{Keeping, file, id};

fn taken(keeping: &mut Keeping, by: By) -> Taken<Handle> {
    take(keeping, &id(), by).expect("nothing fails")
}

#[test]
fn a_job_that_never_ran_is_taken_without_a_search() {
    let mut keeping = Keeping::of(State::Queued, 0);
    let Taken::Ours(holder, descriptor) = taken(&mut keeping, By::Queue) else {
        panic!("it waits");
    };
    assert_eq!((holder.id(), &descriptor.id), (&id(), &id()));
    assert_eq!(keeping.told, ["is it wanted"]);
    let other = taken(&mut keeping, By::Queue);
    assert!(matches!(other, Taken::Owned), "{other:?}");
    let image = keeping.disk.image();
    assert_eq!(
        image.bytes(&file(Name::Status)),
        None,
        "nothing is recorded yet"
    );
}

#[test]
fn what_an_earlier_attempt_has_left_is_ended_under_the_lock_before_it_runs_again() {
    for (state, recorded) in [
        (State::Running, State::Interrupted),
        (State::Interrupted, State::Interrupted),
        (State::Queued, State::Queued),
    ] {
        let mut keeping = Keeping::of(state, 1);
        let ours = taken(&mut keeping, By::Queue);
        assert!(matches!(ours, Taken::Ours(..)), "{ours:?}");
        assert_eq!(keeping.told, ["is it wanted", "end what is Marked"]);
        assert_eq!(keeping.recorded(), recorded);
        drop(ours);
        let mut keeping = Keeping::of(state, 1).with_a_tree();
        let ours = taken(&mut keeping, By::Queue);
        assert!(matches!(ours, Taken::Ours(..)), "{ours:?}");
        assert_eq!(keeping.told, ["is it wanted", "end what is Holding"]);
    }
}

#[test]
fn what_has_ended_is_never_run_and_what_rests_only_by_somebodys_word() {
    for state in [State::Done, State::Failed, State::Cancelled] {
        for by in [By::Queue, By::Somebody] {
            let mut keeping = Keeping::of(state, 1);
            let not = taken(&mut keeping, by);
            assert!(
                matches!(not, Taken::NotInState(at) if at == state),
                "{not:?}"
            );
            assert!(keeping.told.is_empty() && keeping.is_free());
        }
    }
    let mut keeping = Keeping::of(State::Paused, 1);
    let not = taken(&mut keeping, By::Queue);
    assert!(matches!(not, Taken::NotInState(State::Paused)), "{not:?}");
    assert!(keeping.told.is_empty() && keeping.is_free());
    let ours = taken(&mut keeping, By::Somebody);
    assert!(matches!(ours, Taken::Ours(..)), "{ours:?}");
}

#[test]
fn what_is_not_run_is_found_out_without_the_lock() {
    // Somebody else has it, and is not asked.
    let mut keeping = Keeping::of(State::Done, 1);
    let _lock = keeping.locked(Name::Lock);
    let not = taken(&mut keeping, By::Queue);
    assert!(matches!(not, Taken::NotInState(State::Done)), "{not:?}");
}

#[test]
fn what_it_is_in_is_asked_again_under_the_lock() {
    // The record is emptied, which reads as that of a running job, and the history knows better once it is held.
    let mut keeping = Keeping::of(State::Paused, 1);
    keeping.disk.image_mut().put(&file(Name::Status), b"");
    let not = taken(&mut keeping, By::Queue);
    assert!(matches!(not, Taken::NotInState(State::Paused)), "{not:?}");
    assert!(keeping.told.is_empty() && keeping.is_free());
}

#[test]
fn a_job_that_nobody_wants_run_any_more_is_let_go_with_what_was_asked_of_it() {
    let mut keeping = Keeping::of(State::Queued, 0).asked(Request::Cancel);
    keeping.wanted = false;
    let not = taken(&mut keeping, By::Queue);
    assert!(matches!(not, Taken::Unwanted), "{not:?}");
    assert!(keeping.is_free() && !keeping.is_asked());
    assert_eq!(keeping.recorded(), State::Cancelled);
}

#[test]
fn one_of_which_something_is_left_that_cannot_be_ended_is_not_run_and_let_go() {
    let mut keeping = Keeping::of(State::Interrupted, 1).with_a_tree();
    keeping.mortal = false;
    let not = taken(&mut keeping, By::Queue);
    assert!(
        matches!(&not, Taken::Stuck(why) if why == "7 (x) lives"),
        "{not:?}"
    );
    assert!(keeping.is_free());
    assert_eq!(keeping.recorded(), State::Interrupted);
}

#[test]
fn what_is_gone_or_cannot_be_read_is_said_to_be() {
    let mut keeping = Keeping::of(State::Queued, 0);
    let image = keeping.disk.image_mut();
    image.put(&file(Name::Status), b"{");
    let not = taken(&mut keeping, By::Queue);
    assert!(
        matches!(&not, Taken::Damaged { file, .. } if *file == Name::Status),
        "{not:?}"
    );
    let mut keeping = Keeping::of(State::Queued, 0);
    let image = keeping.disk.image_mut();
    image.put(&file(Name::Descriptor), b"{");
    let not = taken(&mut keeping, By::Queue);
    assert!(
        matches!(&not, Taken::Damaged { file, .. } if *file == Name::Descriptor),
        "{not:?}"
    );
    assert!(keeping.disk.unlink(&file(Name::Descriptor)).is_ok());
    let not = taken(&mut keeping, By::Queue);
    assert!(matches!(not, Taken::Gone), "{not:?}");
    assert!(keeping.is_free());
}

#[test]
fn whatever_it_fails_in_nobody_holds_the_job() {
    for how in How::ALL {
        for k in 0.. {
            let mut keeping = Keeping::of(State::Running, 1).with_a_tree();
            keeping.wanted = k % 2 == 0;
            keeping.disk.fail_at(k, how);
            let came_to = take(&mut keeping, &id(), By::Queue);
            if keeping.disk.is_armed() {
                break;
            }
            assert!(came_to.is_err(), "{came_to:?}");
            assert!(keeping.is_free());
        }
    }
}
