//! The posters' side: any number of threads, which never wait for the consumer.

use std::error::Error;
use std::fmt;

use crate::notice::Notice;
use crate::shared::Shared;
use crate::sync::Arc;

/// Puts notices into a mailbox. When the last one is dropped, the consumer is woken and hears [`crate::Drained::Gone`].
pub struct Poster<K> {
    shared: Arc<Shared<K>>,
}

/// The consumer has closed the mailbox. The notice was not taken, and this is it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed<K>(pub Notice<K>);

impl<K> Poster<K> {
    /// The one that a new mailbox counts.
    pub(crate) fn first(shared: Arc<Shared<K>>) -> Poster<K> {
        Poster { shared }
    }
}

impl<K: Ord> Poster<K> {
    /// Throws a notice in, and wakes the consumer if it sleeps. What wakes it is called in this thread.
    ///
    /// # Errors
    /// The mailbox is closed. The notice is in the error.
    pub fn post(&self, notice: Notice<K>) -> Result<(), Closed<K>> {
        let sleeper = {
            let mut state = self.shared.lock();
            if state.closed {
                return Err(Closed(notice));
            }
            if cfg!(all(loom, mutant = "asks_before_it_posts")) {
                drop(state);
                state = self.shared.lock();
            }
            state.waiting.add(notice, self.shared.limit);
            state.sleeper.take()
        };
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
        Ok(())
    }
}

impl<K> Clone for Poster<K> {
    fn clone(&self) -> Poster<K> {
        self.shared.lock().posters += 1;
        Poster {
            shared: self.shared.clone(),
        }
    }
}

impl<K> Drop for Poster<K> {
    fn drop(&mut self) {
        let sleeper = {
            let mut state = self.shared.lock();
            state.posters -= 1;
            let last = state.posters == 0 && !cfg!(all(loom, mutant = "leaves_quietly"));
            if last { state.sleeper.take() } else { None }
        };
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
    }
}

impl<K> fmt::Debug for Poster<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poster").finish_non_exhaustive()
    }
}

impl<K> fmt::Display for Closed<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the mailbox is closed")
    }
}

impl<K: fmt::Debug> Error for Closed<K> {}
