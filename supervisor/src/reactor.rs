//! Hearing, within an async runtime, that a descriptor can be read. What it is and what is read from it is its owner's.

use std::os::fd::AsRawFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Hear when there is something to read. Only within a tokio runtime that drives descriptors.
///
/// # Errors
///
/// The descriptor cannot be waited for, or the process has none left.
#[expect(
    deprecated,
    reason = "what replaces it is unsafe, for descriptors that change under it; these are owned and stay the same"
)]
pub(crate) fn readable<T: AsRawFd>(fd: T) -> std::io::Result<AsyncFd<T>> {
    AsyncFd::with_interest(fd, Interest::READABLE)
}
