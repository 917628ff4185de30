//! The commands that are told of a job's end, one after the other: each gets the job's JSON on its standard input and a bounded
//! time. A stop does not wait for them.

use std::ffi::OsString;
use std::io::{Seek, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};
use state_machine::course::HookWoke;
use state_machine::record::{Bytes, Descriptor, Exit, Kind};

use super::attempt::environment;
use super::driver::Driver;
use super::tree::Tree;
use crate::output::Carrier;
use crate::process::DIRECTORY_VARIABLE;
use crate::process::Leader;
use crate::store::{Job, os_string};
use crate::{clock, output, process, sys};

/// How long the command may take.
const LIMIT: Duration = Duration::from_secs(60);

/// The command while it runs.
pub(super) struct Hook {
    /// `None` once it is over.
    leader: Option<Leader>,
    /// When it is cut short, in time since boot.
    deadline: Duration,
    /// Why it was.
    cut_for: Option<String>,
}

impl Hook {
    /// A stop does not wait for it.
    pub(super) fn cut_short(&mut self) -> std::io::Result<()> {
        self.cut("it was cut short by a stop".into())
    }

    fn cut(&mut self, why: String) -> std::io::Result<()> {
        if let (Some(leader), None) = (&self.leader, &self.cut_for) {
            sys::pidfd_kill(leader.pidfd(), nix::libc::SIGKILL)?;
            self.cut_for = Some(why);
        }
        Ok(())
    }
}

impl Driver<'_> {
    /// Start a command; or why it does not run.
    pub(super) fn begin_hook(&mut self, argv: &[Bytes]) -> Result<Hook, String> {
        let started = prepare(self.job, &self.descriptor, argv)
            .map_err(|error| error.to_string())
            .and_then(|waiting| waiting.release().map_err(|error| error.to_string()));
        started.map(|leader| Hook {
            leader: Some(leader),
            deadline: clock::since_boot() + LIMIT,
            cut_for: None,
        })
    }

    /// Sleep over the command, and carry the output of what the job left behind.
    pub(super) fn see_hook_through(
        &mut self,
        hook: &mut Hook,
        left_behind: Option<&mut Tree>,
    ) -> std::io::Result<HookWoke> {
        let has_ended = match &hook.leader {
            Some(leader) => leader.peek()?.is_some(),
            None => false,
        };
        if let Some(leader) = hook.leader.take_if(|_| has_ended) {
            return Ok(HookWoke::Over(outcome(leader.reap()?, hook)));
        }
        if clock::since_boot() >= hook.deadline {
            hook.cut(format!("it took longer than {LIMIT:?}"))?;
        } else if self.told_to_end {
            hook.cut_short()?;
        }
        let mut sources: Vec<BorrowedFd<'_>> = hook.leader.iter().map(Leader::pidfd).collect();
        if let Some(tree) = left_behind {
            if let Some(show) = self.carry(tree) {
                return Ok(HookWoke::Show(show));
            }
            sources.extend(tree.carriers.iter().map(Carrier::fd));
        }
        let due = hook.cut_for.is_none().then_some(hook.deadline);
        let next = [due, self.empty_look()].into_iter().flatten().min();
        let woken = self.wake.sleep(next, &sources)?;
        self.note_waking(woken);
        Ok(HookWoke::Look)
    }
}

/// How it ended: well, or for this reason not.
fn outcome(exit: Exit, hook: &Hook) -> Result<(), String> {
    match (exit, &hook.cut_for) {
        (_, Some(why)) => Err(why.clone()),
        (Exit::Code(0), None) => Ok(()),
        (Exit::Code(code), None) => Err(format!("it exited with {code}")),
        (Exit::Signal(signal), None) => Err(format!("signal {signal} killed it")),
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
            environment(descriptor, &command.env, &dir, None)
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
        slot: None,
        tree: std::fs::File::open("/dev/null")?.into(),
    })
}
