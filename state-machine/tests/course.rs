//! The course of a worker, told as the deeds that it asks for, in their order. The model tries every interleaving of it;
//! here is what it does when nobody comes between, and what the model has not: timeouts, hooks, workers that are made early.

// Only a part of it is needed here.
#[allow(dead_code)]
#[path = "support/fake.rs"]
mod fake;

use std::collections::VecDeque;

use fake::{Fake, Fault, Handle, How, Image};
use state_machine::control::{Control, Request};
use state_machine::course::{
    End, HookWoke, Parting, Refused, Search, Show, Until, Woke, Worker, Written, run,
};
use state_machine::disk::{Dir, Disk, Name, Place};
use state_machine::id::{JobId, Ticket};
use state_machine::job::State;
use state_machine::protocol::book::Book;
use state_machine::protocol::create::{Durable, Made, create};
use state_machine::protocol::hold::{Recorded, newborn};
use state_machine::record::{
    Bytes, Descriptor, Exit, Failure, History, PauseMode, Status, Stopping, What,
};

const DESCRIPTOR: &[u8] = br#"{"id":"1-x","kind":{"command":{"argv":["true"],"cwd":"/","env":{}}},"display_name":"x","created_at_ms":100}"#;

/// What happens to a worker that sleeps.
#[derive(Clone, Copy, Debug)]
enum Then {
    /// Its command has ended so, or what it watches for has come.
    Over(u8),
    /// Something is asked of it.
    Asked(Request),
    /// Its command has run too long.
    Late,
    /// It is told to end.
    ToldToEnd,
    /// Its stop is worth a record.
    Stubborn,
    /// The time of the next attempt has come.
    Due,
    /// The hook has ended.
    HookEnds,
}

/// A worker that writes down what it is told to do.
struct Scripted {
    disk: Fake,
    id: JobId,
    descriptor: Descriptor,
    book: Book<Handle>,
    script: VecDeque<Then>,
    /// What is left of each tree, one after the other; nothing when this is used up.
    left: VecDeque<u32>,
    told_to_end: bool,
    told_to_end_while_it_waits: bool,
    /// How often the disk does not let it record an end.
    refusals: u32,
    early: Option<bool>,
    told: Vec<String>,
}

struct Tree {
    exit: Option<Exit>,
    stopping: bool,
}

impl Scripted {
    fn new(script: &[Then]) -> Scripted {
        let mut disk = Fake::on(Image::store());
        let mut descriptor = Descriptor::decode(DESCRIPTOR).expect("it decodes");
        let ticket = Ticket::parse("t").expect("it is a ticket");
        let made = create(&mut disk, &mut descriptor, None, &ticket, Durable::No);
        let Ok(Made::Job { id, lock }) = made else {
            panic!("{made:?}");
        };
        Scripted {
            disk,
            book: Book::new(newborn(id.clone(), lock, 100)),
            id,
            descriptor,
            script: script.iter().copied().collect(),
            left: VecDeque::new(),
            told_to_end: false,
            told_to_end_while_it_waits: false,
            refusals: 0,
            early: None,
            told: Vec::new(),
        }
    }

    fn with_attempts(mut self, attempts: u32) -> Scripted {
        self.descriptor.retry.max_attempts = attempts;
        self
    }

    fn leaving(mut self, left: &[u32]) -> Scripted {
        self.left = left.iter().copied().collect();
        self
    }

    fn asked(mut self, request: Request) -> Scripted {
        self.ask(request);
        self
    }

    fn ask(&mut self, request: Request) {
        let control = Place::of_job(&self.id, Name::Control);
        let word = Control::encode(request);
        self.disk.image_mut().put(&control, &word);
    }

    fn tell(&mut self, words: impl Into<String>) {
        self.told.push(words.into());
    }

