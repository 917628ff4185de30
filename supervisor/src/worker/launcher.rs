//! Starting a worker from a program with many threads: it executes one that has a single thread, which forks the worker away
//! from its parent and leaves no child behind.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{FlockOperation, flock, fstat, stat};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio::dup2_stdin;
use state_machine::course::take::By;
use state_machine::disk::{Dir, Disk, Read};
use state_machine::id::JobId;
use state_machine::protocol::hold::newborn;

use super::launch::launch;
use super::take::take_in_time;
use crate::disk::LockFile;
use crate::error::{DiskError, Error, Result};
use crate::process::Minder;
use crate::slots::Slots;
use crate::store::{Begun, Held, Job, JobSpec, Store};
use crate::sys;

/// How a program with threads starts workers: which program is executed for that, and how it is told what to be.
#[derive(Clone, Debug)]
pub struct Launcher {
    program: PathBuf,
    told: Told,
}

/// How the program is told what to be.
#[derive(Clone, Debug)]
enum Told {
    /// By these arguments, before the job's directory.
    Arguments(Vec<OsString>),
    /// By a verb, as it is `outlive`.
    Verb,
    /// By [`MARK`] and a first argument, as it calls [`crate::worker_if_asked`].
    Mark,
}

/// The variable that says what a program was executed as. It is set for that one execution, and counts only together with
/// the first argument.
pub(crate) const MARK: &str = "OUTLIVE_EXEC";

/// What a program can be executed as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The program that leaves a worker on a job.
    Worker,
    /// The spawner of a supervisor.
    Spawner,
    /// What runs a command within bounds.
    Minder,
    /// What makes the transfer of a job.
    Fetcher,
}

impl Role {
    /// All of them, for whoever looks which one it is.
    pub(crate) const ALL: [Role; 4] = [Role::Worker, Role::Spawner, Role::Minder, Role::Fetcher];

    /// What [`MARK`] holds, and the verb of `outlive`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Role::Worker => "worker",
            Role::Spawner => "spawner",
            Role::Minder => "minder",
            Role::Fetcher => "fetcher",
        }
    }

    /// The first argument of a program that is told by a mark.
    pub(crate) fn argument(self) -> &'static str {
        match self {
            Role::Worker => "outlive-worker",
            Role::Spawner => "outlive-spawner",
            Role::Minder => "outlive-minder",
            Role::Fetcher => "outlive-fetcher",
        }
    }
}

/// The program that this process is, whatever is at its path by now: an upgrade must not give a running supervisor workers
/// of another version, and a removal must not leave it without any.
pub(super) const THIS_PROGRAM: &str = "/proc/self/exe";

impl Launcher {
    /// Start workers by running `program` with `arguments` and the job's directory: a program that calls [`serve`] when it is
    /// given these. It starts workers only, and no spawner.
    pub fn program(program: impl Into<PathBuf>, arguments: &[&str]) -> Launcher {
        Launcher {
            program: program.into(),
            told: Told::Arguments(arguments.iter().map(OsString::from).collect()),
        }
    }

    /// Start workers and spawners by running this very program again, which calls [`crate::worker_if_asked`] first thing
    /// in its `main`. What is run is the file that this process was started from, also when another is at its path by now,
    /// or none.
    pub fn this_program() -> Launcher {
        Launcher {
            program: THIS_PROGRAM.into(),
            told: Told::Mark,
        }
    }

    /// Start workers and spawners with the `outlive` that is found in `PATH`.
    pub fn outlive() -> Launcher {
        Launcher::outlive_at("outlive")
    }

    /// Start workers and spawners with the `outlive` at `program`.
    pub fn outlive_at(program: impl Into<PathBuf>) -> Launcher {
        Launcher {
            program: program.into(),
            told: Told::Verb,
        }
    }

    /// The program, told to be `role`, without what follows that.
    ///
    /// # Errors
    ///
    /// When this launcher has no such role, or this program would not know its own and run on as if it had none.
    pub(crate) fn command(&self, role: Role) -> Result<Command> {
        let mut command = Command::new(&self.program);
        command.env_remove(MARK);
        match &self.told {
            Told::Arguments(arguments) if role == Role::Worker => {
                command.args(arguments);
            }
            Told::Arguments(_) => {
                return Err(Error::Usage(format!(
                    "{} is known to start workers only",
                    self.program.display()
                )));
            }
            Told::Verb => {
                command.arg(role.word());
            }
            // One that does not ask would do all over again what it was started for, this included.
            Told::Mark if !asks() => {
                return Err(Error::Usage(
                    "this program does not call outlive::worker_if_asked() first thing in its main"
                        .into(),
                ));
            }
            Told::Mark => {
                command.arg0(argv0()).arg(role.argument());
                command.env(MARK, role.word());
            }
        }
        Ok(command)
    }

    /// A helper that runs commands within bounds for this process: a fork of it where it has one thread, and else this
    /// launcher's program.
    pub(crate) fn minder(&self) -> Result<Minder> {
        let failed = |error| Error::Worker(format!("no command can be run: {error}"));
        if sys::has_one_thread().map_err(failed)? {
            return Minder::fork().map_err(failed);
        }
        Minder::execute(self.command(Role::Minder)?).map_err(failed)
    }

