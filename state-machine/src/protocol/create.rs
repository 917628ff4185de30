//! Making a job: built in `staging/`, locked from its first instant, and renamed into `jobs/` when it is whole
//! (R8, F21).

use crate::call::Call;
use crate::disk::{Change, Content, Create, Dir, Disk, Fill, Mode, Name, Place, Pointer};
use crate::id::{JobId, Key, Ticket, slug};
use crate::protocol::hold::{Holder, newborn};
use crate::protocol::spare::take;
use crate::record::Descriptor;

/// How many tickets are tried: a collector can take an unlocked directory away from its maker.
const TICKETS: u32 = 8;

/// Whether what is acknowledged must survive a loss of power (R19).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Durable {
    /// Synced before it is acknowledged.
    Yes,
    /// Left to the kernel: it survives any death of processes, and not a loss of power.
    No,
}

/// A job that was just made, with its lock, held since before it could be seen. A loss of power may still take it: only
/// [`acknowledge`] makes a [`Holder`] of it, so that nobody is told of it, runs it or lets it go before that (R19).
#[derive(Debug, PartialEq, Eq)]
pub struct Newborn<H> {
    id: JobId,
    lock: H,
    created_at_ms: u64,
}

impl<H> Newborn<H> {
    /// The job.
    pub fn id(&self) -> &JobId {
        &self.id
    }

    /// Its lock.
    pub fn lock(&self) -> &H {
        &self.lock
    }

    /// Give up everything but the lock.
    pub fn into_lock(self) -> H {
        self.lock
    }

    /// Any job, with a lock that stands for its own. Only for a replay: which job it is makes no difference to what is asked of
    /// the disk.
    pub fn on_tape(lock: H) -> Newborn<H> {
        Newborn {
            id: JobId::new(0, "", 1),
            lock,
            created_at_ms: 0,
        }
    }
}

/// What making a job came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Made<H> {
    /// It is there, and its lock is ours.
    Job(Newborn<H>),
    /// No id was free, or collectors took every staged directory away.
    Crowded,
}

/// A directory in `staging/` that is ours, with its lock.
struct Building<H> {
    dir: Dir,
    lock: H,
    /// It was laid in: its entries are durable, and its descriptor is to be filled in.
    spare: bool,
}

/// A job that is described in `staging/` and not synced yet: what [`create_while`] lends out.
#[derive(Debug)]
pub struct Described<'a, H> {
    /// Its directory, until it is renamed.
    pub dir: &'a Dir,
    /// Its lock.
    pub lock: &'a H,
    /// What it is to be. Its id is final only once it is made: it may be taken.
    pub descriptor: &'a Descriptor,
}

/// What is done with a job while its creation waits for the disk.
pub type Meanwhile<'a, H> = dyn FnMut(Described<'_, H>) + 'a;

/// Make a job from `descriptor`, whose id is chosen here from its time of creation and its display name.
///
/// The lock is the first file of the staged directory and is taken before anything else is written, so that a
/// collector can tell a maker at work from one that died (R8). With a `key`, the key's pointer names the new
/// job before it can be seen; the caller holds the key's lock (R12).
pub fn create<D: Disk>(
    disk: &mut D,
    descriptor: &mut Descriptor,
    key: Option<(&Key, u64)>,
    ticket: &Ticket,
    durable: Durable,
) -> Result<Made<D::Handle>, D::Fault> {
    create_while(disk, descriptor, key, ticket, durable, &mut |_| {})
}

/// As [`create`]; what can be done with a job that nobody can see yet is done `meanwhile`, once, before the first sync.
pub fn create_while<D: Disk>(
    disk: &mut D,
    descriptor: &mut Descriptor,
    key: Option<(&Key, u64)>,
    ticket: &Ticket,
    durable: Durable,
    meanwhile: &mut Meanwhile<'_, D::Handle>,
) -> Result<Made<D::Handle>, D::Fault> {
    disk.begins(|_| Call::Create {
        descriptor: descriptor.clone(),
        key: key.map(|(key, count)| (key.clone(), count)),
        ticket: ticket.clone(),
        durable: durable == Durable::Yes,
    });
    let mut staged = begin(disk, descriptor, ticket)?;
    let slug = slug(&descriptor.display_name);
    for nth in 1..=JobId::COLLISIONS {
        descriptor.id = JobId::new(descriptor.created_at_ms, &slug, nth);
        let Some(ours) = staged.take() else {
            return Ok(Made::Crowded);
        };
        let Some(ours) = describe(disk, ours, descriptor, ticket)? else {
            return Ok(Made::Crowded);
        };
        if nth == 1 {
            meanwhile(Described {
                dir: &ours.dir,
                lock: &ours.lock,
                descriptor,
            });
        }
        let place = Place::Dir(ours.dir.clone());
        if durable == Durable::Yes {
            disk.sync(&ours.dir.at(Name::Descriptor))?;
            if !ours.spare {
                disk.sync(&place)?;
            }
        }
        if let Some((key, count)) = key {
            point(disk, key, &descriptor.id, count, durable)?;
        }
        let visible = Place::Dir(Dir::Job(descriptor.id.clone()));
        if disk.rename_new(&place, &visible)? == Change::Done {
            return Ok(Made::Job(Newborn {
                id: descriptor.id.clone(),
                lock: ours.lock,
                created_at_ms: descriptor.created_at_ms,
            }));
        }
        staged = Some(ours);
    }
    if let Some(ours) = staged {
        discard(disk, &ours.dir)?;
        disk.close(ours.lock)?;
    }
    Ok(Made::Crowded)
}

