//! Reading a job: what is true about it, without changing anything (R3, R4, R5).

use crate::call::Call;
use crate::disk::{Dir, Disk, Mode, Name, Open, Place, Read};
use crate::id::JobId;
use crate::job::State;
use crate::liveness;
use crate::protocol::claim::{Held, probe};
use crate::record::{Damaged, Descriptor, Status};

/// How often a directory without a descriptor is looked at: one that just appeared has it the second time.
const APPEARANCES: u32 = 2;

/// What is true about a job.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// What was asked for.
    pub descriptor: Descriptor,
    /// The record as its last holder wrote it.
    pub status: Status,
    /// The state that is true, which for a job that lost its worker is not the one in the record.
    pub state: State,
    /// Whether somebody is responsible for the job right now.
    pub held: bool,
    /// Whether processes of the command are left that nobody runs: its worker died, or it has ended.
    pub leftovers: bool,
}

/// What looking at a job came to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Look {
    /// What is true about it.
    Job(Box<View>),
    /// There is no such job.
    Gone,
    /// One of its records cannot be read.
    Damaged {
        /// Which one.
        file: Name,
        /// In what way.
        why: Damaged,
    },
}

/// Look at a job.
///
/// An ended job stays ended, so its record says everything. For any other the status is read *under* a shared
/// lock where that can be had: nobody can be writing it then, so it is the last word of whoever held the job,
/// and nobody holds it (R4). Where it cannot be had, somebody holds the job and it is never called interrupted
/// (R3).
pub fn look<D: Disk>(disk: &mut D, id: &JobId) -> Result<Look, D::Fault> {
    disk.begins(|_| Call::Look { id: id.clone() });
    let dir = Dir::Job(id.clone());
    for _ in 0..APPEARANCES {
        match disk.read_descriptor(&dir)? {
            Read::Value(descriptor) => return look_at(disk, descriptor),
            Read::Damaged(why) => return Ok(damaged(Name::Descriptor, why)),
            Read::Absent if !disk.exists(&Place::Dir(dir.clone()))? => return Ok(Look::Gone),
            // A job that appeared between the two has its descriptor by now (R8).
            Read::Absent => {}
        }
    }
    let why = Damaged("the file is missing".into());
    Ok(damaged(Name::Descriptor, why))
}

/// Look at a job whose descriptor is known already: it never changes.
pub fn look_at<D: Disk>(disk: &mut D, descriptor: Descriptor) -> Result<Look, D::Fault> {
    disk.begins(|_| Call::LookAt {
        descriptor: descriptor.clone(),
    });
    let id = descriptor.id.clone();
    let dir = Dir::Job(id.clone());
    let first = disk.read_status(&dir)?;
    if let Read::Value(status) = &first
        && !liveness::needs_probe(status)
    {
        return Ok(Look::Job(Box::new(View {
            state: status.state,
            status: status.clone(),
            descriptor,
            held: false,
            leftovers: false,
        })));
    }
    let never_held = matches!(first, Read::Absent);
    let (status, held) = match disk.open(&dir.at(Name::Lock), Mode::Shared)? {
        Open::Denied => (first, true),
        // Without a lock file nobody can be responsible. A job that was swept meanwhile is gone altogether.
        Open::Absent if disk.exists(&Place::Dir(dir.clone()))? => (last_word(disk, &dir)?, false),
        Open::Absent => return Ok(Look::Gone),
        Open::Opened(lock) => {
            let free = disk.lock(&lock, Mode::Shared)?;
            let status = if free {
                last_word(disk, &dir)?
            } else {
                disk.read_status(&dir)?
            };
            disk.close(lock)?;
            (status, !free)
        }
    };
    let status = match status {
        Read::Value(status) => status,
        Read::Damaged(why) => return Ok(damaged(Name::Status, why)),
        Read::Absent if never_held => Status::queued(descriptor.created_at_ms),
        // The job was swept between the two.
        Read::Absent => return Ok(Look::Gone),
    };
    let state = liveness::conclude(&descriptor, &status, held);
    // A worker that stays with an ended job knows that something is left, whoever closed the tree lock. Without one
    // the lock is all there is to go by.
    let watched = held && status.leftovers.is_some();
    let expects_tree = !held && (status.attempt > 0 || status.leftovers.is_some());
    let leftovers = watched && state.is_terminal()
        || expects_tree && probe(disk, &Place::of_job(&id, Name::Tree))? == Held::Yes;
    Ok(Look::Job(Box::new(View {
        descriptor,
        status,
        state,
        held,
        leftovers,
    })))
}

/// Make sure of an end that was seen, before anybody is told of it: whoever recorded it may not have made its name final yet, and
/// a loss of power would take back what was told (R19).
pub fn confirm<D: Disk>(disk: &mut D, id: &JobId) -> Result<(), D::Fault> {
    disk.begins(|_| Call::Confirm { id: id.clone() });
    // Where it is gone by now, somebody has held it since, and its worker has come to the end of this.
    disk.sync(&Place::Dir(Dir::Job(id.clone())))?;
    Ok(())
}

/// The status of a job that nobody holds. Where a loss of power has taken it, what the history still knows: nobody may be
/// writing either meanwhile, or the two would be of different times.
fn last_word<D: Disk>(disk: &mut D, dir: &Dir) -> Result<Read<Status>, D::Fault> {
    Ok(match disk.read_status(dir)? {
        Read::Value(status) if status.lost => {
            match liveness::find_again(status, &disk.read_history(dir)?) {
                Ok(status) => Read::Value(status),
                Err(why) => Read::Damaged(why),
            }
        }
        status => status,
    })
}

fn damaged(file: Name, why: Damaged) -> Look {
    Look::Damaged { file, why }
}
