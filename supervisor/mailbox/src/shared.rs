//! What posters and the consumer share, and the one lock in front of it.

use std::task::Waker;

use crate::notice::Notices;
use crate::sync::{Mutex, MutexGuard};

/// What is behind the lock.
pub(crate) struct State<K> {
    /// What the next drain takes.
    pub(crate) waiting: Notices<K>,
    /// How many posters there are. It never grows again from 0.
    pub(crate) posters: usize,
    /// The consumer wants nothing more. Then nothing waits.
    pub(crate) closed: bool,
    /// The consumer, asleep. There only while nothing waits and a poster is left: whoever ends either of the two takes
    /// it out, and so there is one call per sleep.
    pub(crate) sleeper: Option<Waker>,
}

/// The state and its lock.
pub(crate) struct Shared<K> {
    state: Mutex<State<K>>,
    /// How many different notices may wait.
    pub(crate) limit: usize,
}

impl<K> Shared<K> {
    /// Empty, with one poster.
    pub(crate) fn new(limit: usize) -> Shared<K> {
        Shared {
            state: Mutex::new(State {
                waiting: Notices::NONE,
                posters: 1,
                closed: false,
                sleeper: None,
            }),
            limit,
        }
    }

    /// The state. A comparison of keys that has panicked leaves a heap that is whole, so the lock is not given up for it.
    ///
    /// Nothing is woken and no waker dropped while it is held: that is foreign code, which may come back here.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
