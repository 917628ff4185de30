//! Mending a broken slot: only a person asks for that, and only a broken one is taken.

use super::occupy::Occupant;
use super::write::write;
use crate::call::Call;
use crate::disk::{Dir, Disk, Name, Read};
use crate::id::PoolName;
use crate::protocol::lock::{Taken, take_lock};
use crate::record::Damaged;
use crate::slot::{self, State};

/// What mending a slot came to.
#[derive(Debug)]
pub enum Mending<H> {
    /// We have it alone; whoever has seen that it is sound calls it mended.
    Mine(Occupant<H>),
    /// It is not broken.
    NotBroken,
    /// Somebody has it.
    Held,
    /// There is no such slot.
    Gone,
    /// Its record cannot be read (R21).
    Damaged(Damaged),
}

/// Have a broken slot alone.
pub fn take_broken<D: Disk>(
    disk: &mut D,
    pool: &PoolName,
    number: u32,
) -> Result<Mending<D::Handle>, D::Fault> {
    disk.begins(|_| Call::TakeBroken {
        pool: pool.clone(),
        number,
    });
    let place = Dir::Slot(pool.clone(), number).at(Name::Occupancy);
    let lock = match take_lock(disk, &place)? {
        Taken::Mine(lock) => lock,
        Taken::Owned => return Ok(Mending::Held),
        Taken::Absent => return Ok(Mending::Gone),
    };
    match disk.read_slot(pool, number)? {
        Read::Value(record) if record.state == State::Broken => Ok(Mending::Mine(Occupant {
            pool: pool.clone(),
            lock,
            record,
            expired: None,
            is_new: false,
        })),
        Read::Damaged(why) => {
            disk.release(lock)?;
            Ok(Mending::Damaged(why))
        }
        Read::Value(_) | Read::Absent => {
            disk.release(lock)?;
            Ok(Mending::NotBroken)
        }
    }
}

/// Call a broken slot mended, and let its lock go. `false` where it was taken away.
pub fn mend<D: Disk>(disk: &mut D, mut occupant: Occupant<D::Handle>) -> Result<bool, D::Fault> {
    disk.begins(|number| Call::Mend {
        occupant: occupant.on_tape(number),
    });
    let written = match slot::repaired(occupant.record.clone()) {
        Ok(record) => write(disk, &mut occupant, record)?,
        Err(_) => false,
    };
    disk.release(occupant.lock)?;
    Ok(written)
}
