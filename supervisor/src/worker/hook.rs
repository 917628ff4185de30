//! The command that is told of a job's end: it gets the job's JSON on its standard input and a bounded time. A stop does
//! not wait for it.

use std::ffi::OsString;
use std::io::{Seek, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};
use state_machine::control::Request;
use state_machine::record::{Bytes, Descriptor, Exit, Kind};

use super::attempt::environment;
use super::course::Course;
use super::tree::Tree;
use crate::output::Carrier;
use crate::process::DIRECTORY_VARIABLE;
use crate::process::Leader;
use crate::store::{Job, os_string};
use crate::{clock, output, process, sys};

/// How long the command may take.
const LIMIT: Duration = Duration::from_secs(60);

impl Course<'_> {
    /// Run the command that is to be told of the end, if there is one, and note how it failed. What the job left behind
    /// is looked after meanwhile.
    pub(super) fn tell_hook(&mut self, left_behind: Option<&mut Tree>) -> std::io::Result<()> {
        let Some(argv) = self.descriptor.on_end.clone() else {
            return Ok(());
        };
        let started = prepare(self.job, &self.descriptor, &argv)
            .map_err(|error| error.to_string())
            .and_then(|waiting| waiting.release().map_err(|error| error.to_string()));
        let told = match started {
            Ok(hook) => self.see_hook_through(hook, left_behind)?,
            Err(error) => Err(error),
        };
        if let Err(why) = told {
            self.book.note(format!("on-end failed: {why}"));
        }
        Ok(())
    }

    /// As [`Course::tell_hook`], if the job has ended.
    pub(super) fn tell_hook_of_end(&mut self) -> std::io::Result<()> {
        if self.book.status().state.is_terminal() {
            self.tell_hook(None)?;
        }
        Ok(())
    }

    fn see_hook_through(
        &mut self,
        hook: Leader,
        mut left_behind: Option<&mut Tree>,
    ) -> std::io::Result<Result<(), String>> {
        let deadline = clock::since_boot() + LIMIT;
        let mut ended_for = None;
        while hook.peek()?.is_none() {
            if ended_for.is_none() {
                ended_for = if clock::since_boot() >= deadline {
                    Some(format!("it took longer than {LIMIT:?}"))
                } else if self.told_to_end || self.take() == Some(Request::Cancel) {
                    Some("it was cut short by a stop".into())
                } else {
                    None
                };
                if ended_for.is_some() {
                    sys::pidfd_kill(hook.pidfd(), nix::libc::SIGKILL)?;
                }
            }
            let mut sources: Vec<BorrowedFd<'_>> = vec![hook.pidfd()];
            if let Some(tree) = left_behind.as_deref_mut() {
                self.carry(tree);
                sources.extend(tree.carriers.iter().map(Carrier::fd));
            }
            let due = ended_for.is_none().then_some(deadline);
            let next = [due, self.empty_look()].into_iter().flatten().min();
            let woken = self.wake.sleep(next, &sources)?;
            self.note_waking(woken);
        }
        Ok(match (hook.reap()?, ended_for) {
            (_, Some(why)) => Err(why),
            (Exit::Code(0), None) => Ok(()),
            (Exit::Code(code), None) => Err(format!("it exited with {code}")),
            (Exit::Signal(signal), None) => Err(format!("signal {signal} killed it")),
        })
    }
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
    let output = output::open_plain(&dir, output::ON_END)?;
    let (cwd, umask, env) = match &descriptor.kind {
        Kind::Command(command) => (
            PathBuf::from(os_string(&command.cwd)),
            command.umask,
            environment(descriptor, &command.env, &dir)
                .into_iter()
                // What a hook starts is not the job's, and must not be taken for what the job left (R11).
                .filter(|(name, _)| name != DIRECTORY_VARIABLE)
                .collect(),
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
