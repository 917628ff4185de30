//! How a project file is written: each key, what may stand there, and what is made of it. `outlive.schema.json` is generated from
//! these types.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path};
use std::time::Duration;

#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::file::{Invocation, Ready, Restart, Signal, Task};
use super::place::BadProject;
use crate::id::{BadWord, Name};
use crate::record::Limits;
use crate::retry::Retry;
use crate::units;

/// How long a task may take to be ready when nobody says otherwise.
const READY_TIMEOUT: Duration = Duration::from_secs(30);

/// A file that says what a project needs to run, `outlive.toml`.
#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(title = "outlive.toml"))]
#[serde(default, deny_unknown_fields)]
pub(super) struct WrittenProject {
    /// The tasks, by their names.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, WrittenTask>"))]
    pub(super) task: BTreeMap<Spanned<String>, WrittenTask>,
}

/// A task: what it runs, and how.
#[derive(Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(rename = "Task"))]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenTask {
    /// What is run: a line for `sh -c`, or a list of words that is run as it is.
    #[cfg_attr(test, schemars(with = "Invocation"))]
    command: Spanned<Invocation>,
    /// The tasks that must be ready before this one is started.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub(super) needs: Vec<Spanned<String>>,
    /// When it is ready; as soon as it runs where absent.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<WrittenReady>"))]
    ready: Option<Spanned<WrittenReady>>,
    /// What happens when it ends.
    #[serde(default)]
    restart: Restart,
    /// How often and how soon it is run again.
    #[serde(default)]
    retry: WrittenRetry,
    /// Variables, set in the environment of whoever starts it.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, String>"))]
    env: BTreeMap<Spanned<String>, String>,
    /// The directory it runs in, from the root of the project; the root where absent.
    #[serde(default)]
    cwd: Option<String>,
    /// How long an attempt may run.
    #[serde(default)]
    timeout: Option<Length>,
    /// How long a stop waits between SIGTERM and SIGKILL.
    #[serde(default)]
    grace: Option<Length>,
    /// Patterns of the files that it is made of, from the root of the project: while it runs, a change of one runs it anew.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    watch: Vec<Spanned<String>>,
    /// What it may use.
    #[serde(default)]
    limits: WrittenLimits,
    /// Commands that are run when something becomes of it.
    #[serde(default)]
    hooks: Hooks,
}

/// Commands that are run when something becomes of a task.
#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "a table, as { ended = \"./tell\" }"
)]
struct Hooks {
    /// When it is ready, by whoever has started it.
    #[cfg_attr(test, schemars(with = "Option<Invocation>"))]
    ready: Option<Spanned<Invocation>>,
    /// When its job has failed; it is given the job as JSON.
    #[cfg_attr(test, schemars(with = "Option<Invocation>"))]
    failed: Option<Spanned<Invocation>>,
    /// When its job has ended, after the other; it is given the job as JSON.
    #[cfg_attr(test, schemars(with = "Option<Invocation>"))]
    ended: Option<Spanned<Invocation>>,
}

/// What a task may use.
#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(rename = "Limits"))]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "a table, as { memory = \"512M\", cpu = \"50%\" }"
)]
struct WrittenLimits {
    /// How much memory it may take, as `512M`: all of its processes together, or each of them where no control group can be had.
    memory: Option<Size>,
    /// How much time of a processor all of them may take together, as `50%` of one; where no control group can be had nothing holds it, and that is said.
    cpu: Option<Percent>,
}

/// When a task is ready: one of these, and how long that may take.
#[derive(Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(rename = "Ready"))]
#[serde(
    deny_unknown_fields,
    expecting = "a table, as { tcp = \"127.0.0.1:5432\" }"
)]
struct WrittenReady {
    /// Something accepts connections at this host and port.
    tcp: Option<String>,
    /// This address answers with a status of 200 to 399.
    http: Option<String>,
    /// This exits with 0.
    command: Option<Invocation>,
    /// This file is there, from the directory of the task.
    file: Option<String>,
    /// The task has printed this.
    log: Option<String>,
    /// The task says so itself, by sd_notify(3).
    notify: Option<bool>,
    /// It has run for so long.
    delay: Option<Length>,
    /// How long it may take; 30 s where absent.
    timeout: Option<Length>,
}

/// How often and how soon a task is run again.
#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(rename = "Retry"))]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "a table, as { attempts = 5, backoff = \"1s..1m\" }"
)]
struct WrittenRetry {
    /// How many attempts in a row there may be that do not last a minute; any number where absent.
    #[cfg_attr(test, schemars(with = "Option<u32>", range(min = 1)))]
    attempts: Option<Spanned<u32>>,
    /// The longest first wait, and the longest of all, as `1s..1m`.
    #[cfg_attr(test, schemars(with = "Option<Backoff>"))]
    backoff: Option<Spanned<Backoff>>,
}

