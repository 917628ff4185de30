//! The invariants of a store, checked as a reader: what is found is said and left, unless it is asked to be mended. What
//! is mended is only what any next holder would mend, what crashes left behind, and modes; a record that cannot be read
//! is never touched (R21).

mod job;
mod machine;
mod mend;
mod modes;
mod rest;
mod slots;

use serde::Serialize;
use state_machine::id::JobId;

use crate::error::{Error, Result};
use crate::process;
use crate::store::Store;

pub(crate) use machine::Machine;
pub(crate) use mend::mend;

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
    /// How bad it is.
    pub(crate) severity: Severity,
    /// The job that it is about, as its directory is called.
    pub(crate) job: Option<JobId>,
    /// What it is.
    pub(crate) what: String,
    /// What to do about it.
    pub(crate) advice: String,
    /// What mends it.
    #[serde(skip)]
    mend: Option<Mend>,
}

/// How a finding is mended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Mend {
    /// Set the mode of a file or directory.
    Chmod(std::path::PathBuf, u32),
    /// Make a job that nobody holds say what is true (R22).
    Settle(JobId),
    /// Collect what crashes left in `staging/` and `trash/` (R8).
    Collect,
}

impl Finding {
    fn new(severity: Severity, what: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding {
            severity,
            job: None,
            what: what.into(),
            advice: advice.into(),
            mend: None,
        }
    }

    fn problem(what: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding::new(Severity::Problem, what, advice)
    }

    fn note(what: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding::new(Severity::Note, what, advice)
    }

    fn of(self, job: &JobId) -> Finding {
        Finding {
            job: Some(job.clone()),
            ..self
        }
    }

    fn mended_by(self, mend: Mend) -> Finding {
        Finding {
            mend: Some(mend),
            ..self
        }
    }
}

/// What a look at a whole store came to.
#[derive(Debug, Default)]
pub(crate) struct Checkup {
    /// How many jobs there are, readable or not.
    pub(crate) jobs: usize,
    /// What was found, the problems first.
    pub(crate) findings: Vec<Finding>,
}

/// Look at everything in a store.
///
/// # Errors
///
/// Only where the store itself cannot be listed; what is wrong with one job hides nothing of the others.
pub(crate) fn examine(store: &Store) -> Result<Checkup> {
    let passing = rest::Passing::begin(store)?;
    // Before the jobs: a process of a job that nobody holds *afterwards* has lost its worker.
    let marked = process::all_marked();
    let (ids, strange) = store.entries()?;
    let mut findings = rest::examine(store)?;
    findings.extend(slots::examine(store)?);
    findings.extend(strange.into_iter().map(|error| {
        Finding::problem(
            told(&error),
            "nothing of ours; move it away if it is of use",
        )
    }));
    for id in &ids {
        let found = job::examine(store, id, &marked);
        findings.extend(found.into_iter().map(|finding| finding.of(id)));
    }
    findings.extend(job::of_nobody(store, &ids, &marked));
    findings.extend(passing.end(store)?);
    findings.sort_by_key(|finding| finding.severity);
    Ok(Checkup {
        jobs: ids.len(),
        findings,
    })
}

/// An error as a finding says it: what to do is said beside it.
fn told(error: &Error) -> String {
    match error {
        Error::Damaged { path, why } => format!("{} cannot be read: {why}", path.display()),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
