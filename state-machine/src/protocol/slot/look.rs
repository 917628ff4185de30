//! Reading a slot: what is true about it, without changing anything.

use super::place::numbers;
use crate::call::Call;
use crate::disk::{Dir, Disk, Mode, Name, Open, Read};
use crate::id::PoolName;
use crate::record::{Claim, Damaged, Holder, Session, Slot};
use crate::slot::{self, State};

/// What is true about a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotView {
    /// What is known of it, without the claim of a dead one.
    pub record: Slot,
    /// Who has it.
    pub standing: Standing,
}

/// Who has a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nobody.
    Idle,
    /// Nobody, and whoever had it last did not give it back: it is looked into before it is used.
    Left,
    /// The session that is open in it.
    Session(Box<Session>),
    /// This claim, of a job or of maintenance.
    Claimed(Box<Claim>),
    /// Somebody who has only just come, or is about to leave.
    Held,
    /// Nobody, as this is wrong with it.
    Broken(String),
}

/// What looking at a slot came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookSlot {
    /// What is true about it.
    Slot(Box<SlotView>),
    /// There is no such slot.
    Gone,
    /// A record of it cannot be read.
    Damaged(Damaged),
}

/// Look at a slot.
///
/// Where its lock can be shared, nobody has the slot alone, and nobody writes its record or opens or closes its session
/// meanwhile: what is read then is true of one instant, and a claim of a job or of maintenance is that of a dead one (R16).
/// Where it cannot be had, somebody has the slot.
pub fn look_at_slot<D: Disk>(
    disk: &mut D,
    pool: &PoolName,
    number: u32,
) -> Result<LookSlot, D::Fault> {
    disk.begins(|_| Call::LookAtSlot {
        pool: pool.clone(),
        number,
    });
    let place = Dir::Slot(pool.clone(), number).at(Name::Occupancy);
    let (lock, free) = match disk.open(&place, Mode::Shared)? {
        Open::Absent => return Ok(LookSlot::Gone),
        Open::Denied => (None, false),
        Open::Opened(lock) => {
            let free = disk.lock(&lock, Mode::Shared)?;
            (Some(lock), free)
        }
    };
    let record = disk.read_slot(pool, number)?;
    let session = match &record {
        Read::Value(record) => session_of(disk, record)?,
        Read::Absent | Read::Damaged(_) => Read::Absent,
    };
    if let Some(lock) = lock {
        disk.close(lock)?;
    }
    Ok(conclude(number, record, session, !free))
}

fn session_of<D: Disk>(disk: &mut D, record: &Slot) -> Result<Read<Session>, D::Fault> {
    match &record.claim {
        Some(Claim {
            token,
            holder: Holder::Session,
            ..
        }) => disk.read_session(token),
        _ => Ok(Read::Absent),
    }
}

/// What is true about a slot whose record, and whose session if it is claimed by one, are of one instant; `held`: somebody had it
/// alone then.
pub fn conclude(number: u32, record: Read<Slot>, session: Read<Session>, held: bool) -> LookSlot {
    let record = match record {
        Read::Value(record) => record,
        Read::Absent => Slot::new(number),
        Read::Damaged(why) => return LookSlot::Damaged(why),
    };
    let standing = match (session, &record.claim) {
        (Read::Damaged(why), _) => return LookSlot::Damaged(why),
        _ if record.state == State::Broken => {
            Standing::Broken(record.broken.clone().unwrap_or_default())
        }
        (Read::Value(session), _) => Standing::Session(Box::new(session)),
        (Read::Absent, Some(claim)) if held && claim.holder != Holder::Session => {
            Standing::Claimed(Box::new(claim.clone()))
        }
        (Read::Absent, _) if held => Standing::Held,
        (Read::Absent, None) if record.returned => Standing::Idle,
        (Read::Absent, _) => Standing::Left,
    };
    let record = match standing {
        Standing::Idle | Standing::Left => slot::without_the_dead(record),
        _ => record,
    };
    LookSlot::Slot(Box::new(SlotView { record, standing }))
}

/// Look at every slot of a pool, in the order of their numbers.
pub fn look_at_slots<D: Disk>(
    disk: &mut D,
    pool: &PoolName,
) -> Result<Vec<(u32, LookSlot)>, D::Fault> {
    let mut looks = Vec::new();
    for number in numbers(disk, pool)? {
        looks.push((number, look_at_slot(disk, pool, number)?));
    }
    Ok(looks)
}
