//! The supervisor's actors. Each is a thin shell: it carries messages, runs what blocks on a thread for that, and lets the
//! pure cores of the crate `state_machine` decide (`supervise`, `dependency`, `schedule`, `retention`). None of them is
//! the truth about anything: killed at any instruction, the next supervisor reads what is true from the disk and the
//! locks (R20).
//!
//! | actor | how many | what it owns |
//! |---|---|---|
//! | [`root`] | one | the lock of the supervisor, who else there is, coming and going |
//! | [`job`] | one per unfinished job | what was last seen of the job, and what it waits for |
//! | [`pool`] | one per pool | who waits for the pool and who is inside |
//! | [`slot`] | one per slot | which job is in the slot, and having it started |
//! | [`starts`] | one | the spawner |
//! | [`sweeper`] | one | when to sweep |
//! | [`keeper`] | one | when to shed and to maintain slots |
//! | [`clock`] | one | being told that the wall clock was set |
//!
//! What must never be here: a rule about jobs, a file that is read or written but through the store, a wait that blocks the
//! thread of the actors.

mod clock;
mod job;
mod keeper;
mod pool;
mod root;
mod slot;
mod starts;
mod subscribers;
mod sweeper;

pub(crate) use root::{Drain, Reload, Shutdown, Status, StatusOf};
pub(crate) use root::{Root, Settings};
pub(crate) use subscribers::Subscribe;

use std::time::Duration;

use tokio::sync::Semaphore;

/// How many threads look and write at a time. More are only for what takes its time.
static QUICK: Semaphore = Semaphore::const_new(4);

/// Run what blocks for a moment on a thread for that.
async fn off<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    // It is never closed.
    let _turn = QUICK.acquire().await;
    off_long(work).await
}

/// As [`off`], for what may take as long as processes take to end: it keeps nobody else waiting.
///
/// What panics there is a fault in the program, and ends the supervisor: its jobs run on, and the next one reads what is
/// true.
async fn off_long<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(lost) => {
            if lost.is_panic() {
                // Of an actor that panics nobody hears, and its job would be left to nobody.
                actix::System::current().stop_with_code(1);
            }
            // Nobody asks for this any more: the runtime is being shut down.
            std::future::pending().await
        }
    }
}

/// Kept by every actor, and by whatever else runs on their thread: where it panics, nobody would hear of that, and what it
/// sees to would be left to nobody. So the supervisor ends, as when work on a thread panics. No job notices.
#[derive(Debug)]
struct Vigil;

impl Drop for Vigil {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(system) = actix::System::try_current()
        {
            system.stop_with_code(1);
        }
    }
}

/// How long to wait before the `nth` try in a row (from 1) of what the disk did not let us do.
fn backoff(nth: u32) -> Duration {
    const FIRST: Duration = Duration::from_millis(250);
    const LONGEST: Duration = Duration::from_secs(60);
    FIRST
        .saturating_mul(1 << nth.saturating_sub(1).min(16))
        .min(LONGEST)
}
