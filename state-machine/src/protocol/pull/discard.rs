//! Removing what is left of a file that nobody fetches any more.

use super::Site;
use super::part::{Taken, clear, take_what_is_there};
use crate::disk::{Disk, Place};

/// Remove what there is of a file. Whether nothing is left: `false` where somebody fetches it.
///
/// Its record goes first, and for good: one that a loss of power brought back would tell of whatever has the name by then.
pub fn discard<D: Disk>(disk: &mut D, site: &Site) -> Result<bool, D::Fault> {
    let part = match take_what_is_there(disk, site)? {
        Taken::Mine(part) => part,
        Taken::Owned => return Ok(false),
        Taken::Absent => return Ok(true),
    };
    clear(disk, site)?;
    disk.sync(&Place::Dir(site.staging.clone()))?;
    disk.unlink(&site.whole())?;
    disk.unlink(&site.part())?;
    disk.release(part)?;
    Ok(true)
}
