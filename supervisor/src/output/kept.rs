//! What is kept of one stream, as a reader finds it: the current file and the older ones, in the
//! order they were written, opened while a carrier may be renaming them.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;

use super::open::{FileId, id_of, is_regular};
use super::{MOST_KEPT, older};

/// How often files are opened anew when a rotation came between.
const TRIES: usize = 16;

/// One file of a stream, open for reading.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) file: File,
    /// Valid as long as `file` is open (F19).
    pub(super) id: FileId,
    /// Bytes, when it was opened.
    pub(super) size: u64,
}

/// What stands at the place of the current file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtPlace {
    /// A regular file.
    File(FileId),
    /// Nothing: not yet, no more, or for the moment between two steps of a rotation.
    Nothing,
    /// Something that is not a regular file, and is not opened: a symbolic link, say.
    Foreign,
}

/// Looks at the place of the current file without following it.
pub(super) fn at_place(dir: BorrowedFd<'_>, name: &str) -> io::Result<AtPlace> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if is_regular(&stat) => Ok(AtPlace::File(id_of(&stat))),
        Ok(_) => Ok(AtPlace::Foreign),
        Err(Errno::NOENT) => Ok(AtPlace::Nothing),
        Err(errno) => Err(errno.into()),
    }
}

/// The current file, if there is one and it is a regular file.
///
/// # Errors
/// It may not be read, or the process has no descriptors left.
pub(super) fn open_current(dir: BorrowedFd<'_>, name: &str) -> io::Result<Option<Kept>> {
    open(dir, name)
}

/// Every kept file, the oldest first. Those that are not there, or are not regular files, are left
/// out.
///
/// # Errors
/// A file is there and may not be read, or the process has no descriptors left.
pub(super) fn open_all(dir: BorrowedFd<'_>, name: &str) -> io::Result<Vec<Kept>> {
    let mut tries = 0;
    loop {
        tries += 1;
        let before = at_place(dir, name)?;
        let kept = open_newest_first(dir, name)?;
        // With the same current file before and after, no rotation was completed meanwhile, and
        // every file has moved by one number at most: none was missed and the order is right.
        if at_place(dir, name)? == before || tries == TRIES {
            return Ok(kept.into_iter().rev().collect());
        }
    }
}

/// Files only ever move to higher numbers, so going up misses none; one that moved ahead of us is
/// met twice.
fn open_newest_first(dir: BorrowedFd<'_>, name: &str) -> io::Result<Vec<Kept>> {
    let mut kept: Vec<Kept> = Vec::new();
    let mut include = |file: Option<Kept>| {
        if let Some(file) = file
            && !kept.iter().any(|known| known.id == file.id)
        {
            kept.push(file);
        }
    };
    include(open(dir, name)?);
    let highest = highest_number(dir, name)?;
    for k in 1..=highest.saturating_add(1) {
        include(open(dir, &older(name, k))?);
    }
    Ok(kept)
}

fn highest_number(dir: BorrowedFd<'_>, name: &str) -> io::Result<u32> {
    let mut highest = 0;
    let entries = match Dir::read_from(dir) {
        // The directory itself was removed.
        Err(Errno::NOENT) => return Ok(0),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let number = entry
            .file_name()
            .to_str()
            .ok()
            .and_then(|file| number_of(file, name));
        highest = highest.max(number.unwrap_or(0));
    }
    Ok(highest)
}

/// `k` where `file` is the `k`-th older file of `name`.
fn number_of(file: &str, name: &str) -> Option<u32> {
    let digits = file.strip_prefix(name)?.strip_prefix('.')?;
    let number: u32 = digits.parse().ok()?;
    // Only what the carrier itself would write: no sign, no leading zeros, no number that is
    // absurd.
    let is_ours = (1..=MOST_KEPT).contains(&number) && digits == number.to_string();
    is_ours.then_some(number)
}

fn open(dir: BorrowedFd<'_>, name: &str) -> io::Result<Option<Kept>> {
    // Non-blocking, so that a FIFO does not hold us up.
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(dir, name, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    let stat = rustix::fs::fstat(file.as_fd())?;
    let size = stat.st_size.unsigned_abs();
    Ok(is_regular(&stat).then(|| Kept {
        file: File::from(file),
        id: id_of(&stat),
        size,
    }))
}

impl Kept {
    /// Fills `buffer` from `offset` as far as the file goes: the part that was filled.
    pub(super) fn read_at<'b>(&self, buffer: &'b mut [u8], offset: u64) -> io::Result<&'b [u8]> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self
                .file
                .read_at(&mut buffer[filled..], offset + filled as u64)
            {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(&buffer[..filled])
    }

    /// The size now, in bytes.
    pub(super) fn size_now(&self) -> io::Result<u64> {
        Ok(rustix::fs::fstat(&self.file)?.st_size.unsigned_abs())
    }

    /// Whether no name is left.
    pub(super) fn is_unlinked(&self) -> io::Result<bool> {
        Ok(rustix::fs::fstat(&self.file)?.st_nlink == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::open::open_dir;
    use super::*;
    use std::fs;

    #[test]
    fn finds_the_kept_files_oldest_first_and_nothing_else() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        for name in [
            "log",
            "log.1",
            "log.3",
            "log.10",
            "log.01",
            "log.x",
            "log.0",
            "stdout.log",
        ] {
            fs::write(dir.join(name), name).unwrap();
        }
        std::os::unix::fs::symlink("log.x", dir.join("log.2")).unwrap();
        fs::create_dir(dir.join("log.4")).unwrap();
        let handle = open_dir(dir).unwrap();
        let kept = open_all(handle.as_fd(), "log").unwrap();
        let names: Vec<_> = kept
            .iter()
            .map(|kept| std::io::read_to_string(&kept.file).unwrap())
            .collect();
        assert_eq!(names, ["log.10", "log.3", "log.1", "log"]);
    }
}
