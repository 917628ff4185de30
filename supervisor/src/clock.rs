//! The clocks. Stamps are for people and come from the wall clock, which anybody can set; everything that is timed
//! is timed by a clock that only goes forward and counts suspend.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

/// Whether the wall clock is not believed. A flag of its own, so that a program in which nobody sets it does not even hold the
/// code.
static SET: AtomicBool = AtomicBool::new(false);
static SET_BY: OnceLock<PathBuf> = OnceLock::new();

/// The wall clock, in ms since the epoch.
pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64);
    if SET.load(Ordering::Relaxed) {
        return now.saturating_add_signed(set_by());
    }
    now
}

/// From now on, for this process and its forks, the wall clock is set forward by as many ms as `file` says at each time (a whole
/// number; back, where it is negative), and by none where it does not say.
///
/// For checkers, who must not set the clock of everybody.
pub fn set_by_file(file: PathBuf) {
    if SET_BY.set(file).is_ok() {
        SET.store(true, Ordering::Relaxed);
    }
}

#[cold]
fn set_by() -> i64 {
    let text = SET_BY.get().map(std::fs::read_to_string);
    let text = text.and_then(io::Result::ok).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// The time since boot, suspend included.
pub(crate) fn since_boot() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// How much of a processor this thread has had. What it had to wait for does not count.
pub(crate) fn worked() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The boot that this is; empty where the kernel does not tell.
pub(crate) fn boot_id() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// What wakes a `poll` at a time since boot, also when that time came while the machine was suspended.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: OwnedFd,
}

impl Alarm {
    /// One that is not set.
    pub(crate) fn new() -> io::Result<Alarm> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Boottime, flags)?;
        Ok(Alarm { timer })
    }

    /// Be readable from `deadline` on (in time since boot), or never.
    pub(crate) fn set(&self, deadline: Option<Duration>) -> io::Result<()> {
        let zero = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // A value of zero would disarm the timer; a deadline in the past must fire.
        let value = deadline.map_or(zero, |deadline| {
            let deadline = deadline.max(Duration::from_nanos(1));
            Timespec {
                tv_sec: i64::try_from(deadline.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: deadline.subsec_nanos().into(),
            }
        });
        let setting = Itimerspec {
            it_interval: zero,
            it_value: value,
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &setting)?;
        Ok(())
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}
