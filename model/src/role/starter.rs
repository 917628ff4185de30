//! A starter: make a job under a key, unless one that has not ended bears it, and run it (R12).

use state_machine::protocol::create::{Durable, acknowledge};
use state_machine::protocol::start::{Started, start};

use super::worker::run;
use super::{Outcome, Part, descriptor, key, name};
use crate::stage::{News, Stage};

/// Start a job under the key and run it to its end.
pub(super) fn start_and_run<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    let mut descriptor = descriptor();
    descriptor.name = name();
    descriptor.pool = None;
    match start(disk, &mut descriptor, &key(), &part.ticket, Durable::Yes)? {
        Started::New(made) => {
            disk.tell(News::Holds(made.id().clone(), *made.lock()));
            let holder = acknowledge(disk, made)?;
            disk.tell(News::Acknowledged(holder.id().clone()));
            run(disk, part, &descriptor, holder)
        }
        Started::UnderWay(_) => Ok(Outcome::Joined),
        Started::Damaged(..) => Ok(Outcome::Damaged),
        Started::Busy => Ok(Outcome::Busy),
    }
}
