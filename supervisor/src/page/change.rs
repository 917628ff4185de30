//! Changing a job for somebody at the page: by a process of this program, with the verb that he would have typed. A worker is forked by a
//! process with one thread, which this one is not; and what takes long, or is killed, is nothing of the page's.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

use hyper::StatusCode;
use serde_json::json;
use state_machine::id::JobId;

use super::reply::{Reply, json, refusal};
use crate::store::Store;

/// How long it is waited for that a job is paused or stopped. It goes on all the same.
const PATIENCE: &str = "30s";
/// What of its words is passed on, in characters.
const MOST_SAID: usize = 1000;

/// What may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Pause,
    Resume,
    Stop,
    Restart,
}

impl Change {
    /// The one that a word means.
    pub(super) fn parse(word: &str) -> Option<Change> {
        let all = [Change::Pause, Change::Resume, Change::Stop, Change::Restart];
        all.into_iter().find(|change| change.verb() == word)
    }

    fn verb(self) -> &'static str {
        match self {
            Change::Pause => "pause",
            Change::Resume => "resume",
            Change::Stop => "stop",
            Change::Restart => "restart",
        }
    }
}

/// What came of a change.
#[derive(Debug)]
pub(super) struct Made {
    ended: Output,
    /// Whether the job has ended.
    is_over: bool,
}

/// Do it, and wait for what comes of it. Blocks.
///
/// # Errors
///
/// There is no room for a process.
pub(super) fn make(store: &Store, change: Change, job: &JobId) -> io::Result<Made> {
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0("outlive")
        .arg(change.verb())
        .env("OUTLIVE_ROOT", store.root())
        // In no project: the job is meant that was named, as it was made.
        .current_dir("/")
        .stdin(Stdio::null());
    if matches!(change, Change::Pause | Change::Stop) {
        command.args(["--timeout", PATIENCE]);
    }
    let ended = command.args(["--", job.as_str()]).output()?;
    let looked = store.job(job).look();
    let is_over = looked.is_ok_and(|view| view.state.is_terminal());
    Ok(Made { ended, is_over })
}

/// What came of it. `code` is the exit code of the verb, `job` the id of the new job.
pub(super) fn answer(change: Change, made: io::Result<Made>) -> Reply {
    let Made { ended, is_over } = match made {
        Ok(made) => made,
        Err(error) => return refusal(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
    };
    let code = ended.status.code();
    let new = Some(said(&ended.stdout)).filter(|id| change == Change::Restart && !id.is_empty());
    let status = match code {
        Some(0) => StatusCode::OK,
        // It was stopped, by SIGKILL. The code may also be that of a request for which there was no room.
        Some(1) if change == Change::Stop && is_over => StatusCode::OK,
        // It goes on.
        Some(5) => StatusCode::ACCEPTED,
        Some(3) => StatusCode::NOT_FOUND,
        Some(6 | 7) => StatusCode::CONFLICT,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let key = if status.is_success() {
        "message"
    } else {
        "error"
    };
    let mut reply = json(&json!({ "code": code, "job": new, key: said(&ended.stderr) }));
    *reply.status_mut() = status;
    reply
}

fn said(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.trim().chars().take(MOST_SAID).collect()
}
