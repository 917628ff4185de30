//! A value that many states share: cloned by counting, hashed once. States are cloned and hashed hundreds of
//! thousands of times a second, and most of what they hold does not change from one to the next.
//!
//! The hash is the value's own, kept beside it; nothing is ever left out of it, or states would be merged.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// A shared value with its hash.
pub struct Shared<T> {
    value: Arc<T>,
    hash: u64,
}

/// The hash of a value, the same in every run.
pub(crate) fn hash_of<T: Hash>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl<T: Hash> Shared<T> {
    /// Share a value.
    pub fn new(value: T) -> Shared<T> {
        Shared {
            hash: hash_of(&value),
            value: Arc::new(value),
        }
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Shared {
            value: Arc::clone(&self.value),
            hash: self.hash,
        }
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Hash for Shared<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.value, &other.value)
            || self.hash == other.hash && self.value == other.value
    }
}

impl<T: Eq> Eq for Shared<T> {}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}
