//! What a job is to be, as an embedding program or the command line says it. It becomes a descriptor when the job
//! is made.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use state_machine::id::{JobId, Name};
use state_machine::pull::reference::{BadReference, Reference, shown};
use state_machine::record::{
    After, Bytes, Command, Descriptor, Environment, Kind, Limits, OnInterrupt, Output, PauseMode,
    Pull,
};
use state_machine::retry::Retry;

use super::os_string;

/// What a job is to be.
///
/// ```no_run
/// use std::time::Duration;
///
/// use outlive::JobSpec;
/// use outlive::state_machine::id::Name;
/// use outlive::state_machine::record::OnInterrupt;
///
/// let mut spec = JobSpec::command(["rsync", "-a", "photos/", "backup:photos"]);
/// spec.name = Some(Name::parse("backup")?);
/// spec.timeout = Some(Duration::from_secs(3600));
/// spec.retry.max_attempts = 3;
/// spec.priority = -1;
/// spec.on_interrupt = OnInterrupt::Resume;
/// # Ok::<(), outlive::state_machine::id::BadWord>(())
/// ```
#[derive(Clone, Debug)]
pub struct JobSpec {
    /// What is fetched; a command is run where `None`.
    pub pull: Option<PullSpec>,
    /// The program and its arguments, byte for byte; nothing of a pull.
    pub argv: Vec<OsString>,
    /// The working directory.
    pub cwd: PathBuf,
    /// The whole environment.
    pub env: Environment,
    /// The file mode creation mask of the command; the worker's own where `None`.
    pub umask: Option<u32>,
    /// What people are shown; made from `argv` where `None`.
    pub display_name: Option<String>,
    /// The name under which at most one job of the project is under way (R12).
    pub name: Option<Name>,
    /// The task that the job runs; an unnamed job of a task is numbered.
    pub task: Option<String>,
    /// The project that the job belongs to.
    pub project: Option<PathBuf>,
    /// The pool that is to admit the job; one without is for whoever makes it to start.
    pub pool: Option<String>,
    /// How many slots of the pool it takes.
    pub slots: u32,
    /// Higher goes first within a pool.
    pub priority: i32,
    /// The jobs that must have ended before it starts, each with how.
    pub after: Vec<After>,
    /// When it may start.
    pub start: StartTime,
    /// What is to become of it when its worker was lost.
    pub on_interrupt: OnInterrupt,
    /// How long an attempt may run.
    pub timeout: Option<Duration>,
    /// How failed attempts are tried again.
    pub retry: Retry,
    /// How long a stop waits before it forces.
    pub grace: Duration,
    /// What a pause does.
    pub pause: PauseMode,
    /// How output is kept.
    pub output: Output,
    /// What the command reads; the null device where `None`.
    pub stdin: Option<PathBuf>,
    /// The exit codes that count as success.
    pub success_codes: Vec<u8>,
    /// A command that is told when the job has ended.
    pub on_end: Option<Vec<OsString>>,
    /// A command that is told where it has failed, before that.
    pub on_failure: Option<Vec<OsString>>,
    /// The files that the command is made of, as patterns below the root of the project ([`state_machine::pattern`]): when one of them
    /// changes, it is run anew.
    pub watch: Vec<String>,
    /// Whether the command says by sd_notify(3) when it is ready, and what it does.
    pub notify: bool,
    /// What the command may use. It is held by a control group, where this user may make one; where not, the memory of each process
    /// is (`RLIMIT_DATA`), and nothing else.
    pub limits: Limits,
    /// The job that this one reruns.
    pub previous: Option<JobId>,
}

/// What is to be fetched, and where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullSpec {
    /// What is asked for, as [`Reference`] reads it.
    pub reference: String,
    /// Where it goes: a file of the web to this path, a repository or an image into this directory, a model into this directory
    /// of models. Links and `..` on the way there are followed when the job is made.
    pub destination: PathBuf,
    /// The branch, tag or commit of a repository.
    pub revision: Option<String>,
    /// What a file must come to, as `sha256:…`.
    pub digest: Option<String>,
    /// The files of a repository that are wanted, as patterns; all where there is none.
    pub include: Vec<String>,
    /// The files of a repository that are not wanted, as patterns.
    pub exclude: Vec<String>,
    /// How many connections there may be at a time; 4 where `None`.
    pub connections: Option<u32>,
    /// How long a connection may be silent; 30 s where `None`.
    pub idle: Option<Duration>,
}

