//! Which jobs of the store may have changed: one inotify instance on a thread of its own, which throws notices into a mailbox.
//!
//! A notice is a hint to look and never the message (F54). Where something is not watched, because the machine has no instance
//! or no watch left (F52), the watcher is blind for it: it says so once, tells everybody to look every two seconds, and
//! tries again each time. Where events were lost (F53), it tells everybody to look. What must never be here: a record, a lock,
//! and any decision about a job.
//!
//! ```text
//! actors ──watch, forget──▶ book ◀──hears── thread ──notices──▶ mailbox ──▶ an actor
//! ```

mod book;
mod listen;
#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use outlive_mailbox::Poster;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use state_machine::id::{JobId, PoolName};

use book::Book;

/// What may have changed. "Everything may have" is the mailbox's own word.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Changed {
    /// An entry of the directory of jobs that is no job has come or gone, or that directory itself.
    Jobs,
    /// This job has come or gone, or something in its directory: a record was renamed into place, a request made, a lock
    /// closed by a worker that has ended.
    Job(JobId),
    /// This job, which is not watched, has gone: it was forgotten once it had ended. There is nothing to look at.
    Forgotten(JobId),
    /// A pool has come or gone.
    Pools,
    /// What somebody made of this pool.
    Pool(PoolName),
    /// Somebody has taken or left this slot, or written its record.
    Slot(PoolName, u32),
}

/// The watcher of one store. Dropped, it ends its thread, and with it the poster.
#[derive(Debug)]
pub(crate) struct Watcher {
    shared: Arc<Shared>,
    /// There until it is dropped.
    thread: Option<JoinHandle<()>>,
}

/// What the thread and those who command it share.
#[derive(Debug)]
struct Shared {
    book: Mutex<Book>,
    /// An eventfd that gets the thread out of its sleep: to end, or to begin with looking on a timer.
    bell: OwnedFd,
    end: AtomicBool,
}

impl Watcher {
    /// Begins to watch `jobs`, the directory of the jobs of a store, and no job yet. The thread ends when the mailbox is
    /// closed and there is something to post, or when this is dropped; if the kernel cannot poll, it ends too, and the mailbox
    /// says that nobody is left.
    ///
    /// # Errors
    /// There is no descriptor or no thread to be had. That there is no inotify is no error.
    pub(crate) fn start(jobs: &Path, poster: Poster<Changed>) -> io::Result<Watcher> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let shared = Arc::new(Shared {
            book: Mutex::new(Book::new(jobs)),
            bell,
            end: AtomicBool::new(false),
        });
        let thread = thread::Builder::new()
            .name("outlive-watcher".to_owned())
            .spawn({
                let shared = shared.clone();
                move || listen::listen(&shared, &poster)
            })?;
        Ok(Watcher {
            shared,
            thread: Some(thread),
        })
    }

    /// Tells of changes of this job from now on. Look at it *after* this, so that nothing falls in between. A job that is
    /// not there is not watched; when it comes, it is posted all the same. Does not wait for the thread.
    pub(crate) fn watch(&self, id: &JobId) {
        let first_unseen = {
            let mut book = self.shared.book();
            let was_blind = book.is_blind();
            book.watch(&Changed::Job(id.clone()));
            book.is_blind() && !was_blind
        };
        if first_unseen {
            self.shared.ring();
        }
    }

    /// Tells of changes of the pools, whose directories are in `pools`.
    pub(crate) fn watch_pools(&self, pools: &Path) {
        let mut book = self.shared.book();
        book.watch_pools(pools);
        if book.is_blind() {
            drop(book);
            self.shared.ring();
        }
    }

    /// Tells of changes of these slots from now on. Look at them *after* this.
    pub(crate) fn watch_slots(&self, pool: &PoolName, numbers: &[u32]) {
        let mut book = self.shared.book();
        for &number in numbers {
            book.watch(&Changed::Slot(pool.clone(), number));
        }
        if book.is_blind() {
            drop(book);
            self.shared.ring();
        }
    }

    /// Tells no more of the slots of this pool.
    pub(crate) fn forget_slots(&self, pool: &PoolName) {
        self.shared.book().forget_slots(pool);
    }

    /// Tells no more of this job, but for what is on its way. Does not wait for the thread.
    pub(crate) fn forget(&self, id: &JobId) {
        self.shared.book().forget(&Changed::Job(id.clone()));
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.shared.end.store(true, Ordering::SeqCst);
        self.shared.ring();
        if let Some(thread) = self.thread.take() {
            // A thread that has panicked has said so, and has dropped its poster.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// The book. Nothing is posted while it is open: whoever is woken may come and write in it.
    fn book(&self) -> MutexGuard<'_, Book> {
        // A panic half way leaves a job without a watch at the worst, and is no reason for another one.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self) {
        // It fails only when it has been rung 2^64 - 1 times and not heard: then it rings already.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    fn silence(&self) {
        // Nothing to read: it was not rung.
        let _ = rustix::io::read(&self.bell, &mut [0u8; 8]);
    }
}
