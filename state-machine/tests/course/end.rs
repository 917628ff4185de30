//! The end, and what comes after it.

use state_machine::control::Request;
use state_machine::course::{Parting, Worker, run};
use state_machine::disk::{Name, Place};
use state_machine::job::State;
use state_machine::record::{Bytes, Failure};

use crate::worker::{Scripted, Then, after_start};

#[test]
fn a_shutdown_leaves_a_running_record() {
    let mut worker = Scripted::new(&[Then::ToldToEnd, Then::Over(9)]);
    let told = ["watch until CommandEnds", "stop", "watch until CommandEnds"];
    worker.expect(Parting::Unrecorded, &after_start(&told));
    assert_eq!(worker.status().state, State::Running);
}

#[test]
fn a_command_that_runs_too_long_has_failed() {
    let mut worker = Scripted::new(&[Then::Late, Then::Over(0)]);
    worker.descriptor.timeout_ms = Some(50);
    let id = worker.id.clone();
    assert_eq!(run(&mut worker, &id), Ok(Parting::Recorded));
    let status = worker.status();
    assert_eq!(
        (status.state, status.failure),
        (State::Failed, Some(Failure::Timeout))
    );
    assert_eq!(status.message.as_deref(), Some("timed out after 50ms"));
}

#[test]
fn what_is_left_at_the_end_is_recorded_and_a_cancel_is_for_that() {
    let script = [Then::Over(0), Then::Asked(Request::Cancel), Then::Over(0)];
    let mut worker = Scripted::new(&script).leaving(&[2]);
    let told = [
        "watch until CommandEnds",
        "record done 1 for good, 2 left",
        "say over",
        "watch until Empty",
        "stop",
        "watch until Empty",
        "record done 1 for good",
    ];
    worker.expect(Parting::Recorded, &after_start(&told));
    let status = worker.status();
    assert_eq!((status.state, status.leftovers), (State::Done, None));
    assert!(status.stopping.is_some());
    assert!(worker.is_answered());
}

#[test]
fn an_end_is_recorded_however_often_the_disk_does_not_let_us() {
    let mut worker = Scripted::new(&[Then::Over(0)]);
    worker.refusals = 2;
    let told = [
        "watch until CommandEnds",
        "vacate",
        "record done 1 for good",
        "await the disk",
        "await the disk",
        "say over",
    ];
    worker.expect(Parting::Recorded, &after_start(&told));
    assert!(worker.book().is_clean());
}

#[test]
fn what_is_asked_of_leftovers_that_is_no_stop_is_answered_at_once() {
    let (pause, resume) = (Then::Asked(Request::Pause), Then::Asked(Request::Resume));
    let mut worker = Scripted::new(&[Then::Over(0), pause, resume, Then::Over(0)]).leaving(&[1]);
    let id = worker.id.clone();
    assert_eq!(run(&mut worker, &id), Ok(Parting::Recorded));
    let control = Place::of_job(&id, Name::Control);
    assert_eq!(worker.disk.image().bytes(&control), None);
}

#[test]
fn a_hook_is_told_of_the_end_and_cut_short_by_a_cancel() {
    let script = [
        Then::Over(0),
        Then::Asked(Request::Cancel),
        Then::HookEnds,
        Then::Over(0),
    ];
    let mut worker = Scripted::new(&script).leaving(&[1]);
    worker.descriptor.on_end = Some(vec![Bytes(b"true".to_vec())]);
    let told = [
        "watch until CommandEnds",
        "record done 1 for good, 1 left",
        "say over",
        "start the hook true",
        "cut the hook short",
        "on-end failed: cut short",
        "stop",
        "watch until Empty",
        "record done 1 for good",
    ];
    worker.expect(Parting::Recorded, &after_start(&told));
    assert!(worker.is_answered());
}

#[test]
fn a_hook_is_told_of_an_end_that_leaves_nothing_after_the_end_is_told() {
    let mut worker = Scripted::new(&[Then::Over(0), Then::Stubborn, Then::HookEnds]);
    worker.descriptor.on_end = Some(vec![Bytes(b"true".to_vec())]);
    let told = [
        "watch until CommandEnds",
        "vacate",
        "record done 1 for good",
        "say over",
        "start the hook true",
        "record done 1",
    ];
    worker.expect(Parting::Recorded, &after_start(&told));
}

#[test]
fn of_a_failure_another_hook_is_told_before_that() {
    let words = |text: &str| Some(vec![Bytes(text.as_bytes().to_vec())]);
    for (code, hooks) in [
        (3, &["start the hook alarm", "start the hook bell"][..]),
        (0, &["start the hook bell"]),
    ] {
        let mut script = vec![Then::Over(code)];
        script.extend(hooks.iter().map(|_| Then::HookEnds));
        let mut worker = Scripted::new(&script);
        worker.descriptor.on_failure = words("alarm");
        worker.descriptor.on_end = words("bell");
        let id = worker.id.clone();
        assert_eq!(run(&mut worker, &id), Ok(Parting::Recorded));
        let told: Vec<&String> = worker
            .told
            .iter()
            .filter(|it| it.contains("hook"))
            .collect();
        assert_eq!(told, hooks);
        assert!(worker.script.is_empty());
    }
}

#[test]
fn what_is_left_of_a_frozen_command_that_was_killed_is_thawed() {
    let script = [Then::Asked(Request::Pause), Then::Over(9), Then::Over(9)];
    let mut worker = Scripted::new(&script).leaving(&[1]);
    let told = [
        "watch until CommandEnds",
        "freeze",
        "record paused 1",
        "watch until CommandEnds",
        "thaw",
        "record running 1",
        "record failed 1 for good, 1 left",
        "say over",
        "watch until Empty",
        "record failed 1 for good",
    ];
    worker.expect(Parting::Recorded, &after_start(&told));
}
