//! Starting a job's command, in two steps: first a child that waits, so that its pid can be recorded,
//! then the command in that child.
//!
//! Everything a command may find or not find at its start is settled here: its descriptors, session,
//! signals, directory, arguments and environment. What happens to it later is not.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout, execve};
use rustix::fs::{Access, Mode, access};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::{
    Pid, Signal, chdir, getpid, getppid, set_parent_process_death_signal, setsid, umask,
};

use super::Leader;
use super::program::is_program;
use crate::sys::{self, Forked};

/// Where commands are looked for when the environment has no `PATH`.
const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin";

/// The shell that runs a file which the kernel does not know how to run, as `execvp` has it.
const SHELL: &CStr = c"/bin/sh";

/// Numbers from which the tree's descriptor is placed, best first: shell scripts use 3 to 9 by hand,
/// shells keep their own from 10, and a low limit may leave nothing better.
const TREE_FROM: [RawFd; 4] = [100, 20, 10, 3];

/// How many bytes arguments and environment may take, and the pointers to them, where the kernel is sure to
/// take them: it has never had less than 128 KiB for them, and wants a little of that for itself.
const SURELY_FIT: usize = 96 << 10;

/// What the child says first: whether what it is to execute can be expected to run, or that remains to be seen.
const EXPECTED: u8 = b'e';
const TO_BE_SEEN: u8 = b's';

/// A command to be started, and all it starts with.
pub(crate) struct Command<'a> {
    /// Program and arguments, byte for byte.
    pub(crate) argv: &'a [OsString],
    /// The whole environment; the program is searched in the `PATH` of this one.
    pub(crate) env: &'a [(OsString, OsString)],
    /// The directory it starts in; a relative program is relative to this.
    pub(crate) cwd: &'a Path,
    /// Its file mode creation mask, or that of this process.
    pub(crate) umask: Option<u32>,
    /// Its descriptor 0.
    pub(crate) stdin: OwnedFd,
    /// Its descriptor 1.
    pub(crate) stdout: OwnedFd,
    /// Its descriptor 2.
    pub(crate) stderr: OwnedFd,
    /// A locked open file description that the command and all its descendants inherit.
    pub(crate) tree: OwnedFd,
    /// The lock of the slot that it works in, which they inherit too.
    pub(crate) slot: Option<OwnedFd>,
}

/// Why a command was not started, for people.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CannotStart {
    /// There is no such program.
    #[error("{}", describe_missing(program))]
    Missing {
        /// The program as it was asked for; may be empty.
        program: OsString,
    },
    /// There is a file, but it is not one that can be run.
    #[error("cannot run {}: {}", path.display(), describe_refusal(path, error))]
    NotExecutable {
        /// The file that was tried.
        path: PathBuf,
        /// What the kernel said of it; "not found" when its interpreter is missing.
        error: io::Error,
    },
    /// Its directory cannot be entered.
    #[error("cannot start in {}: {error}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Arguments and environment together, or one of them, are larger than the kernel takes.
    #[error("arguments and environment of {} are too long ({bytes} bytes)", program.display())]
    TooLong {
        /// The program.
        program: OsString,
        /// Size of all arguments and variables, with a terminator each.
        bytes: usize,
    },
    /// Anything else.
    #[error("cannot start {}: {error}", program.display())]
    Other {
        /// The program, or the file that was found for it.
        program: OsString,
        /// Why.
        error: io::Error,
    },
}

fn describe_missing(program: &OsStr) -> String {
    if program.is_empty() {
        "the command is empty".to_owned()
    } else if is_path(program.as_bytes()) {
        format!("no such file: {}", program.display())
    } else {
        format!("command not found: {}", program.display())
    }
}

fn describe_refusal(path: &Path, error: &io::Error) -> String {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOENT) => "the interpreter it names does not exist".to_owned(),
        Some(Errno::EACCES) if path.is_dir() => "it is a directory".to_owned(),
        _ => error.to_string(),
    }
}

