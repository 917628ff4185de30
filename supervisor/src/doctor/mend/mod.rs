//! Mending what was found: by the protocol that is for it, where there is one; else by setting aside, whole, what cannot be read.
//!
//! Everything is decided again by whoever mends, with the lock in his hand that is for it: what was found is a moment old.

mod aside;
mod held;
mod job;
mod keys;
mod slots;

use std::fs::{DirBuilder, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::path::Path;

use self::aside::Aside;
use super::root::{BROKEN, is_dead};
use super::{Checkup, Finding, Mend, examine};
use crate::error::{DiskError, Error, Result};
use crate::store::{Store, ticket};

/// How often a store is looked at again: what was hidden by something is found once that is mended.
const ROUNDS: u32 = 4;

/// What mending came to.
#[derive(Debug, Default)]
pub(crate) struct Mended {
    /// What was done something about.
    pub(crate) mended: Vec<Finding>,
    /// What is still found, and what could not be mended among it.
    pub(crate) left: Checkup,
}

/// Mend what can be mended of what is found, and look again.
pub(crate) fn mend(store: &Store, found: Checkup) -> Mended {
    let mut mended = Vec::new();
    let mut half_mended = Vec::new();
    let mut left = found;
    let mut aside = Aside::new(store);
    for _ in 0..ROUNDS {
        let round = mend_once(store, &mut aside, &left.findings);
        let did_something = !round.mended.is_empty();
        mended.extend(round.mended);
        left = examine(store);
        for (finding, failure) in round.failed {
            let why = &failure.why;
            let mut is_found = false;
            for it in &mut left.findings {
                if it.mend == finding.mend {
                    is_found = true;
                    it.advice = format!("it cannot be mended now: {why}; {}", it.advice);
                }
            }
            if !is_found && failure.is_of_disk {
                half_mended.push(gone_by_half(finding, why));
            }
        }
        if !did_something || left.findings.iter().all(|finding| finding.mend.is_none()) {
            break;
        }
    }
    // Somebody may have held what is left, or broken it again.
    let mended = without(mended, &left.findings);
    let half_mended = without(half_mended, &mended);
    let half_mended = without(half_mended, &left.findings);
    left.findings.extend(half_mended);
    Mended {
        mended,
        left: left.in_order(),
    }
}

/// What is said of what is not found any more, though mending it has failed: that it is gone may not last, and something of it may be
/// gone with it.
fn gone_by_half(finding: Finding, why: &str) -> Finding {
    Finding {
        advice: format!(
            "it is not found any more, but mending it failed on the way: {why}; look into {BROKEN}/ for what was set aside, and run the doctor again"
        ),
        mend: None,
        ..finding
    }
}

/// Of these findings those that are not among the others, each once.
fn without(findings: Vec<Finding>, others: &[Finding]) -> Vec<Finding> {
    let is_same = |one: &Finding, other: &Finding| {
        (one.kind, &one.job, &one.path) == (other.kind, &other.job, &other.path)
    };
    let mut kept: Vec<Finding> = Vec::new();
    for finding in findings {
        let is_other = others.iter().any(|other| is_same(&finding, other));
        if !is_other && !kept.contains(&finding) {
            kept.push(finding);
        }
    }
    kept
}

#[derive(Default)]
struct Round {
    mended: Vec<Finding>,
    failed: Vec<(Finding, Failure)>,
}

/// Why something was not mended.
#[derive(Clone, Debug)]
struct Failure {
    why: String,
    /// Whether the disk did not let us. Where somebody was in the way or faster, it is his affair what became of it.
    is_of_disk: bool,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let faster = [ErrorKind::NotFound, ErrorKind::NotADirectory];
        Failure {
            why: error.to_string(),
            is_of_disk: matches!(&error, Error::Disk(fault) if !faster.contains(&fault.source.kind())),
        }
    }
}

