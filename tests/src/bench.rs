//! The bench of one test: a scratch directory with a store in it, a marker in the environment of everything that is
//! run, and a clean-up that kills exactly what carries the marker.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use outlive::{JobSpec, Store};
use rustix::fs::FlockOperation;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::census::{Process, census};
use crate::files::could_lock;
use crate::job::Job;
use crate::mounts::TmpFs;
use crate::ran::{Ran, show};
use crate::tape::Played;
use crate::until::{DEADLINE, until};

/// The variable that marks everything that a bench runs.
pub const MARKER: &str = "OUTLIVE_TEST_BENCH";

/// The variable that says after how much of what it asks of the disk the binary under test is killed.
pub const DIE_AFTER: &str = "OUTLIVE_TEST_DIE_AFTER";

/// The variable that names a file for the binary under test: once that is gone, its directory cannot be synced.
pub const UNSYNCED: &str = "OUTLIVE_TEST_UNSYNCED";

/// Where tapes are kept, from the root of a store.
pub const TAPES: &str = "../tape";

/// How long one verb may take: longer than any wait of its own, and shorter than what tests take for "for ever".
const VERB_LIMIT: Duration = Duration::from_secs(40);

/// A scratch store and everything that runs on it.
#[derive(Debug)]
pub struct Bench {
    /// The file system that the store lies on; unmounted once nothing runs on it, before the directory is removed.
    disk: OnceLock<TmpFs>,
    dir: TempDir,
    binary: PathBuf,
    marker: String,
    pub(crate) audited: AtomicBool,
    /// Processes were killed at random here, so the history may be a step behind the record.
    pub(crate) crashed: AtomicBool,
}

impl Bench {
    /// A bench whose command line is `binary`.
    ///
    /// # Panics
    ///
    /// When there is no room for it.
    pub fn new(binary: &str) -> Bench {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let dir = tempfile::Builder::new()
            .prefix("outlive-test-")
            .tempdir()
            .expect("there is a directory for temporary files");
        for part in ["work", "tape"] {
            fs::create_dir(dir.path().join(part)).expect("a new directory is empty");
        }
        outlive::disk::record_in(TAPES.into());
        let marker = format!(
            "{}-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed),
            dir.path().file_name().unwrap_or_default().to_string_lossy()
        );
        Bench {
            disk: OnceLock::new(),
            dir,
            binary: binary.into(),
            marker,
            audited: AtomicBool::new(false),
            crashed: AtomicBool::new(false),
        }
    }

    /// The scratch directory.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Where verbs are given: an empty directory that is in no project.
    pub fn work(&self) -> PathBuf {
        self.dir().join("work")
    }

