//! Making a worker. A program with one thread forks it, which is quick; any other program executes one, which forks
//! itself away from its parent and leaves no child behind.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::Mode;
use rustix::process::{chdir, setsid, umask};
use state_machine::id::JobId;
use state_machine::protocol::look::View;

use super::course::Course;
use crate::clock;
use crate::error::{Error, Result};
use crate::store::{Begun, Held, Job, JobSpec, Store};
use crate::sys::{self, Forked};

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
        .map_err(|error| Error::Disk(crate::error::DiskError::new("find", dir, error)))?;
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

/// Take the job. Of one that never ran somebody may hold a copy of the lock for a moment: a host with many threads that
/// was just starting another program when it let go (F8).
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

/// What a worker has said about its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// The command runs.
    Running,
    /// The command could not be started, or was not to be any more; the record says why.
    Over,
}

/// A worker that was just made.
pub(crate) struct Launched {
    report: BufReader<UnixStream>,
}

impl Launched {
    /// Wait until the command runs or cannot.
    pub(crate) fn started(&mut self) -> Result<Start> {
        let word = self.word()?;
        match word.split_whitespace().next().unwrap_or_default() {
            "started" => Ok(Start::Running),
            "over" => Ok(Start::Over),
            "" => Err(Error::Worker(
                "the worker was lost before the command ran".into(),
            )),
            _ => Err(Error::Worker(word)),
        }
    }

    /// Wait until the end is recorded, and say the exit code for it; `None` when the worker is lost, or left a job that
    /// has not ended.
    pub(crate) fn ended(&mut self) -> Option<u8> {
        let word = self.word().ok()?;
        word.strip_prefix("ended ")?.parse().ok()
    }

    fn word(&mut self) -> Result<String> {
        let mut line = String::new();
        self.report
            .read_line(&mut line)
            .map_err(|error| Error::Worker(format!("the worker was lost: {error}")))?;
        Ok(line.trim_end().to_owned())
    }
}

/// The worker's side of what its maker is told. Nobody need be listening.
pub(super) struct Report(Option<UnixStream>);

impl Report {
    pub(super) fn say(&mut self, word: &str) {
        let said = self.0.as_ref().is_some_and(|stream| {
            sys::send(stream.as_fd(), format!("{word}\n").as_bytes()).is_ok()
        });
        if !said {
            self.0 = None;
        }
    }

    /// The last word.
    pub(super) fn close(&mut self, word: &str) {
        self.say(word);
        self.0 = None;
    }
}

/// Fork a worker for a job that this process holds. The lock goes over with it: both have the same description until
/// this process closes its copy (F1, F2). The calling process must have one thread.
pub(crate) fn launch(job: &Job, held: Held) -> Result<Launched> {
    let lost = |error: std::io::Error| Error::Worker(format!("no worker can be made: {error}"));
    let (ours, theirs) = UnixStream::pair().map_err(lost)?;
    match sys::fork().map_err(lost)? {
        Forked::Parent(_) => Ok(Launched {
            report: BufReader::with_capacity(256, ours),
        }),
        Forked::Child => {
            let _bomb = sys::NeverUnwind;
            drop(ours);
            become_worker(job, held, Report(Some(theirs)))
        }
    }
}

/// Leave everything of the parent behind and be the worker, to the end of the job.
fn become_worker(job: &Job, held: Held, mut report: Report) -> ! {
    let keep = [
        held.holder.lock().as_fd().as_raw_fd(),
        report.0.as_ref().map_or(-1, AsRawFd::as_raw_fd),
    ];
    sys::close_from(3, &keep);
    // The title hides what `--env` gave on the command line; a process that cannot have one runs all the same.
    let _ = sys::set_title(format!("outlive worker {}", job.id()).as_ref());
    let set_up = detach().and_then(|()| Course::new(job, held));
    let code = match set_up {
        Ok(course) => course.run(report),
        Err(error) => {
            report.close(&format!("no worker can be set up: {error}"));
            1
        }
    };
    sys::exit_now(code)
}

/// A session of our own, no terminal, no directory that could not be unmounted, and files for our eyes only.
fn detach() -> std::io::Result<()> {
    // Fails only for the leader of a process group, which a forked child is not (F45).
    setsid()?;
    chdir("/")?;
    umask(Mode::from_raw_mode(0o077));
    let null = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    nix::unistd::dup2_stdin(&null)?;
    nix::unistd::dup2_stdout(&null)?;
    nix::unistd::dup2_stderr(&null)?;
    Ok(())
}
