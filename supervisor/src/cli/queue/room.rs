//! Room for many locks at once, each of which is a descriptor.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What this process needs beside the locks: its streams, the file that it reads, directories on their way.
const OTHERS: u64 = 64;

/// The limit of open files, raised as far as that is allowed until this is dropped: whoever is started later is to have the
/// limit that we were given.
pub(super) struct Room {
    given: Rlimit,
    most: u64,
}

impl Room {
    pub(super) fn make() -> Room {
        let given = getrlimit(Resource::Nofile);
        let raised = Rlimit {
            current: given.maximum,
            maximum: given.maximum,
        };
        let most = match setrlimit(Resource::Nofile, raised) {
            Ok(()) => given.maximum,
            Err(_) => given.current,
        };
        Room {
            given,
            most: most.unwrap_or(u64::MAX),
        }
    }

    /// How many locks there is room for.
    pub(super) fn locks(&self) -> usize {
        usize::try_from(self.most.saturating_sub(OTHERS)).unwrap_or(usize::MAX)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // It was allowed a moment ago.
        let _ = setrlimit(Resource::Nofile, self.given);
    }
}