    /// A file in the working directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.work().join(name)
    }

    /// The root of the store.
    pub fn root(&self) -> PathBuf {
        self.dir().join("store")
    }

    /// The binary under test.
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// Put the store on a small file system of its own, of `size` (as mount(8) reads it). `None`, with the reason
    /// printed, where that is not allowed.
    pub fn mount(&self, size: &str) -> Option<&TmpFs> {
        let mounted = TmpFs::mount(&self.root(), size)?;
        Some(self.disk.get_or_init(|| mounted))
    }

    /// Say that processes are killed at random here.
    pub fn crashes(&self) {
        self.crashed.store(true, Ordering::Relaxed);
    }

    /// The store through the library.
    ///
    /// # Panics
    ///
    /// When it is refused.
    pub fn store(&self) -> Store {
        Store::open(self.root()).expect("the store of a bench is good")
    }

    /// A job that nobody has started yet, made through the library.
    ///
    /// # Panics
    ///
    /// When it cannot be made.
    pub fn queue(&self, argv: &[&str]) -> Job<'_> {
        let job = self.store().create(self.spec(argv));
        self.job(job.expect("a job can be made").id().as_str())
    }

    /// What a job is to be, with this bench's marker in its environment.
    pub fn spec(&self, argv: &[&str]) -> JobSpec {
        let mut spec = JobSpec::command(argv.iter().copied());
        spec.cwd = self.work();
        spec.env.set(MARKER.as_bytes(), self.marker.as_bytes());
        spec
    }

    /// Any program, with the environment of the bench.
    pub fn program(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.work())
            .env("OUTLIVE_ROOT", self.root())
            .env(MARKER, &self.marker)
            .env_remove("OUTLIVE_JOB")
            .env_remove("OUTLIVE_JOB_DIR")
            .env("LC_ALL", "C");
        command
    }

    /// A verb of the command line, not run yet.
    pub fn verb<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.program(&self.binary);
        command.args(arguments);
        command
    }

    /// A verb of the command line behind a shell that first does `first`: `ulimit`, `umask`, `trap`.
    pub fn verb_after<S: AsRef<OsStr>>(
        &self,
        first: &str,
        arguments: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = self.program("sh");
        command
            .arg("-c")
            .arg(format!("{first}; exec \"$0\" \"$@\""))
            .arg(&self.binary)
            .args(arguments);
        command
    }

    /// Run a verb to its end.
    #[track_caller]
    pub fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Ran {
        self.end(self.verb(arguments))
    }

    /// Run a command to its end.
    #[track_caller]
    pub fn end(&self, command: Command) -> Ran {
        Ran::run(command, VERB_LIMIT)
    }

    /// Leave a command running in the background, with its streams captured.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    pub fn background(&self, mut command: Command) -> Background {
        let what = show(&command);
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        Background { child, what }
    }

    /// Start a job with `run` and these arguments, and see that it started.
    #[track_caller]
    pub fn start<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Job<'_> {
        let ran = self.run(with_verb("run", arguments)).expect(0);
        self.job(&ran.text())
    }

    /// Start a script of the shell as a job.
    #[track_caller]
    pub fn sh(&self, script: &str) -> Job<'_> {
        self.start(["--", "sh", "-c", script])
    }

    /// Start a script of the shell as a job, with options.
    #[track_caller]
    pub fn sh_with(&self, options: &[&str], script: &str) -> Job<'_> {
        let arguments: Vec<&str> = [options, &["--", "sh", "-c", script]].concat();
        self.start(arguments)
    }

    /// Queue a script of the shell with options, and see that it was queued.
    #[track_caller]
    pub fn queued(&self, options: &[&str], script: &str) -> Job<'_> {
        let arguments = [&["queue"], options, &["--", "sh", "-c", script]].concat();
        self.job(&self.run(arguments).expect(0).text())
    }

    /// Queue what these lines of JSON ask for, and see that it was queued.
    #[track_caller]
    pub fn queued_from(&self, options: &[&str], lines: &[Value]) -> Vec<Job<'_>> {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let file = self.dir().join("batch.jsonl");
        fs::write(&file, text).expect("a scratch directory can be written to");
        let mut command = self.verb(["queue", "--from"]);
        command.arg(file).args(options);
        let ids = self.end(command).expect(0).text();
        ids.lines().map(|id| self.job(id)).collect()
    }

    /// The supervisors that belong to this bench.
    pub fn supervisors(&self) -> Vec<Process> {
        let mut found = self.census();
        found.retain(Process::is_supervisor);
        found
    }

    /// Kill the supervisor, as nobody should, and wait until it is gone.
    ///
    /// # Panics
    ///
    /// When it does not go.
    #[track_caller]
    pub fn kill_supervisor(&self) {
        self.crashes();
        for supervisor in self.supervisors() {
            supervisor.kill();
            until("the supervisor is gone", || !supervisor.lives());
        }
        // It had threads, and the last of them to end gives up what they had in common.
        until("nobody has the supervisor's lock", || {
            let lock = fs::File::open(self.root().join("supervisor.lock"));
            lock.map_or(true, |lock| {
                could_lock(&lock, FlockOperation::NonBlockingLockShared)
            })
        });
    }

    /// Tell the supervisor to end, if there is one, and wait until it and its spawner are gone.
    ///
    /// # Panics
    ///
    /// When it does not go.
    #[track_caller]
    pub fn end_supervisor(&self) {
        until("the supervisor is gone", || {
            let supervisors = self.supervisors();
            for supervisor in &supervisors {
                supervisor.signal(Signal::TERM);
            }
            supervisors.is_empty()
        });
    }

    /// A job of this store.
    pub fn job(&self, id: &str) -> Job<'_> {
        Job::new(self, id)
    }

    /// Every job of the store, as the directories say.
    pub fn jobs(&self) -> Vec<Job<'_>> {
        let mut ids: Vec<String> = fs::read_dir(self.root().join("jobs"))
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        ids.sort();
        ids.iter().map(|id| self.job(id)).collect()
    }

    /// What `list --json` says.
    #[track_caller]
    pub fn list(&self) -> Vec<Value> {
        match self.run(["list", "--all", "--json"]).expect(0).json() {
            Value::Array(jobs) => jobs,
            other => panic!("a list is an array, not {other}"),
        }
    }

    /// Stop everything that has not ended; whether force was needed does not matter here.
    #[track_caller]
    pub fn stop_all(&self) {
        let ran = self.run(["stop", "--all"]);
        assert!(matches!(ran.code(), 0 | 1), "{ran:?}");
    }

    /// The processes that belong to this bench.
    pub fn census(&self) -> Vec<Process> {
        census(&self.marker, self.dir())
    }

    /// Replay every tape that was kept so far: what protocols ask for is decided by their arguments and the disk's replies
    /// alone, so each must ask for the same again.
    ///
    /// # Panics
    ///
    /// When one asks for something else.
    #[track_caller]
    pub fn replay(&self) -> Played {
        Played::directory(&self.dir().join("tape")).unwrap_or_else(|refused| panic!("{refused}"))
    }

    /// Whether the command line has this verb yet.
    pub fn has_verb(&self, verb: &str) -> bool {
        self.run([verb, "--help"]).code() == 0
    }

    /// A process that has nothing to do with the bench, killed when it is dropped.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    pub fn bystander(&self, program: &str, arguments: &[&str]) -> Bystander {
        let child = Command::new(program)
            .args(arguments)
            .current_dir("/")
            .env_remove(MARKER)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        Bystander(child.expect("a process can be started"))
    }

    /// Kill what belongs to the bench until nothing is found; what had to be killed.
    fn clear(&self) -> Vec<Process> {
        let deadline = Instant::now() + DEADLINE;
        let mut killed: Vec<Process> = Vec::new();
        loop {
            let found = self.census();
            if found.is_empty() || Instant::now() > deadline {
                return killed;
            }
            for process in found {
                process.kill();
                if !killed.contains(&process) {
                    killed.push(process);
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A verb in front of its arguments.
fn with_verb<S: AsRef<OsStr>>(verb: &str, arguments: impl IntoIterator<Item = S>) -> Vec<OsString> {
    std::iter::once(OsString::from(verb))
        .chain(arguments.into_iter().map(|word| word.as_ref().to_owned()))
        .collect()
}

impl Drop for Bench {
    fn drop(&mut self) {
        let left = self.clear();
        if std::thread::panicking() {
            return;
        }
        assert!(
            self.audited.load(Ordering::Relaxed),
            "a test ends with an audit"
        );
        assert!(left.is_empty(), "processes were left: {left:?}");
        println!("replayed: {}", self.replay());
    }
}

/// A command that runs in the background.
#[derive(Debug)]
pub struct Background {
    /// The process.
    pub child: Child,
    what: String,
}

impl Background {
    /// Wait for its end.
    #[track_caller]
    pub fn end(self) -> Ran {
        self.end_within(VERB_LIMIT)
    }

    /// Wait for the end of one that does more than a verb.
    #[track_caller]
    pub fn end_within(self, limit: Duration) -> Ran {
        Ran::end_of(self.child, self.what, limit)
    }

    /// Kill it, now.
    ///
    /// # Panics
    ///
    /// When the kernel does not let us.
    pub fn kill(mut self) {
        self.child.kill().expect("a child can be killed");
        self.child.wait().expect("a killed child ends");
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Send it a signal.
    ///
    /// # Panics
    ///
    /// When it has been waited for.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal)
            .expect("it is there until it is waited for");
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

/// A process that has nothing to do with a bench.
#[derive(Debug)]
pub struct Bystander(Child);

impl Bystander {
    /// Its number.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        // One that has ended already needs no killing.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