/// Forks the process that will be the command: in a session of its own, its descriptors in place, its
/// life bound to this process, and waiting.
///
/// The descriptors in `command` are closed in this process, whatever the outcome. An error means that
/// no process could be made. That the command cannot be run is said by [`Waiting::release`].
pub(crate) fn fork_command(command: Command<'_>) -> io::Result<Waiting> {
    let plan = Plan::new(&command);
    let program = command.argv.first().cloned().unwrap_or_default();
    let bytes = size_of_strings(command.argv, command.env);
    let (ours, theirs) = UnixStream::pair()?;
    let worker = getpid();
    match sys::fork()? {
        Forked::Child => become_command(plan, command, worker, theirs),
        Forked::Parent(pid) => {
            let child = Leader::of_child(pid).inspect_err(|_| give_up(pid))?;
            Ok(Waiting {
                child: Some(child),
                channel: ours,
                program,
                bytes,
            })
        }
    }
}

/// Ends a child for which there is no pidfd: by its number, which is its own until it is reaped.
fn give_up(pid: Pid) {
    // Both fail only if the child is gone, which is what is wanted.
    let _ = sys::kill(pid, nix::libc::SIGKILL);
    let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
}

/// A child that has not become the command yet. Dropped, it never will: it is ended and reaped.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// There until it is released.
    child: Option<Leader>,
    channel: UnixStream,
    program: OsString,
    bytes: usize,
}

impl Waiting {
    /// The pid that the command will have.
    pub(crate) fn pid(&self) -> Pid {
        match &self.child {
            Some(child) => child.pid(),
            // Only `release` and `drop` take the child, and both consume the value.
            None => unreachable!("a released child is not waiting"),
        }
    }

    /// Lets the command start, and returns when it has, or has failed to.
    ///
    /// A child that was killed before it got that far counts as started: its leader tells of the
    /// signal.
    pub(crate) fn release(self) -> Result<Leader, CannotStart> {
        self.release_and_say(|| {})
    }

    /// As [`Waiting::release`]; says so as soon as the command is on its way, where what it is to execute
    /// was found, and is a program that the kernel can be expected to take. It can fail all the same.
    pub(crate) fn release_and_say(
        mut self,
        on_its_way: impl FnOnce(),
    ) -> Result<Leader, CannotStart> {
        let Some(child) = self.child.take() else {
            unreachable!("a released child is not waiting");
        };
        // A child that is gone already is found out below: nothing comes but the end.
        let _ = sys::send(self.channel.as_fd(), b"g");
        let mut outlook = [TO_BE_SEEN];
        if self.channel.read_exact(&mut outlook).is_ok() && outlook == [EXPECTED] {
            on_its_way();
        }
        let mut said = Vec::new();
        // The descriptor closes on exec; an error (reset by a child that was killed) ends it as well.
        let _ = self.channel.read_to_end(&mut said);
        let Some(failure) = Failure::decode(&said) else {
            return Ok(child);
        };
        let failed = failure.explain(&self.program, self.bytes);
        // It exits by itself, and is reaped here, because it was never the job's command.
        match child.reap() {
            Ok(_) => Err(failed),
            Err(error) => Err(CannotStart::Other {
                program: self.program.clone(),
                error,
            }),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            // It cannot refuse, and if it is gone, so much the better.
            let _ = child.kill_and_reap();
        }
    }
}

/// How many bytes the arguments and the environment take, with a terminator each.
fn size_of_strings(argv: &[OsString], env: &[(OsString, OsString)]) -> usize {
    let arguments: usize = argv.iter().map(|argument| argument.len() + 1).sum();
    let variables: usize = env
        .iter()
        .map(|(name, value)| name.len() + value.len() + 2)
        .sum();
    arguments + variables
}

