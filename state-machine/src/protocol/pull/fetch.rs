//! From nothing, or from what an earlier attempt has left, to a whole file that is verified.

use super::record::begin_anew;
use super::source::{FaultOf, HandleOf, Poured, Source, Verified};
use super::{Site, keep};
use crate::disk::{Create, Disk, Place};
use crate::protocol::lock::{Taken, take_lock};
use crate::pull::part::{Keep, Part, Wanted};
use crate::pull::word::Cause;

/// How often a part is tried to be taken that others make and move away.
const ROUNDS: u32 = 8;

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
            clear(source.disk(), site)?;
            return Ok(Fetched::Whole);
        }
    };
    let fetched = fill(source, &part, site, wanted)?;
    source.disk().release(part)?;
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
    source.disk().sync(&site.part())?;
    match source.verify(part, &record)? {
        Verified::Right => {
            let disk = source.disk();
            disk.rename(&site.part(), &site.whole())?;
            clear(disk, site)?;
            disk.sync(&Place::Dir(site.staging.clone()))?;
            Ok(Fetched::Whole)
        }
        Verified::Wrong(why) => {
            source.discards(record.done_bytes(), &why);
            let disk = source.disk();
            // Its record first: without one its bytes are nobody's.
            disk.unlink(&site.record())?;
            disk.unlink(&site.part())?;
            disk.sync(&Place::Dir(site.staging.clone()))?;
            Ok(Fetched::Wrong(why))
        }
    }
}

/// What can be used of what is there, with a record that says so.
fn take_stock<S: Source>(
    source: &mut S,
    part: &HandleOf<S>,
    site: &Site,
    wanted: &Wanted<'_>,
) -> Result<Part, FaultOf<S>> {
    let length = source.length(part)?;
    let found = source.disk().read_part(&site.record())?;
    match Part::judge(found, length, wanted) {
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
                    source.discards(discarded_bytes, &why);
                    begin_anew(source, part, site, &mut record, wanted.total_bytes)?;
                }
                None => keep(source.disk(), site, &record)?,
            }
            Ok(record)
        }
    }
}

/// The part of a file.
enum Stand<H> {
    /// It is ours, and locked.
    Mine(H),
    /// Somebody else has it.
    Busy,
    /// There is none: the file is whole.
    Whole,
}

/// Take the part, making it where there is none. The file may have become whole meanwhile, by the hand of whoever had it.
fn take_part<D: Disk>(disk: &mut D, site: &Site) -> Result<Stand<D::Handle>, D::Fault> {
    let place = site.part();
    for _ in 0..ROUNDS {
        if disk.exists(&site.whole())? {
            return Ok(Stand::Whole);
        }
        match take_lock(disk, &place)? {
            Taken::Mine(part) => {
                if !disk.exists(&site.whole())? {
                    return Ok(Stand::Mine(part));
                }
                disk.unlink(&place)?;
                disk.release(part)?;
                return Ok(Stand::Whole);
            }
            Taken::Owned => return Ok(Stand::Busy),
            Taken::Absent => match disk.create(&place)? {
                Create::Created(part) => disk.close(part)?,
                Create::Exists => {}
                Create::Absent => {
                    disk.mkdir(&site.staging)?;
                }
            },
        }
    }
    Ok(Stand::Busy)
}

/// A whole file needs no record.
fn clear<D: Disk>(disk: &mut D, site: &Site) -> Result<(), D::Fault> {
    disk.unlink(&site.record())?;
    disk.unlink(&site.new_record())?;
    Ok(())
}
