//! A worker: claim, take over, see that the tree is free, record running, start the tree, and then either the
//! tree ends or a request comes. What it honours it records before it says that it is answered (R6).

use state_machine::control::Request;
use state_machine::id::JobId;
use state_machine::job::State;
use state_machine::protocol::claim::{Claim, Tree, claim, claim_tree};
use state_machine::protocol::create::Durable;
use state_machine::protocol::hold::{Holder, TakeOver, record, take_over};
use state_machine::protocol::request::{Took, answered, take};
use state_machine::protocol::settle::{LetGo, let_go};

use super::{CREATED_AT_MS, Outcome};
use crate::effect::Wake;
use crate::stage::{News, Stage};

/// Run the job, if it waits to be run and nobody else does.
pub(super) fn work<D: Stage>(disk: &mut D, id: &JobId, now_ms: u64) -> Result<Outcome, D::Fault> {
    let lock = match claim(disk, id)? {
        Claim::Mine(lock) => lock,
        Claim::Owned => return Ok(Outcome::Held),
        Claim::Gone => return Ok(Outcome::Gone),
    };
    disk.tell(News::Holds(id.clone()));
    let mut holder = match take_over(disk, id, lock, CREATED_AT_MS, now_ms)? {
        TakeOver::Holder(holder) => holder,
        TakeOver::Damaged(_) => return Ok(Outcome::Damaged),
    };
    let outcome = match holder.status().state {
        State::Queued | State::Interrupted => run(disk, &mut holder, now_ms)?,
        other => Outcome::NothingToDo(other),
    };
    leave(disk, holder, now_ms)?;
    Ok(outcome)
}

/// Run a job that is held.
pub(super) fn run<D: Stage>(
    disk: &mut D,
    holder: &mut Holder<D::Handle>,
    now_ms: u64,
) -> Result<Outcome, D::Fault> {
    let id = holder.id().clone();
    let tree = match claim_tree(disk, &id)? {
        Tree::Mine(tree) => tree,
        Tree::Leftovers => return Ok(Outcome::Leftovers),
        Tree::Gone => return Ok(Outcome::Gone),
    };
    enter(disk, holder, State::Running, now_ms)?;
    disk.spawn(&id, &tree)?;
    disk.close(tree)?;
    let end = loop {
        if disk.wake(&id)? == Wake::TreeEnded {
            break State::Done;
        }
        match take(disk, &id)? {
            Took::Asked(Request::Cancel) => break State::Cancelled,
            Took::Asked(Request::Pause) => break State::Paused,
            Took::Asked(Request::Resume) | Took::Unknown(_) => answered(disk, &id)?,
            Took::Nothing | Took::Empty => {}
        }
    };
    if end != State::Done {
        disk.end_trees(&id)?;
    }
    enter(disk, holder, end, now_ms)?;
    if end != State::Done {
        answered(disk, &id)?;
    }
    Ok(Outcome::Brought(end))
}

/// Record that the job has entered a state.
pub(super) fn enter<D: Stage>(
    disk: &mut D,
    holder: &mut Holder<D::Handle>,
    state: State,
    now_ms: u64,
) -> Result<(), D::Fault> {
    let mut status = holder.status().clone();
    status.attempt += u32::from(state == State::Running);
    status.state = state;
    status.updated_at_ms = now_ms;
    record(disk, holder, status, &[], Durable::No)?;
    Ok(())
}

/// Let the job go, ending what is left of its trees where a request needs that.
pub(super) fn leave<D: Stage>(
    disk: &mut D,
    holder: Holder<D::Handle>,
    now_ms: u64,
) -> Result<(), D::Fault> {
    let id = holder.id().clone();
    disk.tell(News::LetsGo);
    let mut holder = holder;
    while let LetGo::LeftoversFirst(again) = let_go(disk, holder, CREATED_AT_MS, now_ms)? {
        holder = again;
        super::client::settle_without_leftovers(disk, &mut holder, &id, now_ms)?;
    }
    Ok(())
}
