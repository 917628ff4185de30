//! The file side of a carrier: where bytes are kept, or dropped and counted, but never waited with.
//!
//! The place is looked at before each piece is written (one `stat` by name), since anybody may have
//! removed, moved, replaced or truncated the file meanwhile. Writing in append mode makes a
//! truncation harmless: there is no offset of our own that could go stale between the look and the
//! write.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::open::{FileId, id_of, open_append};
use super::rotate::rotate;

/// How long bytes are dropped without another try after a failure. A full disk may take
/// milliseconds to say no, and the job must not feel that.
const BARRED: Duration = Duration::from_millis(50);

/// A file of at most `limit` bytes and up to `keep` older ones like it.
#[derive(Debug)]
pub(super) struct Sink {
    dir: OwnedFd,
    name: String,
    /// Bytes; at least 1.
    limit: u64,
    keep: u32,
    /// The current file. `None` until it could be opened.
    file: Option<Current>,
    /// Bytes that were taken and that nobody can read: dropped unwritten, or deleted with the
    /// oldest file.
    dropped: u64,
    /// Set by a failure: nothing is tried before then.
    barred_until: Option<Instant>,
}

#[derive(Debug)]
struct Current {
    fd: OwnedFd,
    id: FileId,
}

impl Sink {
    pub(super) fn new(dir: OwnedFd, name: &str, limit: u64, keep: u32) -> Sink {
        let name = name.to_owned();
        let limit = limit.max(1);
        let mut sink = Sink {
            dir,
            name,
            limit,
            keep,
            file: None,
            dropped: 0,
            barred_until: None,
        };
        // The file is there from the start, for those who look for it; where it cannot be, the
        // first bytes try again.
        let _ = sink.reopen();
        sink
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Keeps `bytes`, or drops what cannot be kept now.
    pub(super) fn put(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() && !self.is_barred() {
            match self.write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(_) => self.barred_until = Some(Instant::now() + BARRED),
            }
        }
        self.dropped += rest.len() as u64;
    }

    fn is_barred(&mut self) -> bool {
        match self.barred_until {
            Some(until) if Instant::now() < until => true,
            Some(_) => {
                self.barred_until = None;
                false
            }
            None => false,
        }
    }

    /// Writes as much as the current file may take: at least one byte, or an error.
    fn write(&mut self, bytes: &[u8]) -> rustix::io::Result<usize> {
        let mut size = match self.size_in_place() {
            Some(size) => size,
            None => self.reopen()?,
        };
        if size >= self.limit {
            let fd = rotate(self.dir.as_fd(), &self.name, self.keep, &mut self.dropped)?;
            size = self.adopt(fd)?;
        }
        let Some(current) = &self.file else {
            return Err(Errno::BADF);
        };
        let room = self.limit.saturating_sub(size).min(bytes.len() as u64) as usize;
        match rustix::io::retry_on_intr(|| rustix::io::write(&current.fd, &bytes[..room]))? {
            0 => Err(Errno::NOSPC),
            written => Ok(written),
        }
    }

    /// The size of the current file if it is still the one at its place.
    fn size_in_place(&self) -> Option<u64> {
        let current = self.file.as_ref()?;
        let stat = rustix::fs::statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        (id_of(&stat) == current.id).then_some(stat.st_size.unsigned_abs())
    }

    fn reopen(&mut self) -> rustix::io::Result<u64> {
        self.file = None;
        let fd = open_append(self.dir.as_fd(), &self.name)?;
        self.adopt(fd)
    }

    fn adopt(&mut self, fd: OwnedFd) -> rustix::io::Result<u64> {
        let stat = rustix::fs::fstat(&fd)?;
        self.file = Some(Current {
            fd,
            id: id_of(&stat),
        });
        Ok(stat.st_size.unsigned_abs())
    }
}
