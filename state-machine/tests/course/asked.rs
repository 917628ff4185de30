//! What is asked while the command runs.

use state_machine::control::Request;
use state_machine::course::{Parting, Worker, run};
use state_machine::job::State;
use state_machine::record::PauseMode;

use crate::worker::{Scripted, Then, after_start};

#[test]
fn a_cancel_is_answered_once_the_end_is_recorded() {
    let mut worker = Scripted::new(&[Then::Asked(Request::Cancel), Then::Stubborn, Then::Over(9)]);
    let told = [
        "watch until CommandEnds",
        "stop",
        "watch until CommandEnds",
        "record running 1",
        "watch until CommandEnds",
        "vacate",
        "record cancelled 1 for good",
        "say over",
    ];
    worker.expect(Parting::Recorded, &after_start(&told));
    assert!(worker.is_answered());
    assert_eq!(worker.status().message, None);
    assert!(worker.status().stopping.is_some());
}

#[test]
fn a_cancel_overrides_a_pause_that_is_being_honoured_and_a_pause_no_cancel() {
    let (pause, cancel) = (Then::Asked(Request::Pause), Then::Asked(Request::Cancel));
    for script in [
        [pause, cancel, Then::Over(9)],
        [cancel, pause, Then::Over(9)],
    ] {
        let mut worker = Scripted::new(&script);
        worker.descriptor.pause = PauseMode::Stop;
        let id = worker.id.clone();
        assert_eq!(run(&mut worker, &id), Ok(Parting::Recorded));
        assert_eq!(worker.status().state, State::Cancelled);
        assert_eq!(worker.told.iter().filter(|word| *word == "stop").count(), 1);
    }
}

#[test]
fn a_frozen_command_is_thawed_and_goes_on() {
    let (pause, resume) = (Then::Asked(Request::Pause), Then::Asked(Request::Resume));
    let mut worker = Scripted::new(&[pause, resume, Then::Over(0)]);
    let told = [
        "watch until CommandEnds",
        "freeze",
        "record paused 1",
        "watch until CommandEnds",
        "thaw",
        "record running 1",
        "watch until CommandEnds",
        "vacate",
        "record done 1 for good",
        "say over",
    ];
    worker.expect(Parting::Recorded, &after_start(&told));
}

#[test]
fn a_pause_waits_for_the_stop_that_is_under_way() {
    let script = [Then::Late, Then::Asked(Request::Pause), Then::Over(9)];
    let mut worker = Scripted::new(&script).with_attempts(2);
    let told = [
        "watch until CommandEnds",
        "stop",
        "watch until CommandEnds",
        "watch until CommandEnds",
        "record running 2",
        "wait 7 ms",
        "record paused 2 for good",
        "say over",
    ];
    worker.expect(Parting::Recorded, &after_start(&told));
    assert!(worker.is_answered());
}

#[test]
fn what_is_not_recorded_is_not_answered() {
    let mut worker = Scripted::new(&[Then::Asked(Request::Cancel), Then::Over(9)]);
    worker.refusals = 1;
    let told = [
        "watch until CommandEnds",
        "stop",
        "watch until CommandEnds",
        "vacate",
        "record cancelled 1 for good",
        "await the disk",
        "say over",
    ];
    worker.told_to_end_while_it_waits = true;
    worker.expect(Parting::Recorded, &after_start(&told));
    assert!(!worker.book().is_clean() && !worker.is_answered());
}

#[test]
fn a_pause_that_ends_the_tree_is_answered_once_it_is_recorded() {
    for is_recorded in [true, false] {
        let mut worker = Scripted::new(&[Then::Asked(Request::Pause), Then::Over(9)]);
        worker.descriptor.pause = PauseMode::Stop;
        worker.refusals = u32::from(!is_recorded);
        worker.told_to_end_while_it_waits = true;
        let id = worker.id.clone();
        assert_eq!(run(&mut worker, &id), Ok(Parting::Recorded));
        assert_eq!(worker.status().state, State::Paused);
        assert_eq!(worker.is_answered(), is_recorded);
    }
}
