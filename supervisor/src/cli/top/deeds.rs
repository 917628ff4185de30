//! What is asked of jobs, done by the verbs of the command line, each in a process of its own: whatever they wait for, keys are
//! heard meanwhile.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use state_machine::id::JobId;

use super::app::Ask;

/// A verb that runs.
#[derive(Debug)]
struct Deed {
    child: Child,
    /// Can be read when it has ended.
    ended: OwnedFd,
    ask: Ask,
    id: JobId,
}

/// The verbs that run.
#[derive(Debug, Default)]
pub(super) struct Deeds(Vec<Deed>);

impl Deeds {
    /// Ask this of a job.
    pub(super) fn begin(&mut self, ask: Ask, id: &JobId) -> io::Result<()> {
        // The file that runs, whatever is at its path by now.
        let mut child = Command::new("/proc/self/exe")
            .args([ask.verb(), id.as_str()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let opened = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty()));
        match opened {
            Some(Ok(ended)) => {
                let id = id.clone();
                self.0.push(Deed {
                    child,
                    ended,
                    ask,
                    id,
                });
                Ok(())
            }
            _ => {
                // Nobody would tell when it ends: it is waited for.
                child.wait()?;
                Ok(())
            }
        }
    }

    /// Each can be read when its verb has ended.
    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.0.iter().map(|deed| deed.ended.as_fd())
    }

    /// What came of one that has ended, in a line; nothing where none has.
    pub(super) fn end_one(&mut self) -> Option<String> {
        let over = |deed: &mut Deed| !matches!(deed.child.try_wait(), Ok(None));
        let at = self.0.iter_mut().position(over)?;
        let mut deed = self.0.swap_remove(at);
        let read = |from: Option<&mut dyn Read>| {
            let mut text = String::new();
            // What cannot be read cannot be told.
            let _ = from.map(|from| from.read_to_string(&mut text));
            text.lines().last().unwrap_or_default().to_owned()
        };
        let stderr = deed.child.stderr.as_mut();
        let why = read(stderr.map(|stderr| stderr as &mut dyn Read));
        let stdout = deed.child.stdout.as_mut();
        let told = read(stdout.map(|stdout| stdout as &mut dyn Read));
        let succeeded = matches!(deed.child.wait(), Ok(status) if status.success());
        let why = why.strip_prefix("outlive: ").unwrap_or(&why);
        let (verb, id) = (deed.ask.verb(), &deed.id);
        Some(match deed.ask {
            _ if !why.is_empty() => format!("{verb} {id}: {why}"),
            _ if !succeeded => format!("{verb} {id}: it failed"),
            Ask::Restart => format!("{id} is run again as {told}"),
            _ => format!("{verb} {id}: done"),
        })
    }
}
