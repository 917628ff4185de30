//! The clocks. Stamps are for people and come from the wall clock, which anybody can set; everything that is timed
//! is timed by a clock that only goes forward and counts suspend.

use std::time::{Duration, SystemTime};

use rustix::time::{ClockId, clock_gettime};

/// The wall clock, in ms since the epoch.
pub(crate) fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}

/// The time since boot, suspend included.
pub(crate) fn since_boot() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
