//! Until the command runs.

use state_machine::control::Request;
use state_machine::course::{Parting, Worker, run};
use state_machine::disk::{Name, Place};
use state_machine::job::State;
use state_machine::record::{Bytes, Exit, Failure};

use crate::fake::How;
use crate::worker::{Scripted, Then, after_start};

#[test]
fn a_command_is_recorded_before_it_runs_and_its_end_before_it_is_told() {
    let mut worker = Scripted::new(&[Then::Over(0)]);
    let told = [
        "watch until CommandEnds",
        "vacate",
        "record done 1 for good",
        "say over",
    ];
    worker.expect(Parting::Recorded, &after_start(&told));
    let status = worker.status().clone();
    assert_eq!(
        (status.state, status.exit),
        (State::Done, Some(Exit::Code(0)))
    );
    assert_eq!((status.pid, status.ended_at_ms), (None, Some(200)));
    assert!(
        worker
            .history()
            .states()
            .eq([State::Queued, State::Running, State::Done])
    );
}

#[test]
fn what_was_asked_before_the_start_is_honoured_and_nothing_is_started() {
    for (request, recorded) in [
        (Request::Cancel, "record cancelled 0 for good"),
        (Request::Pause, "record paused 0 for good"),
    ] {
        let mut worker = Scripted::new(&[]).asked(request);
        worker.expect(Parting::Recorded, &[recorded, "say over"]);
        assert!(worker.is_answered());
    }
    let mut resumed = Scripted::new(&[Then::Over(0)]).asked(Request::Resume);
    let told = [
        "watch until CommandEnds",
        "vacate",
        "record done 1 for good",
        "say over",
    ];
    resumed.expect(Parting::Recorded, &after_start(&told));
    assert!(resumed.is_answered());
}

#[test]
fn a_worker_that_is_told_to_end_before_the_start_records_nothing() {
    let mut worker = Scripted::new(&[]);
    worker.told_to_end = true;
    worker.expect(Parting::Unrecorded, &["say over"]);
    assert_eq!(worker.status().state, State::Queued);
}

#[test]
fn what_cannot_be_recorded_is_not_run() {
    let mut worker = Scripted::new(&[]);
    // Two looks at what was asked; opening, making and locking the tree's lock; and then the record.
    worker.disk.fail_at(5, How::Before);
    let told = ["prepare", "record running 1", "dismiss", "say unrecorded"];
    worker.expect(Parting::Unrecorded, &told);
}

#[test]
fn a_command_that_is_missing_has_failed_without_another_try() {
    let mut worker = Scripted::new(&[]).with_attempts(9);
    worker.descriptor.display_name = "missing".into();
    let told = [
        "prepare",
        "record running 1",
        "record failed 1 for good",
        "say over",
    ];
    worker.expect(Parting::Recorded, &told);
    assert_eq!(worker.status().failure, Some(Failure::Missing));
}

#[test]
fn a_worker_that_is_made_early_gets_ready_and_waits_for_its_job_to_be_seen() {
    let mut published = Scripted::new(&[Then::Over(0)]);
    published.early = Some(true);
    let told = [
        "prepare",
        "is it published",
        "record running 1",
        "release",
        "say started",
        "watch until CommandEnds",
        "vacate",
        "record done 1 for good",
        "say over",
    ];
    published.expect(Parting::Recorded, &told);
    let mut dismissed = Scripted::new(&[]);
    dismissed.early = Some(false);
    dismissed.expect(
        Parting::Unrecorded,
        &["prepare", "is it published", "dismiss"],
    );
}

#[test]
fn a_command_that_cannot_be_started_is_tried_as_often_as_was_promised() {
    let mut once = Scripted::new(&[]);
    once.unready = 1;
    let told = [
        "prepare",
        "record running 1",
        "record failed 1 for good",
        "say over",
    ];
    once.expect(Parting::Recorded, &told);
    assert_eq!(once.status().failure, Some(Failure::Start));
    let mut twice = Scripted::new(&[Then::Due, Then::Over(0)]).with_attempts(2);
    twice.unready = 1;
    let told = [
        "prepare",
        "say started",
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
    twice.expect(Parting::Recorded, &told);
}

#[test]
fn who_waits_to_be_told_of_the_end_is_told_of_a_job_that_never_ran() {
    let mut worker = Scripted::new(&[Then::HookEnds]).asked(Request::Cancel);
    worker.descriptor.on_end = Some(vec![Bytes(b"true".to_vec())]);
    let told = [
        "record cancelled 0 for good",
        "say over",
        "start the hook true",
    ];
    worker.expect(Parting::Recorded, &told);
    let mut paused = Scripted::new(&[]).asked(Request::Pause);
    paused.descriptor.on_end = Some(vec![Bytes(b"true".to_vec())]);
    let told = ["record paused 0 for good", "say over"];
    paused.expect(Parting::Recorded, &told);
}

#[test]
fn a_control_file_that_stays_empty_is_thrown_away() {
    for for_long in [false, true] {
        let mut worker = Scripted::new(&[Then::Over(0)]);
        worker.empty_for_long = for_long;
        let control = Place::of_job(&worker.id, Name::Control);
        worker.disk.image_mut().put(&control, b"");
        let id = worker.id.clone();
        assert_eq!(run(&mut worker, &id), Ok(Parting::Recorded));
        assert_eq!(worker.disk.image().bytes(&control).is_none(), for_long);
        assert!(worker.is_answered());
    }
}
