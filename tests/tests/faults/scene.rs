//! What is in the store before a protocol runs. A scene is made by the protocols that ship, on a disk that works; only
//! what a hand, a crash or a loss of power leaves is put there by hand.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use outlive::disk::{FsDisk, LockFile};
use rustix::fs::FlockOperation;
use state_machine::control::Request;
use state_machine::id::{JobId, Key, Name as JobName, PoolName, Ticket};
use state_machine::job::State;
use state_machine::protocol::claim::{Claim, Tree, claim, claim_tree};
use state_machine::protocol::create::{Durable, Made, acknowledge, create};
use state_machine::protocol::hold::{Holder, TakeOver, record, take_over};
use state_machine::protocol::pool::{Changed, Wish, change_pool};
use state_machine::protocol::request::{request, take};
use state_machine::protocol::settle::let_go;
use state_machine::protocol::spare::{LaidIn, SPARES, lay_in};
use state_machine::protocol::start::{Started, start};
use state_machine::protocol::supervise::{Supervision, claim_supervision};
use state_machine::record::{
    Command, Descriptor, Environment, Exit, Kind, Line, OnInterrupt, Output, PauseMode, Status,
    What,
};
use state_machine::retry::Retry;

/// When the job of the scene was made, in ms since the epoch.
pub(crate) const MADE_MS: u64 = 1_000;

/// What a hand has put into a spare.
const NOTES: &str = "mine\n";
/// Too little room for a descriptor.
const SHORT: &str = "          \n";

/// Where what was made of the pool of a scene is written down.
pub(crate) const POOL_FILE: &str = "pools/web/pool.json";
/// What cannot be read there.
pub(crate) const GARBAGE: &str = "{\"slots\":";

/// What is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scene {
    Empty,
    Queued,
    Paused,
    /// It says running, and its worker is dead.
    Abandoned,
    Interrupted,
    Ended,
    /// A queued job, and a pause that nobody has taken yet.
    QueuedPause,
    PausedResume,
    AbandonedCancel,
    /// An abandoned job whose worker had taken a pause.
    AbandonedTaken,
    /// A cancel that came as the job ended.
    EndedCancel,
    /// A control file that a hand has made and not filled.
    EmptyControl,
    /// A control file that holds no request.
    WrongWord,
    /// An abandoned job whose last line is torn.
    Torn,
    /// An abandoned job whose history lacks the last state.
    Behind,
    /// A queued job, and what crashes left in `staging/` and `trash/`.
    Litter,
    /// A queued job that somebody else holds.
    Held,
    /// An abandoned job of whose processes one is left, and a cancel.
    Orphaned,
    /// A queued job that was started under a name.
    Named,
    /// A name whose job was never made: a crash between pointer and job.
    NamedNobody,
    /// An ended job that was started under a name.
    NamedEnded,
    /// A directory for a job to come.
    Spare,
    /// As many of them as there can be.
    SparesFull,
    /// One whose lock somebody has.
    SpareHeld,
    /// One that a hand has put a file into, and another one.
    SpareOdd,
    /// One with less room than a descriptor takes.
    SpareShort,
    /// One whose descriptor is a link to nowhere.
    SpareLinked,
    /// One, and a queued job with the id that the next one would bear.
    SpareQueued,
    /// A pool that somebody made.
    Pooled,
    /// The same, and what was made of it cannot be read.
    PoolDamaged,
    /// A queued job, and a supervisor.
    Supervised,
}

impl Scene {
    pub(crate) const ALL: [Scene; 31] = [
        Scene::Empty,
        Scene::Queued,
        Scene::Paused,
        Scene::Abandoned,
        Scene::Interrupted,
        Scene::Ended,
        Scene::QueuedPause,
        Scene::PausedResume,
        Scene::AbandonedCancel,
        Scene::AbandonedTaken,
        Scene::EndedCancel,
        Scene::EmptyControl,
        Scene::WrongWord,
        Scene::Torn,
        Scene::Behind,
        Scene::Litter,
        Scene::Held,
        Scene::Orphaned,
        Scene::Named,
        Scene::NamedNobody,
        Scene::NamedEnded,
        Scene::Spare,
        Scene::SparesFull,
        Scene::SpareHeld,
        Scene::SpareOdd,
        Scene::SpareShort,
        Scene::SpareLinked,
        Scene::SpareQueued,
        Scene::Pooled,
        Scene::PoolDamaged,
        Scene::Supervised,
    ];