impl WrittenTask {
    /// What it means.
    pub(super) fn read(&self, text: &str, name: &str) -> Result<Task, BadProject> {
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
            env: self.read_env(text)?,
            cwd: self.cwd.clone(),
            timeout: self.timeout.map(|length| length.0),
            grace: self.grace.map(|length| length.0),
            watch: self.read_watch(text)?,
            limits: Limits {
                memory_bytes: self.limits.memory.as_ref().map(|size| size.0),
                cpu_percent: self.limits.cpu.as_ref().map(|percent| percent.0),
            },
            on_ready: read_hook(text, self.hooks.ready.as_ref())?,
            on_failure: read_hook(text, self.hooks.failed.as_ref())?,
            on_end: read_hook(text, self.hooks.ended.as_ref())?,
        })
    }

    fn read_env(&self, text: &str) -> Result<BTreeMap<String, String>, BadProject> {
        let mut env = BTreeMap::new();
        for (name, value) in &self.env {
            if name.get_ref().is_empty() || name.get_ref().contains(['=', '\0']) {
                let why = format!("'{}' cannot be the name of a variable", name.get_ref());
                return Err(BadProject::at(text, name.span(), why));
            }
            env.insert(name.get_ref().clone(), value.clone());
        }
        Ok(env)
    }

    fn read_watch(&self, text: &str) -> Result<Vec<String>, BadProject> {
        let read = |pattern: &Spanned<String>| {
            let path = Path::new(pattern.get_ref());
            let goes_down = path
                .components()
                .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
            if !goes_down || pattern.get_ref().is_empty() {
                let why = "what is watched is below the root of the project, and begins there";
                return Err(BadProject::at(text, pattern.span(), why));
            }
            let plain = pattern.get_ref();
            Ok(plain.strip_prefix("./").unwrap_or(plain).to_owned())
        };
        self.watch.iter().map(read).collect()
    }

    fn read_retry(&self, text: &str) -> Result<Retry, BadProject> {
        let mut retry = Retry {
            in_a_row: self.restart != Restart::Never,
            always: self.restart == Restart::Always,
            ..Retry::default()
        };
        if let Some(backoff) = &self.retry.backoff {
            retry.backoff_ms = in_ms(backoff.get_ref().first);
            retry.max_backoff_ms = in_ms(backoff.get_ref().longest);
        }
        if let (Restart::Never, Some(backoff)) = (self.restart, &self.retry.backoff) {
            let why = "a backoff is for restart = \"on-failure\" and \"always\"";
            return Err(BadProject::at(text, backoff.span(), why));
        }
        match (self.restart, &self.retry.attempts) {
            (_, Some(attempts)) if *attempts.get_ref() == 0 => {
                let why = "an attempt is the least there can be";
                return Err(BadProject::at(text, attempts.span(), why));
            }
            (Restart::Never, Some(attempts)) => {
                let why = "attempts are for restart = \"on-failure\" and \"always\"";
                return Err(BadProject::at(text, attempts.span(), why));
            }
            (Restart::Never, None) => {}
            (Restart::OnFailure | Restart::Always, attempts) => {
                let attempts = attempts.as_ref().map(|attempts| *attempts.get_ref());
                retry.max_attempts = attempts.unwrap_or(u32::MAX);
            }
        }
        Ok(retry)
    }
}

/// Read the command of a hook.
fn read_hook(
    text: &str,
    hook: Option<&Spanned<Invocation>>,
) -> Result<Option<Invocation>, BadProject> {
    let Some(hook) = hook else { return Ok(None) };
    if hook.get_ref().argv().is_empty() {
        let why = "a command has at least one word";
        return Err(BadProject::at(text, hook.span(), why));
    }
    Ok(Some(hook.get_ref().clone()))
}

