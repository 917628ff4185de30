//! A worker that writes down what it is told to do, and to which happens what a script says.

use std::collections::VecDeque;

use state_machine::control::{Control, Request};
use state_machine::course::{
    End, HookWoke, Notice, Parting, Refused, Search, Show, Until, Woke, Worker, Written, run,
};
use state_machine::disk::{Dir, Disk, Name, Place};
use state_machine::id::{JobId, Ticket};
use state_machine::job::State;
use state_machine::protocol::book::Book;
use state_machine::protocol::create::{Durable, Made, acknowledge, create};
use state_machine::protocol::hold::Recorded;
use state_machine::pull::word::{Cause, Word};
use state_machine::record::{Bytes, Descriptor, Exit, Failure, History, Status, Stopping, What};

use crate::fake::{Fake, Fault, Handle, Image};

/// What its job is to do.
pub(super) const DESCRIPTOR: &[u8] = br#"{"id":"1-x","kind":{"command":{"argv":["true"],"cwd":"/","env":{}}},"display_name":"x","created_at_ms":100}"#;

/// What happens to a worker that sleeps.
#[derive(Clone, Copy, Debug)]
pub(super) enum Then {
    /// Its command has ended so, or what it watches for has come.
    Over(u8),
    /// Something is asked of it.
    Asked(Request),
    /// Its command has run too long.
    Late,
    /// What its command is made of has changed.
    Renewed,
    /// Its command says that it is ready.
    SaysReady,
    /// It is told to end.
    ToldToEnd,
    /// Its stop is worth a record.
    Stubborn,
    /// Its command is a transfer, and says the next of its words.
    Says,
    /// The time of the next attempt has come.
    Due,
    /// The hook has ended.
    HookEnds,
}

/// A worker that writes down what it is told to do.
pub(super) struct Scripted {
    pub(super) disk: Fake,
    pub(super) id: JobId,
    pub(super) descriptor: Descriptor,
    pub(super) book: Book<Handle>,
    pub(super) script: VecDeque<Then>,
    /// What a transfer says, one after the other, and why it ends.
    pub(super) words: VecDeque<Word>,
    pub(super) cause: Option<Cause>,
    /// What is left of each tree, one after the other; nothing when this is used up.
    pub(super) left: VecDeque<u32>,
    pub(super) told_to_end: bool,
    pub(super) told_to_end_while_it_waits: bool,
    /// How often its command cannot be started.
    pub(super) unready: u32,
    /// Whether an empty control file has been so for long enough.
    pub(super) empty_for_long: bool,
    /// How often the disk does not let it record an end or a pause.
    pub(super) refusals: u32,
    pub(super) early: Option<bool>,
    pub(super) told: Vec<String>,
}

pub(super) struct Tree {
    exit: Option<Exit>,
    stopping: bool,
}

impl Scripted {
    pub(super) fn new(script: &[Then]) -> Scripted {
        let mut disk = Fake::on(Image::store());
        let mut descriptor = Descriptor::decode(DESCRIPTOR).expect("it decodes");
        let ticket = Ticket::parse("t").expect("it is a ticket");
        let made = create(&mut disk, &mut descriptor, None, &ticket, Durable::No);
        let Ok(Made::Job(made)) = made else {
            panic!("{made:?}");
        };
        let holder = acknowledge(&mut disk, made).expect("nothing fails");
        let id = holder.id().clone();
        Scripted {
            disk,
            book: Book::new(holder),
            id,
            descriptor,
            script: script.iter().copied().collect(),
            words: VecDeque::new(),
            cause: None,
            left: VecDeque::new(),
            told_to_end: false,
            told_to_end_while_it_waits: false,
            unready: 0,
            empty_for_long: false,
            refusals: 0,
            early: None,
            told: Vec::new(),
        }
    }

    pub(super) fn with_attempts(mut self, attempts: u32) -> Scripted {
        self.descriptor.retry.max_attempts = attempts;
        self
    }

    pub(super) fn leaving(mut self, left: &[u32]) -> Scripted {
        self.left = left.iter().copied().collect();
        self
    }

    pub(super) fn asked(mut self, request: Request) -> Scripted {
        self.ask(request);
        self
    }

    pub(super) fn ask(&mut self, request: Request) {
        let control = Place::of_job(&self.id, Name::Control);
        let word = Control::encode(request);
        self.disk.image_mut().put(&control, &word);
    }

    pub(super) fn tell(&mut self, words: impl Into<String>) {
        self.told.push(words.into());
    }

    /// Run it, and see that it was told this, and that nothing of the script is left.
    #[track_caller]
    pub(super) fn expect(&mut self, parting: Parting, told: &[&str]) {
        let id = self.id.clone();
        assert_eq!(run(self, &id), Ok(parting));
        assert_eq!(self.told, told);
        assert!(self.script.is_empty(), "{:?}", self.script);
    }

    pub(super) fn is_answered(&self) -> bool {
        let taken = Place::of_job(&self.id, Name::Taken);
        self.disk.image().bytes(&taken).is_none()
    }

    pub(super) fn history(&mut self) -> History {
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

    fn book(&self) -> &Book<Handle> {
        &self.book
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
        let state = self.book.status().state;
        if self.refusals > 0 && (state.is_terminal() || state == State::Paused) {
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

    fn stays_empty(&mut self, is_empty: bool) -> Result<bool, Fault> {
        Ok(is_empty && self.empty_for_long)
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
        if let Some(left) = self.unready.checked_sub(1) {
            self.unready = left;
            return Ok(Err(Refused::start("no more processes")));
        }
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
            Then::Renewed => Woke::Renewed("src/a has changed".into()),
            Then::SaysReady => Woke::Show(Show::Notified(Notice {
                ready: true,
                status_line: Some("it serves".into()),
            })),
            Then::ToldToEnd => Woke::ToldToEnd,
            Then::Stubborn => Woke::Show(Show::Surviving("7 (x)".into())),
            Then::Says => {
                let word = self.words.pop_front().expect("it has something to say");
                Woke::Show(Show::Said(word))
            }
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

    fn let_register(&mut self, _: &mut Tree) -> Result<(), Fault> {
        self.tell("let register");
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
            cause: self.cause.clone(),
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

    fn start_hook(&mut self, argv: &[Bytes]) -> Result<Result<bool, String>, Fault> {
        let words: Vec<_> = argv.iter().map(Bytes::lossy).collect();
        self.tell(format!("start the hook {}", words.join(" ")).trim_end());
        Ok(Ok(false))
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
                Then::Stubborn => HookWoke::Show(Show::Surviving("7 (x)".into())),
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
pub(super) const STARTED: [&str; 4] = ["prepare", "record running 1", "release", "say started"];

pub(super) fn after_start<'a>(told: &[&'a str]) -> Vec<&'a str> {
    [&STARTED, told].concat()
}
