//! Starting tasks: each once everything that it needs is ready, and what does not depend on one another side by side. A task
//! that runs already is joined. Whoever starts waits; if it dies, what was started runs on.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use state_machine::config::Config;
use state_machine::job::State;
use state_machine::project::Task;
use state_machine::protocol::look::View;

use super::Tasks;
use super::aside::{Aside, why_not_done};
use super::probe::{Probe, is_served};
use crate::error::Result;
use crate::process;
use crate::store::{Job, Store};
use crate::worker::Launcher;

/// How long the command that is told that a task is ready may take.
const HOOK_LIMIT: Duration = Duration::from_secs(60);

/// What starting a task came to.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// It is ready.
    Ready {
        /// Its job.
        job: Job,
        /// Whether it ran already.
        joined: bool,
    },
    /// It is not, and why. Its job, if it has one.
    Failed {
        /// Its job.
        job: Option<Job>,
        /// Why not.
        why: String,
    },
    /// It was not started, because something that it needs is not ready.
    Skipped {
        /// What that is, and how it stands.
        why: String,
    },
}

/// What is told of a task that is being started.
#[derive(Clone, Copy, Debug)]
pub(crate) enum News<'a> {
    /// It has a job, which may not be ready yet.
    Begun {
        /// The job.
        job: &'a Job,
        /// Whether it ran already.
        joined: bool,
    },
    /// Something answered at this address, where its own answer is waited for, before it was started.
    Served(&'a str),
    /// A limit of it is not held, for this reason.
    Unlimited(&'a str),
    /// The command that is told that it is ready has not done its work, for this reason.
    Untold(&'a str),
    /// It has come to something.
    Came(&'a Outcome),
}

/// Who is told. Several tasks are started at a time.
pub(crate) type Tell<'a> = dyn Fn(&str, News<'_>) + Sync + 'a;

impl Outcome {
    /// Whether it is ready.
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self, Outcome::Ready { .. })
    }

    /// Its job, if it has one.
    pub(crate) fn job(&self) -> Option<&Job> {
        match self {
            Outcome::Ready { job, .. } => Some(job),
            Outcome::Failed { job, .. } => job.as_ref(),
            Outcome::Skipped { .. } => None,
        }
    }
}

/// Who starts tasks of a project.
pub(crate) struct Starter<'a> {
    /// The project.
    pub(crate) tasks: &'a Tasks,
    /// Where its jobs are.
    pub(crate) store: &'a Store,
    /// How that is configured.
    pub(crate) config: &'a Config,
    /// The file mode creation mask of what is started.
    pub(crate) umask: u32,
    /// Whether nothing more is to be started.
    pub(crate) is_over: &'a AtomicBool,
}

/// What the tasks of one start have come to so far.
#[derive(Default)]
struct Board {
    outcomes: Mutex<BTreeMap<String, Outcome>>,
    changed: Condvar,
}

impl Board {
    fn post(&self, task: &str, outcome: Outcome) {
        let mut outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.insert(task.to_owned(), outcome);
        self.changed.notify_all();
    }

