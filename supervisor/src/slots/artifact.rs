//! Files for what commands of a pool write. Nothing of ours reads them; they are for people, and the oldest go.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::DiskError;
use crate::store::{Store, ticket};

/// How many are kept of those about one thing, the newest.
const KEPT: usize = 20;

/// A new file for what a command writes about this.
pub(super) fn artifact(store: &Store, about: &str) -> Result<(PathBuf, File), DiskError> {
    let dir = store.root().join("artifacts");
    match DirBuilder::new().mode(0o700).create(&dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(DiskError::new("make", &dir, error));
        }
        _ => {}
    }
    forget_oldest(&dir, about);
    let path = dir.join(format!("{about}-{}.log", ticket().as_str()));
    let file = OpenOptions::new()
        .create_new(true)
        .append(true)
        .mode(0o600)
        .open(&path);
    match file {
        Ok(file) => Ok((path, file)),
        Err(error) => Err(DiskError::new("create", &path, error)),
    }
}

/// Make room for one more. What cannot be listed or deleted stays, and harms nobody.
fn forget_oldest(dir: &Path, about: &str) {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut known: Vec<(SystemTime, PathBuf)> = entries
        .filter(|entry| is_about(&entry.file_name(), about))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    known.sort();
    let too_many = (known.len() + 1).saturating_sub(KEPT);
    for (_, path) in known.into_iter().take(too_many) {
        let _ = std::fs::remove_file(path);
    }
}

/// Whether a file of this name is about that: behind it there is a ticket and nothing else.
fn is_about(name: &OsStr, about: &str) -> bool {
    let ticket = name.to_str().and_then(|name| {
        name.strip_prefix(about)?
            .strip_prefix('-')?
            .strip_suffix(".log")
    });
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    ticket.is_some_and(|ticket| ticket.split('-').count() == 3 && ticket.split('-').all(is_number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_those_of_others() {
        let root = tempfile::tempdir().unwrap();
        let store = Store::open(root.path()).unwrap();
        let (other, _) = artifact(&store, "web-1-2").unwrap();
        let all: Vec<PathBuf> = (0..KEPT + 3)
            .map(|_| artifact(&store, "web-1").unwrap().0)
            .collect();
        let left = all.iter().filter(|path| path.exists()).count();
        assert_eq!(left, KEPT);
        assert!(all.last().unwrap().exists());
        assert!(other.exists());
    }

    #[test]
    fn what_a_file_is_about_is_told_from_its_name() {
        let is = |name: &str| is_about(OsStr::new(name), "web-1");
        assert!(is("web-1-12-345-0.log"));
        for other in [
            "web-1-2-12-345-0.log",
            "web-1-reset-1-2-3.log",
            "web-11-1-2-3.log",
            "web-1.log",
        ] {
            assert!(!is(other), "{other}");
        }
    }
}
