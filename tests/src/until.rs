//! Waiting for a condition, with a deadline. The short pause between two looks only spares the machine; nothing rests
//! on its length.

use std::time::{Duration, Instant};

/// How long anything may take. Generous: the machine may be busy with much else.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Wait until `look` finds something.
///
/// # Panics
///
/// After [`DEADLINE`], naming what was waited for.
#[track_caller]
pub fn until_some<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + DEADLINE;
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(
            Instant::now() < deadline,
            "waited {DEADLINE:?} in vain: {what}"
        );
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Wait until `look` says so.
///
/// # Panics
///
/// As [`until_some`].
#[track_caller]
pub fn until(what: &str, mut look: impl FnMut() -> bool) {
    until_some(what, || look().then_some(()));
}
