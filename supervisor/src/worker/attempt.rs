//! Making the process that will be the command of a job: its files, its environment, the child that waits, and letting that
//! go. When which of these is done is the course's business.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use state_machine::course::Refused;
use state_machine::record::{Bytes, Command, Descriptor, Environment, Failure, Kind, Pull};

use super::fetcher::{self, Fetcher};
use super::notices::{Notices, VARIABLE};
use super::tree::Tree;
use crate::clock;
use crate::error::DiskError;
use crate::output::{self, Carrier};
use crate::process::{self, CannotStart, Group, Unheld, Waiting};
use crate::slots::{Lodging, OF_ANOTHER_REPOSITORY, SESSION_VARIABLE, settled};
use crate::store::os_string;

/// A command that is ready to run and waits for its record.
pub(super) struct Ready {
    waiting: Waiting,
    carriers: Vec<Carrier>,
    fetcher: Option<Fetcher>,
    group: Option<Group>,
    /// What of its limits no group holds.
    unheld: Option<Unheld>,
}

/// What is executed, and what it finds.
struct Execution {
    argv: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    cwd: PathBuf,
    umask: Option<u32>,
    stdin: OwnedFd,
    fetcher: Option<Fetcher>,
}

/// Make the child that will be the command. The job's directory is `now_at` for this process, and will be at `dir`.
pub(super) fn prepare(
    descriptor: &Descriptor,
    dir: &Path,
    now_at: &Path,
    tree: OwnedFd,
    lodging: Option<&Lodging>,
    notices: Option<&Notices>,
) -> Result<Ready, Refused> {
    let mut carriers = Vec::new();
    let (stdout, stderr) = open_output(descriptor, now_at, dir, &mut carriers)?;
    let mut execution = match &descriptor.kind {
        Kind::Command(command) => of_command(descriptor, command, dir, lodging)?,
        Kind::Pull(pull) => of_pull(descriptor, pull, dir)?,
    };
    if let Some(notices) = notices {
        execution.env.retain(|(name, _)| name != VARIABLE);
        execution.env.push((VARIABLE.into(), notices.name().into()));
    }
    let slot = lodging.map(|lodging| lodging.lock().try_clone_to_owned());
    let slot = slot.transpose();
    let slot =
        slot.map_err(|error| Refused::start(format!("the slot cannot be shared: {error}")))?;
    let waiting = process::fork_command(process::Command {
        argv: &execution.argv,
        env: &execution.env,
        cwd: &execution.cwd,
        umask: execution.umask,
        stdin: execution.stdin,
        stdout,
        stderr,
        tree,
        slot,
    })
    .map_err(|error| Refused::start(format!("no process can be made: {error}")))?;
    let (group, unheld) = limit(descriptor, waiting.pid())?;
    Ok(Ready {
        waiting,
        carriers,
        fetcher: execution.fetcher,
        group,
        unheld,
    })
}

/// Limit what the command may use: all of it together where this user can have a control group for that, the memory of each
/// process where not. Says also what no group holds.
fn limit(descriptor: &Descriptor, pid: Pid) -> Result<(Option<Group>, Option<Unheld>), Refused> {
    let (group, unheld) = process::hold_limits(descriptor.id.as_str(), &descriptor.limits, pid);
    let memory = unheld.as_ref().and_then(|it| it.limits.memory_bytes);
    if let Some(bytes) = memory {
        limit_memory(pid, bytes)
            .map_err(|error| Refused::start(format!("its memory cannot be limited: {error}")))?;
    }
    Ok((group, unheld))
}

/// What a process has of its own: not the files that it maps, nor what it only reserves. What it starts inherits that.
fn limit_memory(pid: Pid, bytes: u64) -> io::Result<()> {
    let had = getrlimit(Resource::Data);
    // Only root may raise what was lowered before.
    let bytes = had.maximum.map_or(bytes, |most| most.min(bytes));
    let limit = Rlimit {
        current: Some(bytes),
        maximum: Some(bytes),
    };
    prlimit(Some(pid), Resource::Data, limit)?;
    Ok(())
}

fn of_command(
    descriptor: &Descriptor,
    command: &Command,
    dir: &Path,
    lodging: Option<&Lodging>,
) -> Result<Execution, Refused> {
    let asked = PathBuf::from(os_string(&command.cwd));
    Ok(Execution {
        argv: command.argv.iter().map(os_string).collect(),
        env: environment(descriptor, &command.env, dir, lodging),
        cwd: lodging.map_or(asked.clone(), |lodging| lodging.place_of(&asked)),
        umask: command.umask,
        stdin: open_stdin(descriptor.stdin.as_ref())?,
        fetcher: None,
    })
}

/// A transfer is made by this program, executed as what it is to be. It needs no place to work in.
fn of_pull(descriptor: &Descriptor, pull: &Pull, dir: &Path) -> Result<Execution, Refused> {
    let (argv, mark) = fetcher::command(dir)?;
    let (fetcher, stdin) = fetcher::socket()?;
    let mut env = environment(descriptor, &pull.env, dir, None);
    env.push(mark);
    Ok(Execution {
        argv,
        env,
        cwd: fetcher::cwd(),
        umask: pull.umask,
        stdin,
        fetcher: Some(fetcher),
    })
}

impl Ready {
    /// What of its limits is not held for all of its processes together, and why, for people.
    pub(super) fn unheld(&self) -> Option<String> {
        self.unheld.as_ref().map(Unheld::to_string)
    }

