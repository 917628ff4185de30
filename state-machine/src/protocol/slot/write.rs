//! Writing the record of a slot that one has alone.

use super::occupy::Occupant;
use crate::disk::{Change, Content, Dir, Disk, Name, Place};
use crate::record::Slot;

/// Write the record, so that it survives a loss of power: a slot that reads as given back after one, and was not, would be
/// handed on with somebody's work in it (R14). `false` where the slot was taken away, or something else stands in the
/// record's place.
pub(super) fn write<D: Disk>(
    disk: &mut D,
    occupant: &mut Occupant<D::Handle>,
    record: Slot,
) -> Result<bool, D::Fault> {
    let dir = Dir::Slot(occupant.pool.clone(), record.number);
    if occupant.is_new {
        // So that the directory of a slot that has a record is there for good.
        let pool = occupant.pool.clone();
        for names in [Dir::Slots(pool.clone()), Dir::Pool(pool), Dir::Pools] {
            disk.sync(&Place::Dir(names))?;
        }
    }
    let new = dir.at(Name::NewSlot);
    if disk.write(&new, &Content::Slot(Box::new(record.clone())))? != Change::Done {
        return Ok(false);
    }
    disk.sync(&new)?;
    if disk.rename(&new, &dir.at(Name::Slot))? != Change::Done {
        return Ok(false);
    }
    disk.sync(&Place::Dir(dir))?;
    occupant.record = record;
    occupant.is_new = false;
    Ok(true)
}
