//! A queuer: it makes a job that waits in a pool and lets it go, and only then asks whether the store has a supervisor.
//! Where it has none, one is started: that is this process from there on.

use state_machine::protocol::supervise::is_supervised;

use super::supervisor::{Faults, supervise};
use super::{Outcome, Part, Special, creator};
use crate::stage::Stage;

/// Queue a job, and see that somebody runs it.
pub(super) fn queue<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    // Whoever woke up has queued it already.
    if disk.memory().is_none() {
        if part.special != Special::Made {
            let made = creator::queue(disk, part)?;
            if made != Outcome::Made {
                return Ok(made);
            }
        }
        if is_supervised(disk)? {
            return Ok(Outcome::LeftToSupervisor);
        }
    }
    supervise(disk, part, Faults::default())
}
