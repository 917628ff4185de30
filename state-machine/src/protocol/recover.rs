//! Putting a store in order after whatever was killed: what crashes left in `staging/` and `trash/` is
//! collected, and every job that nobody holds is made to say what is true (R8, R22).

use crate::call::Call;
use crate::disk::{Change, Dir, Disk, Mode, Name, Open, Place, Read};
use crate::id::{JobId, Ticket};
use crate::protocol::forget::{make_final, purge};
use crate::protocol::hold::{Hold, Holder, hold};
use crate::protocol::settle::{LetGo, Searched, Settled, let_go, settle};
use crate::protocol::spare::brought_back;
use crate::record::Descriptor;

/// What recovering a job came to.
#[derive(Debug)]
pub enum Recovered<H> {
    /// It says what is true, and nothing asked of it is unanswered.
    Quiet,
    /// Somebody holds it, who does the same when it lets go.
    Held,
    /// There is no such job.
    Gone,
    /// A record of it cannot be read; it was left as it is (R21).
    Damaged,
    /// We hold it, and this is what it is to do: something was asked, and processes of its tree must be ended first (R11).
    LeftoversFirst(Holder<H>, Box<Descriptor>),
}

/// Make a job that nobody holds say what is true: its history agrees with its record, a lost worker is
/// recorded, and what was asked of it is answered.
pub fn recover_job<D: Disk>(
    disk: &mut D,
    id: &JobId,
    now_ms: u64,
) -> Result<Recovered<D::Handle>, D::Fault> {
    disk.begins(|_| Call::RecoverJob {
        id: id.clone(),
        now_ms,
    });
    let (mut holder, descriptor) = match hold(disk, id, now_ms)? {
        Hold::Mine(holder, descriptor) => (holder, descriptor),
        Hold::Owned => return Ok(Recovered::Held),
        Hold::Gone => return Ok(Recovered::Gone),
        Hold::Damaged { .. } => return Ok(Recovered::Damaged),
    };
    if let Settled::LeftoversFirst(_) = settle(disk, &mut holder, Searched::No, now_ms)? {
        return Ok(Recovered::LeftoversFirst(holder, descriptor));
    }
    let made_ms = descriptor.created_at_ms;
    Ok(match let_go(disk, holder, made_ms, now_ms)? {
        LetGo::Free => Recovered::Quiet,
        LetGo::LeftoversFirst(holder) => Recovered::LeftoversFirst(holder, descriptor),
    })
}

/// Collect what crashes left in `staging/` and `trash/`. What somebody is building is left alone (R8). Tickets
/// of trash that holds more than plain files are returned.
///
/// What was to be seen to before a job is deleted, and was not when its sweeper died, is seen to in `before`
/// ([`Sweeping::before`](crate::protocol::forget::Sweeping::before)).
pub fn collect<D: Disk>(
    disk: &mut D,
    ticket: &Ticket,
    before: &mut dyn FnMut(&Ticket),
) -> Result<Vec<Ticket>, D::Fault> {
    disk.begins(|_| Call::Collect {
        ticket: ticket.clone(),
    });
    let mut moved = false;
    for (nth, name) in (0..).zip(disk.list(&Dir::Staging)?.unwrap_or_default()) {
        if let Some(staged) = ticket_of(&name) {
            moved |= collect_staged(disk, &staged, &ticket.nth(nth))?;
        }
    }
    for number in brought_back(disk)? {
        // No other number of the ticket is so high: staging does not hold that many.
        let ticket = ticket.nth(u32::MAX - u32::from(number));
        moved |= trash(disk, &Dir::Spare(number), &ticket)?;
    }
    let trash = disk.list(&Dir::Trash)?.unwrap_or_default();
    if moved || !trash.is_empty() {
        make_final(disk)?;
    }
    let mut stubborn = Vec::new();
    for trashed in trash.iter().filter_map(ticket_of) {
        before(&trashed);
        if !purge(disk, &trashed)? {
            stubborn.push(trashed);
        }
    }
    Ok(stubborn)
}

fn ticket_of(name: &Name) -> Option<Ticket> {
    Ticket::parse(&name.to_text()?).ok()
}

/// Move one staged directory to the trash if its maker is dead: then its lock, which is its first file, is free
/// or was never made.
fn collect_staged<D: Disk>(
    disk: &mut D,
    staged: &Ticket,
    ticket: &Ticket,
) -> Result<bool, D::Fault> {
    let dir = Dir::Staged(staged.clone());
    let place = dir.at(Name::Lock);
    let lock = match disk.open(&place, Mode::Exclusive)? {
        Open::Opened(lock) => lock,
        Open::Denied => return Ok(false),
        Open::Absent => match disk.rmdir(&dir)? {
            // Its maker, if it lives, finds it gone and takes another ticket.
            Change::Done | Change::Absent => return Ok(false),
            Change::NotDirectory => {
                // A request; its client, if it lives, writes it again.
                disk.unlink(&Dir::Staging.at(Name::Request(staged.clone())))?;
                return Ok(false);
            }
            // The lock was made just now, or a loss of power took it.
            Change::NotEmpty | Change::Exists => match disk.open(&place, Mode::Exclusive)? {
                Open::Absent => return trash(disk, &dir, ticket),
                Open::Opened(lock) => lock,
                Open::Denied => return Ok(false),
            },
        },
    };
    // Shared, so that a claimer of the job that this was renamed to meanwhile takes us for a reader (R5, R6).
    let dead = disk.lock(&lock, Mode::Shared)? && disk.stands(&lock, &place)?;
    let moved = dead && !is_a_job(disk, &dir, &lock)? && trash(disk, &dir, ticket)?;
    disk.close(lock)?;
    Ok(moved)
}

/// Whether a staged directory is that of a job: a loss of power can bring a name back that a job had on its way in, beside
/// the one that it has (F30). To delete what is in it would delete the job.
fn is_a_job<D: Disk>(disk: &mut D, dir: &Dir, lock: &D::Handle) -> Result<bool, D::Fault> {
    match disk.read_descriptor(dir)? {
        Read::Value(descriptor) => disk.stands(lock, &Place::of_job(&descriptor.id, Name::Lock)),
        Read::Absent | Read::Damaged(_) => Ok(false),
    }
}

fn trash<D: Disk>(disk: &mut D, dir: &Dir, ticket: &Ticket) -> Result<bool, D::Fault> {
    let trashed = Place::Dir(Dir::Trashed(ticket.clone()));
    let moved = disk.rename_new(&Place::Dir(dir.clone()), &trashed)? == Change::Done;
    if moved {
        purge(disk, ticket)?;
    }
    Ok(moved)
}
