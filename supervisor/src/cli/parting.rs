//! What is said to whoever interrupts a verb that only waits for what it has started: that runs on, and how to end it.

use std::io;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;

use super::exit;
use crate::error::DiskError;
use crate::process::Told;

/// Say this once this process is told to end, and then end as it was told. This process must have one thread.
pub(super) fn say_if_interrupted(words: String) -> Result<(), DiskError> {
    let cannot_hear = |error| DiskError::new("hear", Path::new("signals"), error);
    let told = Told::listen().map_err(cannot_hear)?;
    std::thread::spawn(move || {
        if until_told(&told).is_ok() {
            exit::say(&words);
        }
        // Where it could not be waited for, it ends this process from here on, as it would have before.
        let _ = told.obey();
    });
    Ok(())
}

fn until_told(told: &Told) -> io::Result<()> {
    let mut fds = [PollFd::new(told, PollFlags::IN)];
    retry_on_intr(|| poll(&mut fds, None))?;
    Ok(())
}
