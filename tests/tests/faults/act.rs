//! The protocols, each as somebody calls it. What one needs before it begins is prepared on a disk that works; then it
//! runs on any disk, and says what its caller may believe afterwards.

use outlive::DiskError;
use outlive::disk::{FsDisk, LockFile};
use state_machine::control::Request;
use state_machine::disk::Disk;
use state_machine::id::JobId;
use state_machine::job::State;
use state_machine::protocol::batch::create_batch;
use state_machine::protocol::claim::{claim, claim_tree, tree_is_free};
use state_machine::protocol::create::{Durable, Made, acknowledge, create};
use state_machine::protocol::forget::{Forgotten, forget, make_final, purge};
use state_machine::protocol::hold::{Holder, note, record, take_over};
use state_machine::protocol::look::look;
use state_machine::protocol::pool::{Changed, PoolForgotten, Wish, change_pool, forget_pool};
use state_machine::protocol::recover::{collect, recover_job};
use state_machine::protocol::request::{Asked, Took, answered, discard, request, take};
use state_machine::protocol::settle::{Searched, let_go, settle};
use state_machine::protocol::spare::lay_in;
use state_machine::protocol::start::{Started, start, start_numbered};
use state_machine::protocol::supervise::{
    Unmet, claim_supervision, fail_unmet, is_supervised, retire,
};
use state_machine::record::{After, AfterWhen, Descriptor, What};

use crate::scene::{
    MADE_MS, Scene, descriptor, enter, hold, job, key, lock, pool, status, supervise, ticket,
};

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Create(Durable),
    Start(Durable),
    StartNumbered,
    Claim,
    TreeIsFree,
    ClaimTree,
    TakeOver,
    /// A worker records that it runs.
    RecordRunning,
    /// A worker records the end.
    RecordDone,
    Note,
    Look,
    Ask(Request),
    /// A holder takes what is asked, records its effect, and answers.
    TakeAndAnswer,
    Discard,
    Settle,
    LetGo,
    Forget,
    Recover,
    Collect,
    LayIn,
    /// Two jobs at once, of which the second comes after the first.
    CreateBatch,
    /// A pool is paused.
    PausePool,
    ForgetPool,
    ClaimSupervision,
    IsSupervised,
    /// A supervisor leaves.
    Retire,
    /// A job is ended that can never start.
    FailUnmet,
}

/// What the protocol needs: nothing, the lock, or the whole job.
pub(crate) enum Ready {
    Nothing,
    Lock(LockFile),
    Holder(Box<Holder<LockFile>>),
}

/// What the caller was told.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Told {
    /// These jobs are made, durably.
    pub(crate) made: Vec<JobId>,
    /// The request is accepted.
    pub(crate) placed: bool,
    /// The job is forgotten.
    pub(crate) forgotten: bool,
    /// The record is written.
    pub(crate) recorded: Option<State>,
    /// The pool is paused, or forgotten.
    pub(crate) changed: bool,
}

impl Act {
    pub(crate) const ALL: [Act; 31] = [
        Act::Create(Durable::Yes),
        Act::Create(Durable::No),
        Act::Start(Durable::Yes),
        Act::Start(Durable::No),
        Act::StartNumbered,
        Act::Claim,
        Act::TreeIsFree,
        Act::ClaimTree,
        Act::TakeOver,
        Act::RecordRunning,
        Act::RecordDone,
        Act::Note,
        Act::Look,
        Act::Ask(Request::Pause),
        Act::Ask(Request::Resume),
        Act::Ask(Request::Cancel),
        Act::TakeAndAnswer,
        Act::Discard,
        Act::Settle,
        Act::LetGo,
        Act::Forget,
        Act::Recover,
        Act::Collect,
        Act::LayIn,
        Act::CreateBatch,
        Act::PausePool,
        Act::ForgetPool,
        Act::ClaimSupervision,
        Act::IsSupervised,
        Act::Retire,
        Act::FailUnmet,
    ];