    /// Whether there is a job.
    pub(crate) fn has_job(self) -> bool {
        self.rest().is_some()
    }

    /// Whether it is about a pool.
    pub(crate) fn is_of_pool(self) -> bool {
        matches!(self, Scene::Pooled | Scene::PoolDamaged)
    }

    /// Whether there are directories for jobs to come.
    pub(crate) fn has_spares(self) -> bool {
        matches!(
            self,
            Scene::Spare
                | Scene::SparesFull
                | Scene::SpareHeld
                | Scene::SpareOdd
                | Scene::SpareShort
                | Scene::SpareLinked
                | Scene::SpareQueued
        )
    }

    /// What a hand has done to the spare 0: the file that it had its hand in, and what it is now, `None` for a link. Where
    /// that still stands, it is still so.
    pub(crate) fn odd_spare(self) -> Option<(&'static str, Option<&'static str>)> {
        match self {
            Scene::SpareOdd => Some(("notes", Some(NOTES))),
            Scene::SpareShort => Some(("job.json", Some(SHORT))),
            Scene::SpareLinked => Some(("job.json", None)),
            _ => None,
        }
    }

    /// The state that the job comes to when it is recovered and nothing else happens.
    pub(crate) fn rest(self) -> Option<State> {
        Some(match self {
            Scene::Empty | Scene::NamedNobody => return None,
            Scene::SpareQueued | Scene::Supervised => State::Queued,
            Scene::Queued | Scene::Litter | Scene::Held | Scene::Named => State::Queued,
            Scene::EmptyControl => State::Queued,
            Scene::WrongWord | Scene::PausedResume => State::Queued,
            Scene::Paused | Scene::QueuedPause | Scene::AbandonedTaken => State::Paused,
            Scene::Abandoned | Scene::Interrupted | Scene::Torn | Scene::Behind => {
                State::Interrupted
            }
            Scene::AbandonedCancel | Scene::Orphaned => State::Cancelled,
            Scene::Ended | Scene::EndedCancel | Scene::NamedEnded => State::Done,
            Scene::Spare
            | Scene::SparesFull
            | Scene::SpareHeld
            | Scene::SpareOdd
            | Scene::SpareShort
            | Scene::SpareLinked
            | Scene::Pooled
            | Scene::PoolDamaged => return None,
        })
    }

