//! The descriptor, `job.json`: what was asked for. It is written once, before the job can be seen, and never
//! changes.

use serde::{Deserialize, Serialize};

use super::environment::{Environment, Unread};
use super::{Bytes, Damaged};
use crate::id::{JobId, Name};
use crate::retry::Retry;

/// What a job is to do, and how. `E` is the environment of a command, or what stands for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Descriptor<E = Environment> {
    /// The job's id, which is also the name of its directory.
    pub id: JobId,
    /// The work itself.
    pub kind: Kind<E>,
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
    /// A command that is given the same where it has failed, before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<Vec<Bytes>>,
    /// The files that the command is made of, as patterns below the root of the project: when one of them changes, it is run anew.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watch: Vec<String>,
    /// Whether the command says of itself when it is ready, and what it does.
    #[serde(default, skip_serializing_if = "is_false")]
    pub notify: bool,
    /// What it may use.
    #[serde(default, skip_serializing_if = "Limits::are_none")]
    pub limits: Limits,
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
fn is_false(value: &bool) -> bool {
    !value
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

    /// As [`Descriptor::decode`], for a listing: the environment, which is most of a descriptor and which no listing shows, is
    /// checked and left empty. What is damaged for one is damaged for the other.
    pub fn decode_without_environment(bytes: &[u8]) -> Result<Descriptor, Damaged> {
        super::decode::<Descriptor<Unread>>(bytes).map(Descriptor::with_empty_environment)
    }
}

impl Descriptor<Unread> {
    fn with_empty_environment(self) -> Descriptor {
        Descriptor {
            id: self.id,
            kind: match self.kind {
                Kind::Command(command) => Kind::Command(Command {
                    argv: command.argv,
                    cwd: command.cwd,
                    env: Environment::default(),
                    umask: command.umask,
                }),
                Kind::Pull(pull) => Kind::Pull(Pull {
                    provider: pull.provider,
                    reference: pull.reference,
                    destination: pull.destination,
                    revision: pull.revision,
                    digest: pull.digest,
                    include: pull.include,
                    exclude: pull.exclude,
                    connections: pull.connections,
                    idle_ms: pull.idle_ms,
                    umask: pull.umask,
                    env: Environment::default(),
                }),
            },
            display_name: self.display_name,
            name: self.name,
            task: self.task,
            project: self.project,
            pool: self.pool,
            slots: self.slots,
            priority: self.priority,
            order: self.order,
            after: self.after,
            timeout_ms: self.timeout_ms,
            retry: self.retry,
            pause: self.pause,
            grace_ms: self.grace_ms,
            output: self.output,
            stdin: self.stdin,
            success_codes: self.success_codes,
            not_before_ms: self.not_before_ms,
            delay_ms: self.delay_ms,
            on_interrupt: self.on_interrupt,
            on_end: self.on_end,
            on_failure: self.on_failure,
            watch: self.watch,
            notify: self.notify,
            limits: self.limits,
            total_bytes: self.total_bytes,
            previous: self.previous,
            created_at_ms: self.created_at_ms,
        }
    }
}

/// The work of a job.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind<E = Environment> {
    /// Run a command.
    Command(Command<E>),
    /// Fetch something.
    Pull(Pull<E>),
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
pub struct Command<E = Environment> {
    /// The program and its arguments.
    pub argv: Vec<Bytes>,
    /// The working directory, an absolute path.
    pub cwd: Bytes,
    /// The whole environment.
    pub env: E,
    /// The file mode creation mask of the submitter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<u32>,
}

/// A transfer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pull<E = Environment> {
    /// Who is asked: `web`, `hf`, `oci`, `ollama`.
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
    /// The files of a repository that are wanted, as patterns; all where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// The files of a repository that are not wanted, as patterns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// How many connections there may be at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    /// How long a connection may be silent, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    /// The file mode creation mask of its submitter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<u32>,
    /// What its submitter had set for such transfers: endpoints, tokens, proxies.
    pub env: E,
}

impl<E> Pull<E> {
    /// What at most one transfer is under way to (R12): the destination, and below one that many share, what is asked for.
    pub fn target(&self) -> Vec<u8> {
        let mut target = self.destination.0.clone();
        if matches!(self.provider.as_str(), "oci" | "ollama") {
            target.push(0);
            target.extend(self.reference.as_bytes());
        }
        target
    }

    /// Whether both ask for the same.
    pub fn asks_for_the_same(&self, other: &Pull<E>) -> bool {
        self.target() == other.target()
            && self.reference == other.reference
            && self.revision == other.revision
            && self.digest == other.digest
            && self.include == other.include
            && self.exclude == other.exclude
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

/// What a command may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// How much memory all of its processes may take together, in bytes; where no control group can be had, each of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// How much time of a processor all of them may take together, in percent of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<u32>,
}

impl Limits {
    fn are_none(&self) -> bool {
        *self == Limits::default()
    }
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
    fn what_is_damaged_in_full_is_damaged_for_a_listing() {
        let with_env = |env: &str| {
            format!(
                r#"{{"id":"1-x","kind":{{"command":{{"argv":["x","y"],"cwd":"/","env":{env},"umask":18}}}},
                "display_name":"x","pool":"p","order":3,"created_at_ms":1}}"#
            )
        };
        let all = r#"{"A":"b","C":{"hex":"ff"},"D":"\"\u00e9","\u0000ff":"","A":""}"#;
        let json = with_env(all);
        let full = Descriptor::decode(json.as_bytes()).unwrap();
        let listed = Descriptor::decode_without_environment(json.as_bytes()).unwrap();
        let Kind::Command(command) = &full.kind else {
            panic!("it is a command")
        };
        assert_eq!(command.env.0.len(), 5);
        let kind = Kind::Command(Command {
            env: Environment::default(),
            ..command.clone()
        });
        assert_eq!(listed, Descriptor { kind, ..full });
        for bad in [
            "7",
            "[]",
            "{",
            r#"{"A":7}"#,
            r#"{"A":{"hex":"f"}}"#,
            r#"{"A":{}}"#,
            r#"{"A":"\x"}"#,
            r#"{"\u0000f":""}"#,
            "{\"A\":\"\u{1}\"}",
        ] {
            let json = with_env(bad);
            let full = Descriptor::decode(json.as_bytes());
            let listed = Descriptor::decode_without_environment(json.as_bytes());
            assert!(full.is_err(), "{bad}");
            assert_eq!(listed, full, "{bad}");
        }
    }

    #[test]
    fn an_id_that_would_leave_the_store_is_refused() {
        let json = br#"{"id":"../x","kind":{"command":{"argv":["true"],"cwd":"/","env":{}}},
            "display_name":"true","created_at_ms":1}"#;
        assert!(Descriptor::decode(json).is_err());
    }
}