impl WrittenReady {
    fn read(&self) -> Result<Ready, &'static str> {
        let signals = [
            self.tcp.clone().map(Signal::Tcp),
            self.http.clone().map(Signal::Http),
            self.command.clone().map(Signal::Command),
            self.file.clone().map(Signal::File),
            self.log.clone().map(Signal::Log),
            self.notify.map(|_| Signal::Notify),
            self.delay.map(|delay| Signal::Delay(delay.0)),
        ];
        let mut given = signals.into_iter().flatten();
        let (Some(signal), None) = (given.next(), given.next()) else {
            return Err("ready takes one of tcp, http, command, file, log, notify and delay");
        };
        if self.notify == Some(false) {
            return Err("notify is true, or absent");
        }
        match &signal {
            Signal::Tcp(address) if !has_port(address) => {
                return Err("tcp takes a host and a port, like 127.0.0.1:5432");
            }
            Signal::Http(address) if !is_http(address) => {
                return Err("http takes an address like http://127.0.0.1:8080/health");
            }
            Signal::Delay(delay) if self.timeout.is_some_and(|most| most.0 < *delay) => {
                return Err("it cannot be ready in time: delay is longer than timeout");
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

/// Whether this names a host, and a port that there can be where it names one.
fn is_http(address: &str) -> bool {
    let Some(rest) = address.strip_prefix("http://") else {
        return false;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // Before it may stand a user, and a password in which there may be anything.
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    // The colons of an address of IPv6 are in brackets.
    let after = host.rsplit_once(']').map_or(host, |(_, after)| after);
    match after.rsplit_once(':') {
        Some((before, port)) => {
            (!before.is_empty() || host.starts_with('[')) && port.parse::<u16>().is_ok()
        }
        None => !host.is_empty(),
    }
}

fn in_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Read a text that stands for something; `what` says for what, where there is something else.
fn text<'de, D: Deserializer<'de>>(
    deserializer: D,
    what: &'static str,
) -> Result<String, D::Error> {
    struct Text(&'static str);

    impl Visitor<'_> for Text {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }
    }
    deserializer.deserialize_any(Text(what))
}

impl<'de> Deserialize<'de> for Restart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Restart, D::Error> {
        const WORDS: [&str; 3] = ["never", "on-failure", "always"];
        let what = "\"never\", \"on-failure\" or \"always\"";
        match text(deserializer, what)?.as_str() {
            "never" => Ok(Restart::Never),
            "on-failure" => Ok(Restart::OnFailure),
            "always" => Ok(Restart::Always),
            other => Err(de::Error::unknown_variant(other, &WORDS)),
        }
    }
}

/// A length of time.
#[derive(Clone, Copy)]
struct Length(Duration);

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Length, D::Error> {
        let text = text(deserializer, "a time in quotes, as \"10s\"")?;
        units::duration(&text)
            .map(Length)
            .map_err(de::Error::custom)
    }
}

/// A number of bytes.
struct Size(u64);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Size, D::Error> {
        let text = text(deserializer, "a size in quotes, as \"512M\"")?;
        units::memory(&text).map(Size).map_err(de::Error::custom)
    }
}

/// A part of one processor, or several of them.
struct Percent(u32);

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Percent, D::Error> {
        let text = text(deserializer, "a part of a processor in quotes, as \"50%\"")?;
        units::percent(&text)
            .map(Percent)
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
        let text = text(deserializer, "two times in quotes, as \"1s..1m\"")?;
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

#[cfg(test)]
mod schema {
    use std::borrow::Cow;

    use super::*;

    impl JsonSchema for Invocation {
        fn schema_name() -> Cow<'static, str> {
            "Command".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({
                "description": "A line for `sh -c`, or a list of words that is run as it is.",
                "oneOf": [
                    { "type": "string" },
                    { "type": "array", "items": { "type": "string" }, "minItems": 1 },
                ],
            })
        }
    }

    impl JsonSchema for Length {
        fn schema_name() -> Cow<'static, str> {
            "Length".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({
                "description": "A length of time.",
                "type": "string",
                "examples": ["500ms", "10s", "1h30m", "1d"],
            })
        }
    }

    impl JsonSchema for Size {
        fn schema_name() -> Cow<'static, str> {
            "Size".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({
                "description": "A number of bytes.",
                "type": "string",
                "examples": ["512M", "2G"],
            })
        }
    }

    impl JsonSchema for Percent {
        fn schema_name() -> Cow<'static, str> {
            "Percent".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({
                "description": "A part of one processor, or several of them.",
                "type": "string",
                "pattern": "^[0-9]+%$",
                "examples": ["50%", "200%"],
            })
        }
    }

    impl JsonSchema for Backoff {
        fn schema_name() -> Cow<'static, str> {
            "Backoff".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({
                "description": "The longest first wait, and the longest of all.",
                "type": "string",
                "examples": ["1s..1m"],
            })
        }
    }

    /// The committed schema is the one that these types make; where it is not, what is printed belongs there.
    #[test]
    fn the_schema_is_generated() {
        let generated = SchemaGenerator::default().into_root_schema_for::<WrittenProject>();
        let mut text = serde_json::to_string_pretty(&generated).expect("it is JSON");
        text.push('\n');
        let committed = include_str!("../../../docs/outlive.schema.json");
        assert!(
            committed == text,
            "docs/outlive.schema.json should be:\n{text}"
        );
    }
}
