//! Why something could not be done to a workspace, in words for people.

use std::time::Duration;

use thiserror::Error;

use super::Judgement;
use crate::error::DiskError;
use crate::process::{Outcome, Ran};

/// Why something could not be done.
#[derive(Debug, Error)]
pub(crate) enum Trouble {
    /// The system refused an operation.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// git refused.
    #[error("git {what} failed: {said}{}", advice(said))]
    Git {
        /// What git was to do.
        what: String,
        /// What it said.
        said: String,
    },
    /// A command of the pool failed.
    #[error("the {what} command {}", describe(ran))]
    Chore {
        /// Which one: `prepare` or `reset`.
        what: &'static str,
        /// How it went.
        ran: Ran,
    },
    /// It took too long, and was ended.
    #[error("{what} took longer than {limit:?}")]
    TimedOut {
        /// What did.
        what: String,
        /// The limit.
        limit: Duration,
    },
    /// The caller was told to stop.
    #[error("{what} was cut short by a stop")]
    Stopped {
        /// What was.
        what: String,
    },
    /// No command can be run.
    #[error("cannot run {what}: {why}")]
    Lost {
        /// What was to be run.
        what: String,
        /// Why it cannot.
        why: String,
    },
    /// It is not as it must be for this, and was left as it is.
    #[error("{0}")]
    Kept(Judgement),
    /// What stands there is not to be touched, or there is something where nothing must be.
    #[error("{0}")]
    Refused(String),
    /// It cannot be done as things are outside of the workspace: its source is away, or a lock may be held.
    #[error("{0}")]
    NotNow(String),
}

impl Trouble {
    /// Whether git gave up over the registration of another worktree, which it found half made or half gone. Whoever is at that is
    /// done in a moment.
    pub(super) fn is_of_a_neighbour(&self) -> bool {
        matches!(self, Trouble::Git { said, .. } if names_a_neighbour(said))
    }
}

/// git reads the registrations of all worktrees where it adds one, and dies of a `commondir` that is empty still, or gone meanwhile.
fn names_a_neighbour(said: &str) -> bool {
    said.starts_with("failed to read ")
        && said.contains("worktrees/")
        && said.contains("/commondir: ")
}

/// What helps against a failure that has a known cause.
fn advice(said: &str) -> &'static str {
    if said.contains("dubious ownership") {
        "; allow it with: git config --global --add safe.directory REPOSITORY"
    } else if names_a_neighbour(said) {
        "; that registration is half made: where nobody is at it any more, delete its directory"
    } else {
        ""
    }
}

fn describe(ran: &Ran) -> String {
    match (&ran.outcome, &ran.cannot_start) {
        (_, Some(why)) => format!("could not be started: {why}"),
        (Outcome::TimedOut, _) => {
            format!("took too long and was ended after {} ms", ran.duration_ms)
        }
        (Outcome::Stopped, _) => "was cut short by a stop".to_owned(),
        (Outcome::Failed { exit: Some(exit) }, _) => {
            format!("failed with exit status {}", exit.shell_code())
        }
        (Outcome::Failed { exit: None }, _) => "could not be started".to_owned(),
        (Outcome::Succeeded, _) => "succeeded".to_owned(),
    }
}
