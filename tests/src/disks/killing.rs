//! A disk that kills its process. For a process that was started to be killed.

use std::path::Path;

use super::effect::Wanted;
use super::{Meddler, Verdict, half};

/// Lets effects pass until the chosen one, and then ends the process as SIGKILL does.
#[derive(Debug)]
pub struct Killing {
    at: usize,
    half_way: bool,
    passed: usize,
}

impl Killing {
    /// Kill before the effect number `at`, from 0; or, `half_way`, in the middle of it, where it has one.
    pub fn new(at: usize, half_way: bool) -> Killing {
        Killing {
            at,
            half_way,
            passed: 0,
        }
    }
}

impl Meddler for Killing {
    fn meddle(&mut self, root: &Path, wanted: &Wanted<'_>) -> Verdict {
        if self.passed == self.at {
            if self.half_way {
                half(root, wanted);
            }
            let _ = rustix::process::kill_process(
                rustix::process::getpid(),
                rustix::process::Signal::KILL,
            );
            // SIGKILL is on its way to every thread; nothing more may happen on the disk.
            loop {
                std::thread::park();
            }
        }
        self.passed += 1;
        Verdict::Pass
    }
}
