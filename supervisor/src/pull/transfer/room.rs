//! Room on the disk for what is to come. Of two transfers that do not fit together the one that needs more of what is free has its
//! room kept from its first byte on, so that the other is told, and not both end half way. It is kept while the transfer is
//! paused too, and goes with the part.
//!
//! The length of a part stays what was written to it: nothing here may make a file look longer than it is.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{FallocateFlags, fallocate, fstat, fstatvfs};
use rustix::io::{Errno, retry_on_intr};
use state_machine::pull::part::Part;

/// There is not enough.
pub(super) struct NoRoom {
    /// How much is missing, in bytes.
    pub(super) missing: u64,
    /// How much is free, in bytes.
    pub(super) free: u64,
}

/// Keep room for what is missing of a part, where that takes more than half of what is free: of any two that do not fit
/// together one does. Where a file system cannot tell or cannot keep any, it is found out by writing.
pub(super) fn keep_room(file: impl AsFd, part: &Part) -> Result<(), NoRoom> {
    let Some(total) = part.total_bytes else {
        return Ok(());
    };
    let Ok((free, here)) = free_and_here(&file) else {
        return Ok(());
    };
    // What was kept before and is not written yet counts as here.
    let missing = total.saturating_sub(here.max(part.done_bytes()));
    let too_little = || NoRoom { missing, free };
    if missing > free {
        return Err(too_little());
    }
    if missing <= free / 2 {
        return Ok(());
    }
    for (from, length) in holes(part) {
        let kept = retry_on_intr(|| fallocate(&file, FallocateFlags::KEEP_SIZE, from, length));
        if kept == Err(Errno::NOSPC) {
            // Somebody else was faster, and is to have all of it.
            give_up(&file, part);
            return Err(too_little());
        }
    }
    Ok(())
}

fn give_up(file: impl AsFd, part: &Part) {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    for (from, length) in holes(part) {
        // What it does not give back it keeps until the part is removed.
        let _ = retry_on_intr(|| fallocate(&file, flags, from, length));
    }
}

/// Where bytes are missing, and how many.
fn holes(part: &Part) -> impl Iterator<Item = (u64, u64)> {
    part.runs.iter().enumerate().filter_map(|(nth, run)| {
        let missing = part.missing_in(nth).filter(|missing| *missing > 0)?;
        Some((run.from + run.done, missing))
    })
}

/// How many bytes are free, and how many the file takes.
fn free_and_here(file: impl AsFd) -> io::Result<(u64, u64)> {
    let (disk, found) = (fstatvfs(&file)?, fstat(&file)?);
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    Ok((free, u64::try_from(found.st_blocks).unwrap_or(0) * 512))
}
