//! The descriptor, `job.json`: what was asked for. It is written once, before the job can be seen, and never
//! changes.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::bytes::{from_hex, to_hex};
use super::{Bytes, Damaged};
use crate::id::{JobId, Name};
use crate::retry::Retry;

/// What a job is to do, and how.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Descriptor {
    /// The job's id, which is also the name of its directory.
    pub id: JobId,
    /// The work itself.
    pub kind: Kind,
    /// What people are shown.
    pub display_name: String,
    /// The name under which at most one job of a project is under way (R12).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// The task of the project file that this job runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The root of the project that the job belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Bytes>,
    /// The pool whose slots admit the job; a job without one is started by whoever makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// How many slots of its pool it takes.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub slots: u32,
    /// Higher goes first within a pool.
    #[serde(default)]
    pub priority: i32,
    /// Its place among those that were made with it: within a pool the older goes first, and of those made at once the
    /// one that was named first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub order: u32,
    /// The jobs that must have ended before this one starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<After>,
    /// How long one attempt may run, in ms of time not spent frozen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How failed attempts are tried again.
    #[serde(default)]
    pub retry: Retry,
    /// What a pause does.
    #[serde(default)]
    pub pause: PauseMode,
    /// How long a stop waits between the stop signal and SIGKILL, in ms.
    #[serde(default = "default_grace_ms")]
    pub grace_ms: u64,
    /// How output is kept.
    #[serde(default)]
    pub output: Output,
    /// The file that the command reads as its standard input; the null device where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<Bytes>,
    /// The exit codes that count as success.
    #[serde(default = "default_success_codes")]
    pub success_codes: Vec<u8>,
    /// Not started before this instant, in ms since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before_ms: Option<u64>,
    /// How long it was to wait, in ms, where that was asked for as a length of time: however the clock is set, it is not
    /// waited for longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// What is to become of it when its worker was lost.
    #[serde(default)]
    pub on_interrupt: OnInterrupt,
    /// A command that is given the job's JSON on its standard input once the job has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_end: Option<Vec<Bytes>>,
    /// How much there is to transfer, in bytes, where that is known beforehand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
    /// The job that this one reruns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<JobId>,
    /// When the job was made, in ms since the epoch. For people; nothing is timed by it.
    pub created_at_ms: u64,
}

/// The grace that a job has when nothing else was said, in ms.
const DEFAULT_GRACE_MS: u64 = 10_000;

fn default_grace_ms() -> u64 {
    DEFAULT_GRACE_MS
}

fn default_success_codes() -> Vec<u8> {
    vec![0]
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it so")]
fn is_one(value: &u32) -> bool {
    *value == 1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it so")]
fn is_zero(value: &u32) -> bool {
    *value == 0
}

impl Descriptor {
    /// The default grace of a job, in ms.
    pub const DEFAULT_GRACE_MS: u64 = DEFAULT_GRACE_MS;

    /// Whether the job was to start at once: then a queued one that nobody holds has lost its starter.
    pub fn starts_at_once(&self) -> bool {
        self.pool.is_none()
    }

    /// The bytes of `job.json`.
    pub fn encode(&self) -> Vec<u8> {
        super::encode(self)
    }

    /// Read the bytes of `job.json`.
    pub fn decode(bytes: &[u8]) -> Result<Descriptor, Damaged> {
        super::decode(bytes)
    }
}

/// The work of a job.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Run a command.
    Command(Command),
    /// Fetch something.
    Pull(Pull),
}

impl Kind {
    /// The word that listings use.
    pub fn word(&self) -> &'static str {
        match self {
            Kind::Command(_) => "command",
            Kind::Pull(_) => "pull",
        }
    }
}

/// A command, byte for byte as its submitter gave it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Command {
    /// The program and its arguments.
    pub argv: Vec<Bytes>,
    /// The working directory, an absolute path.
    pub cwd: Bytes,
    /// The whole environment.
    pub env: Environment,
    /// The file mode creation mask of the submitter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<u32>,
}

/// A transfer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pull {
    /// Who is asked: `https`, `hf`, `oci`, `ollama`.
    pub provider: String,
    /// What is asked for.
    pub reference: String,
    /// Where it goes, an absolute path.
    pub destination: Bytes,
    /// The revision that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The digest that it must have, as `algorithm:hex`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// An environment: names and values in order, doubles included.
