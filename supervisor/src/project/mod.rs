//! Projects: what the file of a project says, made into jobs. What may be written and what follows from it is in the pure crate
//! ([`state_machine::project`]); what becomes of a job is the store's. Here is only who starts which task when.
//!
//! | file | what it is for |
//! |---|---|
//! | `start` | starting tasks, each once what it needs is ready |
//! | `probe` | asking whether a task is ready |
//! | `aside` | commands that are run beside a task |
//! | `stop` | which jobs a stop of tasks takes, and in which order |
//!
//! A task has one job at a time, under the task's name: that is what makes two who start it at once start it once (R12).

mod aside;
mod probe;
mod start;
mod stop;

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use state_machine::config::Config;
use state_machine::project::{Invocation, PROJECT_FILE, Project, Signal, Task};
use state_machine::protocol::look::View;

use crate::error::{DiskError, Error, Result};
use crate::store::JobSpec;

pub(crate) use self::start::{News, Outcome, Starter, Tell};

/// A project, where it is.
#[derive(Clone, Debug)]
pub(crate) struct Tasks {
    root: PathBuf,
    project: Project,
}

/// The root of the project that `dir` is in: the nearest directory, from there up, that holds a project file.
pub(crate) fn root_above(dir: &Path) -> Option<PathBuf> {
    dir.ancestors()
        .find(|dir| dir.join(PROJECT_FILE).is_file())
        .map(Path::to_owned)
}

impl Tasks {
    /// Read the file of the project at `root`.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] with the path, the line and the column where something in it is wrong.
    pub(crate) fn read(root: &Path) -> Result<Tasks> {
        Tasks::read_file(&root.join(PROJECT_FILE))
    }

    /// As [`Tasks::read`], for a file of any name. Its directory is the root.
    pub(crate) fn read_file(path: &Path) -> Result<Tasks> {
        let bytes = fs::read(path).map_err(|error| DiskError::new("read", path, error))?;
        let project = Project::decode(&bytes)
            .map_err(|wrong| Error::Usage(format!("{}: {wrong}", path.display())))?;
        Ok(Tasks {
            root: path.parent().unwrap_or(Path::new("/")).to_owned(),
            project,
        })
    }

    /// What is written.
    pub(crate) fn project(&self) -> &Project {
        &self.project
    }

    /// The task of this name, as it is written in the file.
    ///
    /// # Errors
    ///
    /// [`Error::NoTask`].
    pub(crate) fn find(&self, word: &str) -> Result<(&str, &Task)> {
        match self.project.tasks.get_key_value(word) {
            Some((name, task)) => Ok((name, task)),
            None => Err(Error::NoTask {
                task: word.to_owned(),
                file: self.root.join(PROJECT_FILE),
                meant: self.project.nearest(word).map(str::to_owned),
            }),
        }
    }

    /// Whether the job is one of this project, and of this task.
    fn is_of(&self, view: &View, task: &str) -> bool {
        view.descriptor.task.as_deref() == Some(task) && self.holds(view)
    }

    fn holds(&self, view: &View) -> bool {
        let root = self.root.as_os_str().as_bytes();
        let project = view.descriptor.project.as_ref();
        project.is_some_and(|project| project.0 == root)
    }

    /// The directory a task runs in.
    fn cwd(&self, task: &Task) -> PathBuf {
        task.cwd
            .as_ref()
            .map_or_else(|| self.root.clone(), |dir| self.root.join(dir))
    }

    /// The job that runs a task, in the environment of this process; what the file leaves open is as the store is configured.
    fn spec(&self, name: &str, task: &Task, config: &Config, umask: u32) -> JobSpec {
        let mut spec = JobSpec::command(task.command.argv());
        spec.cwd = self.cwd(task);
        spec.project = Some(self.root.clone());
        spec.task = Some(name.to_owned());
        spec.name = Some(task.job.clone());
        spec.umask = Some(umask);
        for (name, value) in &task.env {
            spec.env.set(name.as_bytes(), value.as_bytes());
        }
        let defaults = &config.defaults;
        spec.timeout = task.timeout.or(defaults.timeout);
        spec.grace = task.grace.or(defaults.grace).unwrap_or(spec.grace);
        spec.retry = task.retry;
        spec.output.max_bytes = defaults.log_max;
        spec.output.keep = defaults.log_keep;
        spec.pause = defaults.pause.unwrap_or_default();
        spec.watch = task.watch.clone();
        spec.notify = matches!(&task.ready, Some(ready) if ready.signal == Signal::Notify);
        spec.limits = task.limits;
        spec.on_failure = task.on_failure.as_ref().map(words);
        spec.on_end = task.on_end.as_ref().map(words);
        spec
    }
}

fn words(command: &Invocation) -> Vec<OsString> {
    command.argv().into_iter().map(OsString::from).collect()
}