    /// Whether somebody can come to call it in this scene.
    pub(crate) fn fits(self, scene: Scene) -> bool {
        let ended = scene.rest() == Some(State::Done);
        let free = scene.has_job() && scene != Scene::Held;
        let has_spares = scene.has_spares();
        let of_pool = matches!(self, Act::PausePool | Act::ForgetPool);
        match self {
            _ if of_pool => scene.is_of_pool() || scene == Scene::Empty,
            _ if scene.is_of_pool() => false,
            Act::CreateBatch => matches!(
                scene,
                Scene::Empty | Scene::Queued | Scene::Ended | Scene::Litter | Scene::Spare
            ),
            Act::ClaimSupervision | Act::IsSupervised => {
                matches!(scene, Scene::Empty | Scene::Queued | Scene::Supervised)
            }
            // What is not there cannot be left.
            _ if scene == Scene::Supervised => false,
            Act::Retire => !has_spares && scene != Scene::Litter,
            Act::PausePool | Act::ForgetPool => false,
            Act::Create(_) | Act::Collect => true,
            Act::LayIn => {
                has_spares || matches!(scene, Scene::Empty | Scene::Queued | Scene::Litter)
            }
            Act::Start(_) | Act::StartNumbered if has_spares => true,
            // What is done with a job is the same whether spares lie beside it or not.
            _ if has_spares => false,
            Act::Start(_) | Act::StartNumbered => matches!(
                scene,
                Scene::Empty
                    | Scene::Queued
                    | Scene::Litter
                    | Scene::Named
                    | Scene::NamedNobody
                    | Scene::NamedEnded
            ),
            Act::Claim
            | Act::TreeIsFree
            | Act::Look
            | Act::Ask(_)
            | Act::Forget
            | Act::Recover
            | Act::FailUnmet => scene.has_job(),
            Act::TakeOver | Act::Settle | Act::LetGo | Act::Discard => free,
            // Only of a job that can still run.
            Act::ClaimTree | Act::Note => free && !ended,
            // And only when nothing is left of an earlier attempt (R11).
            Act::RecordRunning | Act::RecordDone | Act::TakeAndAnswer => {
                free && !ended && scene != Scene::Orphaned
            }
        }
    }

    /// Everything that comes before.
    pub(crate) fn prepare(self, disk: &mut FsDisk) -> Ready {
        match self {
            Act::TakeOver => Ready::Lock(lock(disk)),
            Act::Retire => Ready::Lock(supervise(disk)),
            Act::ClaimTree
            | Act::Note
            | Act::RecordRunning
            | Act::TakeAndAnswer
            | Act::Discard
            | Act::Settle
            | Act::LetGo => Ready::Holder(Box::new(hold(disk))),
            Act::RecordDone => {
                let mut holder = hold(disk);
                enter(disk, &mut holder, State::Running);
                Ready::Holder(Box::new(holder))
            }
            _ => Ready::Nothing,
        }
    }

