//! A command that is tried again.

use state_machine::control::Request;
use state_machine::course::{Parting, Worker, run};
use state_machine::job::State;
use state_machine::record::What;

use crate::worker::{Scripted, Then, after_start};

#[test]
fn a_failure_is_tried_again_as_often_as_was_promised() {
    let mut worker = Scripted::new(&[Then::Over(3), Then::Due, Then::Over(4)]).with_attempts(2);
    let told = [
        "watch until CommandEnds",
        "record running 2",
        "wait 7 ms",
        "end what is Marked",
        "prepare",
        "record running 2",
        "release",
        "say started",
        "watch until CommandEnds",
        "vacate",
        "record failed 2 for good",
        "say over",
    ];
    worker.expect(Parting::Recorded, &after_start(&told));
    assert_eq!(worker.status().message.as_deref(), Some("exited with 4"));
    let retries = worker
        .history()
        .lines
        .into_iter()
        .filter_map(|line| match line.what {
            What::Retry {
                attempt, reason, ..
            } => Some((attempt, reason)),
            _ => None,
        });
    assert!(retries.eq([(2, "exited with 3".to_owned())]));
}

#[test]
fn what_a_failed_attempt_has_left_is_ended_before_the_next() {
    let script = [Then::Over(3), Then::Over(3), Then::Due, Then::Over(0)];
    let mut worker = Scripted::new(&script).with_attempts(2).leaving(&[1]);
    let told = [
        "watch until CommandEnds",
        "stop",
        "watch until Empty",
        "record running 2",
        "wait 7 ms",
        "end what is Marked",
        "prepare",
        "record running 2",
        "release",
        "say started",
        "watch until CommandEnds",
        "vacate",
        "record done 2 for good",
        "say over",
    ];
    worker.expect(Parting::Recorded, &after_start(&told));
}

#[test]
fn a_cancel_while_a_failed_attempt_is_cleared_away_is_what_gets_recorded() {
    let script = [Then::Over(3), Then::Asked(Request::Cancel), Then::Over(3)];
    let mut worker = Scripted::new(&script).with_attempts(2).leaving(&[1]);
    let told = [
        "watch until CommandEnds",
        "stop",
        "watch until Empty",
        "watch until Empty",
        "vacate",
        "record cancelled 1 for good",
        "say over",
    ];
    worker.expect(Parting::Recorded, &after_start(&told));
    assert!(worker.is_answered());
}

#[test]
fn a_worker_that_waits_for_the_next_attempt_honours_what_is_asked() {
    for (request, state) in [
        (Request::Cancel, State::Cancelled),
        (Request::Pause, State::Paused),
    ] {
        let script = [Then::Over(3), Then::Asked(request)];
        let mut worker = Scripted::new(&script).with_attempts(9);
        let id = worker.id.clone();
        assert_eq!(run(&mut worker, &id), Ok(Parting::Recorded));
        let status = worker.status();
        assert_eq!((status.state, status.next_attempt_at_ms), (state, None));
        let message = status.message.as_deref().unwrap_or_default();
        assert!(message.ends_with("between two attempts"), "{message}");
        assert!(worker.is_answered());
    }
}

#[test]
fn what_is_asked_between_two_attempts_and_changes_nothing_does_not_end_the_wait() {
    let resume = Then::Asked(Request::Resume);
    let script = [Then::Over(3), resume, Then::Due, Then::Over(0)];
    let mut worker = Scripted::new(&script).with_attempts(2);
    let id = worker.id.clone();
    assert_eq!(run(&mut worker, &id), Ok(Parting::Recorded));
    assert_eq!(worker.status().state, State::Done);
    assert!(worker.is_answered() && worker.script.is_empty());
}

#[test]
fn a_command_that_is_always_run_again_is_so_after_a_good_end_too() {
    let mut worker = Scripted::new(&[Then::Over(0), Then::Due, Then::Over(0)]).with_attempts(2);
    worker.descriptor.retry.always = true;
    let id = worker.id.clone();
    assert_eq!(run(&mut worker, &id), Ok(Parting::Recorded));
    assert_eq!(worker.status().state, State::Done);
    assert_eq!(worker.status().attempt, 2);
    let told: Vec<String> = reasons(&mut worker);
    assert_eq!(told, ["ended, and is always run again"]);
}

#[test]
fn attempts_are_counted_from_the_last_healthy_one_where_that_was_asked_for() {
    for (healthy_after_ms, attempts) in [(u64::MAX, 2), (0, 4)] {
        let fails = [Then::Over(3), Then::Due];
        let mut script = fails.repeat(attempts as usize - 1);
        // An attempt of the script runs for no time: that is healthy, or nothing is.
        script.push(if healthy_after_ms == 0 {
            Then::Over(0)
        } else {
            Then::Over(3)
        });
        let mut worker = Scripted::new(&script).with_attempts(2);
        worker.descriptor.retry.in_a_row = true;
        worker.descriptor.retry.healthy_after_ms = healthy_after_ms;
        let id = worker.id.clone();
        assert_eq!(run(&mut worker, &id), Ok(Parting::Recorded));
        assert_eq!(worker.status().attempt, attempts);
        assert!(worker.script.is_empty());
    }
}

#[test]
fn a_command_is_run_anew_where_what_it_is_made_of_changes_and_that_is_no_failure() {
    let script = [
        Then::Renewed,
        Then::Over(9),
        Then::Due,
        Then::SaysReady,
        Then::Over(0),
    ];
    let mut worker = Scripted::new(&script);
    worker.descriptor.retry.in_a_row = true;
    let told = [
        "watch until CommandEnds",
        "stop",
        "watch until CommandEnds",
        "record running 2",
        "wait 0 ms",
        "end what is Marked",
        "prepare",
        "record running 2",
        "release",
        "say started",
        "watch until CommandEnds",
        "record running 2",
        "watch until CommandEnds",
        "vacate",
        "record done 2 for good",
        "say over",
    ];
    worker.expect(Parting::Recorded, &after_start(&told));
    assert_eq!(reasons(&mut worker), ["src/a has changed"]);
    assert_eq!(worker.status().ready_at_ms, None);
}

#[test]
fn what_has_ended_by_itself_is_not_run_anew() {
    let script = [Then::Over(0), Then::Renewed, Then::Over(0)];
    let mut worker = Scripted::new(&script).leaving(&[1]);
    let id = worker.id.clone();
    assert_eq!(run(&mut worker, &id), Ok(Parting::Recorded));
    assert_eq!(worker.status().state, State::Done);
    assert_eq!(worker.status().attempt, 1);
    assert!(!worker.told.iter().any(|told| told == "stop"));
}

#[test]
fn a_cancel_overrides_that_a_command_is_run_anew() {
    let script = [Then::Renewed, Then::Asked(Request::Cancel), Then::Over(9)];
    let mut worker = Scripted::new(&script);
    let id = worker.id.clone();
    assert_eq!(run(&mut worker, &id), Ok(Parting::Recorded));
    assert_eq!(worker.status().state, State::Cancelled);
    assert!(worker.is_answered());
}

fn reasons(worker: &mut Scripted) -> Vec<String> {
    let lines = worker.history().lines.into_iter();
    lines
        .filter_map(|line| match line.what {
            What::Retry { reason, .. } => Some(reason),
            _ => None,
        })
        .collect()
}
