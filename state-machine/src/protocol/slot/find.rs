//! Finding a slot that is fit to be used: one that can be had, and in which whoever looks at it finds nothing wrong.

use super::give_back::{Condition, give_back};
use super::occupy::{Occupant, Why, leave};
use super::place::{Placed, place};
use crate::disk::Disk;
use crate::id::PoolName;

/// What looking at what stands in a slot came to. How that is looked at, and what is done to make it so, is the looker's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It is as a fresh one, and nothing works in it.
    Sound,
    /// Processes of a dead holder work in it still. It is left as it is.
    Busy(String),
    /// This is wrong with it, or would be lost.
    Broken(String),
}

/// Whoever looks at what stands in a slot that he is given alone.
pub type Inspect<'a, D> =
    dyn FnMut(&mut D, &Occupant<<D as Disk>::Handle>) -> Result<Finding, <D as Disk>::Fault> + 'a;

/// What finding a slot came to.
#[derive(Debug)]
pub enum Found<H> {
    /// This one, alone and sound.
    Slot(Occupant<H>),
    /// None can be had, and this is why, slot by slot.
    None(Vec<(u32, Why)>),
    /// Others have been looking for one all the time.
    Busy,
}

/// Find a slot. Each is looked at while only it is held, so nobody waits for that but who wants this one. One that is found
/// broken is recorded so, once, and not found again; a session that has expired is closed if its slot is sound.
pub fn find<D: Disk>(
    disk: &mut D,
    pool: &PoolName,
    most: u32,
    now_ms: u64,
    inspect: &mut Inspect<'_, D>,
) -> Result<Found<D::Handle>, D::Fault> {
    let mut unfit = Vec::new();
    let mut whys = Vec::new();
    loop {
        let occupant = match place(disk, pool, most, &unfit, now_ms)? {
            Placed::Slot(occupant) => occupant,
            Placed::Full(others) => {
                whys.extend(others);
                whys.sort_by_key(|(number, _)| *number);
                return Ok(Found::None(whys));
            }
            Placed::Busy => return Ok(Found::Busy),
        };
        let number = occupant.number();
        let expired = occupant.expired().cloned();
        match (inspect(disk, &occupant)?, expired) {
            (Finding::Sound, None) => return Ok(Found::Slot(occupant)),
            (Finding::Sound, Some(_)) => {
                give_back(disk, occupant, Condition::Clean)?;
                continue;
            }
            // Its holder may still come for what is in there.
            (Finding::Busy(_) | Finding::Broken(_), Some(session)) => {
                leave(disk, occupant)?;
                whys.push((number, Why::Session(Box::new(session))));
            }
            (Finding::Busy(_), None) => {
                let claim = occupant.record().claim.clone();
                leave(disk, occupant)?;
                whys.push((number, Why::Held(claim.map(Box::new))));
            }
            (Finding::Broken(why), None) => {
                give_back(disk, occupant, Condition::Broken(why.clone()))?;
                whys.push((number, Why::Broken(why)));
            }
        }
        unfit.push(number);
    }
}
