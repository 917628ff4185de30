//! Deleting a tree, whatever is in it: nothing is followed out of it, directories that nobody may write to are made writable, and
//! what is mounted in it is left alone. What cannot be deleted is named, and everything else is gone all the same.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, fchmod, fstat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

use super::Trouble;
use super::git::path_of;
use crate::error::DiskError;

/// How deep a tree is gone into, with a descriptor each; what is deeper is moved up first.
const DEPTH: usize = 100;

/// Delete `path` and everything below it. One that is not there is deleted already.
pub(crate) fn erase(path: &Path) -> Result<(), Trouble> {
    let name = CString::new(path.as_os_str().as_bytes())
        .map_err(|error| DiskError::new("remove", path, io::Error::from(error)))?;
    let device = match statat(CWD, &name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => found.st_dev,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(DiskError::new("remove", path, error).into()),
    };
    let mut eraser = Eraser {
        device,
        top: None,
        moved: 0,
        first: None,
    };
    eraser.remove(CWD, &name, path.to_owned(), 0);
    eraser.first.map_or(Ok(()), |error| Err(error.into()))
}

/// Give the owner every right to the directories of a tree, so that what is in them can be changed.
pub(super) fn soften(path: &Path) {
    // What cannot be softened is told of by whoever meets it next.
    if let Ok(dir) = open_dir(CWD, path) {
        soften_below(&dir, 0);
    }
}

fn soften_below(dir: &OwnedFd, depth: usize) {
    make_writable(dir.as_fd());
    let Ok(entries) = Dir::read_from(dir) else {
        return;
    };
    for entry in entries.flatten() {
        let is_dir = matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
        if is_dir && !is_dots(entry.file_name()) && depth < DEPTH {
            let child = open_dir(dir, entry.file_name()).or_else(|_| {
                // One that may not be read cannot be opened to be made readable: by its name then, which is no link.
                let all = Mode::RWXU;
                let _ = rustix::fs::chmodat(dir, entry.file_name(), all, AtFlags::empty());
                open_dir(dir, entry.file_name())
            });
            if let Ok(child) = child {
                soften_below(&child, depth + 1);
            }
        }
    }
}

fn make_writable(dir: BorrowedFd<'_>) {
    if let Ok(found) = fstat(dir) {
        let mode = Mode::from_raw_mode(found.st_mode);
        if !mode.contains(Mode::RWXU) {
            // Not ours to change: what follows fails, and is told of.
            let _ = fchmod(
                dir,
                mode.intersection(Mode::from_raw_mode(0o7777)) | Mode::RWXU,
            );
        }
    }
}

struct Eraser {
    /// The file system that the tree is on.
    device: u64,
    /// The top of the tree, where what is too deep is moved to.
    top: Option<OwnedFd>,
    moved: usize,
    first: Option<DiskError>,
}

impl Eraser {
    fn failed(&mut self, path: PathBuf, error: impl Into<io::Error>) {
        let error = DiskError::new("remove", &path, error);
        self.first.get_or_insert(error);
    }

    fn remove(&mut self, parent: BorrowedFd<'_>, name: &CStr, path: PathBuf, depth: usize) {
        match unlinkat(parent, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::ISDIR | Errno::PERM) if self.is_dir(parent, name) => {
                self.remove_dir(parent, name, path, depth);
            }
            Err(error) => self.failed(path, error),
        }
    }

    fn is_dir(&self, parent: BorrowedFd<'_>, name: &CStr) -> bool {
        statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory)
    }

    fn remove_dir(&mut self, parent: BorrowedFd<'_>, name: &CStr, path: PathBuf, depth: usize) {
        let dir = match open_dir(parent, name) {
            Ok(dir) => dir,
            Err(error) => match reopen(parent, name) {
                Some(dir) => dir,
                None => return self.failed(path, error),
            },
        };
        match fstat(&dir) {
            Ok(found) if found.st_dev != self.device => {
                let why = "another file system is mounted there";
                return self.failed(path, io::Error::new(io::ErrorKind::ResourceBusy, why));
            }
            Ok(_) => {}
            Err(error) => return self.failed(path, error),
        }
        if self.top.is_none() {
            self.top = dir.try_clone().ok();
        }
        make_writable(dir.as_fd());
        loop {
            let before = self.moved;
            self.empty(&dir, &path, depth);
            // What was moved up to here is to be deleted too.
            if depth > 0 || self.moved == before || self.first.is_some() {
                break;
            }
        }
        match unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => self.failed(path, error),
        }
    }

    fn empty(&mut self, dir: &OwnedFd, path: &Path, depth: usize) {
        let entries = match Dir::read_from(dir) {
            Ok(entries) => entries,
            Err(error) => return self.failed(path.to_owned(), error),
        };
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => return self.failed(path.to_owned(), error),
            };
            let name = entry.file_name();
            if is_dots(name) {
                continue;
            }
            let below = path.join(path_of(name.to_bytes()));
            if depth >= DEPTH && self.is_dir(dir.as_fd(), name) {
                self.move_up(dir, name, below);
            } else {
                self.remove(dir.as_fd(), name, below, depth + 1);
            }
        }
    }

    fn move_up(&mut self, dir: &OwnedFd, name: &CStr, path: PathBuf) {
        self.moved += 1;
        let up = format!(".outlive-deep-{}", self.moved);
        let Some(top) = &self.top else { return };
        if let Err(error) = renameat(dir, name, top, up) {
            self.failed(path, error);
        }
    }
}

fn is_dots(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}

fn open_dir<P: rustix::path::Arg>(parent: impl AsFd, name: P) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

/// Open a directory that its owner may not read.
fn reopen(parent: BorrowedFd<'_>, name: &CStr) -> Option<OwnedFd> {
    rustix::fs::chmodat(parent, name, Mode::RWXU, AtFlags::empty()).ok()?;
    open_dir(parent, name).ok()
}
