//! The invariants of a store, checked as a reader: what is found is said and left, unless it is asked to be mended.
//!
//! | file | what it is for |
//! |---|---|
//! | `kind`, `finding` | what can be found, and what is said of it |
//! | `root`, `passing`, `spares`, `modes` | the store around the jobs; what is on its way in or out; who can read what |
//! | `job` | one job: which of the following it is looked through for |
//! | `history`, `status`, `processes`, `logs` | a history, a record, what lives of a job, its output |
//! | `after`, `keys` | what jobs are to each other: who waits for whom, who bears which name |
//! | `pools`, `sessions` | pools, their slots, and the sessions in them |
//! | `mend/` | mending what was found |
//! | `export`, `redact` | all about one job for whoever is to find out what went wrong, and what of that is not theirs to read |
//! | `machine` | what the machine offers |
//!
//! What mends is what any next holder or collector would do, or sets aside what cannot be read: whole, under `broken/`, and
//! only where nobody holds it. Nothing here deletes or changes a record that it cannot read (R21).

mod after;
mod export;
mod finding;
mod history;
mod job;
mod keys;
pub(crate) mod kind;
mod logs;
mod machine;
mod mend;
mod modes;
mod passing;
mod pools;
mod processes;
mod redact;
mod root;
mod sessions;
mod spares;
mod status;

use std::ffi::OsString;
use std::path::Path;

use crate::error::{DiskError, Error, Result};
use crate::process;
use crate::store::Store;

pub(crate) use export::export;
pub(crate) use finding::{Finding, Severity};
pub(crate) use machine::Machine;
pub(crate) use mend::mend;

use finding::Mend;

/// What a look at a whole store came to.
#[derive(Debug, Default)]
pub(crate) struct Checkup {
    /// How many jobs there are, readable or not.
    pub(crate) jobs: usize,
    /// What was found, the problems first.
    pub(crate) findings: Vec<Finding>,
}

/// Look at everything in a store. What is wrong with one job, or one part, hides nothing of the others.
pub(crate) fn examine(store: &Store) -> Checkup {
    let mut all = Checkup::default();
    let passing = passing::Passing::begin(store);
    // Before the jobs: a process of a job that nobody holds *afterwards* has lost its worker.
    let marked = process::all_marked();
    all.add(root::examine(store));
    all.add(spares::examine(store));
    let (ids, strange) = match store.entries() {
        Ok(entries) => entries,
        Err(error) => {
            // Of jobs nothing is known, nor of what they are to each other.
            all.add(Err(error));
            all.add(pools::examine(store));
            all.add(sessions::examine(store));
            return all.in_order();
        }
    };
    all.jobs = ids.len();
    all.findings.extend(strange.iter().map(job::no_job));
    let mut under_way = Vec::new();
    for id in &ids {
        let seen = job::examine(store, id, &marked);
        let findings = seen.findings.into_iter();
        all.findings.extend(findings.map(|finding| finding.of(id)));
        under_way.extend(seen.under_way);
    }
    all.findings
        .extend(processes::of_nobody(store, &ids, &marked));
    all.add(after::examine(store, &under_way));
    all.add(keys::examine(store, &under_way));
    all.add(pools::examine(store));
    all.add(sessions::examine(store));
    all.add(passing.and_then(|passing| passing.end(store)));
    all.in_order()
}

impl Checkup {
    /// Take in what was found in a part, or that it cannot be looked at.
    fn add(&mut self, found: Result<Vec<Finding>>) {
        self.findings.extend(or_unreadable(found));
    }

    fn in_order(mut self) -> Checkup {
        self.findings.sort_by_key(|finding| finding.severity);
        self
    }
}

/// What was found in a part, or that it cannot be looked at: that hides nothing of the other parts.
fn or_unreadable<T: IntoIterator<Item = Finding>>(found: Result<T>) -> Vec<Finding> {
    match found {
        Ok(findings) => findings.into_iter().collect(),
        Err(error) => vec![unreadable(&error)],
    }
}

/// What is said of what cannot be looked at.
fn unreadable(error: &Error) -> Finding {
    let advice = "see to it that its owner can read and write the store";
    let finding = Finding::new(kind::UNREADABLE, told(error), advice);
    match error {
        Error::Disk(error) => finding.at(&error.path),
        _ => finding,
    }
}

/// An error as a finding says it: what to do is said beside it.
fn told(error: &Error) -> String {
    match error {
        Error::Damaged { path, why } => format!("{} cannot be read: {why}", path.display()),
        other => other.to_string(),
    }
}

/// What is said of anything that is none of ours.
fn stray(path: &Path, shown: &str) -> Finding {
    Finding::new(
        kind::STRAY,
        format!("{shown} is nothing of ours"),
        "move it away if it is of use, and no newer version has put it there",
    )
    .at(path)
}

/// The names in a directory; none where there is no such directory.
fn names(dir: &Path) -> Result<Vec<OsString>> {
    let failed = |error| DiskError::new("list", dir, error);
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(Vec::new());
        }
        Err(error) => return Err(failed(error).into()),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry.map_err(failed)?.file_name());
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests;
