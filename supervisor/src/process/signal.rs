//! Sending a signal to a job's processes on behalf of a person. A process is signalled only through a descriptor that
//! was opened before it was asked whether it is the job's: a number alone may be anybody's by now (F38, F39).

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::leftovers::{Job, Marks};
use super::proc::Process;
use crate::sys;

/// How long a process is given to get through `execve`, in which it cannot be told whose it is.
const EXEC_TIME: Duration = Duration::from_millis(500);

/// How often all processes are looked at for ones that were forked meanwhile.
const LOOKS: u32 = 8;

/// Sends `signal` to the process with this number, if it is one of the job's; whether it was.
pub(crate) fn signal_one(job: &Job<'_>, pid: u32, signal: i32) -> io::Result<bool> {
    let number = i32::try_from(pid).ok().filter(|number| *number > 0);
    let Some(pid) = number.and_then(Pid::from_raw) else {
        return Ok(false);
    };
    let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        Err(Errno::SRCH | Errno::INVAL) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    let marks = Marks::of(job)?;
    let until = Instant::now() + EXEC_TIME;
    loop {
        let alive = Process::read(pid).is_some_and(|process| !process.is_dead());
        match marks.are_on(pid) {
            _ if !alive => return Ok(false),
            Some(true) => return reached(sys::pidfd_kill(pidfd.as_fd(), signal)),
            Some(false) => return Ok(false),
            None if Instant::now() >= until => return Ok(false),
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Sends `signal` once to every process of the job but this one, those included that are forked meanwhile; how many
/// it reached.
pub(crate) fn signal_everyone(job: &Job<'_>, signal: i32) -> io::Result<usize> {
    let marks = Marks::of(job)?;
    let mut met: Vec<Process> = Vec::new();
    let mut count = 0;
    let mut refused = None;
    for _ in 0..LOOKS {
        let before = met.len();
        let look = marks.look(|process| {
            if met.iter().any(|one| one.is_same(process)) {
                return;
            }
            let Some(pidfd) = marks.hold(process) else {
                return;
            };
            match reached(sys::pidfd_kill(pidfd.as_fd(), signal)) {
                Ok(reached) => count += usize::from(reached),
                Err(error) => refused = Some(error),
            }
            met.push(process.clone());
        });
        // One that could not be examined was perhaps in the middle of `execve`.
        if met.len() == before && !look.missed {
            break;
        }
    }
    match refused {
        Some(error) if count == 0 => Err(error),
        _ => Ok(count),
    }
}

/// One that has just ended was not reached, which is no error.
fn reached(sent: io::Result<()>) -> io::Result<bool> {
    match sent {
        Ok(()) => Ok(true),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::SRCH) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::path::Path;
    use std::process::{Child, Command};

    use nix::libc::{SIGKILL, SIGUSR1};

    fn sleeper(dir: &Path) -> Child {
        let mut command = Command::new("sleep");
        command.arg("600").env("OUTLIVE_JOB_DIR", dir);
        command.spawn().unwrap()
    }

    /// What a child ended by: the signal that it was sent, or else ours.
    fn ended(mut child: Child, was_sent_one: bool) -> Option<i32> {
        if !was_sent_one {
            child.kill().unwrap();
        }
        child.wait().unwrap().signal()
    }

    #[test]
    fn a_stranger_with_the_recorded_number_is_left_alone() {
        let ours = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let job = Job {
            dir: ours.path(),
            tree: None,
        };
        let stranger = sleeper(other.path());
        let sent = signal_one(&job, stranger.id(), SIGUSR1);
        assert_eq!(ended(stranger, matches!(sent, Ok(true))), Some(SIGKILL));
        assert!(!sent.unwrap());
        for nobody in [0, u32::MAX, 1 << 30] {
            assert!(!signal_one(&job, nobody, SIGUSR1).unwrap());
        }
    }

    #[test]
    fn one_or_all_of_the_job_are_reached() {
        let dir = tempfile::tempdir().unwrap();
        let job = Job {
            dir: dir.path(),
            tree: None,
        };
        let (one, two) = (sleeper(dir.path()), sleeper(dir.path()));
        let sent = signal_one(&job, one.id(), SIGUSR1);
        let one = ended(one, matches!(sent, Ok(true)));
        let everyone = signal_everyone(&job, SIGUSR1);
        let two = ended(two, matches!(everyone, Ok(1)));
        assert!(sent.unwrap());
        assert_eq!(everyone.unwrap(), 1);
        assert_eq!((one, two), (Some(SIGUSR1), Some(SIGUSR1)));
    }
}
