//! The processes that carry a job's marks, and ending what a dead worker left of its tree (R11). Which processes those are is the process room's knowledge;
//! when they must go is the protocols'.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, openat};
use state_machine::course::Search;

use crate::process;

/// Do something with the processes that carry the marks of the job in `dir`.
pub(crate) fn with_marks<T>(
    dir: &Path,
    search: Search,
    act: impl FnOnce(&process::Job<'_>) -> io::Result<T>,
) -> io::Result<T> {
    let tree = match search {
        Search::Marked => None,
        Search::Holding => {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
            openat(CWD, dir.join("tree"), flags, Mode::empty()).ok()
        }
    };
    act(&process::Job {
        dir,
        tree: tree.as_ref().map(AsFd::as_fd),
    })
}

/// End every process of the job in `dir` and say whether SIGKILL was needed.
pub(crate) fn end_leftovers(dir: &Path, search: Search, grace: Duration) -> io::Result<bool> {
    with_marks(dir, search, |job| {
        if search == Search::Marked && process::count(job)? == 0 {
            return Ok(false);
        }
        Ok(process::end(job, grace)?.forced)
    })
}
