//! The protocols as one process after another uses them, on a file system in memory: random walks of whole
//! operations, each of them also with a fault at every one of its effects, followed by a fresh process that puts the
//! store in order. What runs at the same time is the model's business.

#[path = "support/fake.rs"]
mod fake;
#[path = "support/steps.rs"]
mod steps;

use std::collections::BTreeMap;

use fake::{Fake, How, Image};
use proptest::prelude::*;
use state_machine::control::Request;
use state_machine::disk::{Dir, Name, Place};
use state_machine::id::{JobId, Ticket};
use state_machine::job::{State, follows, path};
use state_machine::protocol::look::{Look, View, look};
use state_machine::protocol::request::{Asked, request};
use state_machine::record::{History, Status};
use steps::{End, Step, chosen, jobs, recover, recover_one, take};

/// What is true of every job, as a fresh reader sees it.
type Truth = BTreeMap<JobId, View>;

/// Look at every job, and at every rule that holds at every instant.
fn truth(disk: &mut Fake) -> Truth {
    let mut truth = Truth::new();
    for id in jobs(disk) {
        let view = match look(disk, &id) {
            Ok(Look::Job(view)) => *view,
            other => panic!("R8: {id} is {other:?}"),
        };
        assert_eq!(view.descriptor.id, id);
        assert!(!view.held && !view.leftovers, "{id}: nobody is left");
        assert_ne!(view.state, State::Running, "R4: {id}");
        let states: Vec<State> = history(disk, &id).states().collect();
        assert!(
            states.first().is_none_or(|first| *first == State::Queued)
                && states.windows(2).all(|pair| follows(pair[0], pair[1])),
            "R7: {id} went {states:?}"
        );
        truth.insert(id, view);
    }
    let names = truth.values().filter(|view| !view.state.is_terminal());
    let mut names: Vec<_> = names
        .filter_map(|view| view.descriptor.name.as_ref())
        .collect();
    names.sort();
    assert!(
        names.windows(2).all(|pair| pair[0] != pair[1]),
        "R12: {names:?}"
    );
    truth
}

fn history(disk: &Fake, id: &JobId) -> History {
    let bytes = disk.image().bytes(&Place::of_job(id, Name::Events));
    History::decode(bytes.unwrap_or_default())
}

/// What holds once somebody has put the store in order (R7, R8, R22).
fn assert_quiet(disk: &Fake, truth: &Truth) {
    assert!(disk.image().names(&Dir::Staging).is_empty(), "R8: staging");
    assert!(disk.image().names(&Dir::Trash).is_empty(), "R8: trash");
    for (id, view) in truth {
        let recorded = disk.image().bytes(&Place::of_job(id, Name::Status));
        let recorded = recorded.map(|bytes| Status::decode(bytes).expect("it was just read").state);
        let last = history(disk, id).last_state();
        // A job that was never held has no records beside its descriptor.
        let never_begun = last.is_none() && recorded.is_none();
        assert!(
            never_begun || last == Some(recorded.unwrap_or(State::Queued)),
            "R7: {id}: the status says {recorded:?} and the history {last:?}"
        );
        assert_ne!(recorded, Some(State::Running), "R4: {id}");
        if !view.state.is_terminal() {
            for name in [Name::Control, Name::Taken] {
                let unread = disk.image().bytes(&Place::of_job(id, name));
                assert_eq!(unread, None, "R6: {id}: a request lies unread");
            }
        }
    }
}

/// What a step may have done to the jobs that were there before it, whole or half.
fn assert_only_forward(before: &Truth, after: &Truth, forgotten: Option<&JobId>) {
    for (id, was) in before {
        let Some(is) = after.get(id) else {
            assert_eq!(Some(id), forgotten, "{id} is lost");
            assert!(was.state.is_terminal(), "R9: {id} was {}", was.state);
            continue;
        };
        let recorded = was.status.state;
        assert!(
            path(recorded, is.status.state).is_some(),
            "R7: {id}: {recorded} -> {}",
            is.status.state
        );
        if was.state.is_terminal() {
            assert_eq!(was.status, is.status, "R7: {id}: an end changed");
        }
    }
}

/// The recorded state that a request must bring a job to that nobody holds.
fn answer(recorded: State, asked: Request) -> State {
    match (recorded, asked) {
        (State::Done | State::Failed | State::Cancelled, _) => recorded,
        (_, Request::Cancel) => State::Cancelled,
        (_, Request::Pause) => State::Paused,
        (_, Request::Resume) => State::Queued,
    }
}

