//! Taking the part of a file, making it where there is none. Who has it locked is the one who does anything about the file:
//! pours, verifies, keeps its record, removes it.

use super::Site;
use super::staging::make_staging;
use crate::disk::{Create, Disk};
pub(super) use crate::protocol::lock::Taken;
use crate::protocol::lock::take_lock;

/// How often a part is tried to be taken that others make and move away.
const ROUNDS: u32 = 8;

/// The part of a file.
pub(super) enum Stand<H> {
    /// It is ours, and locked.
    Mine(H),
    /// Somebody else has it.
    Busy,
    /// There is none: the file is whole.
    Whole,
}

/// Take the part, making it where there is none. The file may have become whole meanwhile, by the hand of whoever had it; what
/// is still there of a part then is nobody's.
pub(super) fn take_part<D: Disk>(disk: &mut D, site: &Site) -> Result<Stand<D::Handle>, D::Fault> {
    let place = site.part();
    for _ in 0..ROUNDS {
        match take_lock(disk, &place)? {
            Taken::Mine(part) => {
                if !disk.exists(&site.whole())? {
                    return Ok(Stand::Mine(part));
                }
                disk.unlink(&place)?;
                disk.release(part)?;
                return Ok(Stand::Whole);
            }
            Taken::Owned if disk.exists(&site.whole())? => return Ok(Stand::Whole),
            Taken::Owned => return Ok(Stand::Busy),
            Taken::Absent if disk.exists(&site.whole())? => return Ok(Stand::Whole),
            Taken::Absent => make_part(disk, site)?,
        }
    }
    Ok(Stand::Busy)
}

/// Take the part to remove the file, making it where there is something else of it: it is the lock of all that.
pub(super) fn take_what_is_there<D: Disk>(
    disk: &mut D,
    site: &Site,
) -> Result<Taken<D::Handle>, D::Fault> {
    for _ in 0..ROUNDS {
        match take_lock(disk, &site.part())? {
            Taken::Absent => {}
            taken => return Ok(taken),
        }
        if !has_others(disk, site)? {
            return Ok(Taken::Absent);
        }
        make_part(disk, site)?;
    }
    Ok(Taken::Owned)
}

/// Whether anything of a file stands that is not its part. A loss of power leaves any of it alone.
fn has_others<D: Disk>(disk: &mut D, site: &Site) -> Result<bool, D::Fault> {
    for place in [
        site.whole(),
        site.record(),
        site.synced_record(),
        site.new_record(),
    ] {
        if disk.exists(&place)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn make_part<D: Disk>(disk: &mut D, site: &Site) -> Result<(), D::Fault> {
    match disk.create(&site.part())? {
        Create::Created(part) => disk.close(part)?,
        Create::Exists => {}
        Create::Absent => {
            make_staging(disk, &site.staging)?;
        }
    }
    Ok(())
}

/// Remove the records of a part.
pub(super) fn clear<D: Disk>(disk: &mut D, site: &Site) -> Result<(), D::Fault> {
    disk.unlink(&site.record())?;
    disk.unlink(&site.new_record())?;
    disk.unlink(&site.synced_record())?;
    Ok(())
}
