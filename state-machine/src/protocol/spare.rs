//! Directories for jobs to come, laid in while nobody waits: each with the files of a job in it, empty, with room for
//! the descriptor, and synced. What a creation has to write and to sync is then the descriptor and a name (R19).
//!
//! A spare is never written to where it stands. Whoever wants one takes it into `staging/` first, in one step, so that
//! what a killed taker leaves is what any killed maker leaves (R8).

use crate::call::Call;
use crate::disk::{Change, Content, Create, Dir, Disk, Mode, Name, Open, Place, Read};
use crate::id::{JobId, Ticket};
use crate::protocol::create::{discard, stage};

/// How many directories are laid in, at most. Each serves one start; the end of a job lays in the next.
pub const SPARES: u8 = 4;

/// What is in a spare beside its lock and its descriptor: what the first steps of a job would make.
const EMPTY: [Name; 4] = [Name::Tree, Name::Log, Name::NewStatus, Name::Events];

/// What laying in came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaidIn {
    /// There is one more.
    Yes,
    /// There were enough, or others were in the way.
    No,
}

/// Lay in one directory, if there are not enough.
///
/// It is built as a job is, under its lock, so that a collector can tell it from what a crash left. The lock is let go
/// before it is laid in: a taker must find it free, and a collector that comes in between does no harm.
pub fn lay_in<D: Disk>(disk: &mut D, ticket: &Ticket) -> Result<LaidIn, D::Fault> {
    disk.begins(|_| Call::LayIn {
        ticket: ticket.clone(),
    });
    let Some(number) = missing(disk)? else {
        return Ok(LaidIn::No);
    };
    let Some((staged, lock)) = stage(disk, ticket)? else {
        return Ok(LaidIn::No);
    };
    let descriptor = staged.at(Name::Descriptor);
    disk.write(&descriptor, &Content::Blank)?;
    for name in EMPTY {
        if let Create::Created(file) = disk.create(&staged.at(name))? {
            disk.close(file)?;
        }
    }
    disk.sync(&descriptor)?;
    disk.sync(&Place::Dir(staged.clone()))?;
    disk.release(lock)?;
    let spare = Place::Dir(Dir::Spare(number));
    match disk.rename_new(&Place::Dir(staged.clone()), &spare)? {
        Change::Done => Ok(LaidIn::Yes),
        _ => {
            discard(disk, &staged)?;
            Ok(LaidIn::No)
        }
    }
}

/// A number that no spare has, if there are not enough of them.
fn missing<D: Disk>(disk: &mut D) -> Result<Option<u8>, D::Fault> {
    let Some(names) = disk.list(&Dir::Spares)? else {
        // A store that is older than spares.
        disk.mkdir(&Dir::Spares)?;
        return Ok(Some(0));
    };
    let there = |number: u8| {
        let word = number.to_string();
        names.iter().any(|name| name.to_bytes() == word.as_bytes())
    };
    Ok((0..SPARES).find(|&number| !there(number)))
}

/// Take a spare into `staging/` under `ticket`, with its lock. `None` where there is none to be had.
///
/// The rename decides between takers, and only then is the lock asked for: whoever asked for it first could hold it on
/// what is another taker's job by then, and keep its client away (R6). One that is not as it was laid in is left to the
/// collector.
pub(super) fn take<D: Disk>(
    disk: &mut D,
    ticket: &Ticket,
) -> Result<Option<(Dir, D::Handle)>, D::Fault> {
    let staged = Dir::Staged(ticket.clone());
    let mut taken = Change::Absent;
    for number in 0..SPARES {
        if is_described(disk, number)?.is_some() {
            continue;
        }
        let spare = Place::Dir(Dir::Spare(number));
        taken = disk.rename_new(&spare, &Place::Dir(staged.clone()))?;
        if taken != Change::Absent {
            break;
        }
    }
    if taken != Change::Done {
        return Ok(None);
    }
    let place = staged.at(Name::Lock);
    let Open::Opened(lock) = disk.open(&place, Mode::Exclusive)? else {
        return Ok(None);
    };
    // A collector may look at it, and take it away, until we have the lock.
    if disk.lock(&lock, Mode::Exclusive)?
        && disk.stands(&lock, &place)?
        && is_untouched(disk, &staged)?
    {
        return Ok(Some((staged, lock)));
    }
    disk.close(lock)?;
    Ok(None)
}

/// The job that a spare is the directory of, if it is one: a loss of power can bring a spare back that was taken, beside
/// the job that it had become, as names of different directories reach the medium in any order (F30). It is described
/// before it can be anybody's, and synced, so this tells.
fn is_described<D: Disk>(disk: &mut D, number: u8) -> Result<Option<JobId>, D::Fault> {
    Ok(match disk.read_descriptor(&Dir::Spare(number))? {
        Read::Value(descriptor) => Some(descriptor.id),
        Read::Absent | Read::Damaged(_) => None,
    })
}

/// The spares that a loss of power has brought back and that are no job's: nobody takes them any more. What is a job's
/// stays, as it is the same directory.
pub(super) fn brought_back<D: Disk>(disk: &mut D) -> Result<Vec<u8>, D::Fault> {
    let mut numbers = Vec::new();
    for number in 0..SPARES {
        if let Some(id) = is_described(disk, number)?
            && !disk.exists(&Place::Dir(Dir::Job(id)))?
        {
            numbers.push(number);
        }
    }
    Ok(numbers)
}

/// Whether nobody has put anything else into it: it would come to be a file of the job.
fn is_untouched<D: Disk>(disk: &mut D, staged: &Dir) -> Result<bool, D::Fault> {
    let ours = |name: &Name| {
        matches!(name, Name::Lock | Name::Descriptor) || EMPTY.iter().any(|empty| empty == name)
    };
    let names = disk.list(staged)?;
    Ok(names.is_some_and(|names| names.iter().all(ours)))
}
