//! Whole protocols that are known to be wrong, over the same disk: those that this design grew from, and what one
//! might write in their place.

mod check_then_remove;
mod compare_then_unlink;
mod lock_without_look;
mod skip_running;
mod status_then_probe;

use crate::role::{Outcome, Part};
use crate::stage::Stage;

/// A wrong protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Older {
    /// A sweep that reads the record, probes the lock, and then removes: a worker can claim in between (R9).
    CheckThenRemove,
    /// A holder that reads the request, honours it, compares, and unlinks: a cancel that lands between the two
    /// is lost (R6).
    CompareThenUnlink,
    /// A claim that does not look whether the file that it locked still stands at the path (R1).
    LockWithoutLook,
    /// A holder that records the end of a job that never ran: an assertion of the product stops it (R7).
    SkipRunning,
    /// A reader that reads the record first and asks for the lock then: a job that ended in between looks
    /// interrupted (R3).
    StatusThenProbe,
}

impl Older {
    /// Play the part wrongly.
    pub fn play<D: Stage>(self, disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
        match self {
            Older::CheckThenRemove => check_then_remove::sweep(disk, part),
            Older::CompareThenUnlink => compare_then_unlink::honour(disk, part),
            Older::LockWithoutLook => lock_without_look::hold(disk, part),
            Older::SkipRunning => skip_running::end(disk, part),
            Older::StatusThenProbe => status_then_probe::read(disk, part),
        }
    }
}
