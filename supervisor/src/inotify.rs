//! One inotify instance: watches on directories, and what it tells of them.
//!
//! Only the calls and the mask are here; [`crate::watch`] waits with it for one command, and
//! [`crate::watcher`] hears of all jobs. What must never be here: what is in the directories, and what to do when the machine has no watch left (F52).

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, Event, Reader, WatchFlags};
use rustix::io::Errno;

/// Which changes are told of.
///
/// Opening and closing a file for reading never is: whoever is woken reads, and would wake itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    /// Records replaced, files created, removed or renamed, and the last close of a file that was
    /// open for writing (a dying worker closes its lock so). A job that prints does not wake.
    Records,
    /// All of that, and every write and truncation.
    Output,
}

/// Room for what one call brings: 2,000 events without a name, a hundred with the longest.
pub(crate) type Buffer = [MaybeUninit<u8>; 32 << 10];

/// An instance.
#[derive(Debug)]
pub(crate) struct Instance(OwnedFd);

impl Instance {
    /// A new one, which watches nothing.
    ///
    /// # Errors
    /// The user has no instance left (`EMFILE`, F52), or the process no descriptor.
    pub(crate) fn new() -> io::Result<Instance> {
        Ok(Instance(inotify::init(
            CreateFlags::CLOEXEC | CreateFlags::NONBLOCK,
        )?))
    }

    /// Watches the directory at `path`, which may not be a symbolic link, and gives the number of the watch: the one it
    /// has already, if it is watched.
    ///
    /// # Errors
    /// There is no such directory, or the user has no watch left (`ENOSPC`, F52).
    pub(crate) fn add(&self, path: &Path, interest: Interest) -> Result<i32, Errno> {
        inotify::add_watch(&self.0, path, interest.mask())
    }

    /// Ends a watch. One that the kernel has ended already is no matter.
    pub(crate) fn remove(&self, watch: i32) {
        let _ = inotify::remove_watch(&self.0, watch);
    }

    /// Takes one bufferful of events off the queue and shows each of them. What is left over is still there to be polled
    /// for; where nothing is, nothing is shown.
    ///
    /// # Errors
    /// The kernel cannot read the queue, which is not expected to happen.
    pub(crate) fn read(
        &self,
        buffer: &mut Buffer,
        mut show: impl FnMut(&Event<'_>),
    ) -> io::Result<()> {
        let mut reader = Reader::new(&self.0, buffer);
        loop {
            match reader.next() {
                Ok(event) => show(&event),
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                Err(errno) => return Err(errno.into()),
            }
            if reader.is_buffer_empty() {
                return Ok(());
            }
        }
    }
}

impl AsFd for Instance {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Instance {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl Interest {
    fn mask(self) -> WatchFlags {
        let records = WatchFlags::MOVED_TO
            | WatchFlags::MOVED_FROM
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::MOVE_SELF
            | WatchFlags::DELETE_SELF
            | WatchFlags::ONLYDIR
            | WatchFlags::DONT_FOLLOW;
        match self {
            Interest::Records => records,
            Interest::Output => records | WatchFlags::MODIFY,
        }
    }
}
