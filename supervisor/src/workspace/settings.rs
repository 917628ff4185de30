//! Settings that a worktree has for itself: its own configuration, and which part of the tree it has. A session can change both, and
//! neither is part of the tree; a reset puts back what they were when the worktree was cut. And the commit that it was brought to
//! last, which is not its own work, whatever became of the branch that it was on.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::git::Git;
use super::place::Entry;
use super::{Trouble, Workspace};
use crate::error::DiskError;

/// Where git keeps them in the worktree's directory, and where a copy of what they were is kept.
const SETTINGS: [(&str, &str); 2] = [
    ("config.worktree", "outlive-config"),
    ("info/sparse-checkout", "outlive-sparse"),
];

/// Where the commit is kept that a worktree was brought to last.
const BASE: &str = "outlive-base";

/// Remember that a worktree is at this commit by our doing and by nobody's work.
pub(super) fn remember_base(entry: &Entry, commit: &str) -> Result<(), Trouble> {
    write(&entry.path.join(BASE), commit.as_bytes())
}

/// The commit that a worktree was brought to last, if that is known.
pub(super) fn base(entry: &Entry) -> Result<Option<String>, Trouble> {
    let text = read(&entry.path.join(BASE))?;
    let is_hash = |text: &String| !text.is_empty() && text.bytes().all(|it| it.is_ascii_hexdigit());
    Ok(text
        .map(|text| String::from_utf8_lossy(&text).into_owned())
        .filter(is_hash))
}

/// Remember what they are.
pub(super) fn remember(entry: &Entry) -> Result<(), Trouble> {
    for (name, copy) in SETTINGS {
        if let Some(text) = read(&entry.path.join(name))? {
            write(&entry.path.join(copy), &text)?;
        }
    }
    Ok(())
}

impl Workspace {
    /// Put back what they were.
    pub(super) fn restore_settings(
        &self,
        git: &mut Git<'_, '_>,
        entry: &Entry,
    ) -> Result<(), Trouble> {
        let mut is_in_part = false;
        let mut differ = false;
        for (name, copy) in SETTINGS {
            let path = entry.path.join(name);
            let (is, was) = (read(&path)?, read(&entry.path.join(copy))?);
            is_in_part |= was.is_some();
            if is == was {
                continue;
            }
            differ = true;
            match was {
                Some(text) => write(&path, &text)?,
                None => fs::remove_file(&path)
                    .map_err(|error| DiskError::new("remove", &path, error))?,
            }
        }
        if differ && is_in_part {
            git.change(self.dir(), &["sparse-checkout", "reapply"])?;
        }
        Ok(())
    }
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, Trouble> {
    match fs::read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(DiskError::new("read", path, error).into()),
    }
}

/// Write a file so that it is never there in part.
fn write(path: &Path, text: &[u8]) -> Result<(), Trouble> {
    let mut new = path.as_os_str().to_owned();
    new.push(".outlive-new");
    let new = PathBuf::from(new);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|error| DiskError::new("make", parent, error))?;
    }
    fs::write(&new, text).map_err(|error| DiskError::new("write", &new, error))?;
    fs::rename(&new, path).map_err(|error| DiskError::new("write", path, error))?;
    Ok(())
}
