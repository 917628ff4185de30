//! A worker that is made before its job can be seen, so that it sets itself up and prepares the command while the
//! creation waits for the disk. It stands in the job's directory, which is renamed under it, and goes on when its maker
//! says that the job is published. Until then it records nothing and runs nothing; told nothing, it leaves.

use std::io::{BufRead, BufReader, Read};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::fs::{CWD, Mode, OFlags, openat};
use state_machine::id::JobId;
use state_machine::protocol::create::Described;
use state_machine::protocol::hold::newborn;
use state_machine::record::{Descriptor, Kind};

use super::launch::{Launched, Place, Report, Terms, become_worker};
use crate::disk::LockFile;
use crate::store::{Held, Store};
use crate::sys::{self, Forked};

/// A worker that waits for its job.
pub(crate) struct Early {
    id: JobId,
    channel: UnixStream,
}

impl Early {
    /// Fork one for a job that is being made. `None` where it cannot be had, or is not worth it: then one is made when the
    /// job is.
    pub(crate) fn fork(store: &Store, job: &Described<'_, LockFile>) -> Option<Early> {
        if !is_simple(job.descriptor) {
            return None;
        }
        let path = store.disk().dir(job.dir);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir: OwnedFd = openat(CWD, &path, flags, Mode::empty()).ok()?;
        let lock = job.lock.share().ok()?;
        let (ours, theirs) = UnixStream::pair().ok()?;
        match sys::fork().ok()? {
            Forked::Parent(_) => Some(Early {
                id: job.descriptor.id.clone(),
                channel: ours,
            }),
            Forked::Child => {
                let _bomb = sys::NeverUnwind;
                drop(ours);
                let descriptor = job.descriptor.clone();
                let held = Held {
                    holder: newborn(descriptor.id.clone(), lock, descriptor.created_at_ms),
                    descriptor,
                };
                let job = store.job(held.holder.id());
                become_worker(
                    &job,
                    held,
                    Report::to(theirs),
                    Place::Staged(dir),
                    Terms::ALONE,
                )
            }
        }
    }

    /// Whether it was made for the job of this id.
    pub(crate) fn is_for(&self, id: &JobId) -> bool {
        self.id == *id
    }

    /// Let it go on: its job can be seen, and survives a loss of power.
    pub(crate) fn publish(self) -> Launched {
        // One that is gone is found out when its word is waited for.
        let _ = sys::send(self.channel.as_fd(), PUBLISHED);
        Launched::hearing(self.channel)
    }

    /// Let it leave, and see it gone with all that it has prepared.
    pub(crate) fn dismiss(mut self) {
        // Both fail only where it is gone already.
        let _ = self.channel.shutdown(Shutdown::Write);
        let _ = self.channel.read_to_end(&mut Vec::new());
    }
}

/// What its maker says.
const PUBLISHED: &[u8] = b"published\n";

/// Wait for the word that the job is published. `false` when it is not to come.
pub(super) fn hears_of_publication(channel: &UnixStream) -> bool {
    let mut word = Vec::with_capacity(PUBLISHED.len());
    let read = BufReader::with_capacity(16, channel).read_until(b'\n', &mut word);
    read.is_ok() && word == PUBLISHED
}

/// Whether the command can be prepared where the job's directory is not in its place yet: files that are rotated are known
/// by their paths.
fn is_simple(descriptor: &Descriptor) -> bool {
    descriptor.output.max_bytes.is_none() && matches!(descriptor.kind, Kind::Command(_))
}
