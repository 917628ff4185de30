//! Being told to end, as something that is waited for together with other things, and obeyed when what must be done first is
//! done.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::proc::{Process, own_pid};
use crate::sys;

/// What people and service managers tell a process to end with.
const SIGNALS: [Signal; 4] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGHUP,
    Signal::SIGQUIT,
];

/// What a person at a terminal ends a process with.
const KEYS: [Signal; 2] = [Signal::SIGINT, Signal::SIGQUIT];

/// The signals that would have ended this process, and now only make this readable.
#[derive(Debug)]
pub(crate) struct Told {
    mask: SigSet,
    signals: SignalFd,
    /// The one that came, once it was taken.
    came: Option<i32>,
}

impl Told {
    /// Hear them from now on. Those that this process ignores, as one does that was started in the background or to outlive its
    /// terminal, are still ignored. This process must have one thread.
    pub(crate) fn listen() -> io::Result<Told> {
        let me = Process::read(own_pid());
        let ends = |signal: &Signal| me.as_ref().is_some_and(|me| me.dies_of(*signal as i32));
        let mask: SigSet = SIGNALS.into_iter().filter(ends).collect();
        mask.thread_block()?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Told {
            mask,
            signals: SignalFd::with_flags(&mask, flags)?,
            came: None,
        })
    }

    /// Whoever presses the keys once more does not want to wait: from here on they end this process at once. Other signals are
    /// still only heard, as one that ends may come twice, from a terminal that is closed and from its shell. Says whether there are
    /// such keys: what a script starts in the background ignores them.
    pub(crate) fn let_keys_end(&mut self) -> io::Result<bool> {
        self.came = self.take()?;
        let keys = KEYS.into_iter().filter(|key| self.mask.contains(*key));
        keys.collect::<SigSet>().thread_unblock()?;
        Ok(self.mask.contains(Signal::SIGINT))
    }

    fn take(&self) -> io::Result<Option<i32>> {
        let told = self.signals.read_signal()?;
        Ok(told.and_then(|told| i32::try_from(told.ssi_signo).ok()))
    }

    /// Be ended by the signal that came, if one did, as this process would have been at once. Else it is as before.
    pub(crate) fn obey(self) -> io::Result<()> {
        let came = match self.came {
            Some(signal) => Some(signal),
            None => self.take()?,
        };
        self.mask.thread_unblock()?;
        if let Some(signal) = came {
            sys::kill(own_pid(), signal)?;
        }
        Ok(())
    }
}

impl AsFd for Told {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.signals.as_fd()
    }
}
