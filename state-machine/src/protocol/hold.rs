//! What the holder of a job's lock may do: take the job over from whoever held it before, record how far it
//! is, and let it go. Only a [`Holder`] writes records, so that R2 is kept by the types.

use crate::call::{Call, Holding};
use crate::disk::{Change, Content, Dir, Disk, Name, Place, Read};
use crate::id::JobId;
use crate::job::{self, State};
use crate::liveness;
use crate::protocol::claim::{Claim, claim};
use crate::protocol::create::Durable;
use crate::record::{Damaged, Descriptor, Line, Status, What};

/// The holder of a job: its lock, and what it knows to be on disk.
#[derive(Debug)]
pub struct Holder<H> {
    id: JobId,
    lock: H,
    status: Status,
    /// Lines that are true and not in the history yet: an append that failed is made good by the next one.
    pending: Vec<Line>,
    /// Whether the history may end without a newline.
    torn: bool,
    /// Whether an append has failed, so that some of the pending lines may be there all the same.
    doubtful: bool,
}

impl<H> Holder<H> {
    /// The job.
    pub fn id(&self) -> &JobId {
        &self.id
    }

    /// The lock.
    pub fn lock(&self) -> &H {
        &self.lock
    }

    /// The status as it is on disk.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// Whether something of an earlier attempt may be left, which whoever is about to run the job ends first (R11).
    pub fn may_have_leftovers(&self) -> bool {
        self.status.attempt > 0 && !self.status.state.is_terminal()
    }

    /// Give up everything but the lock.
    pub fn into_lock(self) -> H {
        self.lock
    }

    /// All that it knows, with a number for its lock.
    pub(super) fn on_tape(&self, number: &dyn Fn(&H) -> u32) -> Holding {
        Holding {
            id: self.id.clone(),
            lock: number(&self.lock),
            status: self.status.clone(),
            pending: self.pending.clone(),
            torn: self.torn,
            doubtful: self.doubtful,
        }
    }

    /// The holder that a tape tells of, with the lock that stands for its number. Only for a replay: whoever else
    /// wants to be one has to take the job over.
    pub fn from_tape(holding: Holding, lock: H) -> Holder<H> {
        Holder {
            id: holding.id,
            lock,
            status: holding.status,
            pending: holding.pending,
            torn: holding.torn,
            doubtful: holding.doubtful,
        }
    }

    /// Whether the history lacks something that is true.
    pub fn owes_history(&self) -> bool {
        !self.pending.is_empty()
    }
}

/// What taking a job over came to.
#[derive(Debug)]
pub enum TakeOver<H> {
    /// The job is ours, and what its record and its history say agrees.
    Holder(Holder<H>),
    /// Its status cannot be read; it was left as it is and the lock was let go (R21).
    Damaged(Damaged),
}

/// What recording came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// It is recorded.
    Done,
    /// The job's directory is gone; nothing was made in its place (R10).
    Gone,
}

/// Hold a job that was just made and is acknowledged: nothing is recorded yet, and nobody can have recorded anything. Whoever
/// has made it is given this by the protocol that made it; it is for a worker that its maker forks, and tells of the rest.
pub fn newborn<H>(id: JobId, lock: H, created_at_ms: u64) -> Holder<H> {
    Holder {
        id,
        lock,
        status: Status::queued(created_at_ms),
        pending: vec![Line::state(created_at_ms, State::Queued)],
        torn: false,
        doubtful: false,
    }
}

/// What coming to hold a job came to.
#[derive(Debug)]
pub enum Hold<H> {
    /// It is ours, and this is what it is to do.
    Mine(Holder<H>, Box<Descriptor>),
    /// Somebody else is responsible for it.
    Owned,
    /// There is no such job.
    Gone,
    /// This record of it cannot be read; it was left as it is, and nobody has the lock for it (R21).
    Damaged {
        /// The record.
        file: Name,
        /// Why.
        why: Damaged,
    },
}

