//! The minder's end: it runs the command that it is told, sees to it that it keeps its bounds, and says how it went when nothing
//! of it is left.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use nix::libc::SIGTERM;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{chdir, setsid};
use state_machine::record::Exit;

use super::TITLE;
use super::message::{Answer, Heard, Received, hear, send_answer};
use crate::clock::{Alarm, since_boot};
use crate::process::mask::mask_all_but_faults;
use crate::process::stdin::socket_on_stdin;
use crate::process::{Leader, tree};
use crate::sys;

/// How long after SIGKILL those that do not die are waited for.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// The first wait between two looks at what was killed, and the longest.
const FIRST_LOOK: Duration = Duration::from_millis(2);
const LONGEST_LOOK: Duration = Duration::from_millis(200);

/// What asks a minder itself to end what it minds.
const TOLD_TO_END: [Signal; 4] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGHUP,
    Signal::SIGQUIT,
];

/// Be the minder of the process at the other end of standard input, until that end is closed. This process must have one
/// thread.
pub(crate) fn serve_on_stdin() -> io::Result<()> {
    if !sys::has_one_thread()? {
        let why = "worker_if_asked() is called too late: this program has threads already";
        return Err(io::Error::other(why));
    }
    let socket = socket_on_stdin().map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => {
            io::Error::other("a minder is started by another program, and not by hand")
        }
        _ => error,
    })?;
    // Fails for the leader of a group, which what is executed by a shell's job control may be; it is asked by socket anyway.
    let _ = setsid();
    chdir("/")?;
    serve(socket)
}

/// Leave the session, the directory and the output of the process that this is a copy of.
pub(super) fn be_a_stranger() -> io::Result<()> {
    setsid()?;
    chdir("/")?;
    let null = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    nix::unistd::dup2_stdin(&null)?;
    nix::unistd::dup2_stdout(&null)?;
    nix::unistd::dup2_stderr(&null)?;
    Ok(())
}

/// Run what the caller at the other end of `socket` says, until that end is closed.
pub(super) fn serve(socket: OwnedFd) -> io::Result<()> {
    // Shown to people; one that cannot have it minds all the same.
    let _ = sys::set_title(TITLE.as_ref());
    let mask = mask_all_but_faults()?;
    sys::hear_of_deaths()?;
    tree::become_subreaper()?;
    let minder = Ears {
        socket,
        signals: SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?,
        alarm: Alarm::new()?,
    };
    loop {
        let answer = match hear(&minder.socket) {
            Ok(Heard::Run(work)) => mind(&minder, *work),
            Ok(Heard::Stop) => continue,
            Ok(Heard::Closed) => return Ok(()),
            Err(error) => Err(error),
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                // What is left of one command would be taken for the next one's: this process is done.
                let _ = send_answer(&minder.socket, &Answer::failed(&error));
                return Err(error);
            }
        };
        // Nobody left to tell is nobody to be told.
        if send_answer(&minder.socket, &answer).is_err() {
            return Ok(());
        }
    }
}

/// What a minder hears with.
struct Ears {
    socket: OwnedFd,
    signals: SignalFd,
    alarm: Alarm,
}

/// What has been heard.
#[derive(Default)]
struct Woken {
    told_to_end: bool,
}

impl Ears {
    /// Sleep until a child has ended, somebody wants the command ended, or the deadline (in time since boot).
    fn sleep(&self, deadline: Duration, hears_caller: bool) -> io::Result<Woken> {
        self.alarm.set(Some(deadline))?;
        let mut fds = vec![
            PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.alarm.as_fd(), PollFlags::IN),
        ];
        if hears_caller {
            fds.push(PollFd::new(&self.socket, PollFlags::IN));
        }
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let spoken_to = fds.get(2).is_some_and(|fd| !fd.revents().is_empty());
        // Whether it says so or is gone: there is nothing else that it can say now.
        Ok(Woken {
            told_to_end: self.take_signals()? || spoken_to,
        })
    }

    /// Take every signal there is; whether one of them asks to end.
    fn take_signals(&self) -> io::Result<bool> {
        let ends: SigSet = TOLD_TO_END.into_iter().collect();
        let mut told = false;
        while let Some(signal) = self.signals.read_signal()? {
            let signal = Signal::try_from(signal.ssi_signo as i32);
            told |= signal.is_ok_and(|signal| ends.contains(signal));
        }
        Ok(told)
    }
}

/// Run one command to the end of all that it started.
fn mind(ears: &Ears, work: Received) -> io::Result<Answer> {
    // What was sent to this process before is about nothing that runs now.
    ears.take_signals()?;
    let (timeout, grace) = (work.timeout, work.grace);
    let mut complaints = File::from(work.stderr.try_clone()?);
    // Kept until nothing is left, as a process can close what it inherits.
    let held = work.held.as_ref().map(OwnedFd::try_clone).transpose()?;
    let started = since_boot();
    let leader = match start(work)? {
        Ok(leader) => leader,
        Err(why) => {
            // A file that cannot be written to is no reason to say less to the caller.
            let _ = writeln!(complaints, "outlive: {why}");
            return Ok(Answer {
                cannot_start: Some(why),
                ..Answer::default()
            });
        }
    };
    let mut minded = Minded {
        leader: Some(leader),
        exit: None,
        ended: None,
        stage: Stage::Runs(started + timeout),
        grace,
        answer: Answer::default(),
    };
    minded.see_through(ears)?;
    drop(held);
    let ended = minded.ended.unwrap_or_else(since_boot);
    Ok(Answer {
        exit: minded.exit,
        duration_ms: u64::try_from(ended.saturating_sub(started).as_millis()).unwrap_or(u64::MAX),
        ..minded.answer
    })
}

