//! What a killed maintenance has left in a slot. Whoever runs a command sees to all of it, also when whoever maintains is killed;
//! where he is killed as well, what the command started lives on with the slot's lock, and is nobody's.

use std::time::Duration;

use state_machine::protocol::slot::occupy::Why;
use state_machine::record::{Claim, Holder};

use super::MAINTENANCE_VARIABLE;
use super::yard::{Yard, lock_path};
use crate::clock;
use crate::error::DiskError;
use crate::process::{self, Heirs};

/// How long whoever wants a slot kills what a dead maintenance has left in it.
const MOMENT: Duration = Duration::from_secs(1);

/// The same for whoever maintains it.
const WHILE: Duration = Duration::from_secs(10);

impl Yard<'_> {
    /// Kill what a dead maintenance has left in a slot that cannot be had for this reason. Whether it may be had now.
    pub(super) fn end_orphans(&self, number: u32, why: &Why) -> bool {
        let Why::Held(Some(claim)) = why else {
            return false;
        };
        // Never what a session or a job has left: that is somebody's, and ends by itself or by his word.
        claim.holder == Holder::Maintenance
            && is_dead(claim)
            && self
                .heirs(number, claim)
                .is_ok_and(|heirs| heirs.kill(MOMENT).unwrap_or(false))
    }

    /// Kill what is left of the command of this maintenance, which is ours and has lost whoever ran it.
    pub(super) fn end_own_orphans(&self, number: u32, claim: &Claim) -> Result<(), DiskError> {
        let path = lock_path(self.store, &self.pool, number);
        let failed = |error| DiskError::new("end what has", &path, error);
        let heirs = self.heirs(number, claim).map_err(failed)?;
        match heirs.kill(WHILE) {
            Ok(true) => Ok(()),
            Ok(false) => Err(failed(std::io::Error::other("somebody else has it locked"))),
            Err(error) => Err(failed(error)),
        }
    }

    fn heirs(&self, number: u32, claim: &Claim) -> std::io::Result<Heirs> {
        let lock = lock_path(self.store, &self.pool, number);
        Heirs::of(MAINTENANCE_VARIABLE, claim.token.as_str().as_ref(), &lock)
    }
}

/// Whether whoever made a claim is dead for certain.
fn is_dead(claim: &Claim) -> bool {
    claim.boot_id == clock::boot_id() && !process::lives(claim.pid, claim.started)
}
