//! A piece of the current file of a stream, for one who comes back for more. Bytes go out as they came in.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use super::kept::open_current;
use super::open::open_dir;

/// Where a piece begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// So many bytes into the file.
    From(u64),
    /// So that it is the end of what is there.
    Last,
}

/// A piece of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// What is in it.
    pub(crate) bytes: Vec<u8>,
    /// How far into the file it begins, in bytes.
    pub(crate) from: u64,
    /// How long the file is, in bytes.
    pub(crate) size: u64,
    /// Which file it is: another one after a rotation. Empty while there is none.
    pub(crate) file: String,
}

/// A piece of the current file of the stream `name`, of `most` bytes at most. A stream that has no file yet is empty.
///
/// # Errors
/// The directory or the file cannot be read.
pub(crate) fn piece(dir: &Path, name: &str, place: Place, most: u64) -> io::Result<Piece> {
    let dir = open_dir(dir)?;
    let Some(file) = open_current(dir.as_fd(), name)? else {
        return Ok(Piece {
            bytes: Vec::new(),
            from: 0,
            size: 0,
            file: String::new(),
        });
    };
    let from = match place {
        Place::From(from) => from,
        Place::Last => file.size.saturating_sub(most),
    };
    let length = file.size.saturating_sub(from).min(most);
    let mut buffer = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
    let read = file.read_at(&mut buffer, from)?.len();
    buffer.truncate(read);
    let (device, inode) = file.id;
    Ok(Piece {
        bytes: buffer,
        from,
        size: file.size,
        file: format!("{device:x}-{inode:x}"),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn one_goes_on_where_one_was_and_sees_when_the_file_is_another_one() {
        let dir = tempfile::tempdir().unwrap();
        let read = |place, most| piece(dir.path(), "log", place, most).unwrap();
        assert_eq!(read(Place::Last, 10).file, "");
        fs::write(dir.path().join("log"), b"0123456789").unwrap();
        let last = read(Place::Last, 4);
        assert_eq!((&*last.bytes, last.from, last.size), (&b"6789"[..], 6, 10));
        assert_eq!(read(Place::From(2), 3).bytes, b"234");
        assert_eq!(read(Place::From(8), 99).bytes, b"89");
        assert_eq!(read(Place::From(99), 99).bytes, b"");
        fs::rename(dir.path().join("log"), dir.path().join("log.1")).unwrap();
        fs::write(dir.path().join("log"), b"new").unwrap();
        let new = read(Place::From(0), 99);
        assert_eq!(new.bytes, b"new");
        assert_ne!(new.file, last.file);
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("other")).unwrap();
        assert_eq!(piece(dir.path(), "other", Place::Last, 9).unwrap().size, 0);
    }
}