    /// Run it, and see that it was told this, and that nothing of the script is left.
    #[track_caller]
    fn expect(&mut self, parting: Parting, told: &[&str]) {
        let id = self.id.clone();
        assert_eq!(run(self, &id), Ok(parting));
        assert_eq!(self.told, told);
        assert!(self.script.is_empty(), "{:?}", self.script);
    }

    fn is_answered(&self) -> bool {
        let taken = Place::of_job(&self.id, Name::Taken);
        self.disk.image().bytes(&taken).is_none()
    }

    fn history(&mut self) -> History {
        let dir = Dir::Job(self.id.clone());
        self.disk.read_history(&dir).expect("nothing fails")
    }
}

impl Worker for Scripted {
    type Disk = Fake;
    type Fault = Fault;
    type Ready = Handle;
    type Tree = Tree;
    type Hook = bool;

    fn disk(&mut self) -> &mut Fake {
        &mut self.disk
    }

    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn now_ms(&self) -> u64 {
        200
    }

    fn random(&mut self) -> u64 {
        7
    }

    fn signal_name(signal: u8) -> String {
        format!("signal {signal}")
    }

    fn survive(&mut self, _: Fault) -> Result<String, Fault> {
        Ok("a fault".into())
    }

    fn status(&self) -> &Status {
        self.book.status()
    }

    fn is_clean(&self) -> bool {
        self.book.is_clean()
    }

    fn write(
        &mut self,
        status: Status,
        notes: Vec<What>,
        durable: Durable,
    ) -> Result<Written, Fault> {
        let durably = if durable == Durable::Yes {
            " for good"
        } else {
            ""
        };
        let left = match status.leftovers {
            Some(left) => format!(", {left} left"),
            None => String::new(),
        };
        let (state, attempt) = (status.state, status.attempt);
        self.tell(format!("record {state} {attempt}{durably}{left}"));
        self.book.mean(status, notes, durable);
        self.try_if_due()
    }

    fn try_if_due(&mut self) -> Result<Written, Fault> {
        if self.refusals > 0 && self.book.status().state.is_terminal() {
            self.refusals -= 1;
            return Ok(Written::NotYet);
        }
        Ok(match self.book.write(&mut self.disk) {
            Ok(Recorded::Done) => Written::Yes,
            Ok(Recorded::Gone) => Written::Gone,
            Err(_) => Written::NotYet,
        })
    }

    fn await_disk(&mut self) -> Result<bool, Fault> {
        self.tell("await the disk");
        Ok(!self.told_to_end_while_it_waits)
    }

    fn note(&mut self, text: String) -> Result<(), Fault> {
        self.tell(text);
        Ok(())
    }

    fn stays_empty(&mut self, _: bool) -> Result<bool, Fault> {
        Ok(false)
    }

    fn is_told_to_end(&mut self) -> Result<bool, Fault> {
        Ok(self.told_to_end)
    }

    fn is_early(&self) -> bool {
        self.early.is_some()
    }

    fn is_published(&mut self) -> Result<bool, Fault> {
        self.tell("is it published");
        Ok(self.early.take() == Some(true))
    }

    fn end_leftovers(&mut self, search: Search) -> Result<Result<(), String>, Fault> {
        self.tell(format!("end what is {search:?}"));
        Ok(Ok(()))
    }

    fn prepare(&mut self, tree: Handle) -> Result<Result<Handle, Refused>, Fault> {
        self.tell("prepare");
        Ok(Ok(tree))
    }

    fn pid(&self, _: &Handle) -> Option<u32> {
        Some(42)
    }

    fn dismiss(&mut self, ready: Handle) -> Result<(), Fault> {
        self.tell("dismiss");
        drop(ready);
        Ok(())
    }

    fn release(&mut self, ready: Handle) -> Result<Result<Tree, Refused>, Fault> {
        drop(ready);
        if self.descriptor.display_name == "missing" {
            return Ok(Err(Refused {
                failure: Failure::Missing,
                message: "it is missing".into(),
            }));
        }
        self.tell("release");
        Ok(Ok(Tree {
            exit: None,
            stopping: false,
        }))
    }

