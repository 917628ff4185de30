//! Starting a job under a key: a name in a project, a destination. Of two starts under one key, the second finds
//! the job of the first (R12).

use crate::call::Call;
use crate::disk::{Dir, Disk, Name, Place, Read};
use crate::id::{Key, Ticket};
use crate::protocol::create::{Durable, Made, Meanwhile, Newborn, create_while};
use crate::protocol::lock::lock_in_turn;
use crate::protocol::look::{Look, View, look};
use crate::record::{Damaged, Descriptor};

/// What starting under a key came to.
#[derive(Debug)]
pub enum Started<H> {
    /// A new job, with its lock.
    New(Newborn<H>),
    /// A job that has not ended bears the key already.
    UnderWay(Box<View>),
    /// Whether a job bears the key cannot be read from this record (R21).
    Damaged(Place, Damaged),
    /// Other starts were in the way all the time.
    Busy,
}

/// Start a job under `key`, unless an unfinished one bears it.
///
/// The key's lock is held from before the look until the new job can be seen. Its file is never removed, so
/// there is only ever one lock per key (F18). It is given up, and not just closed: a worker that is made `meanwhile` has a
/// copy of it until it has got rid of what was its maker's (F55).
pub fn start<D: Disk>(
    disk: &mut D,
    descriptor: &mut Descriptor,
    key: &Key,
    ticket: &Ticket,
    durable: Durable,
) -> Result<Started<D::Handle>, D::Fault> {
    start_while(disk, descriptor, key, ticket, durable, &mut |_| {})
}

/// As [`start`], and as [`create_while`].
pub fn start_while<D: Disk>(
    disk: &mut D,
    descriptor: &mut Descriptor,
    key: &Key,
    ticket: &Ticket,
    durable: Durable,
    meanwhile: &mut Meanwhile<'_, D::Handle>,
) -> Result<Started<D::Handle>, D::Fault> {
    disk.begins(|_| Call::Start {
        descriptor: descriptor.clone(),
        key: key.clone(),
        ticket: ticket.clone(),
        durable: durable == Durable::Yes,
    });
    let Some(key_lock) = lock_key(disk, key)? else {
        return Ok(Started::Busy);
    };
    let started = start_locked(disk, descriptor, key, ticket, durable, meanwhile)?;
    disk.release(key_lock)?;
    Ok(started)
}

fn start_locked<D: Disk>(
    disk: &mut D,
    descriptor: &mut Descriptor,
    key: &Key,
    ticket: &Ticket,
    durable: Durable,
    meanwhile: &mut Meanwhile<'_, D::Handle>,
) -> Result<Started<D::Handle>, D::Fault> {
    let mut count = 0;
    let pointer = match disk.read_pointer(key)? {
        Read::Value(pointer) => Some(pointer),
        Read::Absent => None,
        Read::Damaged(why) => return Ok(Started::Damaged(pointer_of(key), why)),
    };
    if let Some(pointer) = pointer {
        count = pointer.count;
        match look(disk, &pointer.job)? {
            Look::Job(view) if bears(&view.descriptor, descriptor) && !view.state.is_terminal() => {
                return Ok(Started::UnderWay(view));
            }
            Look::Damaged { file, why } => {
                return Ok(Started::Damaged(Place::of_job(&pointer.job, file), why));
            }
            Look::Job(_) | Look::Gone => {}
        }
    }
    let key = Some((key, count + 1));
    let created = create_while(disk, descriptor, key, ticket, durable, meanwhile)?;
    Ok(made(created))
}

/// Make the next job of a task, named after the task and its number. Every call makes a new job.
pub fn start_numbered<D: Disk>(
    disk: &mut D,
    descriptor: &mut Descriptor,
    key: &Key,
    task: &str,
    ticket: &Ticket,
    durable: Durable,
) -> Result<Started<D::Handle>, D::Fault> {
    start_numbered_while(disk, descriptor, key, task, ticket, durable, &mut |_| {})
}

/// As [`start_numbered`], and as [`create_while`].
pub fn start_numbered_while<D: Disk>(
    disk: &mut D,
    descriptor: &mut Descriptor,
    key: &Key,
    task: &str,
    ticket: &Ticket,
    durable: Durable,
    meanwhile: &mut Meanwhile<'_, D::Handle>,
) -> Result<Started<D::Handle>, D::Fault> {
    disk.begins(|_| Call::StartNumbered {
        descriptor: descriptor.clone(),
        key: key.clone(),
        task: task.to_owned(),
        ticket: ticket.clone(),
        durable: durable == Durable::Yes,
    });
    let Some(key_lock) = lock_key(disk, key)? else {
        return Ok(Started::Busy);
    };
    let number = match disk.read_pointer(key)? {
        Read::Value(pointer) => pointer.count + 1,
        Read::Absent => 1,
        Read::Damaged(why) => {
            disk.release(key_lock)?;
            return Ok(Started::Damaged(pointer_of(key), why));
        }
    };
    // A task whose name makes no name for a job numbers jobs that have none.
    descriptor.name = crate::id::Name::of_task(task, number).ok();
    let key = Some((key, number));
    let created = create_while(disk, descriptor, key, ticket, durable, meanwhile)?;
    disk.release(key_lock)?;
    Ok(made(created))
}

fn pointer_of(key: &Key) -> Place {
    Dir::Keys.at(Name::Pointer(key.clone()))
}

fn made<H>(made: Made<H>) -> Started<H> {
    match made {
        Made::Job(made) => Started::New(made),
        Made::Crowded => Started::Busy,
    }
}

/// Whether two jobs are started under the same name or to the same destination: two keys whose hashes collide
/// share a pointer, and must not be taken for one another.
fn bears(standing: &Descriptor, new: &Descriptor) -> bool {
    use crate::record::Kind;
    match (&standing.kind, &new.kind) {
        (Kind::Pull(standing), Kind::Pull(new)) => standing.target() == new.target(),
        _ => standing.name == new.name && standing.project == new.project,
    }
}

/// The key's lock, or `None` when others have had it all the time.
fn lock_key<D: Disk>(disk: &mut D, key: &Key) -> Result<Option<D::Handle>, D::Fault> {
    lock_in_turn(disk, &Dir::Keys.at(Name::KeyLock(key.clone())))
}
