//! The mailbox between threads that block (the watcher, the reader of the spawner) and one consumer that must not: many
//! notices, one wake-up, none lost.
//!
//! A notice is a hint to look at something and never the message (F54). So equal ones are one, and when too many
//! different ones wait, they become one that says "look at everything". What must never be here: what a notice is about,
//! threads, timers, and any runtime. Nothing is depended on, so that loom can try every order of what happens.
//!
//! What holds, whichever way posters and the consumer meet:
//!
//! - a notice that [`Poster::post`] took is in exactly one of the drains that follow, or in what [`Mailbox::close`] gives
//!   back, by itself or as part of [`Notices::Everything`]; one that it did not take comes back to who posted it;
//! - a consumer that was told to wait is woken by the first notice, and by no other until it has waited again;
//! - [`Drained::Gone`] is said when no poster is left, and never before the last notice.
//!
//! ```
//! use outlive_mailbox::{Drained, Notice, Notices, mailbox};
//!
//! let (poster, mut mailbox) = mailbox(2);
//! poster.post(Notice::Of("job")).unwrap();
//! poster.post(Notice::Of("job")).unwrap();
//! assert_eq!(mailbox.take(), Notices::Of(["job"].into()));
//!
//! for third_is_too_many in ["a", "b", "c"] {
//!     poster.post(Notice::Of(third_is_too_many)).unwrap();
//! }
//! assert_eq!(mailbox.take(), Notices::Everything);
//!
//! poster.post(Notice::Of("late")).unwrap();
//! assert_eq!(mailbox.close(), Notices::Of(["late"].into()));
//! assert_eq!(poster.post(Notice::Of("later")).unwrap_err().0, Notice::Of("later"));
//! ```

#![forbid(unsafe_code)]

mod consume;
mod notice;
mod post;
mod shared;
mod sync;

pub use consume::{Drained, Mailbox, Next};
pub use notice::{Notice, Notices};
pub use post::{Closed, Poster};

/// An empty mailbox and its first poster. When more than `limit` different notices wait, they become "everything"; with
/// a limit of 0 every notice does.
pub fn mailbox<K: Ord>(limit: usize) -> (Poster<K>, Mailbox<K>) {
    let shared = sync::Arc::new(shared::Shared::new(limit));
    (Poster::first(shared.clone()), Mailbox::new(shared))
}
