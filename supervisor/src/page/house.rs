//! What is so now in the store, and who is to be told of what changes: names of jobs, and never what is in them. Whoever is slow finds out what
//! is so when he can take more; what was so in between he never hears. One thread has all of this.

use std::cell::{Cell, Ref, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::task::Waker;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use state_machine::id::JobId;
use tokio::sync::Semaphore;

use super::front::Front;
use super::secret::Secret;
use crate::error::{DiskError, Result};
use crate::live::{Changes, Live};
use crate::reactor;
use crate::store::Store;

/// How many may be told of changes at a time.
const LISTENERS: usize = 64;
/// How many changes of jobs may be under way at a time.
const UNDER_WAY: usize = 8;
/// How many more names than there are jobs are kept for one who does not read, before he begins again.
const SURPLUS: usize = 1024;

/// What everybody who asks is answered from.
#[derive(Debug)]
pub(crate) struct House {
    pub(super) store: Store,
    pub(super) front: Front,
    /// What those must know who may change something; nobody may where there is none.
    pub(super) secret: Option<Secret>,
    /// Room for changes.
    pub(super) changing: Arc<Semaphore>,
    live: RefCell<Live>,
    /// Readable when there is something to hear.
    ear: OwnedFd,
    listeners: RefCell<BTreeMap<u64, Listener>>,
    next: Cell<u64>,
}

/// What one who is told of changes has not been told yet.
#[derive(Debug, Default)]
pub(super) struct Listener {
    /// Everything: what he knows is to be forgotten.
    pub(super) anew: bool,
    /// He has not been told of every job yet.
    pub(super) incomplete: bool,
    /// These jobs have changed, come or gone.
    pub(super) jobs: BTreeSet<JobId>,
    /// Pools have.
    pub(super) pools: bool,
    /// What cannot be read has.
    pub(super) damaged: bool,
    /// Whose output he follows.
    pub(super) follows: Option<JobId>,
    /// There is more of it.
    pub(super) printed: bool,
    /// Who is to be woken.
    pub(super) waker: Option<Waker>,
}

impl Listener {
    /// To be told everything.
    pub(super) fn begin_anew(&mut self, live: &Live) {
        self.anew = true;
        self.incomplete = true;
        self.pools = true;
        self.damaged = true;
        self.printed = self.follows.is_some();
        self.jobs = live.jobs().map(|view| view.descriptor.id.clone()).collect();
    }

    fn take_down(&mut self, changes: &Changes, live: &Live) {
        self.jobs.extend(changes.jobs.iter().cloned());
        self.pools |= changes.pools || !changes.jobs.is_empty();
        self.damaged |= changes.damaged;
        let follows = self.follows.as_ref();
        self.printed |= follows.is_some_and(|job| {
            // What it was about to print when it ended is there now, too.
            changes.output.contains(job) || changes.jobs.contains(job)
        });
        if self.jobs.len() > live.jobs().count() + SURPLUS {
            self.begin_anew(live);
        }
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl House {
    /// What is so now in this store.
    ///
    /// # Errors
    ///
    /// As [`Live::open`].
    pub(crate) fn open(store: Store, secret: Option<Secret>) -> Result<House> {
        let live = Live::open(&store)?;
        let ear = live
            .as_fd()
            .try_clone_to_owned()
            .map_err(|error| DiskError::new("watch", store.root(), error))?;
        Ok(House {
            front: Front::new(),
            secret,
            changing: Arc::new(Semaphore::new(UNDER_WAY)),
            live: RefCell::new(live),
            ear,
            listeners: RefCell::default(),
            next: Cell::new(1),
            store,
        })
    }

    /// What is so now.
    pub(super) fn live(&self) -> Ref<'_, Live> {
        self.live.borrow()
    }

    /// Hear of changes and pass them on, for good. Within a runtime.
    ///
    /// # Errors
    ///
    /// The descriptor cannot be waited for.
    pub(super) async fn listen(&self) -> io::Result<()> {
        let ear = reactor::readable(self.ear.try_clone()?)?;
        loop {
            let mut ready = ear.readable().await?;
            self.update();
            // What is told only once is asked for before it is waited for.
            if !is_readable(&self.ear) {
                ready.clear_ready();
            }
            drop(ready);
            tokio::task::yield_now().await;
        }
    }

    fn update(&self) {
        let mut live = self.live.borrow_mut();
        let changes = match live.update() {
            Ok(changes) => changes,
            Err(error) => {
                // The next call tries again, and what is known stays.
                tracing::warn!(%error, "the store cannot be looked at");
                return;
            }
        };
        if changes.is_nothing() {
            return;
        }
        for listener in self.listeners.borrow_mut().values_mut() {
            listener.take_down(&changes, &live);
        }
    }

    /// Somebody more is to be told; his number. Nothing where there are too many already.
    pub(super) fn admit(&self) -> Option<u64> {
        let mut listeners = self.listeners.borrow_mut();
        if listeners.len() >= LISTENERS {
            return None;
        }
        let number = self.next.get();
        self.next.set(number + 1);
        let mut listener = Listener::default();
        listener.begin_anew(&self.live());
        listeners.insert(number, listener);
        Some(number)
    }

    /// One is not to be told any more.
    pub(super) fn dismiss(&self, number: u64) {
        let listener = self.listeners.borrow_mut().remove(&number);
        self.unfollow(listener.and_then(|listener| listener.follows));
    }

    /// Look after one of them.
    pub(super) fn with<T>(&self, number: u64, look: impl FnOnce(&mut Listener) -> T) -> Option<T> {
        self.listeners.borrow_mut().get_mut(&number).map(look)
    }

    /// Tell one of the output of this job from now on, and of no other. Whether there is such a listener.
    pub(super) fn follow(&self, number: u64, job: Option<JobId>) -> bool {
        if let Some(job) = &job {
            self.live.borrow_mut().follow(job);
        }
        let before = self.with(number, |listener| {
            listener.printed = job.is_some();
            if let Some(waker) = listener.waker.take() {
                waker.wake();
            }
            std::mem::replace(&mut listener.follows, job.clone())
        });
        let is_there = before.is_some();
        self.unfollow(if is_there { before.flatten() } else { job });
        is_there
    }

    /// Nothing is heard of what nobody follows any more.
    fn unfollow(&self, job: Option<JobId>) {
        let Some(job) = job else { return };
        let listeners = self.listeners.borrow();
        let is_followed = listeners
            .values()
            .any(|listener| listener.follows.as_ref() == Some(&job));
        if !is_followed {
            self.live.borrow_mut().unfollow(&job);
        }
    }
}

fn is_readable(fd: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}
