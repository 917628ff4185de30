//! Mending what was found: by the protocol that is for it, where there is one; else by setting aside, whole, what cannot be read.
//!
//! Everything is decided again by whoever mends, with the lock in his hand that is for it: what was found is a moment old.

mod aside;
mod held;
mod job;
mod keys;
mod slots;

use std::fs::{DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::path::Path;

use self::aside::Aside;
use super::root::is_dead;
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
    let mut left = found;
    let mut aside = Aside::new(store);
    for _ in 0..ROUNDS {
        let round = mend_once(store, &mut aside, &left.findings);
        let did_something = !round.mended.is_empty();
        mended.extend(round.mended);
        left = examine(store);
        for (finding, why) in round.failed {
            let still = left
                .findings
                .iter_mut()
                .filter(|it| it.mend == finding.mend);
            for it in still {
                it.advice = format!("it cannot be mended now: {why}; {}", it.advice);
            }
        }
        if !did_something || left.findings.iter().all(|finding| finding.mend.is_none()) {
            break;
        }
    }
    see_what_is_gone(&mut mended, &left.findings);
    Mended { mended, left }
}

/// Keep of what was mended that which is not found any more, each once: somebody may have held it, or broken it again.
fn see_what_is_gone(mended: &mut Vec<Finding>, left: &[Finding]) {
    let is_same = |one: &Finding, other: &Finding| {
        (one.kind, &one.job, &one.path) == (other.kind, &other.job, &other.path)
    };
    let mut kept: Vec<Finding> = Vec::new();
    for finding in mended.drain(..) {
        let is_left = left.iter().any(|other| is_same(&finding, other));
        if !is_left && !kept.contains(&finding) {
            kept.push(finding);
        }
    }
    *mended = kept;
}

#[derive(Default)]
struct Round {
    mended: Vec<Finding>,
    failed: Vec<(Finding, String)>,
}

fn mend_once(store: &Store, aside: &mut Aside, findings: &[Finding]) -> Round {
    let mut done: Vec<(&Mend, Result<(), String>)> = Vec::new();
    let mut round = Round::default();
    for finding in findings {
        let Some(mend) = &finding.mend else {
            continue;
        };
        // One step may mend several findings.
        let before = done.iter().position(|(step, _)| *step == mend);
        let at = before.unwrap_or_else(|| {
            let tried = apply(store, aside, mend).map_err(|error| error.to_string());
            done.push((mend, tried));
            done.len() - 1
        });
        match &done[at].1 {
            Ok(()) => round.mended.push(finding.clone()),
            Err(why) => round.failed.push((finding.clone(), why.clone())),
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
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
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
