//! When the record of a part is written. A killed fetcher fetches again what arrived after that: of each file about
//! [`EACH_BYTES`], or what came within [`EACH`], whichever is less.

use std::time::{Duration, Instant};

use state_machine::protocol::pull::{Site, keep, keep_synced};
use state_machine::pull::part::Part;

use crate::disk::FsDisk;
use crate::error::DiskError;

/// It is written at least so often while bytes arrive.
pub(super) const EACH: Duration = Duration::from_millis(200);
/// It is written at least once for so many bytes.
pub(super) const EACH_BYTES: u64 = 4 << 20;
/// What has arrived is made to survive a loss of power at least once for so many bytes.
const SYNC_BYTES: u64 = 128 << 20;

/// Keeps the record of one part.
pub(super) struct Keeper {
    kept: Instant,
    kept_bytes: u64,
    synced_bytes: u64,
    /// Whether it is to be written however little has come since.
    is_due: bool,
}

impl Keeper {
    pub(super) fn new(part: &Part) -> Keeper {
        let done = part.done_bytes();
        Keeper {
            kept: Instant::now(),
            kept_bytes: done,
            synced_bytes: done,
            is_due: false,
        }
    }

    /// A run has got so far that it is time.
    pub(super) fn hurry(&mut self) {
        self.is_due = true;
    }

    /// Write the record, if it is time.
    pub(super) fn keep_if_due(
        &mut self,
        disk: &mut FsDisk,
        site: &Site,
        part: &mut Part,
    ) -> Result<(), DiskError> {
        let done = part.done_bytes();
        let new = done.saturating_sub(self.kept_bytes);
        let is_due = self.is_due || new >= EACH_BYTES || self.kept.elapsed() >= EACH;
        if new == 0 || !is_due {
            return Ok(());
        }
        if done.saturating_sub(self.synced_bytes) >= SYNC_BYTES {
            keep_synced(disk, site, part)?;
            self.synced_bytes = done;
        } else {
            keep(disk, site, part)?;
        }
        self.has_kept(done);
        Ok(())
    }

    /// Write the record, if anything has arrived that it does not tell of.
    pub(super) fn keep(
        &mut self,
        disk: &mut FsDisk,
        site: &Site,
        part: &Part,
    ) -> Result<(), DiskError> {
        let done = part.done_bytes();
        if done != self.kept_bytes {
            keep(disk, site, part)?;
            self.has_kept(done);
        }
        Ok(())
    }

    /// The record was written otherwise.
    pub(super) fn begins_anew(&mut self) {
        *self = Keeper {
            kept: Instant::now(),
            kept_bytes: 0,
            synced_bytes: 0,
            is_due: false,
        };
    }

    fn has_kept(&mut self, done: u64) {
        self.kept = Instant::now();
        self.kept_bytes = done;
        self.is_due = false;
    }
}
