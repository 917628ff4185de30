//! Moving this process out of the group that it was started in, where it is not one of the processes whose group that is.

use std::fs;
use std::io;
use std::path::Path;

use super::place::Own;
use super::{LEAF, PREFIX, make_dir, remove_abandoned, write};
use crate::process::proc::own_pid;

/// Move a worker that the command of a limited job has started out of the group of that command. It stays within the limits, and
/// is not ended with the command where the kernel ends that for its memory: it has a job of its own, whose end it records.
pub(crate) fn leave_command() {
    if let Some(own) = within_a_job()
        && let Some(job) = own.job_of_command()
    {
        settle(job, "worker");
    }
}

/// Move a supervisor out of the limits of all jobs around it: it is there for whoever uses the store.
pub(crate) fn leave_jobs() {
    if let Some(own) = within_a_job()
        && let Some(beside) = own.outside_of_jobs()
    {
        settle(beside, "supervisor");
    }
}

/// The group of this process, if that can be one within a job. Most are not, and that is known soon.
fn within_a_job() -> Option<Own> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let can_be = own.contains(&format!("/{PREFIX}"));
    can_be.then(|| Own::find_of(&own)).flatten()
}

impl Own {
    /// The group of the job whose command this process is of.
    pub(super) fn job_of_command(&self) -> Option<&Path> {
        let job = self.jobs_around().next()?;
        (self.dir == job.join(LEAF)).then_some(job)
    }

    /// What the outermost job around is in.
    pub(super) fn outside_of_jobs(&self) -> Option<&Path> {
        let outermost = self.jobs_around().last()?;
        outermost.parent()
    }
}

/// Move this process into a leaf of its own. Where that cannot be, it is where it was.
fn settle(within: &Path, role: &str) {
    remove_abandoned(within);
    if let Err(error) = enter_leaf(within, role) {
        tracing::debug!(%error, "this process stays in the control group that it was started in");
    }
}

fn enter_leaf(within: &Path, role: &str) -> io::Result<()> {
    let pid = own_pid().to_string();
    let leaf = within.join(format!("{PREFIX}{role}-{pid}"));
    make_dir(&leaf)?;
    write(&leaf, "cgroup.procs", &pid).inspect_err(|_| {
        let _ = fs::remove_dir(&leaf);
    })
}
