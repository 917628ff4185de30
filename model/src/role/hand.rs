//! A hand: `echo cancel > control`. The shell makes the file, or empties the one that is there, and then writes into
//! what it has open, wherever that is by now.

use state_machine::control::Request;
use state_machine::disk::{Disk, Name, Place};

use super::{Outcome, Part};
use crate::stage::{News, Stage};

/// Write the word into the job's control file.
pub(super) fn write<D: Stage>(
    disk: &mut D,
    part: &Part,
    asked: Request,
) -> Result<Outcome, D::Fault> {
    let control = Place::of_job(&part.job, Name::Control);
    let Some(file) = disk.hand_open(&control)? else {
        return Ok(Outcome::Gone);
    };
    disk.hand_write(&file, asked)?;
    Disk::close(disk, file)?;
    disk.tell(News::Accepted(part.job.clone(), asked));
    Ok(Outcome::Written)
}
