//! A client that makes the directory of its job again where it finds none.

use state_machine::control::Request;
use state_machine::disk::{Change, Content, Dir, Disk, Name};

use crate::role::{Outcome, Part};
use crate::stage::Stage;

/// Ask for a cancel.
pub(super) fn ask<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    let dir = Dir::Job(part.job.clone());
    let control = dir.at(Name::Control);
    let content = Content::Request(Request::Cancel);
    if Disk::write(disk, &control, &content)? != Change::Done {
        disk.mkdir(&dir)?;
        Disk::write(disk, &control, &content)?;
    }
    Ok(Outcome::Quiet)
}
