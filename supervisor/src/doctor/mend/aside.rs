//! Setting aside: what cannot be read is moved, as it is, to `broken/<time>/`, under the path that it had in the store. Nothing is
//! opened, changed or deleted, and moving it back undoes it.

use std::fs::DirBuilder;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::clock;
use crate::doctor::root::BROKEN;
use crate::error::{DiskError, Result};
use crate::store::Store;

/// How many names are tried for the directory of one run: so many were begun in the same millisecond.
const NAMES: u32 = 64;

/// Where this run sets things aside.
#[derive(Debug)]
pub(super) struct Aside {
    root: PathBuf,
    /// Made when it is first needed.
    dir: Option<PathBuf>,
}

impl Aside {
    pub(super) fn new(store: &Store) -> Aside {
        Aside {
            root: store.root().to_owned(),
            dir: None,
        }
    }

    /// Move something out of the store. Where it is now.
    pub(super) fn take(&mut self, path: &Path) -> Result<PathBuf> {
        let to = self.place_for(path)?;
        rename_new(path, &to)?;
        sync_parents(path, &to)?;
        Ok(to)
    }

    /// Put a file with these bytes in the place of something that is there, and set that aside, in one step: there is never
    /// nothing in its place, and what was there is never in two.
    pub(super) fn put_in_place_of(&mut self, path: &Path, bytes: &[u8]) -> Result<PathBuf> {
        let to = self.place_for(path)?;
        write(&to, bytes)?;
        renameat_with(CWD, &to, CWD, path, RenameFlags::EXCHANGE)
            .map_err(|error| DiskError::new("exchange", path, error))?;
        sync_parents(path, &to)?;
        Ok(to)
    }

    /// Keep what a file of the store held that somebody else has removed.
    pub(super) fn keep(&mut self, path: &Path, bytes: &[u8]) -> Result<()> {
        write(&self.place_for(path)?, bytes)
    }

    /// A place for what stands at a path of the store, with the directories that it has there.
    fn place_for(&mut self, path: &Path) -> Result<PathBuf> {
        let dir = self.dir()?;
        let inside = path.strip_prefix(&self.root).unwrap_or(path);
        // Something of that name may have been set aside by this run: the same was broken twice.
        for nth in 0..NAMES {
            let base = match nth {
                0 => dir.clone(),
                nth => dir.join(format!("again-{nth}")),
            };
            let to = base.join(inside);
            if to.symlink_metadata().is_err() {
                make_parents(&dir, &to)?;
                return Ok(to);
            }
        }
        Ok(dir.join(inside))
    }

    fn dir(&mut self) -> Result<PathBuf> {
        if let Some(dir) = &self.dir {
            return Ok(dir.clone());
        }
        let broken = self.root.join(BROKEN);
        make(&broken)?;
        let now_ms = clock::now_ms();
        let mut nth = 0;
        let dir = loop {
            let name = match nth {
                0 => now_ms.to_string(),
                nth => format!("{now_ms}-{}", nth + 1),
            };
            let dir = broken.join(name);
            match private().create(&dir) {
                Ok(()) => break dir,
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && nth < NAMES => {
                    nth += 1;
                }
                Err(error) => return Err(failed_to_make(&dir, error).into()),
            }
        };
        sync(&broken)?;
        sync(&self.root)?;
        self.dir = Some(dir.clone());
        Ok(dir)
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
    written.map_err(|error| DiskError::new("write", path, error).into())
}

fn private() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

fn failed_to_make(dir: &Path, error: std::io::Error) -> DiskError {
    DiskError::new("make the directory", dir, error)
}

/// Make a directory, unless it is there.
fn make(dir: &Path) -> Result<()> {
    match private().create(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(failed_to_make(dir, error).into())
        }
        _ => Ok(()),
    }
}

/// Make the directories between `dir` and a place in it.
fn make_parents(dir: &Path, place: &Path) -> Result<()> {
    let parents: Vec<&Path> = place
        .ancestors()
        .skip(1)
        .take_while(|parent| *parent != dir)
        .collect();
    for parent in parents.into_iter().rev() {
        make(parent)?;
        sync(parent.parent().unwrap_or(dir))?;
    }
    Ok(())
}

/// Rename, unless something is there.
pub(super) fn rename_new(from: &Path, to: &Path) -> Result<()> {
    renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)
        .map_err(|error| DiskError::new("move", from, error).into())
}

/// Have both names survive a loss of power, the new one first.
pub(super) fn sync_parents(from: &Path, to: &Path) -> Result<()> {
    for path in [to, from] {
        sync(path.parent().unwrap_or(path))?;
    }
    Ok(())
}

fn sync(dir: &Path) -> Result<()> {
    let synced = std::fs::File::open(dir).and_then(|dir| dir.sync_all());
    synced.map_err(|error| DiskError::new("sync", dir, error).into())
}
