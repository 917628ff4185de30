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

/// The signals that would have ended this process, and now only make this readable.
#[derive(Debug)]
pub(crate) struct Told {
    mask: SigSet,
    signals: SignalFd,
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
        })
    }

    /// Be ended by the signal that came, if one did, as this process would have been at once. Else it is as before.
    pub(crate) fn obey(self) -> io::Result<()> {
        let told = self.signals.read_signal()?;
        self.mask.thread_unblock()?;
        if let Some(signal) = told.and_then(|told| i32::try_from(told.ssi_signo).ok()) {
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