    /// Put it into an empty directory. What others have open in it is handed back.
    pub(crate) fn make(self, root: &Path) -> Option<LockFile> {
        for dir in ["jobs", "staging", "trash", "keys", "pools"] {
            fs::create_dir(root.join(dir)).expect("the scratch directory is ours");
        }
        let mut disk = FsDisk::new(root.to_owned());
        match self {
            Scene::Empty => {}
            Scene::Queued => queue(&mut disk),
            Scene::Paused => {
                queue(&mut disk);
                let mut holder = hold(&mut disk);
                enter(&mut disk, &mut holder, State::Paused);
            }
            Scene::Abandoned => abandon(&mut disk),
            Scene::Interrupted => {
                abandon(&mut disk);
                let holder = hold(&mut disk);
                let_go(&mut disk, holder, MADE_MS, 3_000).expect("this disk works");
            }
            Scene::Ended => {
                queue(&mut disk);
                end(&mut disk);
            }
            Scene::QueuedPause => {
                queue(&mut disk);
                ask(&mut disk, Request::Pause);
            }
            Scene::PausedResume => {
                queue(&mut disk);
                let mut holder = hold(&mut disk);
                enter(&mut disk, &mut holder, State::Paused);
                drop(holder);
                ask(&mut disk, Request::Resume);
            }
            Scene::AbandonedCancel => {
                abandon(&mut disk);
                ask(&mut disk, Request::Cancel);
            }
            Scene::AbandonedTaken => {
                abandon(&mut disk);
                ask(&mut disk, Request::Pause);
                take(&mut disk, &job()).expect("this disk works");
            }
            Scene::EndedCancel => {
                queue(&mut disk);
                ask(&mut disk, Request::Cancel);
                end(&mut disk);
            }
            Scene::EmptyControl => {
                queue(&mut disk);
                fs::write(dir(root).join("control"), "").expect("it is ours");
            }
            Scene::WrongWord => {
                queue(&mut disk);
                fs::write(dir(root).join("control"), "halt\n").expect("it is ours");
            }
            Scene::Torn => {
                abandon(&mut disk);
                let events = dir(root).join("events.jsonl");
                let mut bytes = fs::read(&events).expect("it has a history");
                bytes.extend(br#"{"at_ms":2001,"event":"sta"#);
                fs::write(events, bytes).expect("it is ours");
            }
            Scene::Behind => {
                abandon(&mut disk);
                let line = Line::state(MADE_MS, State::Queued).encode();
                fs::write(dir(root).join("events.jsonl"), line).expect("it is ours");
            }
            Scene::Litter => {
                queue(&mut disk);
                litter(root);
            }
            Scene::Held => {
                queue(&mut disk);
                return Some(lock(&mut disk));
            }
            Scene::Orphaned => {
                abandon(&mut disk);
                ask(&mut disk, Request::Cancel);
                match claim_tree(&mut disk, &job()) {
                    Ok(Tree::Mine(tree)) => return Some(tree),
                    other => panic!("nobody has it: {other:?}"),
                }
            }
            Scene::Named => name(&mut disk),
            Scene::NamedNobody => {
                name(&mut disk);
                fs::remove_dir_all(dir(root)).expect("it is ours");
            }
            Scene::NamedEnded => {
                name(&mut disk);
                end(&mut disk);
            }
            Scene::Spare => lay(&mut disk),
            Scene::SparesFull => (0..SPARES).for_each(|_| lay(&mut disk)),
            Scene::SpareHeld => {
                lay(&mut disk);
                return Some(lock_of_spare(root));
            }
            Scene::SpareOdd => {
                lay(&mut disk);
                lay(&mut disk);
                fs::write(root.join("spares/0/notes"), NOTES).expect("it is ours");
            }
            Scene::SpareShort => {
                lay(&mut disk);
                fs::write(root.join("spares/0/job.json"), SHORT).expect("it is ours");
            }
            Scene::SpareLinked => {
                lay(&mut disk);
                let descriptor = root.join("spares/0/job.json");
                fs::remove_file(&descriptor).expect("it is ours");
                std::os::unix::fs::symlink("nowhere", descriptor).expect("it is ours");
            }
            Scene::SpareQueued => {
                queue(&mut disk);
                lay(&mut disk);
            }
            Scene::Pooled => make_pool(&mut disk),
            Scene::PoolDamaged => {
                make_pool(&mut disk);
                fs::write(root.join(POOL_FILE), GARBAGE).expect("it is ours");
            }
            Scene::Supervised => {
                queue(&mut disk);
                return Some(supervise(&mut disk));
            }
        }
        None
    }
}

/// The job of a scene.
pub(crate) fn job() -> JobId {
    JobId::new(MADE_MS, "x", 1)
}

fn dir(root: &Path) -> std::path::PathBuf {
    root.join("jobs").join(job().as_str())
}

pub(crate) fn key() -> Key {
    Key::parse("name-web").expect("it is a key")
}

pub(crate) fn ticket(word: &str) -> Ticket {
    Ticket::parse(word).expect("it is a ticket")
}

/// What a job is to do, made at `now_ms`.
pub(crate) fn descriptor(now_ms: u64, name: Option<&str>) -> Descriptor {
    Descriptor {
        id: JobId::new(now_ms, "x", 1),
        kind: Kind::Command(Command {
            argv: vec!["true".into()],
            cwd: "/".into(),
            env: Environment::default(),
            umask: None,
        }),
        display_name: "x".into(),
        name: name.map(|name| JobName::parse(name).expect("it is a name")),
        task: None,
        project: None,
        pool: Some("default".into()),
        priority: 0,
        after: Vec::new(),
        timeout_ms: None,
        retry: Retry::default(),
        pause: PauseMode::default(),
        grace_ms: 0,
        output: Output::default(),
        stdin: None,
        success_codes: vec![0],
        not_before_ms: None,
        delay_ms: None,
        on_interrupt: OnInterrupt::Leave,
        slots: 1,
        order: 0,
        on_end: None,
        on_failure: None,
        watch: Vec::new(),
        notify: false,
        limits: Default::default(),
        total_bytes: None,
        previous: None,
        created_at_ms: now_ms,
    }
}

fn queue(disk: &mut FsDisk) {
    let mut descriptor = descriptor(MADE_MS, None);
    let ticket = ticket("scene");
    let made = create(disk, &mut descriptor, None, &ticket, Durable::No).expect("this disk works");
    let Made::Job(made) = made else {
        panic!("nobody is in the way");
    };
    let holder = acknowledge(disk, made).expect("this disk works");
    let_go(disk, holder, MADE_MS, MADE_MS).expect("this disk works");
}

fn name(disk: &mut FsDisk) {
    let mut descriptor = descriptor(MADE_MS, Some("web"));
    let ticket = ticket("scene");
    let started = start(disk, &mut descriptor, &key(), &ticket, Durable::No);
    assert!(matches!(started, Ok(Started::New(_))), "{started:?}");
}

fn lay(disk: &mut FsDisk) {
    let laid = lay_in(disk, &ticket("layer"));
    assert_eq!(laid.expect("this disk works"), LaidIn::Yes);
}

/// The pool of a scene.
pub(crate) fn pool() -> PoolName {
    PoolName::parse("web").expect("it is a name")
}

fn make_pool(disk: &mut FsDisk) {
    let wish = Wish {
        slots: Some(3),
        ..Wish::default()
    };
    let changed = change_pool(disk, &pool(), wish).expect("this disk works");
    assert!(matches!(changed, Changed::Is(_)), "{changed:?}");
}

/// Become the supervisor.
pub(crate) fn supervise(disk: &mut FsDisk) -> LockFile {
    match claim_supervision(disk) {
        Ok(Supervision::Ours(lock)) => lock,
        other => panic!("nobody is it: {other:?}"),
    }
}

fn lock_of_spare(root: &Path) -> LockFile {
    let lock = fs::File::open(root.join("spares/0/lock")).expect("it was laid in");
    rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).expect("nobody has it");
    LockFile::from(OwnedFd::from(lock))
}