    /// The process that the command will be.
    pub(super) fn pid(&self) -> u32 {
        self.waiting.pid().as_raw_nonzero().get().unsigned_abs()
    }

    /// Let the command run, and say so as soon as that can be said.
    pub(super) fn release(
        self,
        timeout: Option<Duration>,
        on_its_way: impl FnOnce(),
    ) -> Result<Tree, Refused> {
        let released = self.waiting.release_and_say(on_its_way);
        let leader = released.map_err(|error| refused(&error))?;
        let started = clock::since_boot();
        Ok(Tree {
            leader: Some(leader),
            exit: None,
            stop: None,
            carriers: self.carriers,
            fetcher: self.fetcher,
            group: self.group,
            dropped_of_ended: 0,
            dropped_counted: 0,
            started,
            deadline: timeout.map(|timeout| started + timeout),
            frozen: None,
        })
    }
}

fn refused(error: &CannotStart) -> Refused {
    let failure = match error {
        CannotStart::Missing { .. } => Failure::Missing,
        CannotStart::NotExecutable { .. } => Failure::NotExecutable,
        CannotStart::Directory { .. } => Failure::Files,
        CannotStart::TooLong { .. } => Failure::TooLong,
        CannotStart::Other { .. } => Failure::Start,
    };
    Refused {
        failure,
        message: error.to_string(),
    }
}

/// The environment of the command: the submitter's, byte for byte, and what marks the job's processes.
pub(super) fn environment(
    descriptor: &Descriptor,
    submitted: &Environment,
    dir: &Path,
    lodging: Option<&Lodging>,
) -> Vec<(OsString, OsString)> {
    let mut env = submitted.clone();
    env.set(b"OUTLIVE_JOB", descriptor.id.as_str().as_bytes());
    env.set(
        process::DIRECTORY_VARIABLE.as_bytes(),
        dir.as_os_str().as_bytes(),
    );
    // Whoever submits a job from within a session does not have it work there.
    env.unset(process::SLOT_VARIABLE.as_bytes());
    env.unset(SESSION_VARIABLE.as_bytes());
    if let Some(lodging) = lodging {
        settle(&mut env, lodging);
    }
    // What a program prints should be in the log when it prints it.
    if env.get(b"PYTHONUNBUFFERED").is_none() {
        env.set(b"PYTHONUNBUFFERED", b"1");
    }
    env.0
        .iter()
        .map(|(name, value)| (os_string(name), os_string(value)))
        .collect()
}

/// What a command finds that works in a slot.
fn settle(env: &mut Environment, lodging: &Lodging) {
    for name in OF_ANOTHER_REPOSITORY {
        env.unset(name.as_bytes());
    }
    let has = |name: &str| Some(OsStr::from_bytes(env.get(name.as_bytes())?).to_owned());
    for (name, value) in settled(lodging.slot_dir(), has) {
        env.set(name.as_bytes(), value.as_bytes());
    }
}

/// Where the command's output goes: straight into its files, or through pipes where there is a limit. People are told of
/// files below `shown`.
fn open_output(
    descriptor: &Descriptor,
    dir: &Path,
    shown: &Path,
    carriers: &mut Vec<Carrier>,
) -> Result<(OwnedFd, OwnedFd), Refused> {
    let settings = descriptor.output;
    let streams: &[&str] = if settings.split {
        &[output::STDOUT, output::STDERR]
    } else {
        &[output::LOG]
    };
    let mut ends = Vec::new();
    for name in streams {
        let opened = match settings.max_bytes {
            None => output::open_plain(dir, name),
            Some(budget) => {
                let keep = settings.keep.unwrap_or(DEFAULT_KEEP);
                let limit = output::share(budget, streams.len() as u32, keep);
                Carrier::new(dir, name, limit, keep).map(|(carrier, end)| {
                    carriers.push(carrier);
                    end
                })
            }
        };
        let end = opened.map_err(|error| files("open", &shown.join(name), error))?;
        ends.push(end);
    }
    match (ends.pop(), ends.pop()) {
        (Some(stderr), Some(stdout)) => Ok((stdout, stderr)),
        (Some(both), None) => {
            let second = both
                .try_clone()
                .map_err(|error| files("open", &shown.join(output::LOG), error))?;
            Ok((both, second))
        }
        _ => unreachable!("there is at least one stream"),
    }
}

/// How many older files share a limit when nobody says.
const DEFAULT_KEEP: u32 = 1;

fn open_stdin(path: Option<&Bytes>) -> Result<OwnedFd, Refused> {
    let path = path.map_or_else(|| PathBuf::from("/dev/null"), |path| os_string(path).into());
    let failed = |error: rustix::io::Errno| files("read standard input from", &path, error.into());
    // A worker must not wait in an open: that of a pipe waits for a writer, and the job could not be stopped meanwhile.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::open(&path, flags, Mode::empty()).map_err(failed)?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file).map_err(failed)?.st_mode);
    match kind {
        FileType::RegularFile | FileType::CharacterDevice | FileType::BlockDevice => {}
        _ => return Err(failed(rustix::io::Errno::INVAL)),
    }
    rustix::fs::fcntl_setfl(&file, OFlags::empty()).map_err(failed)?;
    Ok(file)
}

fn files(operation: &'static str, path: &Path, error: io::Error) -> Refused {
    Refused {
        failure: Failure::Files,
        message: DiskError::new(operation, path, error).to_string(),
    }
}
