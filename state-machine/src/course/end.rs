//! The end of an attempt: what it is recorded as, what follows it, and what is done about what it has left.

use std::time::Duration;

use super::oversee::Attempt;
use super::{Course, End, Next, Parting, Until, Why, Worker};
use crate::job::State;
use crate::pull::word::Cause;
use crate::record::{Exit, Failure, Kind};

impl<W: Worker> Course<'_, W> {
    /// The command has ended, or the tree was ended: record it, or see to the next attempt.
    pub(super) fn conclude(&mut self, mut attempt: Attempt<W::Tree>) -> Result<Next, W::Fault> {
        let end = self.worker.end_of(&mut attempt.tree)?;
        match attempt.why {
            Some(Why::Shutdown) => Ok(Next::Leave(Parting::Unrecorded)),
            Some(Why::Cancel) => self.conclude_cancelled(end),
            Some(Why::Pause) => self.conclude_paused(None),
            Some(Why::Timeout | Why::NextAttempt | Why::Renew) | None => {
                if attempt.frozen {
                    // It was killed where it stood. What is left of it must be able to end.
                    self.thaw(&mut attempt)?;
                }
                if let (Some(Why::Renew), Some(reason)) = (attempt.why, attempt.renewed.take()) {
                    return self.renew(reason);
                }
                match (self.failure_of(&end, attempt.why), &end.cause) {
                    // There may be room tomorrow, and what has arrived is kept.
                    (Some(reason), Some(Cause::NoRoom { .. })) => {
                        self.conclude_paused(Some(reason))
                    }
                    (Some(reason), cause)
                        if self.may_retry_after(&attempt, &end, cause.as_ref()) =>
                    {
                        self.see_to_retry(attempt, end, reason)
                    }
                    (None, _)
                        if self.worker.descriptor().retry.always && self.may_retry(end.ran_ms) =>
                    {
                        self.see_to_retry(attempt, end, "ended, and is always run again".into())
                    }
                    (failed, _) => self.conclude_ended(attempt, end, failed),
                }
            }
        }
    }

    /// Whether this failure of an attempt is not final. A transfer that got on was worth it, whatever its number.
    fn may_retry_after(
        &self,
        attempt: &Attempt<W::Tree>,
        end: &End,
        cause: Option<&Cause>,
    ) -> bool {
        match (&self.worker.descriptor().kind, cause) {
            (Kind::Command(_), _) => self.may_retry(end.ran_ms),
            (Kind::Pull(_), Some(Cause::Never { .. })) => false,
            (Kind::Pull(_), _) => {
                let failures = if self.has_moved(attempt) {
                    1
                } else {
                    self.failures + 1
                };
                self.worker
                    .descriptor()
                    .retry
                    .allows_another(failures, failures)
            }
        }
    }

    fn conclude_cancelled(&mut self, end: End) -> Result<Next, W::Fault> {
        self.worker.concludes(State::Cancelled);
        self.worker.vacate();
        let forced = end.stopping.is_some_and(|stopping| stopping.forced);
        self.finish(|status| {
            status.state = State::Cancelled;
            status.exit = end.exit;
            status.pid = None;
            status.stopping = end.stopping;
            status.dropped_bytes = end.dropped_bytes;
            status.status_line = None;
            status.message = forced.then(|| "SIGKILL was needed to end it".into());
        })?;
        self.answer()?;
        self.worker.say_over();
        self.tell_hooks(None)?;
        Ok(Next::Leave(Parting::Recorded))
    }

    fn conclude_paused(&mut self, message: Option<String>) -> Result<Next, W::Fault> {
        self.finish(|status| {
            status.state = State::Paused;
            status.pid = None;
            status.slot = None;
            status.stopping = None;
            status.status_line = None;
            status.message = message;
        })?;
        self.answer()?;
        Ok(Next::Leave(Parting::Recorded))
    }

    fn conclude_ended(
        &mut self,
        mut attempt: Attempt<W::Tree>,
        end: End,
        failed: Option<String>,
    ) -> Result<Next, W::Fault> {
        let state = match failed {
            Some(_) => State::Failed,
            None => State::Done,
        };
        self.worker.concludes(state);
        let failure = match (attempt.why, &self.worker.descriptor().kind) {
            _ if failed.is_none() => None,
            (Some(Why::Timeout), _) => Some(Failure::Timeout),
            (_, Kind::Pull(_)) => Some(Failure::Transfer),
            (_, Kind::Command(_)) => None,
        };
        let left = self.worker.left(&mut attempt.tree)?;
        if left == 0 {
            self.worker.vacate();
        }
        self.finish(|status| {
            status.state = state;
            status.exit = end.exit;
            status.pid = None;
            status.leftovers = (left > 0).then_some(left);
            status.failure = failure;
            status.stopping = end.stopping;
            status.dropped_bytes = end.dropped_bytes;
            status.status_line = None;
            status.message = failed;
        })?;
        self.worker.say_over();
        if left == 0 {
            self.answer()?;
            self.tell_hooks(None)?;
        } else {
            // A cancel that came too late for the command is for what it left behind: it is answered when that is gone.
            self.tell_hooks(Some(&mut attempt.tree))?;
            self.linger(attempt)?;
            self.answer()?;
        }
        Ok(Next::Leave(Parting::Recorded))
    }

    /// Why the attempt counts as failed, or `None` when it succeeded.
    fn failure_of(&self, end: &End, why: Option<Why>) -> Option<String> {
        if why == Some(Why::Timeout) {
            let timeout = Duration::from_millis(self.worker.descriptor().timeout_ms.unwrap_or(0));
            return Some(format!("timed out after {timeout:?}"));
        }
        if let Some(cause) = &end.cause {
            return Some(cause.why().to_owned());
        }
        match end.exit {
            Some(Exit::Code(code)) if self.worker.descriptor().success_codes.contains(&code) => {
                None
            }
            Some(Exit::Code(code)) => Some(format!("exited with {code}")),
            Some(Exit::Signal(signal)) => Some(format!("killed by {}", W::signal_name(signal))),
            None => Some("ended in a way that the kernel does not tell".into()),
        }
    }

    /// Before the next attempt, nothing of this one may be left (R11).
    fn see_to_retry(
        &mut self,
        mut attempt: Attempt<W::Tree>,
        end: End,
        reason: String,
    ) -> Result<Next, W::Fault> {
        if !self.worker.is_empty(&mut attempt.tree)? {
            attempt.why = None;
            self.end_if_let(&mut attempt, Why::NextAttempt)?;
            self.oversee(&mut attempt, Until::Empty)?;
            // While it was ended, something else may have been asked for.
            if let Some(Why::Cancel | Why::Shutdown) = attempt.why {
                return self.conclude(attempt);
            }
            // What it has printed last.
            self.worker.end_of(&mut attempt.tree)?;
        }
        let after_ms = match end.cause {
            Some(Cause::Later { after_ms, .. }) => after_ms,
            _ => 0,
        };
        // A transfer that got on was healthy, however short it was.
        let ran_ms = if self.has_moved(&attempt) {
            u64::MAX
        } else {
            end.ran_ms
        };
        self.again(reason, ran_ms, after_ms)
    }

    /// Whether a transfer has got further in this attempt. Bytes that were fetched and discarded again are no way further.
    fn has_moved(&self, attempt: &Attempt<W::Tree>) -> bool {
        self.worker.status().progress.done_bytes > attempt.done_before
    }

    /// The job has ended and processes of its command are left: stay, holding the lock, until they end or a stop ends
    /// them. State and exit stay as they are recorded.
    fn linger(&mut self, mut attempt: Attempt<W::Tree>) -> Result<(), W::Fault> {
        let message = self.worker.status().message.clone();
        attempt.why = None;
        self.oversee(&mut attempt, Until::Empty)?;
        let end = self.worker.end_of(&mut attempt.tree)?;
        self.finish(|status| {
            status.leftovers = None;
            status.message = message;
            status.dropped_bytes = end.dropped_bytes;
            // What is recorded of the end stays; that its remains had to be stopped is new.
            if end.stopping.is_some() {
                status.stopping = end.stopping;
            }
        })
    }
}
