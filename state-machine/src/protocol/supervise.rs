//! Being the one supervisor of a store, and ceasing to be it without leaving a job to nobody (R18).

use crate::call::Call;
use crate::control::Control;
use crate::disk::{Create, Dir, Disk, Name, Place};
use crate::id::JobId;
use crate::job::State;
use crate::protocol::claim::{Claim, Held, claim, probe};
use crate::protocol::create::Durable;
use crate::protocol::hold::{TakeOver, record, take_over};
use crate::protocol::lock::{Taken, take_lock};
use crate::protocol::look::{Look, look};
use crate::protocol::settle::{LetGo, let_go};
use crate::record::Failure;
use crate::supervise::{keeps_busy, need};

/// What asking to be the supervisor came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Supervision<H> {
    /// We are.
    Ours(H),
    /// Somebody else is.
    Taken,
}

/// The place of the supervisor's lock. Its file is never removed, so there is only ever one (F18).
pub fn supervisor_lock() -> Place {
    Dir::Root.at(Name::SupervisorLock)
}

/// Become the supervisor of the store, unless somebody is. As with a job, only readers can be in the way for a moment (R5).
///
/// Whoever gets the lock looks at every job after that: what was queued before is found then, and what is queued later
/// finds the lock taken.
pub fn claim_supervision<D: Disk>(disk: &mut D) -> Result<Supervision<D::Handle>, D::Fault> {
    disk.begins(|_| Call::ClaimSupervision);
    let place = supervisor_lock();
    for _ in 0..2 {
        match take_lock(disk, &place)? {
            Taken::Mine(lock) => return Ok(Supervision::Ours(lock)),
            Taken::Owned => break,
            // The first of this store. Of two who make the file, both may lock it.
            Taken::Absent => match disk.create(&place)? {
                Create::Created(file) => disk.close(file)?,
                Create::Exists => {}
                Create::Absent => break,
            },
        }
    }
    Ok(Supervision::Taken)
}

/// Whether the store has a supervisor. Whoever queues a job asks *after* the job can be seen: a supervisor that still had
/// the lock then looks again after giving it up, and one that comes later finds the job (R18).
pub fn is_supervised<D: Disk>(disk: &mut D) -> Result<bool, D::Fault> {
    disk.begins(|_| Call::IsSupervised);
    Ok(probe(disk, &supervisor_lock())? == Held::Yes)
}

/// What ceasing to be the supervisor came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Retired<H> {
    /// We are it no more, and no job is left to nobody.
    Free,
    /// We are it again: a job came while we were leaving.
    Again(H),
}

/// Cease to be the supervisor for want of work. Whoever queued a job before we gave the lock up saw that the store has a
/// supervisor, and relied on it; so we look once more after giving it up, as with a job that is let go (R6, R18).
pub fn retire<D: Disk>(disk: &mut D, lock: D::Handle) -> Result<Retired<D::Handle>, D::Fault> {
    disk.begins(|number| Call::Retire {
        lock: number(&lock),
    });
    disk.release(lock)?;
    if !has_work(disk)? {
        return Ok(Retired::Free);
    }
    Ok(match claim_supervision(disk)? {
        Supervision::Ours(lock) => Retired::Again(lock),
        // Whoever has it now looks at every job.
        Supervision::Taken => Retired::Free,
    })
}

/// Whether any job of the store needs a supervisor.
fn has_work<D: Disk>(disk: &mut D) -> Result<bool, D::Fault> {
    for name in disk.list(&Dir::Jobs)?.unwrap_or_default() {
        let Some(Ok(id)) = name.to_text().map(|word| JobId::parse(&word)) else {
            continue;
        };
        let Look::Job(view) = look(disk, &id)? else {
            continue;
        };
        let asked = is_asked(disk, &id)?;
        if keeps_busy(need(&view, asked), &view.descriptor) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether something was asked of the job that nobody has answered: a request that waits, or one that a holder took and
/// died over (R6). A control file without content asks for nothing yet: a job that waits beside one is started, and its
/// worker throws it away if it stays so.
pub fn is_asked<D: Disk>(disk: &mut D, id: &JobId) -> Result<bool, D::Fault> {
    disk.begins(|_| Call::IsAsked { id: id.clone() });
    for name in [Name::Control, Name::Taken] {
        let found = disk.read_control(&Place::of_job(id, name))?;
        if found.is_some_and(|found| found != Control::Empty) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What ending a job came to that can never start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmet {
    /// It is failed, and says why.
    Recorded,
    /// Somebody holds it, it has ended or runs, it is gone, or it cannot be read: whoever looks again sees which.
    Not,
    /// It has run after all, something is asked of it, and processes of its tree come first (R11). It was let go, and its
    /// request stays taken: whoever called this settles it now.
    LeftoversFirst,
}

/// End a job that comes after others, and can never start for how one of those ended. That is final, so only the job itself
/// is looked at again under its lock; what was asked of it meanwhile is answered by the end (R6).
pub fn fail_unmet<D: Disk>(
    disk: &mut D,
    id: &JobId,
    why: &str,
    created_at_ms: u64,
    now_ms: u64,
) -> Result<Unmet, D::Fault> {
    disk.begins(|_| Call::FailUnmet {
        id: id.clone(),
        why: why.to_owned(),
        created_at_ms,
        now_ms,
    });
    let Claim::Mine(lock) = claim(disk, id)? else {
        return Ok(Unmet::Not);
    };
    let mut holder = match take_over(disk, id, lock, created_at_ms, now_ms)? {
        TakeOver::Holder(holder) => holder,
        TakeOver::Damaged(_) => return Ok(Unmet::Not),
    };
    let mut outcome = Unmet::Not;
    if holder.status().state == State::Queued {
        let mut status = holder.status().clone();
        status.state = State::Failed;
        status.failure = Some(Failure::Dependency);
        status.message = Some(why.to_owned());
        status.ended_at_ms = Some(now_ms);
        status.updated_at_ms = now_ms;
        record(disk, &mut holder, status, &[], Durable::Yes)?;
        outcome = Unmet::Recorded;
    }
    match let_go(disk, holder, created_at_ms, now_ms)? {
        LetGo::Free => Ok(outcome),
        LetGo::LeftoversFirst(holder) => {
            disk.release(holder.into_lock())?;
            Ok(Unmet::LeftoversFirst)
        }
    }
}
