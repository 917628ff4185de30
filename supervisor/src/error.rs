//! What can go wrong, in words for people: whose fault, which operation, which path, what to do next. Every error
//! has an exit code of the command line's table.

use std::io;
use std::path::{Path, PathBuf};

use state_machine::id::{BadWord, JobId, PoolName, Token};
use state_machine::job::State;
use state_machine::resolve::Unresolved;
use thiserror::Error;

/// An operation of the system that failed.
#[derive(Debug, Error)]
#[error("cannot {operation} {}: {}", path.display(), plain(source))]
pub struct DiskError {
    /// What was tried, as a verb.
    pub operation: &'static str,
    /// On what.
    pub path: PathBuf,
    /// Why it failed.
    #[source]
    pub source: io::Error,
}

/// The message of an error of the system without the number that std adds to it.
fn plain(error: &io::Error) -> String {
    let message = error.to_string();
    match message.find(" (os error ") {
        Some(end) => message[..end].to_lowercase(),
        None => message,
    }
}

impl DiskError {
    /// An operation on a path that failed.
    pub fn new(operation: &'static str, path: &Path, source: impl Into<io::Error>) -> DiskError {
        DiskError {
            operation,
            path: path.to_owned(),
            source: source.into(),
        }
    }
}

/// What the library and the command line report.
#[derive(Debug, Error)]
pub enum Error {
    /// The system refused an operation.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The store must not be used as it is.
    #[error("{} is refused as a store: {why}", root.display())]
    Refused {
        /// The root of the store.
        root: PathBuf,
        /// Why, and what to do.
        why: String,
    },
    /// There is no place for a store.
    #[error("there is no store: set OUTLIVE_ROOT, XDG_STATE_HOME or HOME")]
    NoRoot,
    /// A query names no job, or several.
    #[error(transparent)]
    Unresolved(#[from] Unresolved),
    /// A word cannot be a name or an id.
    #[error("'{word}' {why}")]
    BadWord {
        /// The word.
        word: String,
        /// Why not.
        why: BadWord,
    },
    /// There is no such pool.
    #[error("there is no pool '{pool}'; {}make it with: outlive pool add {pool} --slots N", meant.as_ref().map_or(String::new(), |meant| format!("'{meant}' was meant? Else ")))]
    NoPool {
        /// The name that was asked for.
        pool: PoolName,
        /// The pool that was probably meant.
        meant: Option<PoolName>,
    },
    /// The project has no such task.
    #[error("there is no task '{task}' in {}{}", file.display(), meant.as_ref().map_or(String::new(), |meant| format!("; '{meant}' was meant?")))]
    NoTask {
        /// The name that was given.
        task: String,
        /// The project file.
        file: PathBuf,
        /// The task that was probably meant.
        meant: Option<String>,
    },
    /// The pool's slots have no place to work in.
    #[error(
        "the slots of the pool '{0}' have no place to work in; give it one with: outlive pool set {0} --source REPOSITORY"
    )]
    NoPlace(PoolName),
    /// No such session is open.
    #[error("no session '{0}' is open")]
    NoSession(Token),
    /// No slot of the pool is idle.
    #[error("no slot of the pool {pool} is idle: {}", who.join("; "))]
    NoSlot {
        /// The pool.
        pool: PoolName,
        /// Who has each of them, since when, or what is wrong with it.
        who: Vec<String>,
    },
    /// A slot is broken, or kept for what would be lost; nothing was changed.
    #[error("{slot}: {why}")]
    Kept {
        /// The slot, or the pool.
        slot: String,
        /// What is wrong or would be lost, and what to do.
        why: String,
    },
    /// What a slot holds cannot be made, looked at or changed.
    #[error("{slot}: {why}")]
    Place {
        /// The slot, or the pool.
        slot: String,
        /// Why not.
        why: String,
    },
    /// The store has a supervisor already.
    #[error("the store has a supervisor already{}", pid.map_or("; which process that is cannot be seen from here".into(), |pid| format!(" (process {pid})")))]
    Supervised {
        /// Who says to be it.
        pid: Option<u32>,
    },
    /// The store has no supervisor.
    #[error("the store has no supervisor; start one with: outlive supervise")]
    Unsupervised,
    /// A job that was there is gone.
    #[error("{0} is gone: it was forgotten meanwhile")]
    Gone(JobId),
    /// A record cannot be read; nothing was changed (R21).
    #[error("{} cannot be read: {why}; it was left as it is", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// In what way.
        why: String,
    },
    /// The job has ended, and ended jobs do not change.
    #[error("{id} has ended ({state})")]
    Ended {
        /// The job.
        id: JobId,
        /// How it ended.
        state: State,
    },
    /// The job cannot be stopped any more.
    #[error("{0} is past stopping: what it fetched is being moved into place")]
    TooLate(JobId),
    /// What was asked is not possible in the state that the job is in.
    #[error("{0}")]
    NotNow(String),
    /// Others were in the way for too long.
    #[error("{0} is busy; try again")]
    Busy(String),
    /// A worker could not be started, or was lost.
    #[error("{0}")]
    Worker(String),
    /// What was given makes no sense.
    #[error("{0}")]
    Usage(String),
    /// A line of what was given is not as it must be.
    #[error("line {line}: {error}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        error: Box<Error>,
    },
    /// The wait took longer than allowed.
    #[error("{0}")]
    TimedOut(String),
}

impl Error {
    /// The same, as what is wrong with this line.
    pub(crate) fn at_line(self, line: usize) -> Error {
        Error::Line {
            line,
            error: Box::new(self),
        }
    }

    /// The exit code of the command line for this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Usage(_) | Error::BadWord { .. } | Error::NoPlace(_) => 2,
            Error::Unresolved(Unresolved::Unknown { .. })
            | Error::Gone(_)
            | Error::NoPool { .. }
            | Error::NoTask { .. }
            | Error::NoSession(_)
            | Error::Unsupervised => 3,
            Error::Unresolved(Unresolved::Ambiguous { .. }) => 4,
            Error::TimedOut(_) => 5,
            Error::Line { error, .. } => error.exit_code(),
            Error::Refused { .. }
            | Error::NoRoot
            | Error::Ended { .. }
            | Error::TooLate(_)
            | Error::Supervised { .. }
            | Error::NotNow(_)
            | Error::Busy(_) => 6,
            Error::NoSlot { .. } => 7,
            Error::Kept { .. } => 8,
            Error::Disk(_) | Error::Damaged { .. } | Error::Worker(_) | Error::Place { .. } => 1,
        }
    }
}

/// The result of what the library does.
pub type Result<T, E = Error> = std::result::Result<T, E>;
