//! Claiming a slot for a job.

use super::occupy::Occupant;
use super::write::write;
use crate::call::Call;
use crate::disk::Disk;
use crate::record::Claim;
use crate::slot;

/// Claim a slot that one has alone for a job, whose tree is to inherit the lock. `false` where it was taken away.
pub fn claim_slot<D: Disk>(
    disk: &mut D,
    occupant: &mut Occupant<D::Handle>,
    claim: Claim,
) -> Result<bool, D::Fault> {
    disk.begins(|number| Call::ClaimSlot {
        occupant: occupant.on_tape(number),
        claim: claim.clone(),
    });
    match slot::claimed(occupant.record.clone(), claim) {
        Ok(record) => write(disk, occupant, record),
        Err(_) => Ok(false),
    }
}
