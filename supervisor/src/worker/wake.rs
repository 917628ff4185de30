//! What a worker sleeps on: signals, one timer, and the descriptors that it is given. It wakes for a reason and never
//! just to look, unless the kernel cannot tell it of a new request.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

use crate::clock::Alarm;
use crate::process::mask_all_but_faults;
use crate::{clock, sys};

/// How often a worker looks for requests where the kernel does not tell of them.
const BLIND_LOOK: Duration = Duration::from_millis(500);

/// Why a worker woke.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Woken {
    /// It was told to end (SIGTERM).
    pub(super) told_to_end: bool,
    /// Something was made, renamed or removed in the directory.
    pub(super) changed: bool,
}

/// What a worker sleeps on.
pub(super) struct Wake {
    signals: SignalFd,
    alarm: Alarm,
    /// The job's directory, kept open for its notices (dnotify: it costs no inotify instance, F52); `None` where the
    /// kernel has none.
    _directory: Option<OwnedFd>,
    blind: bool,
}

impl Wake {
    /// Hear signals, and of every file that is made, renamed or removed in `dir`.
    pub(super) fn new(dir: &Path) -> std::io::Result<Wake> {
        // Everything is heard, so that nothing ends a worker by accident: a terminal that closes, a limit on the size of
        // files that the log runs into, a stray signal. What has no meaning here is passed over.
        let mask = mask_all_but_faults()?;
        sys::hear_of_deaths()?;
        let signals = SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, dir, flags, Mode::empty())?;
        let watched = sys::watch_directory(directory.as_fd(), Signal::SIGIO as i32).is_ok();
        Ok(Wake {
            signals,
            alarm: Alarm::new()?,
            blind: !watched,
            _directory: watched.then_some(directory),
        })
    }

    /// Sleep until a signal, the deadline (in time since boot), or something to read from one of `sources`.
    pub(super) fn sleep(
        &mut self,
        deadline: Option<Duration>,
        sources: &[BorrowedFd<'_>],
    ) -> std::io::Result<Woken> {
        let blind = self.blind.then(|| clock::since_boot() + BLIND_LOOK);
        self.alarm.set(deadline.into_iter().chain(blind).min())?;
        let mut fds = Vec::with_capacity(sources.len() + 2);
        fds.push(PollFd::from_borrowed_fd(
            self.signals.as_fd(),
            PollFlags::IN,
        ));
        fds.push(PollFd::from_borrowed_fd(self.alarm.as_fd(), PollFlags::IN));
        fds.extend(
            sources
                .iter()
                .map(|source| PollFd::from_borrowed_fd(*source, PollFlags::IN)),
        );
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.heard()
    }

    /// What has been heard so far, without sleeping.
    pub(super) fn heard(&mut self) -> std::io::Result<Woken> {
        let mut woken = Woken {
            told_to_end: false,
            changed: self.blind,
        };
        while let Some(signal) = self.signals.read_signal()? {
            woken.told_to_end |= signal.ssi_signo == Signal::SIGTERM as u32;
            woken.changed |= signal.ssi_signo == Signal::SIGIO as u32;
        }
        Ok(woken)
    }
}
