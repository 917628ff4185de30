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
