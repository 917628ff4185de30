//! Starting a worker from a program with many threads: it executes one that has a single thread, which forks the worker away
//! from its parent and leaves no child behind.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use state_machine::id::JobId;
use state_machine::protocol::look::View;

use super::launch::launch;
use crate::clock;
use crate::error::{DiskError, Error, Result};
use crate::store::{Begun, Held, Job, JobSpec, Store};

/// How an embedding program starts workers: a program that calls [`serve`] when it is given these arguments and, after
/// them, the directory of a job. The `outlive` binary does so for `outlive worker`.
#[derive(Clone, Debug)]
pub struct Launcher {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Launcher {
    /// Start workers by running `program` with `arguments` and the job's directory.
    pub fn program(program: impl Into<PathBuf>, arguments: &[&str]) -> Launcher {
        Launcher {
            program: program.into(),
            arguments: arguments.iter().map(OsString::from).collect(),
        }
    }

    /// Start workers with the `outlive` that is found in `PATH`.
    pub fn outlive() -> Launcher {
        Launcher::program("outlive", &["worker"])
    }

    fn run(&self, dir: &Path) -> Result<()> {
        let failed = |why: String| Error::Worker(format!("the worker was not started: {why}"));
        let output = Command::new(&self.program)
            .args(&self.arguments)
            .arg(dir)
            .stdin(Stdio::null())
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

impl Store {
    /// Make a job and start it. Where the spec has a name that an unfinished job of the same project bears, that job is
    /// returned with `false` and nothing is made (R12).
    ///
    /// When this returns, the job survives a loss of power and its command runs, or has failed to start: then the job
    /// is failed, and its message says why.
    pub fn start(&self, spec: JobSpec, launcher: &Launcher) -> Result<(Job, bool)> {
        match self.begin(spec)? {
            Begun::New(held) => {
                self.acknowledge()?;
                let job = self.job(held.holder.id());
                job.let_go(*held)?;
                launcher.run(&job.dir())?;
                Ok((job, true))
            }
            Begun::UnderWay(view) => Ok((self.job(&view.descriptor.id), false)),
        }
    }
}

impl Job {
    /// Start a worker on a job that nobody works on: one that is queued, paused or interrupted.
    pub fn start(&self, launcher: &Launcher) -> Result<()> {
        launcher.run(&self.dir())
    }
}

/// Be the program that a [`Launcher`] runs: take the job in `dir` and leave a worker on it. Returns when the command
/// runs or has failed to start. The calling process must have one thread.
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
    let view: View = job.look()?;
    if view.state.is_terminal() {
        return Err(Error::Ended {
            id,
            state: view.state,
        });
    }
    let held =
        hold_in_time(&job)?.ok_or_else(|| Error::NotNow(format!("{id} has a worker already")))?;
    launch(&job, held)?.started().map(|_| ())
}

/// Take the job. One that never ran may be somebody's for a moment: of a client that settles a request, or of a copy of
/// the lock that outlives a killed holder (F55).
fn hold_in_time(job: &Job) -> Result<Option<Held>> {
    let deadline = clock::since_boot() + HOLD_PATIENCE;
    loop {
        if let Some(held) = job.hold_to_run()? {
            return Ok(Some(held));
        }
        let never_ran = job.look()?.status.attempt == 0;
        if !never_ran || clock::since_boot() > deadline {
            return Ok(None);
        }
        std::thread::sleep(HOLD_PAUSE);
    }
}

/// How long, and how often, a job that never ran is tried to be taken.
const HOLD_PATIENCE: Duration = Duration::from_secs(2);
const HOLD_PAUSE: Duration = Duration::from_millis(2);
