//! From nothing, or from what an earlier attempt has left, to a whole file that is verified.

use super::part::{Stand, clear, take_part};
use super::record::begin_anew;
use super::source::{FaultOf, HandleOf, Poured, Source, Verified};
use super::{Site, keep};
use crate::disk::{Disk, Place};
use crate::pull::part::{Keep, Part, Wanted};
use crate::pull::word::Cause;

/// What fetching a file came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// It stands whole in the staging directory.
    Whole,
    /// Somebody else is fetching the same file to the same place.
    Busy,
    /// It is not all there, for this reason.
    Not(Cause),
    /// It is all there and is not what was wanted, for this reason. It is gone.
    Wrong(String),
}

/// Fetch a file, and see that it is what is wanted.
pub fn fetch<S: Source>(
    source: &mut S,
    site: &Site,
    wanted: &Wanted<'_>,
) -> Result<Fetched, FaultOf<S>> {
    let part = match take_part(source.disk(), site)? {
        Stand::Mine(part) => part,
        Stand::Busy => return Ok(Fetched::Busy),
        Stand::Whole => {
            settle(source.disk(), site)?;
            return Ok(Fetched::Whole);
        }
    };
    let fetched = fill(source, &part, site, wanted)?;
    let disk = source.disk();
    disk.release(part)?;
    Ok(fetched)
}

fn fill<S: Source>(
    source: &mut S,
    part: &HandleOf<S>,
    site: &Site,
    wanted: &Wanted<'_>,
) -> Result<Fetched, FaultOf<S>> {
    let mut record = take_stock(source, part, site, wanted)?;
    if !record.is_complete()
        && let Poured::Not(cause) = source.pour(part, site, &mut record)?
    {
        return Ok(Fetched::Not(cause));
    }
    // What is verified must be what a loss of power leaves.
    let disk = source.disk();
    disk.sync(&site.part())?;
    match source.verify(part, &record)? {
        Verified::Right => {
            let disk = source.disk();
            disk.rename(&site.part(), &site.whole())?;
            settle(disk, site)?;
            Ok(Fetched::Whole)
        }
        Verified::Wrong(why) => {
            source.discards(record.done_bytes(), &why);
            let disk = source.disk();
            // Its record first, and for good: one that came back would tell of what is fetched then.
            clear(disk, site)?;
            disk.sync(&Place::Dir(site.staging.clone()))?;
            disk.unlink(&site.part())?;
            Ok(Fetched::Wrong(why))
        }
    }
}

/// Make it last that a file is whole, by whose hand ever it is. Its records go after that: without one a part's bytes are nobody's.
/// That they are gone is synced by [`register`](super::register), and once for all files.
fn settle<D: Disk>(disk: &mut D, site: &Site) -> Result<(), D::Fault> {
    disk.sync(&Place::Dir(site.staging.clone()))?;
    clear(disk, site)
}

/// What can be used of what is there, with a record that says so.
fn take_stock<S: Source>(
    source: &mut S,
    part: &HandleOf<S>,
    site: &Site,
    wanted: &Wanted<'_>,
) -> Result<Part, FaultOf<S>> {
    let length = source.length(part)?;
    let disk = source.disk();
    let last = disk.read_part(&site.record())?;
    let synced = disk.read_part(&site.synced_record())?;
    match Part::judge_both(last, synced, length, wanted) {
        Keep::Some(record) => {
            source.reuses(record.done_bytes());
            Ok(record)
        }
        Keep::Nothing {
            discarded_bytes,
            why,
        } => {
            let mut record = Part::new(wanted);
            match why {
                Some(why) => {
                    if discarded_bytes > 0 {
                        source.discards(discarded_bytes, &why);
                    }
                    begin_anew(source, part, site, &mut record, wanted.total_bytes)?;
                }
                None => keep(source.disk(), site, &record)?,
            }
            Ok(record)
        }
    }
}