/// What `execve` is given, made before the fork.
struct Plan {
    argv: Vec<CString>,
    env: Vec<CString>,
    /// The files to try, in this order.
    files: Vec<CString>,
    /// Whether those were found by searching, so that one that is missing is no matter.
    searched: bool,
    /// Size of arguments and environment.
    bytes: usize,
}

impl Plan {
    fn new(command: &Command<'_>) -> Result<Plan, Failure> {
        let program = command
            .argv
            .first()
            .map(OsString::as_os_str)
            .unwrap_or_default();
        if program.is_empty() {
            return Err(Failure::new(Kind::Missing, Errno::ENOENT, b""));
        }
        let odd = |_| Failure::new(Kind::Other, Errno::EINVAL, program.as_bytes());
        let text = |bytes: &[u8]| CString::new(bytes).map_err(odd);
        let variable = |(name, value): &(OsString, OsString)| {
            text(&[name.as_bytes(), b"=", value.as_bytes()].concat())
        };
        let searched = !is_path(program.as_bytes());
        let files = if searched {
            candidates(program.as_bytes(), search_path(command.env))
        } else {
            vec![program.as_bytes().to_vec()]
        };
        Ok(Plan {
            argv: command
                .argv
                .iter()
                .map(|it| text(it.as_bytes()))
                .collect::<Result<_, _>>()?,
            env: command.env.iter().map(variable).collect::<Result<_, _>>()?,
            files: files
                .iter()
                .map(|file| text(file))
                .collect::<Result<_, _>>()?,
            searched,
            bytes: size_of_strings(command.argv, command.env),
        })
    }

    /// Whether `file` can be passed over without trying it: a failing `execve` costs twenty times what this
    /// question does, and most of PATH is wrong.
    fn passes_over(&self, file: &CStr) -> bool {
        self.searched && access(file, Access::EXISTS) == Err(rustix::io::Errno::NOENT)
    }

    /// Forget the files in front of the first that is there. Asked in the directory of the command.
    fn find(&mut self) {
        let first = self.files.iter().position(|file| !self.passes_over(file));
        self.files.drain(..first.unwrap_or(0));
    }

    /// Whether the file that will be tried first can be expected to run. Asked in the directory of the
    /// command.
    fn is_expected_to_run(&self) -> bool {
        let pointers = (self.argv.len() + self.env.len()) * size_of::<usize>();
        let first = self.files.first();
        self.bytes + pointers <= SURELY_FIT && first.is_some_and(|file| is_program(file))
    }
}

/// Whether `program` says itself where it is.
fn is_path(program: &[u8]) -> bool {
    program.contains(&b'/')
}

/// The `PATH` of `env`: the first, should there be several, as `getenv` has it.
fn search_path(env: &[(OsString, OsString)]) -> &[u8] {
    let path = env.iter().find(|(name, _)| name == "PATH");
    path.map_or(DEFAULT_PATH, |(_, value)| value.as_bytes())
}

/// Where `program` may be: one file for each directory of `path`, an empty one being the current.
fn candidates(program: &[u8], path: &[u8]) -> Vec<Vec<u8>> {
    let in_directory = |directory: &[u8]| match directory {
        b"" => program.to_vec(),
        _ => [directory, b"/", program].concat(),
    };
    path.split(|&byte| byte == b':').map(in_directory).collect()
}

