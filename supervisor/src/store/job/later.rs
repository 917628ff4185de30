//! Waiting for a job within an async runtime: tokio, or actix, which is tokio. No thread waits; what reads the disk is
//! done on the runtime's threads for that.

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::time::Duration;

use state_machine::job::State;
use state_machine::protocol::look::View;
use state_machine::record::Line;
use tokio::io::unix::AsyncFd;

use crate::clock;
use crate::error::{Error, Result};
use crate::inotify::{Buffer, Instance, Interest};
use crate::reactor::readable;

use super::Job;

/// How often to look where nothing tells of changes (F52).
const BLIND: Duration = Duration::from_millis(200);
/// How often to look at the latest where something does (F53).
const BACKSTOP: Duration = Duration::from_secs(5);

impl Job {
    /// As [`Job::wait`], without blocking a thread: resolves once the job has ended, or nobody works on it any more. Only
    /// within a tokio runtime with time and I/O enabled.
    ///
    /// Dropping the future ends the wait and does nothing to the job.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] after `timeout`; as [`Job::look`] otherwise.
    pub async fn wait_async(&self, timeout: Option<Duration>) -> Result<View> {
        let deadline = timeout.map(|timeout| clock::since_boot() + timeout);
        // It stands before the first look, so that nothing falls in between.
        let notices = Notices::of(self);
        loop {
            let view = off(self, Job::tend).await?;
            if view.state.is_terminal() || view.state == State::Interrupted {
                return off(self, move |job| job.confirmed(view)).await;
            }
            let left = deadline.map(|deadline| deadline.saturating_sub(clock::since_boot()));
            if left == Some(Duration::ZERO) {
                return Err(Error::TimedOut(format!(
                    "{} is still {}",
                    self.id(),
                    view.state
                )));
            }
            notices.changed(left).await;
        }
    }

    /// The history of the job, line by line as it comes: see [`Events::next`]. Only within a tokio runtime with time and
    /// I/O enabled.
    pub fn events_async(&self) -> Events {
        Events {
            notices: Notices::of(self),
            job: self.clone(),
            seen: 0,
            waiting: VecDeque::new(),
            over: false,
        }
    }
}

/// The history of a job as it comes.
#[derive(Debug)]
pub struct Events {
    job: Job,
    notices: Notices,
    /// How many lines were handed out or wait to be.
    seen: usize,
    waiting: VecDeque<Line>,
    over: bool,
}

impl Events {
    /// The next line, as soon as there is one; `None` after the last one of a job that has ended. May be dropped and
    /// called again: no line is lost.
    ///
    /// # Errors
    ///
    /// As [`Job::events`]. A job that is forgotten meanwhile has no more lines.
    pub async fn next(&mut self) -> Result<Option<Line>> {
        loop {
            if let Some(line) = self.waiting.pop_front() {
                return Ok(Some(line));
            }
            if self.over {
                return Ok(None);
            }
            let lines = match off(&self.job, Job::events).await {
                Ok(lines) => lines,
                Err(Error::Gone(_)) if self.seen > 0 => {
                    self.over = true;
                    return Ok(None);
                }
                Err(error) => return Err(error),
            };
            self.over = ends(&lines);
            let new = lines.len().saturating_sub(self.seen);
            self.seen = lines.len();
            self.waiting.extend(lines.into_iter().rev().take(new).rev());
            if self.waiting.is_empty() && !self.over {
                self.notices.changed(None).await;
            }
        }
    }
}

/// Whether a history tells of the end.
fn ends(lines: &[Line]) -> bool {
    use state_machine::record::What;
    lines
        .iter()
        .any(|line| matches!(line.what, What::State { state } if state.is_terminal()))
}

/// Run what reads the disk off the threads that must not wait.
async fn off<T: Send + 'static>(
    job: &Job,
    read: impl FnOnce(&Job) -> Result<T> + Send + 'static,
) -> Result<T> {
    let job = job.clone();
    match tokio::task::spawn_blocking(move || read(&job)).await {
        Ok(done) => done,
        Err(lost) => match lost.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(Error::Worker("the runtime is shut down".into())),
        },
    }
}

/// Notices of change in the directory of one job.
#[derive(Debug)]
struct Notices(Option<AsyncFd<Instance>>);

impl Notices {
    /// Where the user has no instance left, one that looks on a timer.
    fn of(job: &Job) -> Notices {
        let watched = Instance::new().and_then(|instance| {
            instance.add(&job.dir(), Interest::Records)?;
            readable(instance)
        });
        Notices(watched.ok())
    }

    /// Until something may have changed, or `limit` is over.
    async fn changed(&self, limit: Option<Duration>) {
        let look_again = if self.0.is_some() { BACKSTOP } else { BLIND };
        let time = limit.map_or(look_again, |limit| limit.min(look_again));
        // That the time is over is as good a reason to look.
        let _ = tokio::time::timeout(time, self.notice()).await;
    }

    async fn notice(&self) {
        let Some(instance) = &self.0 else {
            return std::future::pending().await;
        };
        let Ok(mut ready) = instance.readable().await else {
            return std::future::pending().await;
        };
        // All of it: what is left would not be told of again. What cannot be read is nothing to discard.
        let mut buffer: Buffer = [MaybeUninit::uninit(); _];
        let mut more = true;
        while more {
            more = false;
            let _ = instance.get_ref().read(&mut buffer, |_| more = true);
        }
        ready.clear_ready();
    }
}