/// Take the job's lock.
pub(crate) fn lock(disk: &mut FsDisk) -> LockFile {
    match claim(disk, &job()) {
        Ok(Claim::Mine(lock)) => lock,
        other => panic!("nobody has it: {other:?}"),
    }
}

/// Take the job and bring its records to agree.
pub(crate) fn hold(disk: &mut FsDisk) -> Holder<LockFile> {
    let lock = lock(disk);
    match take_over(disk, &job(), lock, MADE_MS, 2_500) {
        Ok(TakeOver::Holder(holder)) => holder,
        other => panic!("its records can be read: {other:?}"),
    }
}

/// The record of a state that the job enters.
pub(crate) fn status(holder: &Holder<LockFile>, state: State) -> Status {
    let mut status = holder.status().clone();
    status.state = state;
    status.updated_at_ms = 2_000;
    if state == State::Running {
        status.attempt = 1;
        status.started_at_ms = Some(2_000);
    }
    if state == State::Done {
        status.exit = Some(Exit::Code(0));
        status.ended_at_ms = Some(2_000);
    }
    status
}

/// Record a state.
pub(crate) fn enter(disk: &mut FsDisk, holder: &mut Holder<LockFile>, state: State) {
    let status = status(holder, state);
    let note = What::Status {
        text: "on the way".into(),
    };
    record(disk, holder, status, &[note], Durable::No).expect("this disk works");
}

fn abandon(disk: &mut FsDisk) {
    queue(disk);
    let mut holder = hold(disk);
    enter(disk, &mut holder, State::Running);
}

fn end(disk: &mut FsDisk) {
    let mut holder = hold(disk);
    enter(disk, &mut holder, State::Running);
    enter(disk, &mut holder, State::Done);
}

fn ask(disk: &mut FsDisk, what: Request) {
    let asked = request(disk, &job(), what, &ticket("asker"));
    assert_eq!(
        asked.expect("this disk works"),
        state_machine::protocol::request::Asked::Placed
    );
}

/// What every kind of crash leaves: makers at each of their steps, a client, and somebody who was deleting.
fn litter(root: &Path) {
    let staging = root.join("staging");
    let make = |dir: &str, files: &[&str]| {
        let dir = root.join(dir);
        fs::create_dir(&dir).expect("the scratch directory is ours");
        for file in files {
            fs::write(dir.join(file), "").expect("the scratch directory is ours");
        }
    };
    make("staging/a", &[]);
    make("staging/b", &["lock"]);
    make("staging/c", &["lock", "job.json"]);
    // Its lock was lost with the power.
    make("staging/d", &["job.json"]);
    fs::write(staging.join("e"), "cancel\n").expect("the scratch directory is ours");
    make("trash/f", &["lock", "job.json", "status.json", "log"]);
    make("trash/g", &["job.json"]);
    make("trash/h", &[]);
}