/// Write the descriptor. A spare whose descriptor is no plain file is left to the collector: a hand was in it.
fn describe<D: Disk>(
    disk: &mut D,
    staged: Building<D::Handle>,
    descriptor: &Descriptor,
    ticket: &Ticket,
) -> Result<Option<Building<D::Handle>>, D::Fault> {
    let content = Content::Descriptor(Box::new(descriptor.clone()));
    let mut staged = staged;
    if staged.spare {
        match disk.fill(&staged.dir.at(Name::Descriptor), &content)? {
            Fill::Done => return Ok(Some(staged)),
            Fill::NoRoom => {}
            Fill::Absent => {
                disk.close(staged.lock)?;
                match fresh(disk, ticket)? {
                    Some(fresh) => staged = fresh,
                    None => return Ok(None),
                }
            }
        }
    }
    disk.write(&staged.dir.at(Name::Descriptor), &content)?;
    Ok(Some(staged))
}

/// Make the creation survive a loss of power, and hold the job: from here on it can be told of, run and let go (R19).
///
/// Where that fails, the lock is given up with the attempt. The job is there all the same, and waits: whoever tells somebody
/// that nothing came of it sees to it first that nothing will.
pub fn acknowledge<D: Disk>(
    disk: &mut D,
    made: Newborn<D::Handle>,
) -> Result<Holder<D::Handle>, D::Fault> {
    disk.begins(|_| Call::Acknowledge);
    sync_jobs(disk)?;
    Ok(newborn(made.id, made.lock, made.created_at_ms))
}

/// Every creation so far survives a loss of power from here on.
pub(super) fn sync_jobs<D: Disk>(disk: &mut D) -> Result<(), D::Fault> {
    disk.sync(&Place::Dir(Dir::Jobs))?;
    Ok(())
}

/// A directory for the job, laid in or new. A job whose output is split has no use for the files of a spare.
fn begin<D: Disk>(
    disk: &mut D,
    descriptor: &Descriptor,
    ticket: &Ticket,
) -> Result<Option<Building<D::Handle>>, D::Fault> {
    if !descriptor.output.split
        && let Some((dir, lock)) = take(disk, ticket)?
    {
        return Ok(Some(Building {
            dir,
            lock,
            spare: true,
        }));
    }
    fresh(disk, ticket)
}

fn fresh<D: Disk>(disk: &mut D, ticket: &Ticket) -> Result<Option<Building<D::Handle>>, D::Fault> {
    Ok(stage(disk, ticket)?.map(|(dir, lock)| Building {
        dir,
        lock,
        spare: false,
    }))
}

/// A staged directory of our own with a lock in it that we hold. A collector may take it away until we do: then
/// it is tried again under the next ticket.
pub(super) fn stage<D: Disk>(
    disk: &mut D,
    ticket: &Ticket,
) -> Result<Option<(Dir, D::Handle)>, D::Fault> {
    for nth in 0..TICKETS {
        let staged = Dir::Staged(ticket.nth(nth));
        if disk.mkdir(&staged)? != Change::Done {
            continue;
        }
        let place = staged.at(Name::Lock);
        let Create::Created(lock) = disk.create(&place)? else {
            continue;
        };
        if disk.lock(&lock, Mode::Exclusive)? && disk.stands(&lock, &place)? {
            return Ok(Some((staged, lock)));
        }
        disk.close(lock)?;
    }
    Ok(None)
}

/// Delete what was staged and is not needed after all. A collector may be doing the same.
pub(super) fn discard<D: Disk>(disk: &mut D, staged: &Dir) -> Result<(), D::Fault> {
    for name in disk.list(staged)?.unwrap_or_default() {
        disk.unlink(&staged.at(name))?;
    }
    disk.rmdir(staged)?;
    Ok(())
}

/// Let the key name the job, before the job can be seen (R12): a start that finds the key free later can then
/// miss no job that was started under it.
fn point<D: Disk>(
    disk: &mut D,
    key: &Key,
    job: &JobId,
    count: u64,
    durable: Durable,
) -> Result<(), D::Fault> {
    let new = Dir::Keys.at(Name::NewPointer(key.clone()));
    let pointer = Pointer {
        job: job.clone(),
        count,
    };
    disk.write(&new, &Content::Pointer(pointer))?;
    if durable == Durable::Yes {
        disk.sync(&new)?;
    }
    disk.rename(&new, &Dir::Keys.at(Name::Pointer(key.clone())))?;
    if durable == Durable::Yes {
        disk.sync(&Place::Dir(Dir::Keys))?;
    }
    Ok(())
}