/// How often a transfer that fails with nothing fetched is tried again in a row, and the longest wait between two, in ms.
const PULL_ATTEMPTS: u32 = 10;
const PULL_BACKOFF_MS: u64 = 300_000;

/// When a queued job may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartTime {
    /// As soon as a slot is idle.
    Now,
    /// Not before this instant, in ms since the epoch.
    At(u64),
    /// Not before so much time has passed, however the clock is set while a supervisor watches.
    In(Duration),
}

impl JobSpec {
    /// A job that runs `argv` with this process's directory and environment, and defaults for everything else.
    pub fn command<I, S>(argv: I) -> JobSpec
    where
        I: IntoIterator<Item = S>,
        S: Into<OsString>,
    {
        JobSpec {
            pull: None,
            argv: argv.into_iter().map(Into::into).collect(),
            cwd: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
            env: Environment(
                std::env::vars_os()
                    .map(|(name, value)| (Bytes(name.into_vec()), Bytes(value.into_vec())))
                    .collect(),
            ),
            umask: None,
            display_name: None,
            name: None,
            task: None,
            project: None,
            pool: None,
            slots: 1,
            priority: 0,
            after: Vec::new(),
            start: StartTime::Now,
            on_interrupt: OnInterrupt::Leave,
            timeout: None,
            retry: Retry::default(),
            grace: Duration::from_millis(Descriptor::DEFAULT_GRACE_MS),
            pause: PauseMode::default(),
            output: Output::default(),
            stdin: None,
            success_codes: vec![0],
            on_end: None,
            on_failure: None,
            watch: Vec::new(),
            notify: false,
            limits: Limits::default(),
            previous: None,
        }
    }

    /// A job that fetches what `reference` stands for to `destination`, made absolute. It is tried again where it fails, run
    /// again where its worker was lost, and a pause ends its worker and keeps what has arrived. Of this process's environment
    /// it has what concerns transfers: endpoints, tokens, proxies.
    ///
    /// # Errors
    ///
    /// When this is no reference.
    pub fn pull(reference: &str, destination: impl Into<PathBuf>) -> Result<JobSpec, BadReference> {
        let read = Reference::parse(reference)?;
        let mut spec = JobSpec::command(Vec::<OsString>::new());
        spec.env.0.retain(|(name, _)| concerns_transfers(&name.0));
        for (name, value) in &mut spec.env.0 {
            if names_a_path(&name.0) && !value.0.is_empty() {
                // Whoever makes the transfer works elsewhere.
                let path = PathBuf::from(os_string(value));
                *value = path_bytes(&std::path::absolute(&path).unwrap_or(path));
            }
        }
        spec.display_name = Some(read.file_name().unwrap_or_else(|| shown(reference)));
        spec.on_interrupt = OnInterrupt::Resume;
        spec.pause = PauseMode::Stop;
        spec.retry.max_attempts = PULL_ATTEMPTS;
        spec.retry.max_backoff_ms = PULL_BACKOFF_MS;
        let destination = destination.into();
        spec.pull = Some(PullSpec {
            reference: reference.to_owned(),
            destination: std::path::absolute(&destination).unwrap_or(destination),
            revision: None,
            digest: None,
            include: Vec::new(),
            exclude: Vec::new(),
            connections: None,
            idle: None,
        });
        Ok(spec)
    }

