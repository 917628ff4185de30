//! Reading a slot: what is true about it, without changing anything.

use super::place::numbers;
use crate::call::Call;
use crate::disk::{Dir, Disk, Name, Read};
use crate::id::PoolName;
use crate::protocol::claim::{Held, probe};
use crate::record::{Claim, Damaged, Holder, Session, Slot};
use crate::slot::{self, State};

/// How often a slot is looked at while it changes.
const LOOKS: u32 = 4;

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
/// The record is read before and after its lock is tried, until both say the same: a claim that stood all the while that the
/// lock was seen to be free is that of a dead one (R16).
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
    let mut before = disk.read_slot(pool, number)?;
    for look in 1..=LOOKS {
        let held = match probe(disk, &place)? {
            Held::Gone => return Ok(LookSlot::Gone),
            held => held == Held::Yes,
        };
        let session = match &before {
            Read::Value(record) => session_of(disk, record)?,
            Read::Absent | Read::Damaged(_) => Read::Absent,
        };
        let after = disk.read_slot(pool, number)?;
        if after == before || look == LOOKS {
            return Ok(conclude(number, before, session, held));
        }
        before = after;
    }
    Ok(LookSlot::Gone)
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

fn conclude(number: u32, record: Read<Slot>, session: Read<Session>, held: bool) -> LookSlot {
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