    fn watch(&mut self, tree: &mut Tree, until: Until) -> Result<Woke, Fault> {
        let then = self.script.pop_front().expect("it sleeps for ever");
        self.tell(format!("watch until {until:?}"));
        Ok(match then {
            Then::Over(code) => {
                tree.exit.get_or_insert(Exit::Code(code));
                Woke::Over
            }
            Then::Asked(request) => {
                self.ask(request);
                Woke::Look
            }
            Then::Late => Woke::Late,
            Then::ToldToEnd => Woke::ToldToEnd,
            Then::Stubborn => Woke::Show(Show::Surviving("7 (x)".into())),
            Then::Due | Then::HookEnds => panic!("{then:?} over a tree"),
        })
    }

    fn stop(&mut self, tree: &mut Tree) -> Result<bool, Fault> {
        self.tell("stop");
        tree.stopping = true;
        Ok(true)
    }

    fn freeze(&mut self, _: &mut Tree) -> Result<Option<String>, Fault> {
        self.tell("freeze");
        Ok(None)
    }

    fn thaw(&mut self, _: &mut Tree) -> Result<(), Fault> {
        self.tell("thaw");
        Ok(())
    }

    fn end_of(&mut self, tree: &mut Tree) -> Result<End, Fault> {
        let stopped = std::mem::take(&mut tree.stopping);
        Ok(End {
            exit: tree.exit,
            stopping: stopped.then_some(Stopping {
                since_ms: 200,
                signal: 15,
                forced: false,
            }),
            dropped_bytes: None,
            ran_ms: 1,
            cause: None,
        })
    }

    fn left(&mut self, _: &mut Tree) -> Result<u32, Fault> {
        Ok(self.left.pop_front().unwrap_or(0))
    }

    fn is_empty(&mut self, _: &mut Tree) -> Result<bool, Fault> {
        Ok(self.left.pop_front().unwrap_or(0) == 0)
    }

    fn set_alarm(&mut self, delay_ms: u64) {
        self.tell(format!("wait {delay_ms} ms"));
    }

    fn await_alarm(&mut self) -> Result<bool, Fault> {
        match self.script.pop_front().expect("it waits for ever") {
            Then::Due => Ok(true),
            Then::Asked(request) => {
                self.ask(request);
                Ok(false)
            }
            other => panic!("{other:?} between two attempts"),
        }
    }

    fn vacate(&mut self) {
        self.tell("vacate");
    }

    fn say_started(&mut self) {
        self.tell("say started");
    }

    fn say_over(&mut self) {
        self.tell("say over");
    }

    fn say_unrecorded(&mut self) {
        self.tell("say unrecorded");
    }

    fn start_hook(&mut self) -> Result<Option<Result<bool, String>>, Fault> {
        self.tell("start the hook");
        Ok(Some(Ok(false)))
    }

    fn watch_hook(&mut self, cut: &mut bool, _: Option<&mut Tree>) -> Result<HookWoke, Fault> {
        Ok(
            match self.script.pop_front().expect("the hook runs for ever") {
                Then::HookEnds if *cut => HookWoke::Over(Err("cut short".into())),
                Then::HookEnds => HookWoke::Over(Ok(())),
                Then::Asked(request) => {
                    self.ask(request);
                    HookWoke::Look
                }
                other => panic!("{other:?} over a hook"),
            },
        )
    }

    fn cut_hook_short(&mut self, cut: &mut bool) -> Result<(), Fault> {
        self.tell("cut the hook short");
        *cut = true;
        Ok(())
    }
}

/// What a worker is told until its command runs.
const STARTED: [&str; 4] = ["prepare", "record running 1", "release", "say started"];

fn after_start<'a>(told: &[&'a str]) -> Vec<&'a str> {
    [&STARTED, told].concat()
}

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
    assert!(worker.is_clean());
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
    assert!(!worker.is_clean() && !worker.is_answered());
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
        "start the hook",
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
