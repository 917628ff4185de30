//! Shifting the kept files by one, so that a new current file can begin.
//!
//! Room is made before anything is added: the oldest file goes first, so that the directory is
//! never above its budget. Killed between any two steps, it leaves at most one number without a
//! file, which the next rotation fills.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use super::older;
use super::open::{create_new, displace, is_regular};

/// Puts `name` among its older files, of which `keep` are kept, and begins it anew: the new file.
/// The bytes of what had to be deleted for that are added to `dropped`, also when a later step
/// fails.
///
/// # Errors
/// The first step that failed; what was shifted by then stays shifted, and trying again goes on
/// from there.
pub(super) fn rotate(
    dir: BorrowedFd<'_>,
    name: &str,
    keep: u32,
    dropped: &mut u64,
) -> rustix::io::Result<OwnedFd> {
    if keep == 0 {
        return start_over(dir, name, dropped);
    }
    let hole = match first_hole(dir, name, keep)? {
        Some(hole) => hole,
        None => {
            forget(dir, &older(name, keep), dropped)?;
            keep
        }
    };
    for k in (1..hole).rev() {
        shift(dir, &older(name, k), &older(name, k + 1))?;
    }
    shift(dir, name, &older(name, 1))?;
    create_new(dir, name)
}

/// Without older files: the new file is made aside and put in place in one step, so that no reader
/// ever finds none.
fn start_over(dir: BorrowedFd<'_>, name: &str, dropped: &mut u64) -> rustix::io::Result<OwnedFd> {
    let aside = format!(".{name}.new");
    let _ = rustix::fs::unlinkat(dir, &aside, AtFlags::empty());
    let Ok(file) = create_new(dir, &aside) else {
        // No room for a second name: let go of the first before.
        forget(dir, name, dropped)?;
        return create_new(dir, name);
    };
    let before = size_of(dir, name)?;
    match rustix::fs::renameat(dir, &aside, dir, name) {
        Ok(()) => {
            *dropped += before;
            Ok(file)
        }
        Err(errno) => {
            let _ = rustix::fs::unlinkat(dir, &aside, AtFlags::empty());
            Err(errno)
        }
    }
}

/// The newest number at which there is nothing.
fn first_hole(dir: BorrowedFd<'_>, name: &str, keep: u32) -> rustix::io::Result<Option<u32>> {
    for k in 1..=keep {
        match rustix::fs::statat(dir, older(name, k), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => {}
            Err(Errno::NOENT) => return Ok(Some(k)),
            Err(errno) => return Err(errno),
        }
    }
    Ok(None)
}

fn shift(dir: BorrowedFd<'_>, from: &str, to: &str) -> rustix::io::Result<()> {
    match rustix::fs::renameat(dir, from, dir, to) {
        // Somebody removed it meanwhile: nothing to keep.
        Err(Errno::NOENT) => Ok(()),
        outcome => outcome,
    }
}

fn forget(dir: BorrowedFd<'_>, name: &str, dropped: &mut u64) -> rustix::io::Result<()> {
    let stat = match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(()),
        outcome => outcome?,
    };
    if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        return displace(dir, name);
    }
    rustix::fs::unlinkat(dir, name, AtFlags::empty())?;
    if is_regular(&stat) {
        *dropped += stat.st_size.unsigned_abs();
    }
    Ok(())
}

fn size_of(dir: BorrowedFd<'_>, name: &str) -> rustix::io::Result<u64> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if is_regular(&stat) => Ok(stat.st_size.unsigned_abs()),
        Ok(_) | Err(Errno::NOENT) => Ok(0),
        Err(errno) => Err(errno),
    }
}

#[cfg(test)]
mod tests {
    use super::super::open::open_dir;
    use super::*;
    use std::collections::BTreeMap;
    use std::fs;
    use std::os::fd::AsFd;
    use std::path::Path;

    fn contents(dir: &Path) -> BTreeMap<String, String> {
        let entries = fs::read_dir(dir).unwrap().map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (
                name,
                fs::read_to_string(&path).unwrap_or("<not a file>".into()),
            )
        });
        entries.collect()
    }

    fn expect(dir: &Path, files: &[(&str, &str)]) {
        let files = files
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        assert_eq!(contents(dir), files.collect());
    }

    fn turn(dir: &Path, keep: u32) -> u64 {
        let mut dropped = 0;
        let handle = open_dir(dir).unwrap();
        rotate(handle.as_fd(), "log", keep, &mut dropped).unwrap();
        dropped
    }

    #[test]
    fn shifts_and_forgets_only_the_oldest() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        fs::write(dir.join("log"), "one").unwrap();
        assert_eq!(turn(dir, 2), 0);
        expect(dir, &[("log", ""), ("log.1", "one")]);
        fs::write(dir.join("log"), "two").unwrap();
        assert_eq!(turn(dir, 2), 0);
        fs::write(dir.join("log"), "three").unwrap();
        assert_eq!(turn(dir, 2), 3);
        expect(dir, &[("log", ""), ("log.1", "three"), ("log.2", "two")]);
    }

    #[test]
    fn a_number_left_empty_by_a_crash_is_filled_before_anything_is_deleted() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        for (name, text) in [("log", "new"), ("log.1", "mid"), ("log.3", "old")] {
            fs::write(dir.join(name), text).unwrap();
        }
        assert_eq!(turn(dir, 3), 0);
        expect(
            dir,
            &[
                ("log", ""),
                ("log.1", "new"),
                ("log.2", "mid"),
                ("log.3", "old"),
            ],
        );
    }

    #[test]
    fn with_nothing_kept_the_file_starts_over_as_another_file() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        fs::write(dir.join("log"), "gone").unwrap();
        fs::write(dir.join(".log.new"), "left by a crash").unwrap();
        let reader = fs::File::open(dir.join("log")).unwrap();
        assert_eq!(turn(dir, 0), 4);
        expect(dir, &[("log", "")]);
        // Who is reading it still has it all.
        assert_eq!(std::io::read_to_string(reader).unwrap(), "gone");
    }

    #[test]
    fn what_is_no_file_is_shifted_unfollowed_and_dropped_or_set_aside() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        fs::write(dir.join("precious"), "precious").unwrap();
        std::os::unix::fs::symlink("precious", dir.join("log.1")).unwrap();
        fs::create_dir(dir.join("log.2")).unwrap();
        fs::write(dir.join("log"), "new").unwrap();
        assert_eq!(turn(dir, 2), 0);
        assert!(dir.join("log.2").is_symlink());
        assert!(dir.join("log.displaced").is_dir() || dir.join("log.2.displaced").is_dir());
        assert_eq!(turn(dir, 2), 0);
        assert!(!dir.join("log.2").is_symlink());
        assert_eq!(
            fs::read_to_string(dir.join("precious")).unwrap(),
            "precious"
        );
    }
}
