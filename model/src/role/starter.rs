//! A starter: make a job under a key, unless one that has not ended bears it, and run it (R12).

use state_machine::id::Ticket;
use state_machine::protocol::create::Durable;
use state_machine::protocol::hold::newborn;
use state_machine::protocol::start::{Started, start};

use super::worker::{leave, run};
use super::{CREATED_AT_MS, Outcome, descriptor, key, name};
use crate::stage::{News, Stage};

/// Start a job under the key and run it to its end.
pub(super) fn start_and_run<D: Stage>(
    disk: &mut D,
    ticket: &Ticket,
    now_ms: u64,
) -> Result<Outcome, D::Fault> {
    let mut descriptor = descriptor();
    descriptor.name = name();
    descriptor.pool = None;
    match start(disk, &mut descriptor, &key(), ticket, Durable::No)? {
        Started::New { id, lock } => {
            disk.tell(News::Holds(id.clone()));
            let mut holder = newborn(id, lock, CREATED_AT_MS);
            let outcome = run(disk, &mut holder, now_ms)?;
            leave(disk, holder, now_ms)?;
            Ok(outcome)
        }
        Started::UnderWay(_) => Ok(Outcome::Joined),
        Started::Damaged(..) => Ok(Outcome::Damaged),
        Started::Busy => Ok(Outcome::Busy),
    }
}
