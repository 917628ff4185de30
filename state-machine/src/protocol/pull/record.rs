//! Keeping the record beside a part: never ahead of the bytes, and never behind a change of what they are.
//!
//! There are two. One is written often and never synced: a loss of power may leave it as it was, or as nothing. The other is
//! written when the part was synced, and synced itself, so that what was made to survive is still known then.

use super::Site;
use super::source::{FaultOf, HandleOf, Source};
use crate::disk::{Content, Disk, Place};
use crate::pull::part::Part;

/// Record how much has arrived. Not synced: after a loss of power it counts only where it says so itself.
pub fn keep<D: Disk>(disk: &mut D, site: &Site, record: &Part) -> Result<(), D::Fault> {
    let new = site.new_record();
    disk.write(&new, &Content::Part(Box::new(record.clone())))?;
    disk.rename(&new, &site.record())?;
    Ok(())
}

/// Make what has arrived survive a loss of power, and record that it does.
pub fn keep_synced<D: Disk>(disk: &mut D, site: &Site, record: &mut Part) -> Result<(), D::Fault> {
    // What arrives while it is synced may or may not be.
    let done: Vec<u64> = record.runs.iter().map(|run| run.done).collect();
    disk.sync(&site.part())?;
    record.is_synced_up_to(&done);
    // And its name, before a record tells of it: one of another that was removed could come back in its place.
    let staging = Place::Dir(site.staging.clone());
    disk.sync(&staging)?;
    write_synced(disk, site, record)?;
    let new = site.new_record();
    disk.rename(&new, &site.synced_record())?;
    disk.sync(&staging)?;
    Ok(())
}

/// Nothing of a part can be used: say so, and make it empty.
///
/// The record survives a loss of power before a byte of the part is touched. Else an old one could come back, and take what was
/// written after it for synced bytes of its own version.
pub fn begin_anew<S: Source + ?Sized>(
    source: &mut S,
    part: &HandleOf<S>,
    site: &Site,
    record: &mut Part,
    total_bytes: Option<u64>,
) -> Result<(), FaultOf<S>> {
    record.begin_anew(total_bytes);
    replace(source.disk(), site, record)?;
    source.empty(part)
}

/// Replace both records so that neither ever comes back.
fn replace<D: Disk>(disk: &mut D, site: &Site, record: &Part) -> Result<(), D::Fault> {
    write_synced(disk, site, record)?;
    disk.rename(&site.new_record(), &site.record())?;
    disk.unlink(&site.synced_record())?;
    disk.sync(&Place::Dir(site.staging.clone()))?;
    Ok(())
}

/// Write the next record, before it takes its place.
fn write_synced<D: Disk>(disk: &mut D, site: &Site, record: &Part) -> Result<(), D::Fault> {
    let new = site.new_record();
    disk.write(&new, &Content::Part(Box::new(record.clone())))?;
    disk.sync(&new)?;
    Ok(())
}
