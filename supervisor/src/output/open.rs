//! Opening the file that output is appended to, whatever stands at its place.
//!
//! Never follows a symbolic link, never waits for a FIFO's reader, never truncates.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

/// Which file this is, for as long as a descriptor of it is held (F19): device and inode.
pub(super) type FileId = (u64, u64);

/// The identity within a `stat`.
pub(super) fn id_of(stat: &Stat) -> FileId {
    (stat.st_dev, stat.st_ino)
}

/// Whether a `stat` is one of a regular file.
pub(super) fn is_regular(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

/// A directory, to name files in whatever happens to its own name.
pub(super) fn open_dir(dir: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, dir, flags, Mode::empty())
}

/// The output file `name` in the directory `dir`, for a command to write to without anything in
/// between: append mode, created 0600 where it is not there, close-on-exec.
///
/// Something at its place that is not a regular file (a symbolic link, a FIFO) is moved out of the
/// way, so that no job fails to start, or hangs, because of it.
///
/// # Errors
/// What the operating system says: a full or read-only disk, a directory that is gone.
pub(crate) fn open_plain(dir: &Path, name: &str) -> io::Result<OwnedFd> {
    let dir = open_dir(dir)?;
    let file = open_append(dir.as_fd(), name)?;
    // The non-blocking flag only guarded the open; the command is to find an ordinary file.
    rustix::fs::fcntl_setfl(&file, OFlags::APPEND)?;
    Ok(file)
}

/// Like [`open_plain`], in an open directory; the descriptor has the non-blocking flag, which means
/// nothing for a regular file.
pub(super) fn open_append(dir: BorrowedFd<'_>, name: &str) -> rustix::io::Result<OwnedFd> {
    if let Some(file) = try_append(dir, name)? {
        return Ok(file);
    }
    displace(dir, name)?;
    // Once only: somebody who puts a link back at once wins, and the caller does without a file.
    try_append(dir, name)?.ok_or(Errno::EXIST)
}

/// A new, empty file under `name`, where nothing may stand yet.
pub(super) fn create_new(dir: BorrowedFd<'_>, name: &str) -> rustix::io::Result<OwnedFd> {
    let exclusive = append_flags() | OFlags::EXCL;
    match rustix::fs::openat(dir, name, exclusive, private()) {
        Err(Errno::EXIST) => {
            displace(dir, name)?;
            rustix::fs::openat(dir, name, exclusive, private())
        }
        outcome => outcome,
    }
}

/// Takes what stands at `name` out of the way without following it: what has no content of its own
/// is unlinked, anything else is renamed to `<name>.displaced`.
pub(super) fn displace(dir: BorrowedFd<'_>, name: &str) -> rustix::io::Result<()> {
    let stat = match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(()),
        outcome => outcome?,
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink | FileType::Fifo | FileType::Socket => {
            rustix::fs::unlinkat(dir, name, AtFlags::empty())
        }
        _ => rename_aside(dir, name),
    }
}

fn rename_aside(dir: BorrowedFd<'_>, name: &str) -> rustix::io::Result<()> {
    let mut outcome = Err(Errno::EXIST);
    for attempt in 0..16 {
        let aside = match attempt {
            0 => format!("{name}.displaced"),
            n => format!("{name}.displaced-{}", n + 1),
        };
        outcome = rustix::fs::renameat_with(dir, name, dir, &aside, RenameFlags::NOREPLACE);
        if outcome != Err(Errno::EXIST) {
            break;
        }
    }
    outcome
}

/// `None` when something other than a regular file stands there.
fn try_append(dir: BorrowedFd<'_>, name: &str) -> rustix::io::Result<Option<OwnedFd>> {
    match rustix::fs::openat(dir, name, append_flags(), private()) {
        Ok(file) => Ok(is_regular(&rustix::fs::fstat(&file)?).then_some(file)),
        // A symbolic link; a FIFO without a reader, or a socket; a directory.
        Err(Errno::LOOP | Errno::NXIO | Errno::ISDIR) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn append_flags() -> OFlags {
    OFlags::WRONLY
        | OFlags::APPEND
        | OFlags::CREATE
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK
        | OFlags::NOCTTY
        | OFlags::CLOEXEC
}

fn private() -> Mode {
    Mode::RUSR | Mode::WUSR
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn append(dir: &Path, bytes: &[u8]) {
        let mut file = fs::File::from(open_plain(dir, "log").unwrap());
        file.write_all(bytes).unwrap();
    }

    #[test]
    fn appends_to_a_private_file() {
        let dir = tempfile::tempdir().unwrap();
        append(dir.path(), b"one\n");
        append(dir.path(), b"two\n");
        let log = dir.path().join("log");
        assert_eq!(fs::read(&log).unwrap(), b"one\ntwo\n");
        assert_eq!(
            fs::metadata(&log).unwrap().permissions().mode() & 0o7777,
            0o600
        );
    }

    #[test]
    fn the_command_gets_an_ordinary_append_descriptor() {
        let dir = tempfile::tempdir().unwrap();
        let file = open_plain(dir.path(), "log").unwrap();
        let flags = rustix::fs::fcntl_getfl(&file).unwrap();
        assert!(flags.contains(OFlags::APPEND) && !flags.contains(OFlags::NONBLOCK));
        let flags = rustix::io::fcntl_getfd(&file).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }

    #[test]
    fn what_is_no_regular_file_is_moved_out_of_the_way_and_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let precious = dir.path().join("precious");
        fs::write(&precious, b"precious").unwrap();

        symlink(&precious, &log).unwrap();
        append(dir.path(), b"a");
        fs::remove_file(&log).unwrap();

        rustix::fs::mknodat(CWD, &log, FileType::Fifo, private(), 0).unwrap();
        append(dir.path(), b"b");
        fs::remove_file(&log).unwrap();

        for _ in 0..2 {
            fs::create_dir(&log).unwrap();
            append(dir.path(), b"c");
            assert_eq!(fs::read(&log).unwrap(), b"c");
            fs::remove_file(&log).unwrap();
        }
        assert!(dir.path().join("log.displaced").is_dir());
        assert!(dir.path().join("log.displaced-2").is_dir());
        assert_eq!(fs::read(&precious).unwrap(), b"precious");
    }
}
