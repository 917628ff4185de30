//! Which signals end a process that minds others: none that can be blocked, but those of a fault of its own.

use nix::sys::signal::{SigSet, Signal};

/// The signals that are left alone: a fault of this process must end it.
const FAULTS: [Signal; 7] = [
    Signal::SIGSEGV,
    Signal::SIGBUS,
    Signal::SIGFPE,
    Signal::SIGILL,
    Signal::SIGABRT,
    Signal::SIGTRAP,
    Signal::SIGSYS,
];

/// Block every signal but those of a fault; the ones that are blocked.
pub(crate) fn mask_all_but_faults() -> std::io::Result<SigSet> {
    let mut mask = SigSet::all();
    for signal in FAULTS {
        mask.remove(signal);
    }
    mask.thread_block()?;
    Ok(mask)
}
