//! Locks that a killed git has left. git never removes one that it did not make itself, so that each stops all who come later
//! (S22, S51). One is removed here only when it is certain that nobody holds it.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::git::Git;
use super::place::{Entry, lstat, repository};
use super::{Hands, Trouble, Workspace};
use crate::error::DiskError;
use crate::process::{Census, census};

/// How deep a repository's directory is searched.
const DEEPEST: usize = 32;

impl Workspace {
    /// Remove the locks in the worktree's own directory, those of its submodules included. While a process works in the worktree or
    /// in that directory, or a git that cannot be looked into runs at all, every one may be held: then this is refused.
    pub(super) fn clear_locks(&self, entry: &Entry) -> Result<(), Trouble> {
        let mut locks = Vec::new();
        find(&entry.path, DEEPEST, &mut locks)?;
        if locks.is_empty() {
            return Ok(());
        }
        let census = census(&[self.dir(), &entry.path]);
        for lock in locks {
            if let Some(holder) = possible_holder(&census) {
                return Err(Trouble::NotNow(format!(
                    "{} may be held: {holder}",
                    lock.path.display()
                )));
            }
            lock.remove()?;
        }
        Ok(())
    }
}

/// Remove the lock of `git maintenance` from a repository, if it is left from one that is dead: git takes one that is there for a
/// reason to do nothing and to say that all is well. Whoever made it has it open as long as it is held. Says what was removed.
pub(crate) fn clear_maintenance_lock(
    hands: &mut Hands<'_>,
    source: &Path,
) -> Result<Option<PathBuf>, Trouble> {
    let common = repository(&mut Git::new(hands, Path::new("/")), source)?.common;
    let path = common.join("objects/maintenance.lock");
    let Some(lock) = Lock::at(&path)? else {
        return Ok(None);
    };
    if possible_holder(&census(&[&path])).is_some() {
        return Ok(None);
    }
    lock.remove()?;
    Ok(Some(path))
}

/// Who may hold a lock, in words.
fn possible_holder(census: &Census) -> Option<String> {
    if let Some(one) = census.inside.first() {
        return Some(format!("process {one}"));
    }
    let is_git = |name: &&std::ffi::OsString| name.as_encoded_bytes().starts_with(b"git");
    let unseen = census.unseen.iter().find(is_git)?;
    Some(format!(
        "a {} runs that cannot be looked into",
        unseen.display()
    ))
}

/// A lock as it was found.
struct Lock {
    path: PathBuf,
    identity: (u64, u64, i64),
}

impl Lock {
    fn at(path: &Path) -> Result<Option<Lock>, Trouble> {
        let found = lstat(path)?;
        Ok(found.map(|found| Lock {
            path: path.to_owned(),
            identity: (found.dev(), found.ino(), found.ctime_nsec()),
        }))
    }

    /// Remove it, unless it is another one by now.
    fn remove(&self) -> Result<(), Trouble> {
        match Lock::at(&self.path)? {
            Some(now) if now.identity == self.identity => {}
            _ => return Ok(()),
        }
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(DiskError::new("remove", &self.path, error).into())
            }
            _ => Ok(()),
        }
    }
}

/// Every `*.lock` below a repository's directory, but among its objects, where there are none that are in anybody's way.
fn find(dir: &Path, deeper: usize, locks: &mut Vec<Lock>) -> Result<(), Trouble> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(DiskError::new("read", dir, error).into()),
    };
    for entry in entries {
        let entry = entry.map_err(|error| DiskError::new("read", dir, error))?;
        let (path, name) = (entry.path(), entry.file_name());
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_dir && name != "objects" && deeper > 0 {
            find(&path, deeper - 1, locks)?;
        } else if !is_dir && name.as_encoded_bytes().ends_with(b".lock") {
            locks.extend(Lock::at(&path)?);
        }
    }
    Ok(())
}