fn mend_once(store: &Store, aside: &mut Aside, findings: &[Finding]) -> Round {
    let mut done: Vec<(&Mend, Result<(), Failure>)> = Vec::new();
    let mut round = Round::default();
    for finding in findings {
        let Some(mend) = &finding.mend else {
            continue;
        };
        // One step may mend several findings.
        let before = done.iter().position(|(step, _)| *step == mend);
        let at = before.unwrap_or_else(|| {
            let tried = apply(store, aside, mend).map_err(Failure::from);
            done.push((mend, tried));
            done.len() - 1
        });
        match &done[at].1 {
            Ok(()) => round.mended.push(finding.clone()),
            Err(failure) => round.failed.push((finding.clone(), failure.clone())),
        }
    }
    round
}

fn apply(store: &Store, aside: &mut Aside, mend: &Mend) -> Result<()> {
    match mend {
        Mend::Chmod(path, mode) => chmod(path, *mode),
        Mend::Directory(path) => directory(aside, path),
        Mend::Lock(path) => held::make_lock(store, aside, path),
        Mend::Settle(id) => store.job(id).settle().map(|_| ()),
        Mend::Collect => store.collect(),
        Mend::SetJobAside(id) => job::set_aside(store, aside, id),
        Mend::SetFileAside(id, name) => job::set_file_aside(store, aside, id, name),
        Mend::SetAside(path) => set_aside(aside, path),
        Mend::Rewrite(id) => job::rewrite(store, aside, id),
        Mend::Rename(from, to) => job::rename(store, aside, from, to),
        Mend::Socket => socket(store, aside),
        Mend::Point(key) => keys::point(store, aside, key),
        Mend::Pause(pool) => slots::pause(store, aside, pool),
        Mend::Slot(pool, number) => slots::set_record_aside(store, aside, pool, *number),
        Mend::Break(pool, number, why) => slots::call_broken(store, pool, *number, why),
        Mend::Session(token) => slots::write_session(store, aside, token),
        Mend::Void(token) => slots::end_void(store, aside, token),
        Mend::Orphan(token) => slots::set_orphan_aside(store, aside, token),
    }
}

/// Set the mode of what is no link: a link's target may be anything.
fn chmod(path: &Path, mode: u32) -> Result<()> {
    let failed = |error| DiskError::new("chmod", path, error);
    if path.symlink_metadata().map_err(failed)?.is_symlink() {
        return Ok(());
    }
    std::fs::set_permissions(path, Permissions::from_mode(mode)).map_err(failed)?;
    Ok(())
}

/// Set something aside that nobody can hold. In a directory somebody may work all the same.
fn set_aside(aside: &mut Aside, path: &Path) -> Result<()> {
    if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        held::see_that_nobody_is_in(path)?;
    }
    aside.take(path).map(drop)
}

/// Make a directory of the store. What stands in its place can be nobody's lock.
fn directory(aside: &mut Aside, path: &Path) -> Result<()> {
    if path.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
        aside.take(path)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        // Whatever the mask of this process has taken away.
        Ok(()) => chmod(path, 0o700),
        Err(error) => Err(DiskError::new("make the directory", path, error).into()),
    }
}

/// Remove a socket that nobody serves. A supervisor that has come meanwhile keeps his: it is looked at again where it was moved
/// to, and put back.
fn socket(store: &Store, aside: &mut Aside) -> Result<()> {
    let path = store.root().join("supervisor.sock");
    let is_socket = |path: &Path| {
        let found = path.symlink_metadata();
        found.is_ok_and(|found| found.file_type().is_socket())
    };
    if !is_socket(&path) {
        return aside.take(&path).map(drop);
    }
    // There anything may be removed by anybody, as a socket may that nobody serves: nothing is in it.
    let moved = store.root().join("staging").join(ticket().as_str());
    aside::rename_new(&path, &moved)?;
    if is_dead(&moved) {
        let removed = std::fs::remove_file(&moved);
        removed.map_err(|error| DiskError::new("remove", &moved, error))?;
        return Ok(());
    }
    aside::rename_new(&moved, &path)?;
    Err(Error::NotNow("a supervisor serves it by now".into()))
}