/// What a step that was taken whole must have come to.
fn assert_done(step: Step, before: &Truth, after: &Truth, subject: Option<&JobId>) {
    let of = |truth: &Truth| subject.and_then(|id| truth.get(id).map(|view| view.status.state));
    let (was, is) = (of(before), of(after));
    match (step, was) {
        (Step::Ask(_, asked), Some(was)) => assert_eq!(is, Some(answer(was, asked)), "R6"),
        (Step::Hand(_, "cancel" | "stop\n"), Some(was)) => {
            assert_eq!(is, Some(answer(was, Request::Cancel)), "R6");
        }
        (Step::Hand(_, " pause "), Some(was)) => {
            assert_eq!(is, Some(answer(was, Request::Pause)), "R6");
        }
        (Step::Forget(_), Some(was)) => assert_eq!(is.is_none(), was.is_terminal(), "R9"),
        (Step::Work(_, end), Some(State::Queued | State::Interrupted | State::Running)) => {
            assert_eq!(is, Some(state_of(end)));
        }
        (Step::Queue | Step::Numbered, _) => assert_eq!(after.len(), before.len() + 1),
        (Step::Run(end), _) => {
            let new = after.iter().find(|(id, _)| !before.contains_key(id));
            assert_eq!(new.map(|(_, view)| view.status.state), Some(state_of(end)));
        }
        (Step::Start, _) => {
            let bears = |view: &&View| {
                let name = view.descriptor.name.as_ref();
                name.is_some_and(|name| name.as_str() == "web") && !view.state.is_terminal()
            };
            assert_eq!(after.values().filter(bears).count(), 1, "R12");
        }
        _ => {}
    }
}

fn state_of(end: End) -> State {
    match end {
        End::Done => State::Done,
        End::FailedTwice => State::Failed,
        End::Paused => State::Paused,
        End::Lost => State::Running,
    }
}

fn ticket(word: &str) -> Ticket {
    Ticket::parse(word).expect("it is a ticket")
}

/// Put the store in order, twice: the second time there is nothing to do.
fn recover_to_quiet(disk: &mut Fake, now_ms: u64) -> Truth {
    assert_eq!(recover(disk, now_ms, &ticket("r")), Ok(()));
    let truth = truth(disk);
    assert_quiet(disk, &truth);
    let visible = disk.image().visible();
    assert_eq!(recover(disk, now_ms + 1, &ticket("s")), Ok(()));
    assert!(
        disk.image().visible() == visible,
        "R22: recovery has no end"
    );
    truth
}

/// Take `step` on a copy of `image` with every fault there can be, and see that a fresh process puts it right and
/// that the step can be taken again.
fn with_every_fault(image: &Image, step: Step, now_ms: u64) {
    let before = truth(&mut Fake::on(image.clone()));
    for how in How::ALL {
        for k in 0.. {
            let mut disk = Fake::on(image.clone());
            let subject = subject(&disk, step);
            disk.fail_at(k, how);
            let taken = take(&mut disk, step, now_ms, &ticket("a"));
            if disk.is_armed() {
                break;
            }
            assert!(taken.is_err(), "a fault was swallowed");
            assert_eq!(disk.open_handles(), 0);
            let crashed = truth(&mut disk);
            assert_only_forward(&before, &crashed, subject.as_ref());

            // Somebody takes the same step at once, without knowing of the crash.
            let mut again = Fake::on(disk.image().clone());
            if subject == self::subject(&again, step) {
                assert_eq!(take(&mut again, step, now_ms, &ticket("b")), Ok(()));
                let finished = truth(&mut again);
                assert_done(step, &crashed, &finished, subject.as_ref());
                assert_only_forward(&crashed, &finished, subject.as_ref());
                assert_only_forward(&finished, &recover_to_quiet(&mut again, now_ms + 2), None);
            }

            // Or the store is put in order first.
            let recovered = recover_to_quiet(&mut disk, now_ms + 1);
            assert_only_forward(&crashed, &recovered, None);
            if subject == self::subject(&disk, step) {
                assert_eq!(take(&mut disk, step, now_ms + 3, &ticket("c")), Ok(()));
                let finished = truth(&mut disk);
                assert_done(step, &recovered, &finished, subject.as_ref());
                assert_only_forward(&recovered, &finished, subject.as_ref());
            }
        }
    }
}

