//! The two things that are shared between threads here: those of the standard library, or those that loom watches.
//! Nothing else in this crate may name either.

#[cfg(loom)]
pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use std::sync::{Arc, Mutex, MutexGuard};
