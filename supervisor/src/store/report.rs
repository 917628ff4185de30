//! A job as programs read it: the one JSON shape that every verb prints (docs/cli.md).

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::Serialize;
use state_machine::id::{JobId, Name};
use state_machine::job::State;
use state_machine::protocol::look::View;
use state_machine::pull::reference::shown;
use state_machine::record::{Account, Bytes, Exit, Failure, Kind, Progress, Stopping};

/// A job, as JSON shows it. Absent values are null. The environment is not part of it: it holds secrets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The id.
    pub id: JobId,
    /// The name, if it has one.
    pub name: Option<Name>,
    /// The task that it runs.
    pub task: Option<String>,
    /// The root of its project.
    pub project: Option<Bytes>,
    /// `command` or `pull`.
    pub kind: &'static str,
    /// The program and its arguments.
    pub command: Option<Vec<Bytes>>,
    /// What a pull fetches.
    pub reference: Option<String>,
    /// The pool that admits it.
    pub pool: Option<String>,
    /// The slot that it holds.
    pub slot: Option<u32>,
    /// The state that is true.
    pub state: State,
    /// Whether somebody is responsible for it right now.
    pub alive: bool,
    /// The process of the command while somebody is responsible for it.
    pub pid: Option<u32>,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// How the command ended.
    pub exit: Option<Exit>,
    /// How many processes the command left behind, while any is left.
    pub leftovers: Option<u32>,
    /// How much of a transfer is done.
    pub progress: ReportedProgress,
    /// One line about what is going on.
    pub status_line: Option<String>,
    /// What went wrong or is worth knowing.
    pub message: Option<String>,
    /// When it was made, in ms since the epoch.
    pub created_at_ms: u64,
    /// When it first started, in ms since the epoch.
    pub started_at_ms: Option<u64>,
    /// When it ended, in ms since the epoch.
    pub ended_at_ms: Option<u64>,
    /// When its record was last written, in ms since the epoch.
    pub updated_at_ms: u64,
    /// Its directory.
    pub dir: Bytes,
    /// Its log; standard output's where the two are split.
    pub log: Bytes,
    /// What kind of failure it was, where the exit does not tell.
    pub failure: Option<Failure>,
    /// The stop that is under way, or that ended it.
    pub stopping: Option<Stopping>,
    /// When the next attempt is due, in ms since the epoch.
    pub next_attempt_at_ms: Option<u64>,
    /// How much output a limit has cost, in bytes.
    pub dropped_bytes: Option<u64>,
    /// The job that this one reruns.
    pub previous: Option<JobId>,
    /// Where a pull puts what it fetches.
    pub destination: Option<Bytes>,
    /// What a transfer has cost so far.
    pub account: Option<Account>,
}

/// How much of a transfer is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ReportedProgress {
    /// Bytes done.
    pub done_bytes: u64,
    /// Bytes in all, where that is known.
    pub total_bytes: Option<u64>,
    /// Files done.
    pub files_done: u64,
    /// Files in all, where that is known.
    pub files_total: Option<u64>,
}

impl From<Progress> for ReportedProgress {
    fn from(progress: Progress) -> ReportedProgress {
        ReportedProgress {
            done_bytes: progress.done_bytes,
            total_bytes: progress.total_bytes,
            files_done: progress.files_done,
            files_total: progress.files_total,
        }
    }
}

impl Report {
    /// The report of a job that lives in `dir`.
    pub fn new(view: &View, dir: &Path) -> Report {
        let (descriptor, status) = (&view.descriptor, &view.status);
        let (command, reference) = match &descriptor.kind {
            Kind::Command(command) => (Some(command.argv.clone()), None),
            Kind::Pull(pull) => (None, Some(shown(&pull.reference))),
        };
        let log = if descriptor.output.split {
            "stdout.log"
        } else {
            "log"
        };
        Report {
            id: descriptor.id.clone(),
            name: descriptor.name.clone(),
            task: descriptor.task.clone(),
            project: descriptor.project.clone(),
            kind: descriptor.kind.word(),
            command,
            reference,
            pool: descriptor.pool.clone(),
            slot: status
                .slot
                .filter(|_| view.held || view.state.is_terminal()),
            state: view.state,
            alive: view.held,
            pid: status.pid.filter(|_| view.held),
            attempt: status.attempt,
            exit: status.exit,
            leftovers: leftovers(view),
            progress: status.progress.into(),
            status_line: status.status_line.clone(),
            message: status.message.clone(),
            created_at_ms: descriptor.created_at_ms,
            started_at_ms: status.started_at_ms,
            ended_at_ms: status.ended_at_ms,
            updated_at_ms: status.updated_at_ms,
            dir: path(dir),
            log: path(&dir.join(log)),
            failure: status.failure,
            stopping: status.stopping,
            next_attempt_at_ms: status.next_attempt_at_ms,
            dropped_bytes: status.dropped_bytes,
            previous: descriptor.previous.clone(),
            destination: match &descriptor.kind {
                Kind::Pull(pull) => Some(pull.destination.clone()),
                Kind::Command(_) => None,
            },
            account: status.account.as_deref().copied(),
        }
    }
}

/// How many processes are left. Where a dead worker could not count them, there is at least one.
fn leftovers(view: &View) -> Option<u32> {
    view.leftovers.then(|| view.status.leftovers.unwrap_or(1))
}

fn path(path: &Path) -> Bytes {
    Bytes(path.as_os_str().as_bytes().to_vec())
}