///
/// As JSON it is one object. A value that is not UTF-8 is `{"hex":"…"}`; a name that is not UTF-8 is a zero
/// character, which no name can hold, and then the hex of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Environment(pub Vec<(Bytes, Bytes)>);

impl Environment {
    /// Set `name` to `value`, whatever it was before.
    pub fn set(&mut self, name: &[u8], value: &[u8]) {
        self.unset(name);
        self.0.push((Bytes(name.to_vec()), Bytes(value.to_vec())));
    }

    /// Remove `name`.
    pub fn unset(&mut self, name: &[u8]) {
        self.0.retain(|(known, _)| known.0 != name);
    }

    /// The value of `name`, if it is set.
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.0
            .iter()
            .find(|(known, _)| known.0 == name)
            .map(|(_, value)| value.0.as_slice())
    }
}

impl Serialize for Environment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| {
            let name = match std::str::from_utf8(&name.0) {
                Ok(text) if !text.starts_with('\0') => std::borrow::Cow::Borrowed(text),
                _ => format!("\0{}", to_hex(&name.0)).into(),
            };
            (name, value)
        }))
    }
}

impl<'de> Deserialize<'de> for Environment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Environment, D::Error> {
        struct Pairs;
        impl<'de> serde::de::Visitor<'de> for Pairs {
            type Value = Environment;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of names and values")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Environment, A::Error> {
                let mut pairs = Vec::with_capacity(map.size_hint().unwrap_or(0).min(4096));
                while let Some((name, value)) = map.next_entry::<String, Bytes>()? {
                    let name = match name.strip_prefix('\0') {
                        None => name.into_bytes(),
                        Some(hex) => from_hex(hex).ok_or_else(|| {
                            serde::de::Error::custom("a name in env holds something else than hex")
                        })?,
                    };
                    pairs.push((Bytes(name), value));
                }
                Ok(Environment(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// A job that must have ended before another starts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct After {
    /// The job that is waited for.
    pub job: JobId,
    /// How it must have ended.
    pub when: AfterWhen,
}

/// How a dependency must have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterWhen {
    /// It must be done.
    Success,
    /// It must have failed.
    Failure,
    /// It must have ended, however.
    End,
}

/// What is to become of a job whose worker was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnInterrupt {
    /// It stays interrupted until somebody resumes it: a command need not bear being run again.
    #[default]
    Leave,
    /// A supervisor runs it again.
    Resume,
}

/// What a pause does to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseMode {
    /// Stop every process of the tree where it stands; the worker stays.
    #[default]
    Freeze,
    /// End the tree and the worker; a resume starts the command again.
    Stop,
}

/// How output is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Output {
    /// The most that is kept of all output together, in bytes; everything where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// Over how many older files beside the current one that is spread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<u32>,
    /// Whether standard output and standard error go to files of their own.
    pub split: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_keeps_every_byte_and_the_order() {
        let env = Environment(vec![
            (Bytes::from("B"), Bytes::from("%H 'q' \n=")),
            (Bytes::from("A-B"), Bytes(vec![0xfe, 0xff])),
            (Bytes(vec![b'X', 0x80]), Bytes::from("")),
            (Bytes::from("hex"), Bytes::from("{\"hex\":\"00\"}")),
            (Bytes::from("B"), Bytes::from("twice")),
        ]);
        let json = serde_json::to_string(&env).unwrap();
        assert_eq!(serde_json::from_str::<Environment>(&json).unwrap(), env);
    }

    #[test]
    fn a_short_descriptor_gets_the_documented_defaults() {
        let json = br#"{"id":"1-true","kind":{"command":{"argv":["true"],"cwd":"/","env":{}}},
            "display_name":"true","created_at_ms":1,"from_the_future":{"a":[1]}}"#;
        let descriptor = Descriptor::decode(json).unwrap();
        assert_eq!(descriptor.grace_ms, 10_000);
        assert_eq!(descriptor.success_codes, [0]);
        assert_eq!(descriptor.pause, PauseMode::Freeze);
        assert_eq!(descriptor.retry, Retry::default());
        assert!(descriptor.starts_at_once());
        assert_eq!(
            Descriptor::decode(&descriptor.encode()).unwrap(),
            descriptor
        );
    }

    #[test]
    fn an_id_that_would_leave_the_store_is_refused() {
        let json = br#"{"id":"../x","kind":{"command":{"argv":["true"],"cwd":"/","env":{}}},
            "display_name":"true","created_at_ms":1}"#;
        assert!(Descriptor::decode(json).is_err());
    }
}