    /// The descriptor that this becomes, made at `now_ms`. Its id is a placeholder until the job is made.
    pub(crate) fn into_descriptor(self, now_ms: u64) -> Descriptor {
        let argv: Vec<Bytes> = self.argv.into_iter().map(bytes).collect();
        let joined = |argv: &[Bytes]| {
            let words: Vec<_> = argv.iter().map(Bytes::lossy).collect();
            words.join(" ").chars().take(DISPLAY_LIMIT).collect()
        };
        let display_name = self
            .display_name
            .or_else(|| self.name.as_ref().map(Name::to_string))
            .unwrap_or_else(|| joined(&argv));
        let (not_before_ms, delay_ms) = match self.start {
            StartTime::Now => (None, None),
            StartTime::At(at_ms) => (Some(at_ms), None),
            StartTime::In(delay) => {
                let delay_ms = in_ms(delay);
                (Some(now_ms.saturating_add(delay_ms)), Some(delay_ms))
            }
        };
        Descriptor {
            id: JobId::new(now_ms, "job", 1),
            display_name,
            kind: match self.pull {
                Some(pull) => Kind::Pull(pull.into_pull(self.env, self.umask)),
                None => Kind::Command(Command {
                    argv,
                    cwd: path_bytes(&self.cwd),
                    env: self.env,
                    umask: self.umask,
                }),
            },
            name: self.name,
            task: self.task,
            project: self.project.as_deref().map(path_bytes),
            pool: self.pool,
            slots: self.slots,
            order: 0,
            priority: self.priority,
            after: self.after,
            timeout_ms: self.timeout.map(in_ms),
            retry: self.retry,
            pause: self.pause,
            grace_ms: in_ms(self.grace),
            output: self.output,
            stdin: self.stdin.as_deref().map(path_bytes),
            success_codes: self.success_codes,
            not_before_ms,
            delay_ms,
            on_interrupt: self.on_interrupt,
            on_end: self.on_end.map(all_bytes),
            on_failure: self.on_failure.map(all_bytes),
            watch: self.watch,
            notify: self.notify,
            limits: self.limits,
            total_bytes: None,
            previous: self.previous,
            created_at_ms: now_ms,
        }
    }
}

fn all_bytes(argv: Vec<OsString>) -> Vec<Bytes> {
    argv.into_iter().map(bytes).collect()
}

impl PullSpec {
    fn into_pull(self, env: Environment, umask: Option<u32>) -> Pull {
        // Whatever cannot be read is refused by who runs it, with the reason.
        let (provider, reference) = match Reference::parse(&self.reference) {
            // What stands behind a `#` is for whoever reads the file, and another name of the same.
            Ok(Reference::Web(address)) => ("web", address),
            Ok(read) => (read.provider(), self.reference),
            Err(_) => ("web", self.reference),
        };
        let place = crate::pull::place::of(&self.destination, provider == "web");
        Pull {
            provider: provider.to_owned(),
            reference,
            destination: path_bytes(&place),
            revision: self.revision,
            digest: self.digest,
            include: self.include,
            exclude: self.exclude,
            connections: self.connections,
            idle_ms: self.idle.map(in_ms),
            umask,
            env,
        }
    }
}

/// Whether a variable says something to a transfer.
fn concerns_transfers(name: &[u8]) -> bool {
    const PREFIXES: [&[u8]; 4] = [b"HF_", b"HUGGING", b"OLLAMA_", b"REGISTRY_"];
    const NAMES: [&[u8]; 7] = [
        b"HOME",
        b"PATH",
        b"XDG_RUNTIME_DIR",
        b"XDG_CONFIG_HOME",
        b"XDG_CACHE_HOME",
        b"DOCKER_CONFIG",
        b"SSL_CERT_FILE",
    ];
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || NAMES.contains(&name)
        || name.to_ascii_lowercase().ends_with(b"_proxy")
}

/// Whether a variable of those names a file or a directory.
fn names_a_path(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 6] = [
        b"SSL_CERT_FILE",
        b"HF_TOKEN_PATH",
        b"HF_HOME",
        b"DOCKER_CONFIG",
        b"REGISTRY_AUTH_FILE",
        b"XDG_CACHE_HOME",
    ];
    NAMES.contains(&name)
}

/// How much of a command line becomes a display name, in characters.
const DISPLAY_LIMIT: usize = 120;

fn bytes(word: OsString) -> Bytes {
    Bytes(word.into_vec())
}

fn path_bytes(path: &Path) -> Bytes {
    Bytes(path.as_os_str().as_bytes().to_vec())
}

fn in_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
