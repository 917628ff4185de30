//! Having a slot alone.

use crate::call::{Call, InSlot};
use crate::disk::{Dir, Disk, Name, Read};
use crate::id::PoolName;
use crate::protocol::lock::{Taken, take_lock};
use crate::record::{Claim, Damaged, Holder, Session, Slot};
use crate::slot::{self, State};

/// Whoever has a slot alone. Only he writes its record.
#[derive(Debug)]
pub struct Occupant<H> {
    pub(super) pool: PoolName,
    pub(super) lock: H,
    /// As it is on disk, but without the claim of a dead one.
    pub(super) record: Slot,
    /// The session that is open in it and has expired.
    pub(super) expired: Option<Session>,
    /// Whether it never had a record, so that nothing says that its directory survives a loss of power.
    pub(super) is_new: bool,
}

impl<H> Occupant<H> {
    /// The pool.
    pub fn pool(&self) -> &PoolName {
        &self.pool
    }

    /// The number of the slot.
    pub fn number(&self) -> u32 {
        self.record.number
    }

    /// The lock, to be inherited by whatever works in the slot.
    pub fn lock(&self) -> &H {
        &self.lock
    }

    /// What is known of the slot.
    pub fn record(&self) -> &Slot {
        &self.record
    }

    /// The session that is open in it and has expired: it may be closed if nothing would be lost by that, and is to be left
    /// alone otherwise.
    pub fn expired(&self) -> Option<&Session> {
        self.expired.as_ref()
    }

    /// All that it knows, with a number for its lock.
    pub(super) fn on_tape(&self, number: &dyn Fn(&H) -> u32) -> InSlot {
        InSlot {
            pool: self.pool.clone(),
            lock: number(&self.lock),
            record: self.record.clone(),
            expired: self.expired.clone(),
            is_new: self.is_new,
        }
    }

    /// The occupant that a tape tells of. Only for a replay: whoever else wants to be one has to occupy the slot.
    pub fn from_tape(known: InSlot, lock: H) -> Occupant<H> {
        Occupant {
            pool: known.pool,
            lock,
            record: known.record,
            expired: known.expired,
            is_new: known.is_new,
        }
    }
}

/// Why a slot cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// A session is open in it.
    Session(Box<Session>),
    /// Somebody works in it: whoever its record names, or one who has only just come or is about to leave.
    Held(Option<Box<Claim>>),
    /// This is wrong with it.
    Broken(String),
    /// Its record, or that of its session, cannot be read (R21).
    Damaged(Damaged),
}

/// What occupying a slot came to.
#[derive(Debug)]
pub enum Occupy<H> {
    /// We have it alone, and nobody else is responsible for it.
    Mine(Occupant<H>),
    /// It cannot be had.
    Taken(Why),
    /// There is no such slot.
    Gone,
}

/// Have a slot alone that nobody is responsible for. The claim of a dead one falls (R16): his lock is free. One whose session
/// is open lives, whatever processes there are, until it has expired at `now_ms`.
pub fn occupy<D: Disk>(
    disk: &mut D,
    pool: &PoolName,
    number: u32,
    now_ms: u64,
) -> Result<Occupy<D::Handle>, D::Fault> {
    disk.begins(|_| Call::Occupy {
        pool: pool.clone(),
        number,
        now_ms,
    });
    // First without its lock, which whoever works in the slot then need not find taken.
    let before = match disk.read_slot(pool, number)? {
        Read::Value(record) => Some(record),
        Read::Absent => None,
        Read::Damaged(why) => return Ok(Occupy::Taken(Why::Damaged(why))),
    };
    if let Some(record) = &before
        && let Claimed::By(why) = claimed(disk, record, now_ms)?
    {
        return Ok(Occupy::Taken(why));
    }
    let place = Dir::Slot(pool.clone(), number).at(Name::Occupancy);
    let lock = match take_lock(disk, &place)? {
        Taken::Mine(lock) => lock,
        Taken::Owned => {
            let claim = before.and_then(|record| record.claim);
            return Ok(Occupy::Taken(Why::Held(claim.map(Box::new))));
        }
        Taken::Absent => return Ok(Occupy::Gone),
    };
    // Nobody writes it now.
    let (record, is_new) = match disk.read_slot(pool, number)? {
        Read::Value(record) => (record, false),
        // Whoever made the slot died before he could say what it is for, or somebody took its record away.
        Read::Absent => (Slot::new(number), true),
        Read::Damaged(why) => {
            disk.release(lock)?;
            return Ok(Occupy::Taken(Why::Damaged(why)));
        }
    };
    let expired = match claimed(disk, &record, now_ms)? {
        Claimed::By(why) => {
            disk.release(lock)?;
            return Ok(Occupy::Taken(why));
        }
        Claimed::ByExpired(session) => Some(*session),
        Claimed::ByNobody => None,
    };
    Ok(Occupy::Mine(Occupant {
        pool: pool.clone(),
        lock,
        record: match expired {
            Some(_) => record,
            None => slot::without_the_dead(record),
        },
        expired,
        is_new,
    }))
}

/// Who is responsible for a slot whose lock is free.
enum Claimed {
    By(Why),
    ByExpired(Box<Session>),
    ByNobody,
}

fn claimed<D: Disk>(disk: &mut D, record: &Slot, now_ms: u64) -> Result<Claimed, D::Fault> {
    if record.state == State::Broken {
        let why = record.broken.clone().unwrap_or_default();
        return Ok(Claimed::By(Why::Broken(why)));
    }
    let Some(Claim {
        token,
        holder: Holder::Session,
        ..
    }) = &record.claim
    else {
        return Ok(Claimed::ByNobody);
    };
    Ok(match disk.read_session(token)? {
        Read::Value(session) if session.has_expired(now_ms) => {
            Claimed::ByExpired(Box::new(session))
        }
        Read::Value(session) => Claimed::By(Why::Session(Box::new(session))),
        // Who was opening it died before he could say that it is open, or who closed it before the slot was given back.
        Read::Absent => Claimed::ByNobody,
        // Somebody's work may be in there.
        Read::Damaged(why) => Claimed::By(Why::Damaged(why)),
    })
}

/// Leave a slot as it is.
pub fn leave<D: Disk>(disk: &mut D, occupant: Occupant<D::Handle>) -> Result<(), D::Fault> {
    disk.begins(|number| Call::Leave {
        occupant: occupant.on_tape(number),
    });
    disk.release(occupant.lock)
}
