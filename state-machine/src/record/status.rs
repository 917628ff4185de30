//! The live record, `status.json`: how far the job is. Only the holder of the job's lock writes it (R2), and
//! always as a whole (F29). A job without one is queued and has never been held.

use serde::{Deserialize, Serialize};

use super::Damaged;
use crate::job::State;

/// How far a job is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Status {
    /// The state as its last holder wrote it; what readers make of it is in [`crate::liveness`].
    pub state: State,
    /// How many states the job has entered, this one included: with it the next holder knows whether a crash has
    /// left the history behind this record or, after a loss of power, ahead of it (R7, R19).
    #[serde(default)]
    pub steps: u32,
    /// How much has been transferred.
    #[serde(default)]
    pub progress: Progress,
    /// What a transfer has cost so far; none of a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Box<Account>>,
    /// One line for people about what is going on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_line: Option<String>,
    /// The number of the attempt that runs or ran last, from 1; 0 before the first.
    #[serde(default)]
    pub attempt: u32,
    /// When the next attempt is due, in ms since the epoch. For people: the wait itself is timed by a clock
    /// that no one can set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at_ms: Option<u64>,
    /// What went wrong or is worth knowing, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What kind of failure it was, where the exit does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The process of the command. For display only: it may be anybody's by now (R4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The slot that the job holds, or held when it ended. A job that waits to be run again has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<u32>,
    /// How the command ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// A stop that is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopping: Option<Stopping>,
    /// When the work first started, in ms since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at_ms: Option<u64>,
    /// When the job ended, in ms since the epoch, never before it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at_ms: Option<u64>,
    /// When the command said of itself that it is ready, in ms since the epoch; gone once that attempt is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_at_ms: Option<u64>,
    /// How many processes were left when the command had ended; gone once they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leftovers: Option<u32>,
    /// How much output a limit has cost, in bytes: rotated away, or never written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped_bytes: Option<u64>,
    /// When this record was written, in ms since the epoch.
    pub updated_at_ms: u64,
    /// Whether a loss of power has left nothing of the record, and what is here says only that. Never in `status.json`;
    /// a tape of what was read has it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub lost: bool,
}

/// The text that a pull's `status_line` holds while it moves what it fetched into place, and reads no control.
pub const REGISTERING: &str = "registering";

impl Status {
    /// The record of a job that nobody has held yet.
    pub fn queued(at_ms: u64) -> Status {
        Status {
            state: State::Queued,
            steps: 1,
            progress: Progress::default(),
            account: None,
            status_line: None,
            attempt: 0,
            next_attempt_at_ms: None,
            message: None,
            failure: None,
            pid: None,
            slot: None,
            exit: None,
            stopping: None,
            started_at_ms: None,
            ended_at_ms: None,
            ready_at_ms: None,
            leftovers: None,
            dropped_bytes: None,
            updated_at_ms: at_ms,
            lost: false,
        }
    }

    /// What is known where a loss of power has left nothing of the record but a file without content: that somebody
    /// worked on the job, and that it had not ended, as an end is synced before it takes its place (F29, R19).
    pub fn lost() -> Status {
        Status {
            state: State::Running,
            steps: 0,
            attempt: 1,
            message: Some("the record was lost with the power".into()),
            lost: true,
            ..Status::queued(0)
        }
    }

    /// Whether the job is past stopping: a client that asks is told that it is too late.
    pub fn is_past_stopping(&self) -> bool {
        self.state == State::Running && self.status_line.as_deref() == Some(REGISTERING)
    }

    /// The bytes of `status.json`.
    pub fn encode(&self) -> Vec<u8> {
        super::encode(self)
    }

    /// Read the bytes of `status.json`. None at all, or nothing but zeros, is what a file system leaves of a record that
    /// was not synced when the power went: that is [`Status::lost`].
    pub fn decode(bytes: &[u8]) -> Result<Status, Damaged> {
        if bytes.iter().all(|&byte| byte == 0) {
            return Ok(Status::lost());
        }
        super::decode(bytes)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it so")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// How much of a transfer is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Progress {
    /// Bytes done.
    pub done_bytes: u64,
    /// Bytes in all, where that is known; never less than what is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
    /// Files done.
    pub files_done: u64,
    /// Files in all, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_total: Option<u64>,
}

/// What a transfer has cost, in bytes, over all of its attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Account {
    /// What came over the network into files.
    pub fetched_bytes: u64,
    /// What was there already, and was not fetched again.
    pub reused_bytes: u64,
    /// What was there, and was of no use. Why is in the history.
    pub discarded_bytes: u64,
    /// How many requests were made anew because one was cut, refused or silent.
    pub retries: u64,
}

impl Account {
    /// What this and a further attempt have cost together. What was there already is what the last of them found.
    #[must_use]
    pub fn and(self, further: Account) -> Account {
        Account {
            fetched_bytes: self.fetched_bytes.saturating_add(further.fetched_bytes),
            reused_bytes: further.reused_bytes,
            discarded_bytes: self.discarded_bytes.saturating_add(further.discarded_bytes),
            retries: self.retries.saturating_add(further.retries),
        }
    }
}

/// How a command ended, exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// It exited with this code.
    Code(u8),
    /// This signal killed it.
    Signal(u8),
}

impl Exit {
    /// The exit status as a shell would give it: the code, or 128 and the signal.
    pub fn shell_code(self) -> u8 {
        match self {
            Exit::Code(code) => code,
            Exit::Signal(signal) => 128u8.saturating_add(signal),
        }
    }
}

/// Why a job failed, where its command's exit does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// Its own timeout ended it.
    Timeout,
    /// The program is not there.
    Missing,
    /// The program cannot be executed.
    NotExecutable,
    /// The working directory, the standard input or the log cannot be opened.
    Files,
    /// The arguments and the environment are longer than the kernel takes.
    TooLong,
    /// The kernel had no process to give, or something else went wrong in starting.
    Start,
    /// A job that it comes after can no longer end as it needs it to.
    Dependency,
    /// What was to be fetched cannot be had, or is not what it should be.
    Transfer,
}

/// A stop that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stopping {
    /// When it began, in ms since the epoch.
    pub since_ms: u64,
    /// The signal that was sent last.
    pub signal: u8,
    /// Whether the grace ran out and SIGKILL was needed.
    pub forced: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_the_round_trip_and_fields_of_the_future() {
        let mut status = Status::queued(5);
        status.exit = Some(Exit::Signal(9));
        let json = String::from_utf8(status.encode()).unwrap();
        assert!(json.contains(r#""exit":{"signal":9}"#), "{json}");
        let grown = json.replacen('{', r#"{"new":[{}],"#, 1);
        assert_eq!(Status::decode(grown.as_bytes()).unwrap(), status);
    }

    #[test]
    fn an_unknown_state_is_an_error() {
        assert!(Status::decode(br#"{"state":"exploded","updated_at_ms":1}"#).is_err());
    }

    #[test]
    fn what_a_loss_of_power_leaves_is_no_damage_and_no_end() {
        for bytes in [&b""[..], &[0; 90]] {
            let status = Status::decode(bytes).unwrap();
            assert!(status.lost && !status.state.is_terminal());
        }
        let torn = b"{\"state\":\"done\"\0\0\0";
        assert!(Status::decode(torn).is_err());
        let written = Status::decode(&Status::queued(1).encode()).unwrap();
        assert!(!written.lost);
    }
}
