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
        if path == self.root.join(BROKEN) {
            // Nothing can be set aside before that is.
            return Ok(self.dir()?.join(BROKEN));
        }
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

    /// Keep what a file of the store holds that somebody else is to remove. Where it is kept.
    pub(super) fn keep(&mut self, path: &Path, bytes: &[u8]) -> Result<PathBuf> {
        let to = self.place_for(path)?;
        write(&to, bytes)?;
        sync(to.parent().unwrap_or(&to))?;
        Ok(to)
    }

    /// What was kept need not be, as it stands where it stood. Of a run that has set nothing else aside nothing is left.
    pub(super) fn discard(&mut self, kept: &Path) {
        // Where one of these stays, that is no loss.
        let _ = std::fs::remove_file(kept);
        let broken = self.root.join(BROKEN);
        for dir in kept.ancestors().skip(1).take_while(|dir| *dir != broken) {
            if std::fs::remove_dir(dir).is_err() {
                return;
            }
        }
        self.dir = None;
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
        let now_ms = clock::now_ms();
        let displaced = displace(&broken, now_ms)?;
        make(&broken)?;
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
        if let Some(displaced) = displaced {
            rename_new(&displaced, &dir.join(BROKEN))?;
            sync(&dir)?;
        }
        sync(&broken)?;
        sync(&self.root)?;
        self.dir = Some(dir.clone());
        Ok(dir)
    }
}

/// Where what stood in the place of `broken/` and is no directory was moved to, to be set aside once there is one. A doctor that is
/// killed leaves it there, beside it.
fn displace(broken: &Path, now_ms: u64) -> Result<Option<PathBuf>> {
    if broken.symlink_metadata().is_err() || broken.is_dir() {
        return Ok(None);
    }
    let beside = broken.with_file_name(format!("{BROKEN}-{now_ms}"));
    rename_new(broken, &beside)?;
    Ok(Some(beside))
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = |error| DiskError::new("write", path, error);
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(failed)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if written.is_err() {
        // Whatever of it there was room for is of no use, and was not there before.
        let _ = std::fs::remove_file(path);
    }
    Ok(written.map_err(failed)?)
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
