//! Starting a supervisor where the store has none, for verbs that need one. However many clients do it at once, one
//! supervisor stays: the lock decides.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::{ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::exit;
use crate::error::{DiskError, Error, Result};
use crate::store::Store;
use crate::supervisor::has_living;

/// What a supervisor says to who started it: it admits jobs.
pub(super) const READY: &str = "ready";
/// Or: somebody else does already.
pub(super) const TAKEN: &str = "taken";

/// How long a supervisor that nobody asked for by name stays with nothing to do.
const IDLE_EXIT: Duration = Duration::from_secs(30);
/// How long a client waits for it to be ready. Thousands of jobs are known in a second.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long its log may become before a new one is begun, in bytes. One older one is kept.
const LOG_LIMIT: u64 = 8 << 20;

/// See to it that the store has a supervisor. When this returns it has one, which sees every job that could be seen before
/// (R18).
///
/// But for one who asks from inside a job: a supervisor that he started would be a process of that job, and end with it, and
/// so would the jobs of everybody that it started. He is told that his job waits.
pub(super) fn ensure_supervised(store: &Store) -> Result<()> {
    if has_living(store)? {
        return Ok(());
    }
    if std::env::var_os("OUTLIVE_JOB").is_some() {
        exit::say(
            "queued; a supervisor that is started inside a job would end with it, so none is: start one outside with \
             outlive supervise",
        );
        return Ok(());
    }
    let idle_exit = store.config()?.supervisor.idle_exit.unwrap_or(IDLE_EXIT);
    let log_path = store.root().join("supervisor.log");
    let cannot = |why: &dyn std::fmt::Display| {
        Error::Worker(format!(
            "no supervisor can be started: {why}; the job is queued, and {} tells more",
            log_path.display()
        ))
    };
    let log = open_log(&log_path)?;
    let mut supervisor = Command::new("/proc/self/exe")
        .arg0("outlive")
        .args(["supervise", "--detached", "--idle-exit"])
        .arg(format!("{}ms", idle_exit.as_millis()))
        .env("OUTLIVE_ROOT", store.root())
        .env_remove("OUTLIVE_JOB_DIR")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(|error| cannot(&error))?;
    let Some(stdout) = supervisor.stdout.take() else {
        return Err(cannot(&"it cannot be heard"));
    };
    if !is_heard_in_time(&stdout).map_err(|error| cannot(&error))? {
        exit::say(&format!(
            "queued; the supervisor is not ready yet, and {} tells more",
            log_path.display()
        ));
        return Ok(());
    }
    let mut word = String::new();
    BufReader::new(stdout)
        .read_line(&mut word)
        .map_err(|error| cannot(&error))?;
    match word.trim_end() {
        READY | TAKEN => Ok(()),
        _ => Err(cannot(&"it ended at once")),
    }
}

/// Whether there is something to read, or nothing will ever come, within the time that a client waits.
fn is_heard_in_time(stdout: &ChildStdout) -> std::io::Result<bool> {
    let limit = Timespec::try_from(PATIENCE).ok();
    loop {
        match poll(&mut [PollFd::new(stdout, PollFlags::IN)], limit.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn open_log(path: &std::path::Path) -> Result<File> {
    let too_long = std::fs::metadata(path).is_ok_and(|log| log.len() > LOG_LIMIT);
    if too_long {
        // Of two who do it at once, one finds nothing to rename.
        let _ = std::fs::rename(path, path.with_extension("log.1"));
    }
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| DiskError::new("open", path, error).into())
}
