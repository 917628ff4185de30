//! The consumer's side: one task, which sleeps while there is nothing.

use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::notice::Notices;
use crate::shared::{Shared, State};
use crate::sync::Arc;

/// Takes notices out. There is one for each mailbox: two would wake each other's task.
///
/// Dropping it closes the mailbox and forgets what waits; [`Mailbox::close`] gives it back instead.
pub struct Mailbox<K> {
    shared: Arc<Shared<K>>,
}

/// What a consumer wakes up to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drained<K> {
    /// All that waited; never nothing.
    Notices(Notices<K>),
    /// No poster is left, so that nothing will ever come. It is said again whenever it is asked.
    Gone,
}

/// The future of [`Mailbox::next`]. It may be dropped at any time: a notice is taken only as it is handed over.
#[derive(Debug)]
#[must_use = "a future does nothing until it is awaited"]
pub struct Next<'a, K> {
    mailbox: &'a mut Mailbox<K>,
}

impl<K> Mailbox<K> {
    /// The only one of `shared`.
    pub(crate) fn new(shared: Arc<Shared<K>>) -> Mailbox<K> {
        Mailbox { shared }
    }

    /// All that waits, at once; nothing, if nothing does.
    pub fn take(&mut self) -> Notices<K> {
        take_from(&mut self.shared.lock())
    }

    /// Waits until there is something, or nobody who could still post.
    #[expect(
        clippy::should_implement_trait,
        reason = "it waits, which an iterator must not"
    )]
    pub fn next(&mut self) -> Next<'_, K> {
        Next { mailbox: self }
    }

    /// [`Mailbox::next`] for those who write their futures themselves. The waker of the last call is the one that is
    /// called.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Drained<K>> {
        let mut state = self.shared.lock();
        if let Some(drained) = drain(&mut state) {
            return Poll::Ready(drained);
        }
        if cfg!(all(loom, mutant = "looks_then_sleeps")) {
            drop(state);
            state = self.shared.lock();
        }
        let before = sleep(&mut state, context.waker());
        drop(state);
        drop(before);
        Poll::Pending
    }

    /// Wants nothing more. What waits is given back, and everything that is posted from now on goes back to its poster.
    pub fn close(self) -> Notices<K> {
        self.shut()
    }

    /// Closes, once or twice.
    fn shut(&self) -> Notices<K> {
        let mut state = self.shared.lock();
        state.closed = true;
        let sleeper = state.sleeper.take();
        let waiting = take_from(&mut state);
        drop(state);
        drop(sleeper);
        waiting
    }
}

/// What there is to hand over, if there is anything.
fn drain<K>(state: &mut State<K>) -> Option<Drained<K>> {
    if !state.waiting.is_empty() {
        Some(Drained::Notices(take_from(state)))
    } else if state.posters == 0 {
        Some(Drained::Gone)
    } else {
        None
    }
}

fn take_from<K>(state: &mut State<K>) -> Notices<K> {
    mem::replace(&mut state.waiting, Notices::NONE)
}

/// Notes whom to wake. The one from before is returned, to be dropped where the lock is not held.
#[must_use]
fn sleep<K>(state: &mut State<K>, waker: &Waker) -> Option<Waker> {
    match &state.sleeper {
        Some(_) if cfg!(all(loom, mutant = "keeps_the_first_waker")) => None,
        Some(before) if before.will_wake(waker) => None,
        _ => state.sleeper.replace(waker.clone()),
    }
}

impl<K> Future for Next<'_, K> {
    type Output = Drained<K>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Drained<K>> {
        self.mailbox.poll_next(context)
    }
}

impl<K> Drop for Mailbox<K> {
    fn drop(&mut self) {
        self.shut();
    }
}

impl<K> fmt::Debug for Mailbox<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox").finish_non_exhaustive()
    }
}
