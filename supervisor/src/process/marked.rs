//! Every process that carries the mark of any job. Only looks.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::leftovers::DIRECTORY_VARIABLE;
use super::proc::{self, Process};

/// A process that was started with the mark of a job.
#[derive(Debug, Clone)]
pub(crate) struct Marked {
    /// The directory of the job, as the mark has it.
    pub(crate) dir: PathBuf,
    /// The process, as it was seen.
    pub(crate) process: Process,
}

impl Marked {
    /// Whether that very process lives.
    pub(crate) fn is_still_there(&self) -> bool {
        Process::read(self.process.pid)
            .is_some_and(|now| now.is_same(&self.process) && !now.is_dead())
    }
}

/// Every living marked process but this one, as far as we may look into it.
pub(crate) fn all_marked() -> Vec<Marked> {
    let me = proc::own_pid();
    let prefix = proc::marker(DIRECTORY_VARIABLE, "".as_ref());
    let marked = |pid| {
        let process = Process::read(pid).filter(|process| !process.is_dead() && !process.kernel)?;
        let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        let dir = environment
            .split(|&byte| byte == 0)
            .find_map(|variable| variable.strip_prefix(prefix.as_slice()))?;
        Some(Marked {
            dir: PathBuf::from(OsString::from_vec(dir.to_vec())),
            process,
        })
    };
    let others = proc::all().into_iter().filter(|&pid| pid != me);
    others.filter_map(marked).collect()
}
