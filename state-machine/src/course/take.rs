//! Taking a job to run it: what whoever comes to be its worker does first.

use crate::disk::{Dir, Disk, Name, Read};
use crate::id::JobId;
use crate::job::State;
use crate::protocol::hold::{Hold, Holder, hold};
use crate::record::{Damaged, Descriptor};

use super::keep::{HandleOf, HolderOf, Keeper, end_left, leave};

/// By whose word a job is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// By the queue's, or by nobody's but its own: what rests stays so.
    Queue,
    /// By somebody's who has asked for just that: what rests goes on.
    Somebody,
}

impl By {
    /// Whether a job in this recorded state is run. A record that says running is of a worker that is there, which the lock
    /// tells, or of one that is lost.
    fn runs(self, recorded: State) -> bool {
        match recorded {
            State::Queued | State::Interrupted | State::Running => true,
            State::Paused => self == By::Somebody,
            State::Done | State::Failed | State::Cancelled => false,
        }
    }
}

/// What taking a job to run it came to. But where it is ours, nobody holds it for us.
#[derive(Debug)]
pub enum Taken<H> {
    /// It is ours to run, nothing of an earlier attempt is left, and this is what it is to do.
    Ours(Holder<H>, Box<Descriptor>),
    /// Somebody else is responsible for it.
    Owned,
    /// There is no such job.
    Gone,
    /// This record of it cannot be read; it was left as it is (R21).
    Damaged {
        /// The record.
        file: Name,
        /// Why.
        why: Damaged,
    },
    /// It is in this state, in which it is not run.
    NotInState(State),
    /// Whoever wanted it run is gone.
    Unwanted,
    /// What an earlier attempt has left cannot be ended, for this reason (R11).
    Stuck(String),
}

/// Take a job to run it.
///
/// What it is in is asked again under the lock, as it may have been stopped meanwhile. What an earlier attempt has left is ended
/// here, and not by the worker, who would be deaf until then (R11). A job that is not run after all is let go as any other: what
/// was asked while we held it must not lie unread (R6).
pub fn take<K: Keeper>(keeper: &mut K, id: &JobId, by: By) -> Result<Taken<HandleOf<K>>, K::Fault> {
    // First without the lock: nobody is to be kept from a job that is not to be run anyway.
    let disk = keeper.disk();
    match disk.read_status(&Dir::Job(id.clone()))? {
        Read::Value(status) if !by.runs(status.state) => {
            return Ok(Taken::NotInState(status.state));
        }
        Read::Value(_) => {}
        // It was never held.
        Read::Absent => {}
        Read::Damaged(why) => {
            let file = Name::Status;
            return Ok(Taken::Damaged { file, why });
        }
    }
    let now_ms = keeper.now_ms();
    let (holder, descriptor) = match hold(keeper.disk(), id, now_ms)? {
        Hold::Mine(holder, descriptor) => (holder, descriptor),
        Hold::Owned => return Ok(Taken::Owned),
        Hold::Gone => return Ok(Taken::Gone),
        Hold::Damaged { file, why } => return Ok(Taken::Damaged { file, why }),
    };
    match why_not(keeper, by, &descriptor, &holder)? {
        None => Ok(Taken::Ours(holder, descriptor)),
        Some(why_not) => {
            // Whatever becomes of that, the job is free, and this is what its taker is told.
            leave(keeper, &descriptor, holder)?;
            Ok(why_not)
        }
    }
}

/// Why a job that we hold is not run after all; and where it is, see to it that nothing of an earlier attempt is left.
fn why_not<K: Keeper>(
    keeper: &mut K,
    by: By,
    descriptor: &Descriptor,
    holder: &HolderOf<K>,
) -> Result<Option<Taken<HandleOf<K>>>, K::Fault> {
    let state = holder.status().state;
    if !by.runs(state) {
        return Ok(Some(Taken::NotInState(state)));
    }
    // The next supervisor may have seen the job wait, and given its slot to another. One that comes after this look finds the
    // job held (R20).
    if !keeper.is_wanted()? {
        return Ok(Some(Taken::Unwanted));
    }
    if holder.may_have_leftovers()
        && let Err(why) = end_left(keeper, descriptor, holder)?
    {
        return Ok(Some(Taken::Stuck(why)));
    }
    Ok(None)
}
