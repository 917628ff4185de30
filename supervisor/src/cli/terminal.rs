//! What is known of the terminal that standard output is, if it is one: its size, that this has changed, and signals that are
//! waited for together with other things.

use std::io::{self, IsTerminal, stdout};
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::sys;

/// How many columns and rows there are where neither the terminal nor anybody else says.
const USUAL: (usize, usize) = (80, 24);

/// Whether colours may be shown: on a terminal that knows them, where nobody has said otherwise (`NO_COLOR`).
pub(super) fn has_colours() -> bool {
    let says = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    stdout().is_terminal()
        && says("NO_COLOR").is_none()
        && says("TERM").is_none_or(|term| term != "dumb")
}

/// How many columns standard output has; nothing where it is no terminal.
pub(super) fn columns() -> Option<usize> {
    size().map(|(columns, _)| columns)
}

/// How many columns and rows standard output has; nothing where it is no terminal.
pub(super) fn size() -> Option<(usize, usize)> {
    if !stdout().is_terminal() {
        return None;
    }
    let told = rustix::termios::tcgetwinsize(stdout()).ok();
    let (columns, rows) = told.map_or((0, 0), |told| (told.ws_col.into(), told.ws_row.into()));
    Some((
        known(columns, "COLUMNS", USUAL.0),
        known(rows, "LINES", USUAL.1),
    ))
}

/// What the terminal says, else what the environment says, else what is usual.
fn known(told: usize, variable: &str, usual: usize) -> usize {
    let said = || std::env::var(variable).ok()?.parse().ok();
    Some(told)
        .filter(|told| *told > 0)
        .or_else(said)
        .filter(|known| *known > 0)
        .unwrap_or(usual)
}

/// Signals that no longer do what they did to this process, and make this readable instead.
#[derive(Debug)]
pub(super) struct Signals(SignalFd);

impl Signals {
    /// Hear of these from now on. This process must have one thread.
    pub(super) fn hear(signals: impl IntoIterator<Item = Signal>) -> io::Result<Signals> {
        let mask: SigSet = signals.into_iter().collect();
        mask.thread_block()?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Signals(SignalFd::with_flags(&mask, flags)?))
    }

    /// Be ended by a signal that has come, as this process would have been at once.
    pub(super) fn obey(&self, signal: Signal) -> io::Result<()> {
        SigSet::from(signal).thread_unblock()?;
        sys::kill(rustix::process::getpid(), signal as i32)
    }

    /// One that has come, if any has.
    pub(super) fn next(&self) -> Option<Signal> {
        let told = self.0.read_signal().ok()??;
        Signal::try_from(i32::try_from(told.ssi_signo).ok()?).ok()
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
