//! Finding a slot for somebody who wants one: an idle one, or a new one while there are fewer than there may be.

use super::occupy::{Occupant, Occupy, Why, occupy};
use crate::call::Call;
use crate::disk::{Change, Create, Dir, Disk, Name, Place};
use crate::id::PoolName;
use crate::protocol::lock::{Taken, lock_in_turn, take_lock};
use crate::record::Slot;

/// What looking for a slot came to.
#[derive(Debug)]
pub enum Placed<H> {
    /// This one. Whoever has it looks at what stands in it, and claims it, calls it broken, or leaves it.
    Slot(Occupant<H>),
    /// None can be had, and this is why, slot by slot.
    Full(Vec<(u32, Why)>),
    /// Others have been looking for one all the time.
    Busy,
}

/// Find a slot in a pool that is to have `most` of them, but none of `not_those`. Nobody is waited for but others who are
/// looking for one, each of whom takes a moment (R15).
pub fn place<D: Disk>(
    disk: &mut D,
    pool: &PoolName,
    most: u32,
    not_those: &[u32],
    now_ms: u64,
) -> Result<Placed<D::Handle>, D::Fault> {
    disk.begins(|_| Call::Place {
        pool: pool.clone(),
        most,
        not_those: not_those.to_vec(),
        now_ms,
    });
    make_room(disk, pool)?;
    let Some(lock) = lock_in_turn(disk, &placement_lock(pool))? else {
        return Ok(Placed::Busy);
    };
    let placed = place_locked(disk, pool, most, not_those, now_ms)?;
    disk.release(lock)?;
    Ok(placed)
}

/// The place of a pool's placement lock. Its file is never removed, so there is only ever one (F18).
pub fn placement_lock(pool: &PoolName) -> Place {
    Dir::Pool(pool.clone()).at(Name::PlacementLock)
}

/// The directories that slots are in. A pool that is only configured has none yet.
pub(super) fn make_room<D: Disk>(disk: &mut D, pool: &PoolName) -> Result<(), D::Fault> {
    let slots = Dir::Slots(pool.clone());
    if disk.mkdir(&slots)? == Change::Absent {
        disk.mkdir(&Dir::Pools)?;
        disk.mkdir(&Dir::Pool(pool.clone()))?;
        disk.mkdir(&slots)?;
    }
    Ok(())
}

fn place_locked<D: Disk>(
    disk: &mut D,
    pool: &PoolName,
    most: u32,
    not_those: &[u32],
    now_ms: u64,
) -> Result<Placed<D::Handle>, D::Fault> {
    let there = numbers(disk, pool)?;
    let mut whys = Vec::new();
    for &number in there.iter().filter(|number| !not_those.contains(number)) {
        match occupy(disk, pool, number, now_ms)? {
            Occupy::Mine(occupant) => return Ok(Placed::Slot(occupant)),
            Occupy::Taken(why) => whys.push((number, why)),
            // Whoever was making it died: it is made now.
            Occupy::Gone => {
                if let Some(occupant) = make(disk, pool, number)? {
                    return Ok(Placed::Slot(occupant));
                }
            }
        }
    }
    if there.len() < most as usize
        && let Some(number) = (1..=most).find(|number| !there.contains(number))
        && let Some(occupant) = make(disk, pool, number)?
    {
        return Ok(Placed::Slot(occupant));
    }
    Ok(Placed::Full(whys))
}

/// The numbers of the slots that there are, in order.
pub fn numbers<D: Disk>(disk: &mut D, pool: &PoolName) -> Result<Vec<u32>, D::Fault> {
    let names = disk.list(&Dir::Slots(pool.clone()))?.unwrap_or_default();
    let mut numbers: Vec<u32> = names.iter().filter_map(number_of).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// The number that a name is, written as a slot's is.
fn number_of(name: &Name) -> Option<u32> {
    let text = name.to_text()?;
    let number = text.parse().ok()?;
    (format!("{number}") == text).then_some(number)
}

/// Make a slot, and have it alone. `None` where somebody who does not look for slots is in the way.
fn make<D: Disk>(
    disk: &mut D,
    pool: &PoolName,
    number: u32,
) -> Result<Option<Occupant<D::Handle>>, D::Fault> {
    let dir = Dir::Slot(pool.clone(), number);
    disk.mkdir(&dir)?;
    let place = dir.at(Name::Occupancy);
    // Whoever looks at it may share its lock for a moment as soon as it stands (R5).
    if let Create::Created(lock) = disk.create(&place)? {
        disk.close(lock)?;
    }
    Ok(match take_lock(disk, &place)? {
        Taken::Mine(lock) => Some(Occupant {
            pool: pool.clone(),
            lock,
            record: Slot::new(number),
            expired: None,
            is_new: true,
        }),
        Taken::Owned | Taken::Absent => None,
    })
}
