//! Being told that the wall clock was set: jobs that wait for their time then look again. It costs no wake-up until that
//! happens.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

use crate::reactor::readable;

/// Far enough that no clock gets there, in seconds.
const NEVER: i64 = 1 << 40;

/// A timer that never comes and is cancelled when the clock is set.
pub(super) struct ClockSet(AsyncFd<OwnedFd>);

impl ClockSet {
    /// Within a runtime.
    pub(super) fn new() -> std::io::Result<ClockSet> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Realtime, flags)?;
        arm(&timer)?;
        Ok(ClockSet(readable(timer)?))
    }

    /// Return when the clock was set.
    pub(super) async fn changed(&self) -> std::io::Result<()> {
        loop {
            let mut ready = self.0.readable().await?;
            let read = rustix::io::read(self.0.get_ref(), &mut [0_u8; 8]);
            match read {
                Err(Errno::CANCELED) => {
                    arm(self.0.get_ref())?;
                    return Ok(());
                }
                Err(Errno::AGAIN) | Ok(_) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn arm(timer: &OwnedFd) -> std::io::Result<()> {
    let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
    let never = Itimerspec {
        it_interval: Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        },
        it_value: Timespec {
            tv_sec: NEVER,
            tv_nsec: 0,
        },
    };
    timerfd_settime(timer, flags, &never)?;
    Ok(())
}