    /// Run the program on the job in `dir`. The lock of a job that is new goes with it as its standard input, so that nobody takes
    /// the job for one that has lost whoever started it.
    fn run(&self, dir: &Path, stdin: Stdio) -> Result<()> {
        let failed = |why: String| Error::Worker(format!("the worker was not started: {why}"));
        let output = self
            .command(Role::Worker)?
            .arg(dir)
            .stdin(stdin)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .output()
            .map_err(|error| failed(format!("{}: {error}", self.program.display())))?;
        if output.status.success() {
            Ok(())
        } else {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(failed(said.trim().to_owned()))
        }
    }
}

/// The name by which this program was called, for people who look at its processes.
fn argv0() -> OsString {
    std::env::args_os()
        .next()
        .unwrap_or_else(|| "outlive".into())
}

/// Whether this program has asked what it was executed as.
static ASKS: AtomicBool = AtomicBool::new(false);

/// Remember that this program asks.
pub(crate) fn remember_that_it_asks() {
    ASKS.store(true, Ordering::Relaxed);
}

pub(super) fn asks() -> bool {
    ASKS.load(Ordering::Relaxed)
}

impl Store {
    /// The slots of this store's pools. Where this process has threads, `launcher` starts what runs git for it.
    pub fn slots(&self, launcher: &Launcher) -> Slots {
        let launcher = launcher.clone();
        Slots::new(self.clone(), move || launcher.minder())
    }

    /// Make a job and start it. Where the spec has a name that an unfinished job of the same project bears, that job is
    /// returned with `false` and nothing is made (R12).
    ///
    /// When this returns, the job survives a loss of power and its command runs, is on its way, or has failed to start: then the
    /// job is failed, and its message says why. A command is on its way when it runs according to its record, was let go, and is a
    /// program that was found and can be expected to run; should its `exec` fail all the same, the job fails as if it had at once.
    pub fn start(&self, spec: JobSpec, launcher: &Launcher) -> Result<(Job, bool)> {
        match self.begin(spec)? {
            Begun::New(made) => {
                let held = self.acknowledge(*made)?;
                let job = self.job(held.holder.id());
                let lock = held.holder.into_lock();
                launcher
                    .run(&job.dir(), Stdio::from(OwnedFd::from(lock)))
                    .inspect_err(|error| {
                        // Whoever is told that it failed must not find a job that waits to be run. If its worker lives all the
                        // same, this is refused.
                        let _ = job.fail_to_start(&error.to_string());
                    })?;
                Ok((job, true))
            }
            Begun::UnderWay(view) => Ok((self.job(&view.descriptor.id), false)),
        }
    }
}

impl Job {
    /// Start a worker on a job that nobody works on: one that is queued, paused or interrupted. Returns when [`Store::start`]
    /// does.
    pub fn start(&self, launcher: &Launcher) -> Result<()> {
        launcher.run(&self.dir(), Stdio::null())
    }
}

/// Be the program that a [`Launcher`] runs: take the job in `dir` and leave a worker on it. Returns when the command
/// runs, is on its way (see [`Store::start`]), or has failed to start. The calling process must have one thread.
pub fn serve(dir: &Path) -> Result<()> {
    let dir = std::path::absolute(dir)
        .map_err(|error| Error::Disk(DiskError::new("find", dir, error)))?;
    let usage = || Error::Usage(format!("{} is not the directory of a job", dir.display()));
    let id = dir
        .file_name()
        .and_then(|name| name.to_str())
        .and_then(|name| JobId::parse(name).ok())
        .ok_or_else(usage)?;
    let jobs = dir.parent().filter(|jobs| jobs.ends_with("jobs"));
    let root = jobs.and_then(Path::parent).ok_or_else(usage)?;
    let job = Store::open_existing(root)?.job(&id);
    let held = match given_lock(&job)? {
        Some(lock) => {
            let descriptor = job.descriptor()?;
            let holder = newborn(id, lock, descriptor.created_at_ms);
            Held { holder, descriptor }
        }
        None => take_in_time(&job, By::Somebody, &|| true)?,
    };
    launch(&job, held)?.started().map(|_| ())
}

/// The lock of the job, if this process was started with it, locked, as its standard input, and nothing is recorded of the job: then
/// its maker has just made it, and nobody else has had it. That the file is the job's is not enough: anybody can open it.
fn given_lock(job: &Job) -> Result<Option<LockFile>> {
    let path = job.dir().join("lock");
    let failed = |error: io::Error| DiskError::new("look at", &path, error);
    let (given, stands) = match (fstat(io::stdin()), stat(&path)) {
        (Ok(given), Ok(stands)) => (given, stands),
        // A job that is gone is found out by whoever takes it.
        _ => return Ok(None),
    };
    if (given.st_dev, given.st_ino) != (stands.st_dev, stands.st_ino) {
        return Ok(None);
    }
    let lock = fcntl_dupfd_cloexec(io::stdin(), 3).map_err(|error| failed(error.into()))?;
    let nothing = File::open("/dev/null").map_err(failed)?;
    dup2_stdin(&nothing).map_err(|error| failed(error.into()))?;
    // Where it is locked by this description, that changes nothing.
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(None);
    }
    let dir = Dir::Job(job.id().clone());
    let is_new = job.store().disk().read_status(&dir)? == Read::Absent;
    Ok(is_new.then(|| LockFile::from(lock)))
}
