//! The body of an answer into its place in the file. Whatever has arrived is written before anything is made of how it ended.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

/// How much is read and written at once, in bytes.
const CHUNK: usize = 128 << 10;

/// How a body ended.
pub(super) enum Ended {
    /// As far as it was to be written, or by how it is framed.
    Well,
    /// The connection did.
    Cut(io::Error),
    /// The file could not be written.
    Unwritten(io::Error),
    /// Somebody said that it is enough.
    Enough,
}

/// Write the body from `at` on, `limit` bytes at most. Tells of every write; stops when it is told that it is enough.
pub(super) fn write(
    mut body: impl Read,
    file: &File,
    mut at: u64,
    limit: Option<u64>,
    mut written: impl FnMut(u64) -> bool,
) -> Ended {
    let mut chunk = vec![0; CHUNK];
    let mut left = limit.unwrap_or(u64::MAX);
    while left > 0 {
        let room = usize::try_from(left).map_or(CHUNK, |left| left.min(CHUNK));
        let read = match body.read(&mut chunk[..room]) {
            Ok(0) => return Ended::Well,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Ended::Cut(error),
        };
        if let Err(error) = file.write_all_at(&chunk[..read], at) {
            return Ended::Unwritten(error);
        }
        let read = read as u64;
        at += read;
        left -= read;
        if !written(read) {
            return Ended::Enough;
        }
    }
    Ended::Well
}