/// The child's whole life: prepare, wait for the word, become the command.
fn become_command(
    plan: Result<Plan, Failure>,
    command: Command<'_>,
    worker: Pid,
    channel: UnixStream,
) -> ! {
    let _guard = sys::NeverUnwind;
    let Command {
        cwd,
        umask: mask,
        stdin,
        stdout,
        stderr,
        tree,
        slot,
        ..
    } = command;
    bind_life_to(worker);
    let Ok(mut channel) = above_stdio(channel.into()).map(UnixStream::from) else {
        sys::exit_now(126)
    };
    let ready = place([stdin, stdout, stderr], tree, slot, &channel)
        .and(plan)
        .and_then(|mut plan| {
            enter(cwd, mask)?;
            plan.find();
            Ok(plan)
        });
    let outlook = match &ready {
        Ok(plan) if plan.is_expected_to_run() => EXPECTED,
        _ => TO_BE_SEEN,
    };
    // A worker that is gone is found out just below.
    let _ = sys::send(channel.as_fd(), &[outlook]);
    // End of file: the worker is gone, or wants no command after all.
    if !matches!(channel.read(&mut [0]), Ok(1)) {
        sys::exit_now(125);
    }
    let failure = match ready {
        Ok(plan) => execute(&plan),
        Err(failure) => failure,
    };
    // Nobody left to tell is nobody to be told.
    let _ = sys::send(channel.as_fd(), &failure.encode());
    sys::exit_now(126)
}

/// Makes the kernel kill this process when `worker` dies, and ends it if that has happened already:
/// the signal is not sent for a death that came before it was asked for (F49).
fn bind_life_to(worker: Pid) {
    if set_parent_process_death_signal(Some(Signal::KILL)).is_err() || getppid() != Some(worker) {
        sys::exit_now(125);
    }
}

/// Session, descriptors and signals, as the command is to find them.
fn place(
    stdio: [OwnedFd; 3],
    tree: OwnedFd,
    slot: Option<OwnedFd>,
    channel: &UnixStream,
) -> Result<(), Failure> {
    let failed = |errno: Errno| Failure::new(Kind::Other, errno, b"");
    setsid().map_err(|error| failed(errno_of(&error.into())))?;
    // First all out of the way, so that placing one cannot overwrite another.
    let [stdin, stdout, stderr] = stdio.map(above_stdio);
    let mut kept = vec![channel.as_raw_fd()];
    for lock in [Some(&tree), slot.as_ref()].into_iter().flatten() {
        kept.push(inheritable(lock).map_err(|error| failed(errno_of(&error)))?);
    }
    let from = |fd: io::Result<OwnedFd>| fd.map_err(|error| failed(errno_of(&error)));
    let (stdin, stdout, stderr) = (from(stdin)?, from(stdout)?, from(stderr)?);
    dup2_stdin(&stdin).map_err(failed)?;
    dup2_stdout(&stdout).map_err(failed)?;
    dup2_stderr(&stderr).map_err(failed)?;
    // What is closed just below must not be closed again when its owner is dropped.
    let owners = [stdin, stdout, stderr, tree];
    owners.into_iter().chain(slot).for_each(std::mem::forget);
    sys::close_from(3, &kept);
    sys::reset_signals().map_err(|error| failed(errno_of(&error)))
}

/// The same open file with a number above those of standard input, output and error.
fn above_stdio(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() > 2 {
        Ok(fd)
    } else {
        Ok(fcntl_dupfd_cloexec(&fd, 3)?)
    }
}

/// A copy of a lock's descriptor that survives `execve`, where scripts do not stumble over it.
fn inheritable(lock: &OwnedFd) -> io::Result<RawFd> {
    let copy = TREE_FROM
        .iter()
        .find_map(|&from| fcntl_dupfd_cloexec(lock, from).ok());
    let copy = copy.ok_or(rustix::io::Errno::MFILE)?;
    fcntl_setfd(&copy, FdFlags::empty())?;
    Ok(copy.into_raw_fd())
}

/// Directory and mask.
fn enter(cwd: &Path, mask: Option<u32>) -> Result<(), Failure> {
    chdir(cwd).map_err(|error| {
        Failure::new(
            Kind::Directory,
            errno_of(&error.into()),
            cwd.as_os_str().as_bytes(),
        )
    })?;
    if let Some(mask) = mask {
        umask(Mode::from_raw_mode(mask));
    }
    Ok(())
}

