//! What is written in a project file, read strictly: a word that means nothing is an error with its place.

use std::collections::BTreeMap;
use std::time::Duration;

use super::place::BadProject;
use super::written::{WrittenProject, WrittenTask};
use crate::id::Name;
use crate::nearest::nearest;
use crate::record::Limits;
use crate::retry::Retry;

/// The tasks of a project, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Project {
    /// Each task.
    pub tasks: BTreeMap<String, Task>,
}

/// What a task runs, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The name of its job: at most one is under way in the project (R12).
    pub job: Name,
    /// What is run.
    pub command: Invocation,
    /// The tasks that must be ready before it is started.
    pub needs: Vec<String>,
    /// When it is ready; as soon as it runs where absent.
    pub ready: Option<Ready>,
    /// What happens when it ends.
    pub restart: Restart,
    /// How a failed attempt is tried again.
    pub retry: Retry,
    /// Variables that are set for it.
    pub env: BTreeMap<String, String>,
    /// The directory it runs in, from the root of the project.
    pub cwd: Option<String>,
    /// How long an attempt may run.
    pub timeout: Option<Duration>,
    /// How long a stop waits before it forces.
    pub grace: Option<Duration>,
    /// The files that it is made of, as patterns from the root of the project: when one changes, it is run anew.
    pub watch: Vec<String>,
    /// What it may use.
    pub limits: Limits,
    /// The command that is run when it is ready, by whoever has started it.
    pub on_ready: Option<Invocation>,
    /// The command that is told when its job has failed.
    pub on_failure: Option<Invocation>,
    /// The command that is told when its job has ended.
    pub on_end: Option<Invocation>,
}

/// A command, in either way to write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invocation {
    /// One line, for `sh -c`.
    Shell(String),
    /// The program and its arguments, as they are.
    Words(Vec<String>),
}

impl Invocation {
    /// The program and its arguments.
    pub fn argv(&self) -> Vec<String> {
        match self {
            Invocation::Shell(line) => vec!["sh".into(), "-c".into(), line.clone()],
            Invocation::Words(words) => words.clone(),
        }
    }
}

/// What happens when a task ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    test,
    derive(schemars::JsonSchema),
    schemars(rename_all = "kebab-case")
)]
pub enum Restart {
    /// Nothing: it has ended.
    #[default]
    Never,
    /// Where it failed, it is run again.
    OnFailure,
    /// It is run again, however it has ended.
    Always,
}

/// When a task is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// What shows it.
    pub signal: Signal,
    /// How long that may take.
    pub timeout: Duration,
}

/// What shows that a task is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Something accepts connections at this host and port.
    Tcp(String),
    /// This address answers with a status of 200 to 399.
    Http(String),
    /// This command exits with 0.
    Command(Invocation),
    /// This file is there; from the directory of the task.
    File(String),
    /// The task has printed this.
    Log(String),
    /// The task says so itself, by sd_notify(3).
    Notify,
    /// It has been running for so long.
    Delay(Duration),
}

impl Project {
    /// Read the bytes of a project file.
    ///
    /// # Errors
    ///
    /// What is wrong first, with its place: what is no TOML, a word that is not known, a value that cannot be read, a task that is
    /// needed and not there, tasks that need each other in a circle.
    pub fn decode(bytes: &[u8]) -> Result<Project, BadProject> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let good = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            BadProject::at(&good, good.len()..good.len(), "this is no UTF-8")
        })?;
        let written: WrittenProject =
            toml::from_str(text).map_err(|error| BadProject::of_parsing(text, &error))?;
        let mut project = Project::default();
        for (name, task) in &written.task {
            let task = task.read(text, name.get_ref())?;
            project.tasks.insert(name.get_ref().clone(), task);
        }
        for task in written.task.values() {
            project.see_that_needs_are_there(text, task)?;
        }
        if let Some(circle) = project.circle() {
            let span = written
                .task
                .iter()
                .find(|(name, _)| Some(name.get_ref()) == circle.first())
                .map_or(0..0, |(name, _)| name.span());
            let why = match circle.as_slice() {
                [itself] => format!("'{itself}' needs itself"),
                _ => format!("these need each other in a circle: {}", circle.join(", ")),
            };
            return Err(BadProject::at(text, span, why));
        }
        Ok(project)
    }

    fn see_that_needs_are_there(&self, text: &str, task: &WrittenTask) -> Result<(), BadProject> {
        for need in &task.needs {
            let word = need.get_ref();
            if self.tasks.contains_key(word) {
                continue;
            }
            let meant = self.nearest(word);
            let meant = meant.map_or(String::new(), |meant| format!("; '{meant}' was meant?"));
            let why = format!("there is no task '{word}'{meant}");
            return Err(BadProject::at(text, need.span(), why));
        }
        Ok(())
    }

    /// The task whose name is most like this word.
    pub fn nearest(&self, word: &str) -> Option<&str> {
        nearest(word, self.tasks.keys().map(String::as_str))
    }
}
