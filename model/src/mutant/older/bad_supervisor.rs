//! A supervisor that leaves without looking again, and one that counts only the jobs that it has admitted itself.

use crate::role::supervisor::{Faults, supervise};
use crate::role::{Outcome, Part};
use crate::stage::Stage;

/// Supervise, and leave for want of work without another look: a job that was queued while the lock was held, by somebody
/// who relied on that, is left to nobody (R18).
pub(super) fn leave_blindly<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    let faults = Faults {
        leaves_blindly: true,
        ..Faults::default()
    };
    supervise(disk, part, faults)
}

/// Supervise, and take the slots of jobs for idle that others have started (R20).
pub(super) fn count_its_own<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    let faults = Faults {
        counts_its_own: true,
        ..Faults::default()
    };
    supervise(disk, part, faults)
}
