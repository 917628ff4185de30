//! Taking a job's lock, and asking whether somebody has it (R1, R3, R5).

use crate::call::Call;
use crate::disk::{Dir, Disk, Mode, Name, Open, Place};
use crate::id::JobId;
use crate::protocol::lock::{Taken, take_lock};

pub use crate::protocol::lock::CLAIM_ROUNDS;

/// What claiming a job came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Claim<H> {
    /// The lock is ours.
    Mine(H),
    /// Somebody else is responsible for the job.
    Owned,
    /// There is no such job.
    Gone,
}

/// What asking for a lock came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Somebody has it.
    Yes,
    /// Nobody has it.
    No,
    /// There is no such lock.
    Gone,
}

/// Take the job for this process (R1, R5).
pub fn claim<D: Disk>(disk: &mut D, id: &JobId) -> Result<Claim<D::Handle>, D::Fault> {
    disk.begins(|_| Call::Claim { id: id.clone() });
    Ok(match take_lock(disk, &Place::of_job(id, Name::Lock))? {
        Taken::Mine(lock) => Claim::Mine(lock),
        Taken::Owned => Claim::Owned,
        Taken::Absent => Claim::Gone,
    })
}

/// Whether somebody holds the lock file at `place`, asked with a shared lock so that readers never exclude one
/// another (R5).
pub fn probe<D: Disk>(disk: &mut D, place: &Place) -> Result<Held, D::Fault> {
    disk.begins(|_| Call::Probe {
        place: place.clone(),
    });
    let handle = match disk.open(place, Mode::Shared)? {
        Open::Opened(handle) => handle,
        Open::Absent => return Ok(Held::Gone),
        Open::Denied => return Ok(Held::Yes),
    };
    let free = disk.lock(&handle, Mode::Shared)?;
    disk.close(handle)?;
    Ok(if free { Held::No } else { Held::Yes })
}

/// Whether no process of the job's tree is left that holds its lock (R11). A job that has never run has none.
pub fn tree_is_free<D: Disk>(disk: &mut D, id: &JobId) -> Result<bool, D::Fault> {
    disk.begins(|_| Call::TreeIsFree { id: id.clone() });
    Ok(probe(disk, &Dir::Job(id.clone()).at(Name::Tree))? != Held::Yes)
}

/// The tree lock, to be inherited by a new tree.
#[derive(Debug, PartialEq, Eq)]
pub enum Tree<H> {
    /// It is ours to hand on.
    Mine(H),
    /// A process of an earlier attempt has it (R11).
    Leftovers,
    /// The job's directory is gone.
    Gone,
}

/// Take the tree lock for a new tree (R11). Only for the holder of the job's lock: then nobody else takes it
/// exclusively, and whoever has it is a process of an earlier attempt, or a reader for a moment.
pub fn claim_tree<D: Disk>(disk: &mut D, id: &JobId) -> Result<Tree<D::Handle>, D::Fault> {
    disk.begins(|_| Call::ClaimTree { id: id.clone() });
    let place = Place::of_job(id, Name::Tree);
    for round in 0..CLAIM_ROUNDS {
        let handle = match disk.open(&place, Mode::Exclusive)? {
            Open::Opened(handle) => handle,
            Open::Denied => return Ok(Tree::Leftovers),
            Open::Absent => match disk.create(&place)? {
                crate::disk::Create::Created(handle) => handle,
                crate::disk::Create::Exists => continue,
                crate::disk::Create::Absent => return Ok(Tree::Gone),
            },
        };
        if disk.lock(&handle, Mode::Exclusive)? {
            return Ok(Tree::Mine(handle));
        }
        let only_readers = disk.lock(&handle, Mode::Shared)?;
        disk.close(handle)?;
        if !only_readers {
            return Ok(Tree::Leftovers);
        }
        disk.give_way(round)?;
    }
    Ok(Tree::Leftovers)
}
