//! A creator: make a job and leave it to whoever admits it.

use state_machine::protocol::create::{Durable, Made, acknowledge, create};

use super::keeper::let_go;
use super::{Outcome, Part};
use crate::stage::{News, Stage};

/// Make a job that waits.
pub(super) fn queue<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    let mut descriptor = part.special.descriptor();
    match create(disk, &mut descriptor, None, &part.ticket, Durable::Yes)? {
        Made::Job(made) => {
            disk.tell(News::Holds(made.id().clone(), *made.lock()));
            let holder = acknowledge(disk, made)?;
            disk.tell(News::Acknowledged(holder.id().clone()));
            // Somebody may have asked something already, and left it to us because we hold the job.
            let_go(disk, &descriptor, holder, part.now_ms)?;
            Ok(Outcome::Made)
        }
        Made::Crowded => Ok(Outcome::Busy),
    }
}