/// Hold a job that somebody may have held before: read what it is to do, claim it, take it over.
pub fn hold<D: Disk>(disk: &mut D, id: &JobId, now_ms: u64) -> Result<Hold<D::Handle>, D::Fault> {
    let descriptor = match disk.read_descriptor(&Dir::Job(id.clone()))? {
        Read::Value(descriptor) => descriptor,
        Read::Absent => return Ok(Hold::Gone),
        Read::Damaged(why) => {
            return Ok(Hold::Damaged {
                file: Name::Descriptor,
                why,
            });
        }
    };
    let lock = match claim(disk, id)? {
        Claim::Mine(lock) => lock,
        Claim::Owned => return Ok(Hold::Owned),
        Claim::Gone => return Ok(Hold::Gone),
    };
    let made_ms = descriptor.created_at_ms;
    Ok(match take_over(disk, id, lock, made_ms, now_ms)? {
        TakeOver::Holder(holder) => Hold::Mine(holder, Box::new(descriptor)),
        TakeOver::Damaged(why) => Hold::Damaged {
            file: Name::Status,
            why,
        },
    })
}

/// Take the job over with a lock that was just claimed.
///
/// First the history and the status are brought to agree (R7): a crash between the two leaves the history behind,
/// a loss of power can leave the status behind, and the number of states entered tells which. Then a record that
/// says "running" is set right: nobody runs it, as the lock is ours (R4).
pub fn take_over<D: Disk>(
    disk: &mut D,
    id: &JobId,
    lock: D::Handle,
    created_at_ms: u64,
    now_ms: u64,
) -> Result<TakeOver<D::Handle>, D::Fault> {
    disk.begins(|number| Call::TakeOver {
        id: id.clone(),
        lock: number(&lock),
        created_at_ms,
        now_ms,
    });
    let dir = Dir::Job(id.clone());
    let mut status = match disk.read_status(&dir)? {
        Read::Value(status) => status,
        Read::Absent => Status::queued(created_at_ms),
        Read::Damaged(damaged) => {
            disk.release(lock)?;
            return Ok(TakeOver::Damaged(damaged));
        }
    };
    let history = disk.read_history(&dir)?;
    let mut stale = status.lost;
    if status.lost {
        status = match liveness::find_again(status, &history) {
            Ok(status) => status,
            Err(damaged) => {
                disk.release(lock)?;
                return Ok(TakeOver::Damaged(damaged));
            }
        };
        status.lost = false;
    }
    let entered = u32::try_from(history.states().count()).unwrap_or(u32::MAX);
    let last = history.last_state();
    let mut pending = Vec::new();
    match last {
        // A job that was never held needs no history yet; whoever records something begins it.
        None => {
            pending.push(Line::state(created_at_ms, State::Queued));
            pending.extend(missing(State::Queued, &status));
        }
        Some(last) if entered > status.steps && last != status.state => {
            if status.state.is_terminal() || last.is_terminal() {
                // An end is synced before it enters the history: no crash leaves these two so.
                disk.release(lock)?;
                return Ok(TakeOver::Damaged(Damaged(format!(
                    "it says {} and the history says {last}",
                    status.state
                ))));
            }
            status.state = last;
            stale = true;
        }
        Some(last) => pending.extend(missing(last, &status)),
    }
    // With what is pending, the history tells of as many states as were entered: one that lost some of them is not
    // taken for one that is behind by the next holder.
    status.steps = entered.saturating_add(u32::try_from(pending.len()).unwrap_or(0));
    let begun = last.is_some() || status.state != State::Queued;
    let mut holder = Holder {
        id: id.clone(),
        lock,
        status,
        pending,
        torn: history.torn,
        doubtful: false,
    };
    if liveness::is_abandoned(&holder.status) {
        let mut status = holder.status.clone();
        status.state = State::Interrupted;
        status.pid = None;
        status.slot = None;
        status.next_attempt_at_ms = None;
        status.updated_at_ms = now_ms;
        record(disk, &mut holder, status, &[], Durable::No)?;
    } else if stale {
        let status = holder.status.clone();
        record(disk, &mut holder, status, &[], Durable::No)?;
    } else if begun {
        write_pending(disk, &mut holder)?;
    }
    Ok(TakeOver::Holder(holder))
}

/// The state lines that lead from `last` to what the status says (R7).
fn missing(last: State, status: &Status) -> Vec<Line> {
    job::path(last, status.state)
        .unwrap_or_default()
        .into_iter()
        .map(|state| Line::state(status.updated_at_ms, state))
        .collect()
}