/// Start the command, or say why it cannot be started.
fn start(work: Received) -> io::Result<Result<Leader, String>> {
    let null = || File::open("/dev/null").map(OwnedFd::from);
    let waiting = crate::process::fork_command(crate::process::Command {
        argv: &work.argv,
        env: &work.env,
        cwd: &work.cwd,
        umask: work.umask,
        stdin: work.stdin.map_or_else(null, Ok)?,
        stdout: work.stdout,
        stderr: work.stderr,
        tree: work.held.map_or_else(null, Ok)?,
        slot: None,
    })?;
    Ok(waiting.release().map_err(|error| error.to_string()))
}

/// How far a command is.
enum Stage {
    /// It runs, until this time since boot at most.
    Runs(Duration),
    /// What is left was asked to end, and has until then.
    Asked(Duration),
    /// What is left was killed, and is looked for again.
    Killed {
        since: Duration,
        next_look: Duration,
        wait: Duration,
    },
}

/// A command that is being minded.
struct Minded {
    /// Kept unreaped until everything else has ended: its zombie pins its number (F42).
    leader: Option<Leader>,
    exit: Option<Exit>,
    /// When the command ended, in time since boot.
    ended: Option<Duration>,
    stage: Stage,
    grace: Duration,
    answer: Answer,
}

impl Minded {
    fn see_through(&mut self, ears: &Ears) -> io::Result<()> {
        let mut told_to_end = false;
        loop {
            self.look()?;
            if self.is_over()? {
                return Ok(());
            }
            self.advance(told_to_end)?;
            let hears_caller = matches!(self.stage, Stage::Runs(_));
            let woken = ears.sleep(self.next(), hears_caller)?;
            told_to_end |= woken.told_to_end;
        }
    }

    fn pid(&self) -> Option<rustix::process::Pid> {
        self.leader.as_ref().map(Leader::pid)
    }

    /// See what has ended: the command, without reaping it, and anything that was left to us.
    fn look(&mut self) -> io::Result<()> {
        if self.exit.is_none()
            && let Some(leader) = &self.leader
        {
            self.exit = leader.peek()?;
            self.ended = self.exit.map(|_| since_boot());
        }
        tree::reap_adopted(self.pid())?;
        Ok(())
    }

    /// Whether nothing is left, by the kernel's word (F47).
    fn is_over(&mut self) -> io::Result<bool> {
        if self.exit.is_none() || !tree::others(self.pid())?.is_empty() {
            return Ok(false);
        }
        match self.leader.take() {
            Some(leader) => tree::is_empty_after_reaping(leader),
            None => tree::is_empty(),
        }
    }

    fn advance(&mut self, told_to_end: bool) -> io::Result<()> {
        let now = since_boot();
        match self.stage {
            Stage::Runs(_) if self.exit.is_some() => {
                let left = tree::survivors()?;
                if !left.is_empty() {
                    self.answer.leftovers = Some(tree::name_all(&left));
                }
                self.ask(now)
            }
            Stage::Runs(_) if told_to_end => {
                self.answer.stopped = true;
                self.ask(now)
            }
            Stage::Runs(until) if until <= now => {
                self.answer.timed_out = true;
                self.ask(now)
            }
            Stage::Asked(until) if until <= now => {
                tree::kill_round(self.pid())?;
                self.stage = Stage::Killed {
                    since: now,
                    next_look: now + FIRST_LOOK,
                    wait: FIRST_LOOK,
                };
                Ok(())
            }
            Stage::Runs(_) | Stage::Asked(_) => Ok(()),
            Stage::Killed {
                since,
                next_look,
                wait,
            } => self.kill_again(now, since, next_look, wait),
        }
    }

    /// Ask everything to end.
    fn ask(&mut self, now: Duration) -> io::Result<()> {
        tree::signal_at_once(self.pid(), SIGTERM)?;
        self.stage = Stage::Asked(now + self.grace);
        Ok(())
    }

    fn kill_again(
        &mut self,
        now: Duration,
        since: Duration,
        next_look: Duration,
        wait: Duration,
    ) -> io::Result<()> {
        tree::kill_round(self.pid())?;
        if now >= since + KILL_LIMIT {
            let left = tree::survivors()?;
            if !left.is_empty() {
                let left = tree::name_all(&left);
                return Err(io::Error::other(format!("these do not end: {left}")));
            }
        }
        if next_look <= now {
            let wait = (wait * 2).min(LONGEST_LOOK);
            self.stage = Stage::Killed {
                since,
                next_look: now + wait,
                wait,
            };
        }
        Ok(())
    }

    /// When there is something to do again, in time since boot.
    fn next(&self) -> Duration {
        match self.stage {
            Stage::Runs(until) | Stage::Asked(until) => until,
            Stage::Killed { next_look, .. } => next_look,
        }
    }
}
