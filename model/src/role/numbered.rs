//! A starter of a task's next unnamed job: it is given a number that no other bears.

use state_machine::protocol::create::{Durable, acknowledge};
use state_machine::protocol::start::{Started, start_numbered};

use super::keeper::let_go;
use super::{Outcome, Part, descriptor, key};
use crate::stage::{News, Stage};

/// Make the next numbered job and leave it to whoever admits it.
pub(super) fn queue<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    let mut descriptor = descriptor();
    let started = start_numbered(
        disk,
        &mut descriptor,
        &key(),
        "web",
        &part.ticket,
        Durable::Yes,
    )?;
    match started {
        Started::New(made) => {
            disk.tell(News::Holds(made.id().clone(), *made.lock()));
            let holder = acknowledge(disk, made)?;
            disk.tell(News::Acknowledged(holder.id().clone()));
            let_go(disk, &descriptor, holder, part.now_ms)?;
            Ok(Outcome::Made)
        }
        Started::UnderWay(_) => Ok(Outcome::Joined),
        Started::Damaged(..) => Ok(Outcome::Damaged),
        Started::Busy => Ok(Outcome::Busy),
    }
}