/// Record how far the job is: the status first, whole and in one step (F29), then the history. `notes` go into
/// the history before the new state.
///
/// A crash between the two is mended by the next holder (R7). After a fault, recording the same status again
/// completes what is missing and doubles nothing.
///
/// # Panics
///
/// If the table does not allow the step: that is a fault in the program, never in the store.
pub fn record<D: Disk>(
    disk: &mut D,
    holder: &mut Holder<D::Handle>,
    status: Status,
    notes: &[What],
    durable: Durable,
) -> Result<Recorded, D::Fault> {
    disk.begins(|number| Call::Record {
        holder: holder.on_tape(number),
        status: status.clone(),
        notes: notes.to_vec(),
        durable: durable == Durable::Yes,
    });
    let from = holder.status.state;
    // Whatever rewrites the record of an end: that it is one must survive a loss of power (R19).
    let durable = if status.state.is_terminal() {
        Durable::Yes
    } else {
        durable
    };
    let mut status = status;
    status.steps = holder.status.steps + u32::from(from != status.state);
    assert!(
        from == status.state || job::follows(from, status.state),
        "R7: {from} -> {}",
        status.state
    );
    let dir = Dir::Job(holder.id.clone());
    let new = dir.at(Name::NewStatus);
    let content = Content::Status(Box::new(status.clone()));
    if disk.write(&new, &content)? != Change::Done {
        return Ok(Recorded::Gone);
    }
    if durable == Durable::Yes {
        disk.sync(&new)?;
    }
    if disk.rename(&new, &dir.at(Name::Status))? != Change::Done {
        return Ok(Recorded::Gone);
    }
    // From here on the new status is what readers see, whatever fails below.
    holder.pending.extend(notes.iter().map(|what| Line {
        at_ms: status.updated_at_ms,
        what: what.clone(),
    }));
    if from != status.state {
        holder
            .pending
            .push(Line::state(status.updated_at_ms, status.state));
    }
    holder.status = status;
    if durable == Durable::Yes {
        disk.sync(&Place::Dir(dir))?;
    }
    write_pending(disk, holder)
}

/// Append what is true and not in the history yet, and a note if there is one. Used alone for what changes no
/// state.
pub fn note<D: Disk>(
    disk: &mut D,
    holder: &mut Holder<D::Handle>,
    what: What,
    now_ms: u64,
) -> Result<Recorded, D::Fault> {
    disk.begins(|number| Call::Note {
        holder: holder.on_tape(number),
        what: what.clone(),
        now_ms,
    });
    holder.pending.push(Line {
        at_ms: now_ms,
        what,
    });
    write_pending(disk, holder)
}

/// Append the pending lines in one write. After one that failed, the history is read again first.
pub fn write_pending<D: Disk>(
    disk: &mut D,
    holder: &mut Holder<D::Handle>,
) -> Result<Recorded, D::Fault> {
    disk.begins(|number| Call::WritePending {
        holder: holder.on_tape(number),
    });
    if holder.doubtful {
        forget_what_is_there(disk, holder)?;
    }
    if holder.pending.is_empty() {
        return Ok(Recorded::Done);
    }
    holder.doubtful = true;
    let dir = Dir::Job(holder.id.clone());
    if disk.append(&dir, &holder.pending, holder.torn)? != Change::Done {
        return Ok(Recorded::Gone);
    }
    holder.pending.clear();
    holder.torn = false;
    holder.doubtful = false;
    Ok(Recorded::Done)
}

/// After an append that failed: the lines that it wrote whole are not pending any more, so that none is doubled.
fn forget_what_is_there<D: Disk>(
    disk: &mut D,
    holder: &mut Holder<D::Handle>,
) -> Result<(), D::Fault> {
    let history = disk.read_history(&Dir::Job(holder.id.clone()))?;
    let whole = (0..=holder.pending.len())
        .rev()
        .find(|&lines| history.lines.ends_with(&holder.pending[..lines]));
    holder.pending.drain(..whole.unwrap_or(0));
    holder.torn = history.torn;
    holder.doubtful = false;
    Ok(())
}
