//! How often a request is made again, and after which wait. What gets on is worth another try; what does not is left to the
//! worker, which waits longer, and whose waits survive everything.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// So many failures with nothing fetched between them are enough.
const FAILURES: u32 = 5;
/// The longest wait after the first failure, and after any, in ms.
const FIRST_MS: u64 = 200;
const LONGEST_MS: u64 = 5_000;

/// The patience of everybody who fetches for one job.
#[derive(Default)]
pub(super) struct Patience(Mutex<Lost>);

/// What was lost of it.
#[derive(Default)]
struct Lost {
    failures: u32,
    furthest_bytes: u64,
}

impl Patience {
    /// A request has failed, and so many bytes are here in all. How long to wait before it is made again, with
    /// full jitter; `None` when that makes no sense any more.
    pub(super) fn after_failure(&self, done_bytes: u64) -> Option<Duration> {
        let mut lost = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Bytes that are discarded and fetched again are no way further.
        if done_bytes > lost.furthest_bytes {
            lost.failures = 0;
            lost.furthest_bytes = done_bytes;
        }
        lost.failures += 1;
        if lost.failures > FAILURES {
            return None;
        }
        let ceiling = (FIRST_MS << (lost.failures - 1)).min(LONGEST_MS);
        let random = RandomState::new().build_hasher().finish();
        Some(Duration::from_millis(random % (ceiling + 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_only_where_nothing_moves() {
        let patience = Patience::default();
        for fetched in 1..100 {
            assert!(patience.after_failure(fetched).is_some());
        }
        let waits: Vec<_> = (0..FAILURES).map(|_| patience.after_failure(99)).collect();
        assert_eq!(waits.iter().filter(|it| it.is_some()).count(), 4);
        assert!(waits.iter().flatten().all(|it| it.as_millis() <= 5_000));
        assert!(patience.after_failure(100).is_some());
    }
}
