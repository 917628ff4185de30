//! Until the command runs.

use state_machine::control::Request;
use state_machine::course::{Parting, Worker};
use state_machine::job::State;
use state_machine::record::{Exit, Failure};

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