/// Becomes the command, or returns why not: the files in turn, as `execvp` does.
fn execute(plan: &Plan) -> Failure {
    let mut refused = None;
    for file in &plan.files {
        if plan.passes_over(file) {
            continue;
        }
        let failure = Failure::of_file(file, attempt(file, plan));
        match failure.kind {
            _ if !plan.searched => return failure,
            // The search goes on, and this one is told of if it finds nothing.
            Kind::NotExecutable => refused = refused.or(Some(failure)),
            Kind::Missing => {}
            _ => return failure,
        }
    }
    refused.unwrap_or(Failure::new(Kind::Missing, Errno::ENOENT, b""))
}

/// Tries one file; a file that the kernel does not know is a script for the shell.
fn attempt(file: &CStr, plan: &Plan) -> Errno {
    let Err(errno) = execve(file, &plan.argv, &plan.env);
    if errno != Errno::ENOEXEC {
        return errno;
    }
    let arguments = plan.argv.iter().skip(1).map(CString::as_c_str);
    let script: Vec<&CStr> = [SHELL, file].into_iter().chain(arguments).collect();
    let Err(in_shell) = execve(SHELL, &script, &plan.env);
    if in_shell == Errno::E2BIG {
        in_shell
    } else {
        errno
    }
}

/// The kinds of [`CannotStart`], as one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Missing = 1,
    NotExecutable = 2,
    Directory = 3,
    TooLong = 4,
    Other = 5,
}

/// What the child tells of its failure.
#[derive(Debug, PartialEq, Eq)]
struct Failure {
    kind: Kind,
    errno: i32,
    path: Vec<u8>,
}

impl Failure {
    fn new(kind: Kind, errno: Errno, path: &[u8]) -> Failure {
        Failure {
            kind,
            errno: errno as i32,
            path: path.to_vec(),
        }
    }

    /// What it means that `execve` of `file` gave `errno`.
    fn of_file(file: &CStr, errno: Errno) -> Failure {
        let kind = match errno {
            // The file is there: it is what should run it that is not.
            Errno::ENOENT if is_there(file) => Kind::NotExecutable,
            Errno::ENOENT | Errno::ENOTDIR | Errno::ENAMETOOLONG => Kind::Missing,
            // Of a network file system, on which the search of `execvp` goes on too.
            Errno::ESTALE | Errno::ENODEV | Errno::ETIMEDOUT => Kind::Missing,
            Errno::EACCES | Errno::ENOEXEC | Errno::EISDIR | Errno::ELIBBAD => Kind::NotExecutable,
            Errno::E2BIG => Kind::TooLong,
            _ => Kind::Other,
        };
        Failure::new(kind, errno, file.to_bytes())
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![self.kind as u8];
        bytes.extend(self.errno.to_le_bytes());
        bytes.extend(&self.path);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Failure> {
        let (&kind, rest) = bytes.split_first()?;
        let (errno, path) = rest.split_first_chunk::<4>()?;
        let kind = match kind {
            1 => Kind::Missing,
            2 => Kind::NotExecutable,
            3 => Kind::Directory,
            4 => Kind::TooLong,
            _ => Kind::Other,
        };
        Some(Failure {
            kind,
            errno: i32::from_le_bytes(*errno),
            path: path.to_vec(),
        })
    }

    fn explain(self, program: &OsStr, bytes: usize) -> CannotStart {
        let error = io::Error::from_raw_os_error(self.errno);
        let path = PathBuf::from(OsString::from_vec(self.path));
        let program = program.to_owned();
        match self.kind {
            Kind::Missing => CannotStart::Missing { program },
            Kind::NotExecutable => CannotStart::NotExecutable { path, error },
            Kind::Directory => CannotStart::Directory { path, error },
            Kind::TooLong => CannotStart::TooLong { program, bytes },
            Kind::Other => CannotStart::Other { program, error },
        }
    }
}

/// Whether there is anything by that name.
fn is_there(file: &CStr) -> bool {
    std::fs::exists(OsStr::from_bytes(file.to_bytes())).unwrap_or(false)
}

fn errno_of(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

#[cfg(test)]
mod tests;