    /// Wait until all that a task needs have come to something; why it cannot be started, if it cannot.
    fn await_needs(&self, needs: &[String]) -> Option<String> {
        let mut outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            for need in needs {
                match outcomes.get(need) {
                    Some(Outcome::Failed { .. }) => {
                        return Some(format!("it needs {need}, which is not ready"));
                    }
                    Some(Outcome::Skipped { .. }) => {
                        return Some(format!("it needs {need}, which was not started"));
                    }
                    Some(Outcome::Ready { .. }) | None => {}
                }
            }
            if needs.iter().all(|need| outcomes.contains_key(need)) {
                return None;
            }
            outcomes = self
                .changed
                .wait(outcomes)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Starter<'_> {
    /// Start these tasks and everything that they need. What each came to is told as soon as it is known, and returned in the end.
    pub(crate) fn start(&self, wanted: &[&str], tell: &Tell<'_>) -> BTreeMap<String, Outcome> {
        let project = self.tasks.project();
        let board = Board::default();
        std::thread::scope(|scope| {
            for name in project.in_order(wanted.iter().copied()) {
                let Some(task) = project.tasks.get(name) else {
                    continue;
                };
                let board = &board;
                scope.spawn(move || {
                    let outcome = match board.await_needs(&task.needs) {
                        Some(why) => Outcome::Skipped { why },
                        None => self.start_one(name, task, tell),
                    };
                    tell(name, News::Came(&outcome));
                    board.post(name, outcome);
                });
            }
        });
        board
            .outcomes
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn start_one(&self, name: &str, task: &Task, tell: &Tell<'_>) -> Outcome {
        let failed = |job, why| Outcome::Failed { job, why };
        if self.is_over.load(Ordering::Relaxed) {
            return failed(None, "it is not started any more".into());
        }
        // What answers before the task is there may be taken for it, which only a person can judge.
        let served = task.ready.as_ref().and_then(is_served);
        let spec = self.tasks.spec(name, task, self.config, self.umask);
        let (job, is_new) = match self.store.start(spec, &Launcher::this_program()) {
            Ok(started) => started,
            Err(error) => return failed(None, error.to_string()),
        };
        let joined = !is_new;
        if is_new && let Some(address) = served {
            tell(name, News::Served(address));
        }
        match self.why_not_joined(&job, name, task, joined) {
            Ok(None) => {}
            Ok(Some(why)) => return failed(Some(job), why),
            Err(error) => return failed(Some(job), error.to_string()),
        }
        tell(name, News::Begun { job: &job, joined });
        if !joined && let Some(unheld) = process::what_is_not_held(&task.limits) {
            tell(name, News::Unlimited(&unheld.to_string()));
        }
        match self.await_readiness(&job, task) {
            Ok(None) => {
                if !joined && let Some(why) = self.tell_that_it_is_ready(task) {
                    tell(name, News::Untold(&why));
                }
                Outcome::Ready { job, joined }
            }
            Ok(Some(why)) => failed(Some(job), why),
            Err(error) => failed(Some(job), error.to_string()),
        }
    }

    /// Run the command that is told that the task is ready; why it has not done its work, where it has not.
    fn tell_that_it_is_ready(&self, task: &Task) -> Option<String> {
        let command = task.on_ready.as_ref()?;
        match Aside::new(self.tasks, task).run(command, HOOK_LIMIT) {
            Ok(ran) => why_not_done(ran, HOOK_LIMIT),
            Err(error) => Some(error.to_string()),
        }
    }

    /// Why a job that bears the name of the task is not one to be joined, if it is not.
    fn why_not_joined(
        &self,
        job: &Job,
        name: &str,
        task: &Task,
        joined: bool,
    ) -> Result<Option<String>> {
        if !joined {
            return Ok(None);
        }
        let view = job.tend()?;
        if !self.tasks.is_of(&view, name) {
            return Ok(Some(format!(
                "its name is that of {}, which is no job of this task; stop that first",
                job.id()
            )));
        }
        Ok(match view.state {
            State::Paused | State::Interrupted => not_running(&view, task),
            _ => None,
        })
    }

    /// Wait until the task is ready; why it is not, if it is not in time.
    fn await_readiness(&self, job: &Job, task: &Task) -> Result<Option<String>> {
        let view = job.tend()?;
        if let Some(why) = not_running(&view, task) {
            return Ok(Some(why));
        }
        let Some(ready) = &task.ready else {
            return Ok(None);
        };
        Probe::new(self.tasks, task, ready, job).wait(|view| not_running(view, task))
    }
}

/// Why the task of a job cannot be ready, if its job shows that. What has nothing to wait for may have ended well.
pub(super) fn not_running(view: &View, task: &Task) -> Option<String> {
    let id = &view.descriptor.id;
    match view.state {
        State::Running | State::Queued => None,
        State::Done if task.ready.is_none() => None,
        State::Done => Some("it ended before it was ready".into()),
        State::Paused => Some(format!("it is paused; go on with: outlive resume {id}")),
        State::Interrupted => Some(format!(
            "it was interrupted; go on with: outlive resume {id}, or stop it first"
        )),
        State::Failed | State::Cancelled => {
            let why = view.status.message.as_deref();
            Some(why.map_or_else(|| format!("it is {}", view.state), str::to_owned))
        }
    }
}
