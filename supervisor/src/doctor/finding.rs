//! What a finding is: what was found, how bad it is, where, what to do, and what mends it. Nothing is looked at here.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use state_machine::id::{JobId, Key, PoolName, Token};
use state_machine::record::Bytes;

use super::kind::Kind;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Severity {
    /// It must not be so.
    Problem,
    /// Worth knowing; a crash may leave it so, and the product copes with it.
    Note,
}

impl Severity {
    /// The word that a report uses.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Severity::Problem => "problem",
            Severity::Note => "note",
        }
    }
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// Of which kind it is.
    pub(crate) kind: Kind,
    /// How bad it is.
    pub(crate) severity: Severity,
    /// The job that it is about, as its directory is called.
    pub(crate) job: Option<JobId>,
    /// What it is about, as an absolute path.
    #[serde(serialize_with = "optional_path")]
    pub(crate) path: Option<PathBuf>,
    /// What it is.
    pub(crate) what: String,
    /// What to do about it.
    pub(crate) advice: String,
    /// What mends it.
    #[serde(rename = "mendable", serialize_with = "is_some")]
    pub(super) mend: Option<Mend>,
}

/// How a finding is mended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mend {
    /// Set the mode of a file or directory.
    Chmod(PathBuf, u32),
    /// Make a directory of the store; what stands in its place is set aside.
    Directory(PathBuf),
    /// Make a lock file in this directory, which nobody works in; what stands in its place is set aside.
    Lock(PathBuf),
    /// Make a job that nobody holds say what is true (R22).
    Settle(JobId),
    /// Collect what crashes left in `staging/` and `trash/` (R8).
    Collect,
    /// Set a job aside.
    SetJobAside(JobId),
    /// Set a file of a job aside that is no plain file.
    SetFileAside(JobId, OsString),
    /// Set something aside that nobody can hold.
    SetAside(PathBuf),
    /// Set a history aside, and begin it anew from the record.
    Rewrite(JobId),
    /// Call the directory of a job by the id inside.
    Rename(JobId, JobId),
    /// Remove the socket of a supervisor that is gone.
    Socket,
    /// Have the pointer of a key name the job under way that bears it.
    Point(Key),
    /// Pause a pool whose record cannot be read.
    Pause(PoolName),
    /// Set the record of a slot aside; a session that says that it is its own gets it.
    Slot(PoolName, u32),
    /// Call a slot broken, for this reason.
    Break(PoolName, u32, String),
    /// Write the file of a session anew from the claim on its slot, or set it aside.
    Session(Token),
    /// Set a session aside whose slot is not its own any more.
    Void(Token),
    /// Set a session aside whose slot is gone.
    Orphan(Token),
}

impl Finding {
    pub(super) fn new(kind: Kind, what: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding {
            severity: kind.severity,
            kind,
            job: None,
            path: None,
            what: what.into(),
            advice: advice.into(),
            mend: None,
        }
    }

    pub(super) fn of(self, job: &JobId) -> Finding {
        Finding {
            job: Some(job.clone()),
            ..self
        }
    }

    pub(super) fn at(self, path: impl AsRef<Path>) -> Finding {
        Finding {
            path: Some(path.as_ref().to_owned()),
            ..self
        }
    }

    pub(super) fn mended_by(self, mend: Mend) -> Finding {
        Finding {
            mend: Some(mend),
            ..self
        }
    }
}

/// A path as JSON: a string, or `{"hex": "…"}` where it is no text.
fn optional_path<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => Bytes(path.as_os_str().as_bytes().to_vec()).serialize(serializer),
        None => serializer.serialize_none(),
    }
}

#[expect(clippy::ref_option, reason = "serde asks for it so")]
fn is_some<S: Serializer>(mend: &Option<Mend>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(mend.is_some())
}
