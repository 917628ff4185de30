//! The command that is told of a job's end: it gets the job's JSON on its standard input and a bounded time.

use std::ffi::OsString;
use std::io::{Seek, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};
use state_machine::record::{Bytes, Descriptor, Exit, Kind};

use super::attempt::environment;
use super::wake::Wake;
use crate::store::{Job, os_string};
use crate::{clock, output, process, sys};

/// How long the command may take.
const LIMIT: Duration = Duration::from_secs(60);
/// Where its output goes, in the job's directory.
const OUTPUT: &str = "on_end.log";

/// Run it to its end. The inner error says why it failed.
pub(super) fn run(
    job: &Job,
    descriptor: &Descriptor,
    argv: &[Bytes],
    wake: &mut Wake,
) -> std::io::Result<Result<(), String>> {
    let waiting = match prepare(job, descriptor, argv) {
        Ok(waiting) => waiting,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let leader = match waiting.release() {
        Ok(leader) => leader,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let deadline = clock::since_boot() + LIMIT;
    let mut late = false;
    while leader.peek()?.is_none() {
        if !late && clock::since_boot() >= deadline {
            late = true;
            sys::pidfd_kill(leader.pidfd(), nix::libc::SIGKILL)?;
        }
        wake.sleep((!late).then_some(deadline), &[leader.pidfd()])?;
    }
    Ok(match leader.reap()? {
        _ if late => Err(format!("it took longer than {LIMIT:?}")),
        Exit::Code(0) => Ok(()),
        Exit::Code(code) => Err(format!("it exited with {code}")),
        Exit::Signal(signal) => Err(format!("signal {signal} killed it")),
    })
}

fn prepare(
    job: &Job,
    descriptor: &Descriptor,
    argv: &[Bytes],
) -> std::io::Result<process::Waiting> {
    let dir = job.dir();
    let view = job
        .look()
        .map_err(|error| std::io::Error::other(error.to_string()))?;
    let mut told = std::fs::File::from(memfd_create("outlive-on-end", MemfdFlags::CLOEXEC)?);
    serde_json::to_writer(&told, &job.report(&view))?;
    told.write_all(b"\n")?;
    told.rewind()?;
    let output = output::open_plain(&dir, OUTPUT)?;
    let (cwd, umask, env) = match &descriptor.kind {
        Kind::Command(command) => (
            PathBuf::from(os_string(&command.cwd)),
            command.umask,
            environment(descriptor, &command.env, &dir),
        ),
        Kind::Pull(_) => (dir.clone(), None, Vec::new()),
    };
    let argv: Vec<OsString> = argv.iter().map(os_string).collect();
    process::fork_command(process::Command {
        argv: &argv,
        env: &env,
        // A directory that the job removed must not keep its end from being told.
        cwd: if cwd.is_dir() { &cwd } else { &dir },
        umask,
        stdin: OwnedFd::from(told),
        stderr: output.try_clone()?,
        stdout: output,
        // The tree lock is the command's alone (R11); this descriptor stands in its place.
        tree: std::fs::File::open("/dev/null")?.into(),
    })
}
