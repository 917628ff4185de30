//! Holding a job that nobody works on: putting it in order, and letting it go.

use state_machine::control::Request;
use state_machine::course::keep::{Kept, Order, leave, put_in_order};
use state_machine::disk::{Disk, Name};
use state_machine::job::State;
use state_machine::protocol::hold::{Hold, hold};

use crate::fake::How;
use crate::keeper::{Keeping, file, id};

fn put(keeping: &mut Keeping) -> Order {
    put_in_order(keeping, &id()).expect("nothing fails")
}

/// Hold the job, and let it go with this asked meanwhile.
fn hold_and_leave(keeping: &mut Keeping, request: Request) -> Kept {
    let held = hold(&mut keeping.disk, &id(), 300).expect("nothing fails");
    let Hold::Mine(holder, descriptor) = held else {
        panic!("{held:?}");
    };
    keeping.ask(request);
    leave(keeping, &descriptor, holder).expect("nothing fails")
}

#[test]
fn what_was_asked_of_a_job_that_never_ran_is_answered_without_a_search() {
    let mut keeping = Keeping::of(State::Queued, 0).asked(Request::Cancel);
    assert_eq!(put(&mut keeping), Order::Kept(Kept::InOrder));
    assert!(keeping.told.is_empty() && keeping.is_free() && !keeping.is_asked());
    assert_eq!(keeping.recorded(), State::Cancelled);
}

#[test]
fn of_one_that_has_run_what_is_left_is_ended_first() {
    for has_tree in [false, true] {
        let mut keeping = Keeping::of(State::Running, 1).asked(Request::Cancel);
        let mut told = "end what is Marked";
        if has_tree {
            keeping = keeping.with_a_tree();
            told = "end what is Holding";
        }
        assert_eq!(put(&mut keeping), Order::Kept(Kept::InOrder));
        assert_eq!(keeping.told, [told]);
        assert!(keeping.is_free() && !keeping.is_asked());
        assert_eq!(keeping.recorded(), State::Cancelled);
    }
}

#[test]
fn what_is_asked_while_it_is_ended_is_answered_too() {
    let mut keeping = Keeping::of(State::Paused, 1).asked(Request::Resume);
    keeping.asked_meanwhile = vec![Request::Cancel];
    assert_eq!(put(&mut keeping), Order::Kept(Kept::InOrder));
    assert!(keeping.is_free() && !keeping.is_asked());
    assert_eq!(keeping.recorded(), State::Cancelled);
}

#[test]
fn where_it_cannot_be_ended_the_job_is_let_go_and_the_request_stays() {
    let mut keeping = Keeping::of(State::Interrupted, 1)
        .with_a_tree()
        .asked(Request::Cancel);
    keeping.mortal = false;
    let stuck = Kept::Stuck("7 (x) lives".into());
    assert_eq!(put(&mut keeping), Order::Kept(stuck));
    assert!(keeping.is_free() && keeping.is_asked());
    assert_eq!(keeping.recorded(), State::Interrupted);
    keeping.mortal = true;
    assert_eq!(put(&mut keeping), Order::Kept(Kept::InOrder));
    assert_eq!(keeping.recorded(), State::Cancelled);
}

#[test]
fn what_never_ends_is_given_up_and_the_job_is_free() {
    let mut keeping = Keeping::of(State::Interrupted, 1).asked(Request::Pause);
    keeping.asked_meanwhile = [Request::Resume, Request::Pause].repeat(100);
    assert_eq!(put(&mut keeping), Order::Kept(Kept::Busy));
    assert!(keeping.is_free() && keeping.is_asked());
}

#[test]
fn what_is_asked_while_it_is_held_is_answered_when_it_is_let_go() {
    let mut never_ran = Keeping::of(State::Queued, 0);
    let kept = hold_and_leave(&mut never_ran, Request::Pause);
    assert_eq!((kept, never_ran.recorded()), (Kept::InOrder, State::Paused));
    let mut ran = Keeping::of(State::Running, 1).with_a_tree();
    let kept = hold_and_leave(&mut ran, Request::Cancel);
    assert_eq!((kept, ran.recorded()), (Kept::InOrder, State::Cancelled));
    assert_eq!(ran.told, ["end what is Holding"]);
    for keeping in [&never_ran, &ran] {
        assert!(keeping.is_free() && !keeping.is_asked());
    }
}

#[test]
fn a_job_that_is_held_or_gone_or_cannot_be_read_is_left_alone() {
    let mut keeping = Keeping::of(State::Queued, 0).asked(Request::Cancel);
    let lock = keeping.locked(Name::Lock);
    assert_eq!(put(&mut keeping), Order::Held);
    drop(lock);
    keeping.disk.image_mut().put(&file(Name::Status), b"{");
    assert_eq!(put(&mut keeping), Order::Damaged);
    assert!(keeping.disk.unlink(&file(Name::Descriptor)).is_ok());
    assert_eq!(put(&mut keeping), Order::Gone);
    assert!(keeping.is_free() && keeping.is_asked());
}

#[test]
fn whatever_it_fails_in_nobody_holds_the_job_and_the_next_one_goes_on() {
    for how in How::ALL {
        for k in 0.. {
            let mut keeping = Keeping::of(State::Running, 1)
                .with_a_tree()
                .asked(Request::Cancel);
            keeping.disk.fail_at(k, how);
            let came_to = put_in_order(&mut keeping, &id());
            if keeping.disk.is_armed() {
                break;
            }
            assert!(came_to.is_err() && keeping.is_free(), "{came_to:?}");
            put(&mut keeping);
            assert_eq!(keeping.recorded(), State::Cancelled);
            assert!(keeping.is_free() && !keeping.is_asked());
        }
    }
}