/// Ask something of a job, and let whoever honours it die at every effect, while a weaker request arrives: what was
/// placed is answered by the next holder (R6).
fn with_every_death_of_the_holder(image: &Image, id: &JobId, asked: Request, now_ms: u64) {
    let mut placed = Fake::on(image.clone());
    let was = truth(&mut placed)[id].status.state;
    if request(&mut placed, id, asked, &ticket("a")) != Ok(Asked::Placed) {
        return;
    }
    for how in How::ALL {
        for k in 0.. {
            let mut disk = Fake::on(placed.image().clone());
            disk.fail_at(k, how);
            let recovered = recover_one(&mut disk, id, now_ms);
            if disk.is_armed() {
                break;
            }
            assert_eq!(recovered, Err(fake::Fault));
            if asked == Request::Cancel {
                assert!(request(&mut disk, id, Request::Pause, &ticket("b")).is_ok());
            }
            // The weaker request stays with the job that it came too late for, and goes when that is next recovered.
            assert_eq!(recover(&mut disk, now_ms + 1, &ticket("q")), Ok(()));
            let truth = recover_to_quiet(&mut disk, now_ms + 2);
            assert_eq!(
                truth[id].status.state,
                answer(was, asked),
                "R6: {id} was {was}"
            );
        }
    }
}

/// The job that a step is about, if it is about one.
fn subject(disk: &Fake, step: Step) -> Option<JobId> {
    match step {
        Step::Work(nth, _) | Step::Ask(nth, _) | Step::Hand(nth, _) | Step::Forget(nth) => {
            chosen(disk, nth)
        }
        _ => None,
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let end =
        || proptest::sample::select(vec![End::Done, End::FailedTwice, End::Paused, End::Lost]);
    let hand = proptest::sample::select(vec!["cancel", "stop\n", " pause ", "nonsense"]);
    let nth = || 0..4usize;
    let step = prop_oneof![
        2 => Just(Step::Queue),
        2 => end().prop_map(Step::Run),
        4 => (nth(), end()).prop_map(|(nth, end)| Step::Work(nth, end)),
        4 => (nth(), proptest::sample::select(Request::ALL.to_vec()))
            .prop_map(|(nth, asked)| Step::Ask(nth, asked)),
        1 => (nth(), hand).prop_map(|(nth, word)| Step::Hand(nth, word)),
        1 => nth().prop_map(Step::Forget),
        2 => Just(Step::Start),
        1 => Just(Step::Numbered),
        3 => Just(Step::LayIn),
        1 => Just(Step::Recover),
    ];
    proptest::collection::vec(step, 1..7)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_step_comes_to_what_was_asked(steps in steps()) {
        let mut disk = Fake::on(Image::store());
        for (now_ms, step) in (0u64..).map(|nth| 1_000 + nth * 10).zip(steps) {
            let before = truth(&mut disk);
            let subject = subject(&disk, step);
            prop_assert_eq!(take(&mut disk, step, now_ms, &ticket("a")), Ok(()));
            prop_assert_eq!(disk.open_handles(), 0, "{:?} kept a handle", step);
            prop_assert_eq!(disk.waits(), [0; 0], "nobody is in the way");
            for dir in [Dir::Staging, Dir::Trash] {
                let left = disk.image().names(&dir);
                prop_assert!(left.is_empty(), "{step:?} left {left:?}");
            }
            let after = truth(&mut disk);
            assert_done(step, &before, &after, subject.as_ref());
            assert_only_forward(&before, &after, subject.as_ref());
        }
        recover_to_quiet(&mut disk, 9_000);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_fault_at_any_effect_is_put_right_by_the_next_process(steps in steps()) {
        let mut disk = Fake::on(Image::store());
        for (now_ms, step) in (0u64..).map(|nth| 1_000 + nth * 10).zip(steps) {
            with_every_fault(disk.image(), step, now_ms);
            if let (Step::Ask(_, asked), Some(id)) = (step, subject(&disk, step)) {
                with_every_death_of_the_holder(disk.image(), &id, asked, now_ms);
            }
            prop_assert_eq!(take(&mut disk, step, now_ms, &ticket("a")), Ok(()));
        }
    }
}
