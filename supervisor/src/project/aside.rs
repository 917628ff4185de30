//! Commands of a project file that are run beside a task, by whoever starts it: those that ask whether it is ready, and those that are
//! told so. Each has a bounded time, and nothing that it starts is left.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use state_machine::project::{Invocation, Task};
use state_machine::record::Exit;

use super::{Tasks, words};
use crate::error::{Error, Result};
use crate::process::{Minder, Outcome, Ran, Work, environment};
use crate::worker::Launcher;

/// How long such a command has after SIGTERM.
const GRACE: Duration = Duration::from_secs(1);

/// Whoever runs commands beside a task: in its directory, with its variables, and what they print is for nobody.
pub(super) struct Aside<'a> {
    task: &'a Task,
    cwd: PathBuf,
    minder: Option<Minder>,
}

impl<'a> Aside<'a> {
    pub(super) fn new(tasks: &Tasks, task: &'a Task) -> Aside<'a> {
        Aside {
            task,
            cwd: tasks.cwd(task),
            minder: None,
        }
    }

    /// Run a command, for `patience` at most.
    ///
    /// # Errors
    ///
    /// No command can be run at all.
    pub(super) fn run(&mut self, command: &Invocation, patience: Duration) -> Result<Ran> {
        let cannot = |error: io::Error| Error::Worker(format!("no command can be run: {error}"));
        let argv = words(command);
        let set: Vec<(&str, &str)> = self
            .task
            .env
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let nowhere = OpenOptions::new()
            .write(true)
            .open("/dev/null")
            .map_err(cannot)?;
        let work = Work {
            argv: &argv,
            env: &environment(&set),
            cwd: &self.cwd,
            umask: None,
            stdin: None,
            stdout: nowhere.as_fd(),
            stderr: nowhere.as_fd(),
            held: None,
            timeout: patience,
            grace: GRACE,
        };
        let minder = match &mut self.minder {
            Some(minder) => minder,
            none => none.insert(Launcher::this_program().minder()?),
        };
        minder.run(&work, None).map_err(|error| {
            self.minder = None;
            cannot(error)
        })
    }
}

/// Why a command that could take so long has not done its work, if it has not.
pub(super) fn why_not_done(ran: Ran, patience: Duration) -> Option<String> {
    match ran.outcome {
        Outcome::Succeeded => None,
        Outcome::TimedOut => Some(format!("it took longer than {patience:?}")),
        Outcome::Stopped => Some("it was ended".into()),
        Outcome::Failed { exit: None } => ran.cannot_start,
        Outcome::Failed {
            exit: Some(Exit::Code(code)),
        } => Some(format!("it exited with {code}")),
        Outcome::Failed {
            exit: Some(Exit::Signal(signal)),
        } => Some(format!("signal {signal} killed it")),
    }
}