    /// Do it. Whoever did it is gone afterwards, and with it every handle.
    pub(crate) fn perform<D>(self, disk: &mut D, ready: Ready) -> Result<Told, DiskError>
    where
        D: Disk<Handle = LockFile, Fault = DiskError>,
    {
        let id = job();
        let mine = ticket("mine");
        let mut told = Told::default();
        match (self, ready) {
            (Act::Create(durable), _) => {
                let mut descriptor = descriptor(MADE_MS, None);
                let made = create(disk, &mut descriptor, None, &mine, durable)?;
                if let Made::Job(made) = made {
                    told.made.push(acknowledge(disk, made)?.id().clone());
                }
            }
            (Act::Start(durable), _) => {
                let mut descriptor = descriptor(MADE_MS + 1, Some("web"));
                let started = start(disk, &mut descriptor, &key(), &mine, durable)?;
                told.made = acknowledged(disk, started)?;
            }
            (Act::StartNumbered, _) => {
                let mut descriptor = descriptor(MADE_MS + 1, None);
                let key = key();
                let started =
                    start_numbered(disk, &mut descriptor, &key, "build", &mine, Durable::Yes)?;
                told.made = acknowledged(disk, started)?;
            }
            (Act::Claim, _) => drop(claim(disk, &id)?),
            (Act::TreeIsFree, _) => {
                tree_is_free(disk, &id)?;
            }
            (Act::ClaimTree, _holder) => drop(claim_tree(disk, &id)?),
            (Act::TakeOver, Ready::Lock(lock)) => {
                drop(take_over(disk, &id, lock, MADE_MS, 2_500)?);
            }
            (Act::RecordRunning, Ready::Holder(mut holder)) => {
                let status = status(&holder, State::Running);
                record(disk, &mut holder, status, &[], Durable::No)?;
                told.recorded = Some(State::Running);
            }
            (Act::RecordDone, Ready::Holder(mut holder)) => {
                let status = status(&holder, State::Done);
                let text = "it has ended".into();
                let notes = [What::Status { text }];
                record(disk, &mut holder, status, &notes, Durable::Yes)?;
                told.recorded = Some(State::Done);
            }
            (Act::Note, Ready::Holder(mut holder)) => {
                let text = "something".into();
                note(disk, &mut holder, What::Status { text }, 2_600)?;
            }
            (Act::Look, _) => {
                look(disk, &id)?;
            }
            (Act::Ask(what), _) => {
                told.placed = request(disk, &id, what, &mine)? == Asked::Placed;
            }
            (Act::TakeAndAnswer, Ready::Holder(mut holder)) => take_and_answer(disk, &mut holder)?,
            (Act::Discard, Ready::Holder(_holder)) => {
                discard(disk, &id)?;
            }
            (Act::Settle, Ready::Holder(mut holder)) => {
                settle(disk, &mut holder, Searched::Yes, 2_600)?;
            }
            (Act::LetGo, Ready::Holder(holder)) => {
                let_go(disk, *holder, MADE_MS, 2_600)?;
            }
            (Act::Forget, _) => {
                if let Forgotten::Trashed(ticket) = forget(disk, &id, &mine)? {
                    make_final(disk)?;
                    told.forgotten = true;
                    purge(disk, &ticket)?;
                }
            }
            (Act::Recover, _) => {
                recover_job(disk, &id, 2_600)?;
            }
            (Act::LayIn, _) => {
                lay_in(disk, &mine)?;
            }
            (Act::Collect, _) => {
                collect(disk, &mine, &mut |_| {})?;
            }
            (Act::CreateBatch, _) => {
                let mut both = two_at_once();
                if let Some(holders) = create_batch(disk, &mut both, &mine)? {
                    let made = holders.iter().map(|holder| holder.id().clone());
                    told.made = made.collect();
                }
            }
            (Act::PausePool, _) => {
                let wish = Wish {
                    paused: Some(true),
                    ..Wish::default()
                };
                told.changed = matches!(change_pool(disk, &pool(), wish)?, Changed::Is(_));
            }
            (Act::ForgetPool, _) => {
                told.changed = forget_pool(disk, &pool())? == PoolForgotten::Yes;
            }
            (Act::ClaimSupervision, _) => drop(claim_supervision(disk)?),
            (Act::IsSupervised, _) => {
                is_supervised(disk)?;
            }
            (Act::Retire, Ready::Lock(lock)) => drop(retire(disk, lock)?),
            (Act::FailUnmet, _) => {
                let unmet = fail_unmet(disk, &id, "0-y is failed", MADE_MS, 2_600)?;
                told.recorded = (unmet == Unmet::Recorded).then_some(State::Failed);
            }
            (act, _) => unreachable!("{act:?} was prepared otherwise"),
        }
        Ok(told)
    }
}

/// Two jobs, the first of which bears the id of the job of the scene, where it has one.
fn two_at_once() -> [Descriptor; 2] {
    let first = descriptor(MADE_MS, None);
    let mut second = descriptor(MADE_MS + 1, None);
    second.order = 1;
    second.id = JobId::new(MADE_MS + 1, "x", 2);
    second.after = vec![After {
        job: first.id.clone(),
        when: AfterWhen::Success,
    }];
    [first, second]
}

fn acknowledged<D>(disk: &mut D, started: Started<LockFile>) -> Result<Vec<JobId>, DiskError>
where
    D: Disk<Handle = LockFile, Fault = DiskError>,
{
    let Started::New(made) = started else {
        return Ok(Vec::new());
    };
    Ok(vec![acknowledge(disk, made)?.id().clone()])
}

/// As a worker does that has nothing to end.
fn take_and_answer<D>(disk: &mut D, holder: &mut Holder<LockFile>) -> Result<(), DiskError>
where
    D: Disk<Handle = LockFile, Fault = DiskError>,
{
    let id = holder.id().clone();
    let (next, durable) = match take(disk, &id)? {
        Took::Asked(Request::Cancel) => (State::Cancelled, Durable::Yes),
        Took::Asked(Request::Pause) => (State::Paused, Durable::Yes),
        Took::Asked(Request::Resume) => (State::Queued, Durable::No),
        Took::Unknown(word) => {
            let text = format!("no such request: {word}");
            note(disk, holder, What::Status { text }, 2_600)?;
            return answered(disk, &id);
        }
        Took::Nothing | Took::Empty => return Ok(()),
    };
    let status = status(holder, next);
    record(disk, holder, status, &[], durable)?;
    answered(disk, &id)
}
