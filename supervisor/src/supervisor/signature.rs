//! Who says to have the supervisor's lock: written into its file, for people. The one thing that hangs on it is how long a lock is waited
//! for whose supervisor is gone: it is held yet by what that one was executing when it was killed (F8), or until the kernel is done with it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::process;
use crate::store::Store;

/// How long that may take. What was about to be executed is executed within milliseconds, more where the machine is loaded.
const LINGERS: Duration = Duration::from_secs(2);
/// How long is waited in between.
const ASKED_EVERY: Duration = Duration::from_millis(5);

/// Write down who has the lock.
pub(super) fn sign(store: &Store) {
    let (pid, namespace) = (std::process::id(), own_namespace().unwrap_or_default());
    if let Err(error) = std::fs::write(path(store), format!("{pid} {namespace}\n")) {
        tracing::debug!(%error, "the lock is not signed");
    }
}

/// The process that says to have the lock, as it is numbered where it is.
pub(crate) fn holder(store: &Store) -> Option<u32> {
    Some(read(store)?.0)
}

/// Whether that process is gone, or is about to be. One in another namespace cannot be seen from here, and counts as there.
pub(super) fn is_gone(store: &Store) -> bool {
    read(store).is_some_and(|(pid, namespace)| {
        own_namespace().is_some_and(|own| own == namespace) && process::is_gone(pid)
    })
}

/// A lock that was found held, and may be so by what is left of a supervisor only.
pub(super) struct Lingering<'a> {
    store: &'a Store,
    since: Instant,
}

impl Lingering<'_> {
    pub(super) fn of(store: &Store) -> Lingering<'_> {
        Lingering {
            store,
            since: Instant::now(),
        }
    }

    /// Wait a moment, where that is so. Whether to ask for the lock again.
    pub(super) fn is_waited_for(&self) -> bool {
        let lingers = is_gone(self.store) && self.since.elapsed() < LINGERS;
        if lingers {
            tracing::debug!("the supervisor is gone, and its lock is held yet");
            std::thread::sleep(ASKED_EVERY);
        }
        lingers
    }
}

fn read(store: &Store) -> Option<(u32, String)> {
    let signed = std::fs::read_to_string(path(store)).ok()?;
    let (pid, namespace) = signed.trim_end().split_once(' ').unwrap_or((&signed, ""));
    Some((pid.trim().parse().ok()?, namespace.to_owned()))
}

/// The namespace of process numbers that this process is in, as `pid:[4026531836]`.
fn own_namespace() -> Option<String> {
    let link = std::fs::read_link("/proc/self/ns/pid").ok()?;
    link.into_os_string().into_string().ok()
}

fn path(store: &Store) -> PathBuf {
    store.root().join("supervisor.lock")
}
