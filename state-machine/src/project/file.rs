//! What is written in a project file, read strictly: a word that means nothing is an error with its place.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::place::{BadProject, nearest};
use crate::id::{BadWord, Name};
use crate::retry::Retry;
use crate::units;

/// How long a task may take to be ready when nobody says otherwise.
const READY_TIMEOUT: Duration = Duration::from_secs(30);

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
    /// The commands that are told when its job has ended.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// Nothing: it has ended.
    #[default]
    Never,
    /// Where it failed, it is run again.
    OnFailure,
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

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WrittenProject {
    task: BTreeMap<Spanned<String>, WrittenTask>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTask {
    command: Spanned<Invocation>,
    #[serde(default)]
    needs: Vec<Spanned<String>>,
    #[serde(default)]
    ready: Option<Spanned<WrittenReady>>,
    #[serde(default)]
    restart: Restart,
    #[serde(default)]
    retry: WrittenRetry,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    timeout: Option<Length>,
    #[serde(default)]
    grace: Option<Length>,
    #[serde(default)]
    hooks: Hooks,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Hooks {
    ended: Option<Invocation>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenReady {
    tcp: Option<String>,
    http: Option<String>,
    command: Option<Invocation>,
    file: Option<String>,
    log: Option<String>,
    delay: Option<Length>,
    timeout: Option<Length>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WrittenRetry {
    attempts: Option<Spanned<u32>>,
    backoff: Option<Backoff>,
}

impl WrittenTask {
    fn read(&self, text: &str, name: &str) -> Result<Task, BadProject> {
        let job = Name::of_project_task(name).map_err(|why: BadWord| {
            BadProject::at(text, self.command.span(), format!("'{name}' {why}"))
        })?;
        if self.command.get_ref().argv().is_empty() {
            let why = "a command has at least one word";
            return Err(BadProject::at(text, self.command.span(), why));
        }
        let ready = self
            .ready
            .as_ref()
            .map(|ready| {
                let read = ready.get_ref().read();
                read.map_err(|why| BadProject::at(text, ready.span(), why))
            })
            .transpose()?;
        Ok(Task {
            job,
            command: self.command.get_ref().clone(),
            needs: self
                .needs
                .iter()
                .map(|need| need.get_ref().clone())
                .collect(),
            ready,
            restart: self.restart,
            retry: self.read_retry(text)?,
            env: self.env.clone(),
            cwd: self.cwd.clone(),
            timeout: self.timeout.map(|length| length.0),
            grace: self.grace.map(|length| length.0),
            on_end: self.hooks.ended.clone(),
        })
    }

    fn read_retry(&self, text: &str) -> Result<Retry, BadProject> {
        let mut retry = Retry::default();
        if let Some(backoff) = &self.retry.backoff {
            retry.backoff_ms = in_ms(backoff.first);
            retry.max_backoff_ms = in_ms(backoff.longest);
        }
        match (self.restart, &self.retry.attempts) {
            (_, Some(attempts)) if *attempts.get_ref() == 0 => {
                let why = "an attempt is the least there can be";
                return Err(BadProject::at(text, attempts.span(), why));
            }
            (Restart::Never, Some(attempts)) => {
                let why = "attempts are for restart = \"on-failure\"";
                return Err(BadProject::at(text, attempts.span(), why));
            }
            (Restart::Never, None) => {}
            (Restart::OnFailure, attempts) => {
                let attempts = attempts.as_ref().map(|attempts| *attempts.get_ref());
                retry.max_attempts = attempts.unwrap_or(u32::MAX);
            }
        }
        Ok(retry)
    }
}

impl WrittenReady {
    fn read(&self) -> Result<Ready, &'static str> {
        let signals = [
            self.tcp.clone().map(Signal::Tcp),
            self.http.clone().map(Signal::Http),
            self.command.clone().map(Signal::Command),
            self.file.clone().map(Signal::File),
            self.log.clone().map(Signal::Log),
            self.delay.map(|delay| Signal::Delay(delay.0)),
        ];
        let mut given = signals.into_iter().flatten();
        let (Some(signal), None) = (given.next(), given.next()) else {
            return Err("ready takes one of tcp, http, command, file, log and delay");
        };
        match &signal {
            Signal::Tcp(address) if !has_port(address) => {
                return Err("tcp takes a host and a port, like 127.0.0.1:5432");
            }
            Signal::Http(address) if !address.starts_with("http://") => {
                return Err("http takes an address that begins with http://");
            }
            Signal::Command(command) if command.argv().is_empty() => {
                return Err("a command has at least one word");
            }
            Signal::Log(text) if text.is_empty() => return Err("everything is in an empty text"),
            _ => {}
        }
        Ok(Ready {
            signal,
            timeout: self.timeout.map_or(READY_TIMEOUT, |length| length.0),
        })
    }
}

fn has_port(address: &str) -> bool {
    address
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

fn in_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A length of time.
#[derive(Clone, Copy)]
struct Length(Duration);

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Length, D::Error> {
        let text = String::deserialize(deserializer)?;
        units::duration(&text)
            .map(Length)
            .map_err(de::Error::custom)
    }
}

/// `1s..1m`: the longest first wait, and the longest of all.
struct Backoff {
    first: Duration,
    longest: Duration,
}

impl<'de> Deserialize<'de> for Backoff {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Backoff, D::Error> {
        let text = String::deserialize(deserializer)?;
        let (first, longest) = text.split_once("..").unwrap_or((&text, &text));
        let read = |word| units::duration(word).map_err(de::Error::custom);
        let (first, longest) = (read(first)?, read(longest)?);
        if first > longest {
            let why = format!("'{text}' begins with the longer wait; write it the other way round");
            return Err(de::Error::custom(why));
        }
        Ok(Backoff { first, longest })
    }
}

impl<'de> Deserialize<'de> for Invocation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Invocation, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Invocation;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a line for a shell, or a list of words")
            }

            fn visit_str<E: de::Error>(self, line: &str) -> Result<Invocation, E> {
                Ok(Invocation::Shell(line.to_owned()))
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, words: A) -> Result<Invocation, A::Error> {
                let words = Vec::deserialize(de::value::SeqAccessDeserializer::new(words))?;
                Ok(Invocation::Words(words))
            }
        }
        deserializer.deserialize_any(Either)
    }
}
