//! Forgetting jobs: each is taken out of the listing in one step, under its lock; then that is made final, and then they are
//! deleted (R8, R9).

use crate::call::Call;
use crate::disk::{Change, Dir, Disk, Name, Place, Read};
use crate::id::{JobId, Ticket};
use crate::job::State;
use crate::liveness;
use crate::protocol::claim::{Claim, claim, tree_is_free};

/// What forgetting came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forgotten {
    /// It is in the trash under this ticket, to be deleted once that is final.
    Trashed(Ticket),
    /// There was no such job.
    Gone,
    /// Somebody holds it.
    Held,
    /// It has not ended.
    NotEnded(State),
    /// Processes of its command are left.
    Leftovers,
    /// Its status cannot be read, so nobody knows that it has ended (R21).
    Damaged,
    /// Its descriptor cannot be read, so nobody can say what this is, and it is not ours to delete (R21).
    Unknown,
    /// The disk does not let us; whoever sweeps has heard why.
    Failed,
}

/// Whoever sweeps, and what there is to him besides.
pub trait Sweeping<F> {
    /// See to something before a job is deleted, which is in the trash under this ticket: from there nothing brings it back.
    /// Two who delete the same may both be asked, and one who died may have done some of it.
    fn before(&mut self, trashed: &Ticket);

    /// The disk does not let us forget a job, or delete it. What is returned is whether that ends the sweep of the others.
    ///
    /// # Errors
    ///
    /// The same fault, where nothing can go on after it.
    fn failed(&mut self, id: &JobId, fault: F) -> Result<(), F>;
}

/// Forget these jobs, each with a ticket of its own, and delete what is left of them. Says what became of each, and in the same
/// order; of those with more than plain files in them, a directory stays in the trash.
pub fn sweep<D: Disk>(
    disk: &mut D,
    jobs: &[(JobId, Ticket)],
    sweeping: &mut impl Sweeping<D::Fault>,
) -> Result<Vec<Swept>, D::Fault> {
    let mut swept = Vec::with_capacity(jobs.len());
    for (id, ticket) in jobs {
        let forgotten = match forget(disk, id, ticket) {
            Ok(forgotten) => forgotten,
            Err(fault) => {
                sweeping.failed(id, fault)?;
                Forgotten::Failed
            }
        };
        swept.push(Swept {
            forgotten,
            is_stubborn: false,
        });
    }
    let trashed = |one: &Swept| matches!(one.forgotten, Forgotten::Trashed(_));
    if swept.iter().any(trashed) {
        make_final(disk)?;
    }
    for (one, (id, _)) in swept.iter_mut().zip(jobs) {
        if let Forgotten::Trashed(ticket) = &one.forgotten {
            sweeping.before(ticket);
            match purge(disk, ticket) {
                Ok(all) => one.is_stubborn = !all,
                // The rest of it is for the next who collects.
                Err(fault) => sweeping.failed(id, fault)?,
            }
        }
    }
    Ok(swept)
}

/// What sweeping a job came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swept {
    /// Whether it is forgotten.
    pub forgotten: Forgotten,
    /// Whether something is left of it in the trash that is not a plain file: only a person can have put it there.
    pub is_stubborn: bool,
}

/// Take an ended job out of the listing.
///
/// Everything is decided under the exclusive lock: the terminal record is read *again* under it and the tree
/// lock must be free, so that no job that a worker claimed in between is ever taken (R9).
pub fn forget<D: Disk>(disk: &mut D, id: &JobId, ticket: &Ticket) -> Result<Forgotten, D::Fault> {
    disk.begins(|_| Call::Forget {
        id: id.clone(),
        ticket: ticket.clone(),
    });
    let dir = Dir::Job(id.clone());
    // Only a job that can be taken is claimed: whoever asks something of it meanwhile is told that somebody holds it,
    // and nobody would look again (R6). Terminal is final, and no tree begins after it.
    match disk.read_status(&dir)? {
        Read::Value(status) if status.lost => {
            let history = disk.read_history(&dir)?;
            return Ok(match liveness::find_again(status, &history) {
                Ok(status) => Forgotten::NotEnded(status.state),
                Err(_) => Forgotten::Damaged,
            });
        }
        Read::Value(status) if !status.state.is_terminal() => {
            return Ok(Forgotten::NotEnded(status.state));
        }
        Read::Absent if disk.exists(&Place::Dir(dir.clone()))? => {
            return Ok(Forgotten::NotEnded(State::Queued));
        }
        Read::Absent => return Ok(Forgotten::Gone),
        Read::Damaged(_) => return Ok(Forgotten::Damaged),
        Read::Value(_) if !tree_is_free(disk, id)? => return Ok(Forgotten::Leftovers),
        Read::Value(_) => {}
    }
    let lock = match claim(disk, id)? {
        Claim::Mine(lock) => lock,
        Claim::Owned => return Ok(Forgotten::Held),
        Claim::Gone => return Ok(Forgotten::Gone),
    };
    let outcome = match disk.read_status(&dir)? {
        Read::Damaged(_) => Forgotten::Damaged,
        Read::Absent => Forgotten::NotEnded(State::Queued),
        Read::Value(status) if !status.state.is_terminal() => Forgotten::NotEnded(status.state),
        Read::Value(_) if !tree_is_free(disk, id)? => Forgotten::Leftovers,
        Read::Value(_) if !matches!(disk.read_descriptor(&dir)?, Read::Value(_)) => {
            Forgotten::Unknown
        }
        Read::Value(_) => {
            let trashed = Place::Dir(Dir::Trashed(ticket.clone()));
            match disk.rename_new(&Place::Dir(dir), &trashed)? {
                Change::Done => Forgotten::Trashed(ticket.clone()),
                _ => Forgotten::Gone,
            }
        }
    };
    disk.release(lock)?;
    Ok(outcome)
}

/// Make the removals so far survive a loss of power, before anything is deleted: a job must never come back
/// without its descriptor (R8, F30). One call serves any number of jobs.
pub fn make_final<D: Disk>(disk: &mut D) -> Result<(), D::Fault> {
    disk.begins(|_| Call::MakeFinal);
    disk.sync(&Place::Dir(Dir::Trash))?;
    disk.sync(&Place::Dir(Dir::Jobs))?;
    Ok(())
}

/// Delete what is in the trash under `ticket`. Several may do it at once. `false` when something is left that is
/// not a plain file: only a person can have put it there.
pub fn purge<D: Disk>(disk: &mut D, ticket: &Ticket) -> Result<bool, D::Fault> {
    disk.begins(|_| Call::Purge {
        ticket: ticket.clone(),
    });
    let dir = Dir::Trashed(ticket.clone());
    let Some(mut names) = disk.list(&dir)? else {
        return Ok(true);
    };
    // The descriptor goes last, so that what is left by a crash still says what it was.
    names.sort_by_key(|name| *name == Name::Descriptor);
    for name in names {
        disk.unlink(&dir.at(name))?;
    }
    Ok(matches!(disk.rmdir(&dir)?, Change::Done | Change::Absent))
}
