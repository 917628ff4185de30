//! The workers that a spawner has forked: what they say of their start, and their end.

use std::collections::{HashMap, VecDeque};
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::process::{Pid, WaitOptions, WaitStatus, wait};
use state_machine::id::JobId;

use super::message::Word;
use crate::clock;
use crate::worker::{self, FULL};

/// How much a worker can say of its start, in bytes.
const LONGEST: usize = 4096;

/// Every worker that was forked and is not reaped.
#[derive(Debug, Default)]
pub(super) struct Crew {
    workers: HashMap<Pid, JobId>,
    /// Those of them that have not said how their start went.
    starting: HashMap<Pid, Starting>,
    /// Their jobs.
    jobs: HashMap<JobId, Pid>,
    /// Those that have had a job and can have another; who waits longest is first.
    without_a_job: VecDeque<Waiting>,
}

/// A worker that waits for a job.
#[derive(Debug)]
struct Waiting {
    pid: Pid,
    /// Where it is asked, and ends when this is closed.
    channel: UnixStream,
    /// Until when it waits, in time since boot.
    until: Duration,
}

/// How long a worker that has had a job waits for another. Where jobs follow each other it is a millisecond, and where the disk is
/// slow to keep their ends, so many of them come at once.
const PATIENCE: Duration = Duration::from_millis(100);

/// How many wait at most.
const MOST_WAITING: usize = 64;

/// A worker that starts.
#[derive(Debug)]
struct Starting {
    channel: UnixStream,
    said: Vec<u8>,
    holds: bool,
}

impl Crew {
    /// Whether a worker was forked for the job and is not reaped.
    pub(super) fn has(&self, job: &JobId) -> bool {
        self.jobs.contains_key(job)
    }

    /// How many start.
    pub(super) fn starting(&self) -> usize {
        self.starting.len()
    }

    /// The channels of those that start.
    pub(super) fn channels(&self) -> impl Iterator<Item = (Pid, BorrowedFd<'_>)> {
        self.starting
            .iter()
            .map(|(pid, starting)| (*pid, starting.channel.as_fd()))
    }

    /// Take in a worker that was just forked. It is heard at the other end of `channel`, which does not block.
    pub(super) fn add(&mut self, pid: Pid, job: JobId, channel: UnixStream) {
        self.workers.insert(pid, job.clone());
        self.jobs.insert(job, pid);
        let starting = Starting {
            channel,
            said: Vec::new(),
            holds: false,
        };
        self.starting.insert(pid, starting);
    }

    /// Hear what a worker has to say of its start, and pass it on.
    pub(super) fn hear(&mut self, pid: Pid, pass_on: &mut impl FnMut(Word)) {
        let (Some(starting), Some(job)) = (self.starting.get_mut(&pid), self.workers.get(&pid))
        else {
            return;
        };
        let ended = !starting.listen();
        while let Some(line) = starting.line() {
            let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
            if !starting.holds {
                match word {
                    "held" => {
                        starting.holds = true;
                        pass_on(Word::Forked {
                            job: job.clone(),
                            forked: pid.as_raw_nonzero().get().unsigned_abs(),
                        });
                    }
                    "refused" => return self.refuse(pid, rest, false, pass_on),
                    FULL => return self.refuse(pid, rest, true, pass_on),
                    _ => return self.refuse(pid, &line, false, pass_on),
                }
                continue;
            }
            pass_on(Word::Started {
                job: job.clone(),
                started: word == "started",
            });
            // Of its end the kernel tells.
            self.starting.remove(&pid);
            return;
        }
        if !ended {
            return;
        }
        if starting.holds {
            self.starting.remove(&pid);
        } else {
            let why = "the worker was lost before it took the job";
            self.refuse(pid, why, false, pass_on);
        }
    }

    fn refuse(&mut self, pid: Pid, why: &str, full: bool, pass_on: &mut impl FnMut(Word)) {
        self.starting.remove(&pid);
        // It is reaped all the same, and then nobody asks whose it was: it never had the job.
        if let Some(job) = self.workers.remove(&pid) {
            self.jobs.remove(&job);
            pass_on(Word::refused(job, why, full));
        }
    }

    /// Reap those that have ended. All that they had to say was said before that.
    pub(super) fn reap() -> Vec<(Pid, WaitStatus)> {
        // An error means that there is no child at all.
        std::iter::from_fn(|| wait(WaitOptions::NOHANG).ok().flatten()).collect()
    }

    /// The worker of a job has left it, and can have another: it is asked at the other end of `channel`.
    pub(super) fn is_without_a_job(
        &mut self,
        job: &JobId,
        channel: UnixStream,
        pass_on: &mut impl FnMut(Word),
    ) {
        let Some(pid) = self.jobs.get(job).copied() else {
            return;
        };
        // All that it had to say of the job was said before that.
        self.let_off(pid, 0, pass_on);
        let until = clock::since_boot() + PATIENCE;
        if self.without_a_job.len() < MOST_WAITING && channel.set_nonblocking(true).is_ok() {
            self.without_a_job.push_back(Waiting {
                pid,
                channel,
                until,
            });
        }
    }

    /// Have a worker that waits for a job take this one, if there is one.
    pub(super) fn hand_over(
        &mut self,
        job: &JobId,
        slot: Option<u32>,
        asked_by: BorrowedFd<'_>,
    ) -> bool {
        // The last that came: what it needs is at hand.
        while let Some(waiting) = self.without_a_job.pop_back() {
            if worker::ask(&waiting.channel, job, slot, asked_by).is_ok() {
                self.add(waiting.pid, job.clone(), waiting.channel);
                return true;
            }
        }
        false
    }

    /// How long it is until one has waited long enough.
    pub(super) fn rest_without_a_job(&self) -> Option<Duration> {
        let first = self.without_a_job.front()?;
        Some(first.until.saturating_sub(clock::since_boot()))
    }

    /// Let those end that have waited long enough.
    pub(super) fn dismiss(&mut self) {
        if self.without_a_job.is_empty() {
            return;
        }
        let now = clock::since_boot();
        self.without_a_job.retain(|waiting| waiting.until > now);
    }

    /// Let one go that was reaped, and say so.
    pub(super) fn let_go(&mut self, pid: Pid, status: WaitStatus, pass_on: &mut impl FnMut(Word)) {
        self.without_a_job.retain(|waiting| waiting.pid != pid);
        self.let_off(pid, code(status), pass_on);
    }

    /// A worker has left its job, if it has one.
    fn let_off(&mut self, pid: Pid, left: i32, pass_on: &mut impl FnMut(Word)) {
        self.hear(pid, pass_on);
        self.starting.remove(&pid);
        if let Some(job) = self.workers.remove(&pid) {
            self.jobs.remove(&job);
            pass_on(Word::Left { job, left });
        }
    }
}

impl Starting {
    /// Read what is there. `false` when nothing will follow.
    fn listen(&mut self) -> bool {
        let mut buffer = [0_u8; 512];
        loop {
            match self.channel.read(&mut buffer) {
                Ok(0) => return false,
                Ok(_) if self.said.len() > LONGEST => return false,
                Ok(length) => self.said.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }

    /// The next line of what was read.
    fn line(&mut self) -> Option<String> {
        let end = self.said.iter().position(|&byte| byte == b'\n')?;
        let line = String::from_utf8_lossy(&self.said[..end]).into_owned();
        self.said.drain(..=end);
        Some(line)
    }
}

/// How a worker ended, as a shell has it.
fn code(status: WaitStatus) -> i32 {
    status
        .exit_status()
        .or_else(|| status.terminating_signal().map(|signal| 128 + signal))
        .unwrap_or(-1)
}
