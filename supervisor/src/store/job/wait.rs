//! Waiting for a job.

use std::time::Duration;

use state_machine::job::State;
use state_machine::protocol::look::{View, confirm};

use crate::clock;
use crate::error::{Error, Result};
use crate::watch::Watch;

use super::Job;

/// The pauses between the looks at a job before it is worth a watch: they double, 6 ms in all.
const FIRST_PAUSE: Duration = Duration::from_micros(200);
const LONGEST_PAUSE: Duration = Duration::from_millis(5);
/// The longest pause after a notice of nothing.
const LONGEST_SPIN: Duration = Duration::from_millis(250);

impl Job {
    /// Wait until the job has ended or nobody works on it any more.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] after `timeout`; as [`Job::look`] otherwise.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<View> {
        let watch = || self.store.watch_states(std::slice::from_ref(self));
        self.wait_with(timeout, watch, |view| {
            view.state.is_terminal() || view.state == State::Interrupted
        })
    }

    /// Wait until `reached` says so of what is true about the job.
    ///
    /// # Errors
    ///
    /// As [`Job::wait`].
    pub fn wait_until(
        &self,
        timeout: Option<Duration>,
        reached: impl FnMut(&View) -> bool,
    ) -> Result<View> {
        self.wait_with(timeout, || self.watch(), reached)
    }

    fn wait_with(
        &self,
        timeout: Option<Duration>,
        watch: impl FnOnce() -> Watch,
        mut reached: impl FnMut(&View) -> bool,
    ) -> Result<View> {
        let deadline = timeout.map(|timeout| clock::since_boot() + timeout);
        // Most of what is waited for comes at once, and a watch costs more to take down than it took to wait for it
        // (closing an inotify instance takes the kernel some 15 ms).
        let mut pause = FIRST_PAUSE;
        while pause < LONGEST_PAUSE {
            let view = self.tend()?;
            if reached(&view) {
                return self.confirmed(view);
            }
            std::thread::sleep(deadline.map_or(pause, |deadline| {
                pause.min(deadline.saturating_sub(clock::since_boot()))
            }));
            pause *= 2;
        }
        // The watch stands before the look, so that no change falls between the two.
        let mut watch = watch();
        let mut last = None;
        loop {
            let view = self.tend()?;
            if reached(&view) {
                return self.confirmed(view);
            }
            // What we do to look can itself be a notice; where nothing changes, it must not become a spin.
            let now = (view.status.clone(), view.held);
            if last.as_ref() == Some(&now) {
                std::thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_SPIN);
            } else {
                pause = FIRST_PAUSE;
                last = Some(now);
            }
            let left = deadline.map(|deadline| deadline.saturating_sub(clock::since_boot()));
            if left == Some(Duration::ZERO) {
                return Err(Error::TimedOut(format!(
                    "{} is still {}",
                    self.id, view.state
                )));
            }
            self.store.sleep(&mut watch, left)?;
        }
    }

    /// What was waited for, to be told of: where it is an end, a loss of power does not take that back (R19).
    ///
    /// # Errors
    ///
    /// [`Error::Disk`] where that cannot be made sure of.
    pub(crate) fn confirmed(&self, view: View) -> Result<View> {
        if view.state.is_terminal() {
            confirm(&mut self.store.disk(), &self.id)?;
        }
        Ok(view)
    }

    pub(super) fn watch(&self) -> Watch {
        self.store.watch(std::slice::from_ref(self))
    }
}
