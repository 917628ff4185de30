//! Honouring a request to a job that nobody works on, and letting a job go without losing one (R6).

use crate::call::Call;
use crate::control::Request;
use crate::disk::{Dir, Disk, Name};
use crate::job::{self, Event, State};
use crate::protocol::claim::{Claim, claim, tree_is_free};
use crate::protocol::create::Durable;
use crate::protocol::hold::{Holder, TakeOver, note, record, take_over};
use crate::protocol::request::{Took, answered, take};
use crate::record::What;

/// How often a job that is let go is looked at again: each time, somebody asked just then.
const LOOKS: u32 = 4;

/// Whether the processes of a job that nobody works on have been looked for and ended. The tree lock alone does not
/// tell: a daemon closes every descriptor and is found by its environment (R11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Searched {
    /// They have, under the job's lock.
    Yes,
    /// They have not.
    No,
}

/// What settling came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Nothing was asked, or it is still being written.
    Nothing,
    /// This was asked, and what the record says now is its answer.
    Answered(Request),
    /// This was asked, and processes of the tree must be looked for and ended before it can be honoured (R11). It stays
    /// taken.
    LeftoversFirst(Request),
}

/// Honour what was asked of a job that we hold and nobody works on. None of it needs a worker, and all of it an empty
/// tree: a job that has ever run is settled only after its processes were searched for.
pub fn settle<D: Disk>(
    disk: &mut D,
    holder: &mut Holder<D::Handle>,
    searched: Searched,
    now_ms: u64,
) -> Result<Settled, D::Fault> {
    disk.begins(|number| Call::Settle {
        holder: holder.on_tape(number),
        searched: searched == Searched::Yes,
        now_ms,
    });
    let id = holder.id().clone();
    let asked = match take(disk, &id)? {
        Took::Nothing | Took::Empty => return Ok(Settled::Nothing),
        Took::Asked(asked) => asked,
        Took::Unknown(word) => {
            let text = format!("no such request: {word}");
            note(disk, holder, What::Status { text }, now_ms)?;
            answered(disk, &id)?;
            return Ok(Settled::Nothing);
        }
    };
    let state = holder.status().state;
    // A stop of an ended job ends what its command left behind; the record stays as it is. Nothing else is asked of
    // its processes.
    let concerns_tree = asked == Request::Cancel || !state.is_terminal();
    let may_have_tree = holder.status().attempt > 0 && searched == Searched::No;
    if concerns_tree && (may_have_tree || !tree_is_free(disk, &id)?) {
        return Ok(Settled::LeftoversFirst(asked));
    }
    if let Some(next) = answer(state, asked) {
        let mut status = holder.status().clone();
        status.state = next;
        status.stopping = None;
        status.pid = None;
        if !next.is_terminal() {
            status.slot = None;
        }
        status.next_attempt_at_ms = None;
        status.updated_at_ms = now_ms;
        if next.is_terminal() {
            status.ended_at_ms = Some(now_ms.max(status.started_at_ms.unwrap_or(0)));
            status.leftovers = None;
        }
        let durable = if next.is_terminal() {
            Durable::Yes
        } else {
            Durable::No
        };
        record(disk, holder, status, &[], durable)?;
    }
    answered(disk, &id)?;
    Ok(Settled::Answered(asked))
}

/// The state that a request brings a job to that nobody works on, or `None` where the table has no such step: it is
/// there already, it has ended, or it is on its way.
fn answer(state: State, asked: Request) -> Option<State> {
    let event = match asked {
        Request::Cancel => Event::Cancelled,
        Request::Pause => Event::Paused,
        Request::Resume => Event::Resumed { held: false },
    };
    job::next(state, event).ok()
}

/// What letting a job go came to.
#[derive(Debug)]
pub enum LetGo<H> {
    /// It is free, and nothing that was asked of it while we held it is left unanswered.
    Free,
    /// We hold it again: something was asked, and the tree must be ended first (R11).
    LeftoversFirst(Holder<H>),
}

/// Let a job go. A request that came while we held it, and that its sender left to us because we did, must not
/// lie unread: after giving the lock up we look again, and whoever gets the lock then settles it (R6). The sender does
/// the same from its side: it tries the lock after placing the request. So the lock must be free for *both* by then,
/// whoever has a copy of the description for a moment: it is given up, and not just closed (F55).
///
/// Not for one who has handed the job over: he closes his copy of the lock.
pub fn let_go<D: Disk>(
    disk: &mut D,
    holder: Holder<D::Handle>,
    created_at_ms: u64,
    now_ms: u64,
) -> Result<LetGo<D::Handle>, D::Fault> {
    disk.begins(|number| Call::LetGo {
        holder: holder.on_tape(number),
        created_at_ms,
        now_ms,
    });
    let id = holder.id().clone();
    let mut holder = holder;
    for _ in 0..LOOKS {
        let ended = holder.status().state.is_terminal();
        disk.release(holder.into_lock())?;
        // Whoever asks of an ended job is told so by its record.
        if ended || !disk.exists(&Dir::Job(id.clone()).at(Name::Control))? {
            return Ok(LetGo::Free);
        }
        holder = match claim(disk, &id)? {
            Claim::Mine(lock) => match take_over(disk, &id, lock, created_at_ms, now_ms)? {
                TakeOver::Holder(holder) => holder,
                TakeOver::Damaged(_) => return Ok(LetGo::Free),
            },
            // Whoever has it now looks again when it lets go.
            Claim::Owned | Claim::Gone => return Ok(LetGo::Free),
        };
        match settle(disk, &mut holder, Searched::No, now_ms)? {
            Settled::LeftoversFirst(_) => return Ok(LetGo::LeftoversFirst(holder)),
            Settled::Answered(_) | Settled::Nothing => {}
        }
    }
    disk.release(holder.into_lock())?;
    Ok(LetGo::Free)
}
