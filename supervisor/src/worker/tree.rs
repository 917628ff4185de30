//! The tree of one attempt: the command, everything that descends from it, and what is being done about it.

use std::time::Duration;

use rustix::process::Signal;
use state_machine::record::{Exit, Stopping};

use super::fetcher::Fetcher;
use crate::output::Carrier;
use crate::process::{self, Group, Leader};

/// The signal that asks.
pub(super) const TERM: i32 = Signal::TERM.as_raw();
/// The signal that forces.
pub(super) const KILL: i32 = Signal::KILL.as_raw();

/// How far a stop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The stop signal is delivered; the grace ends at this time since boot.
    Asked(Duration),
    /// The grace is over: everything found is killed, and looked for again at this time since boot.
    Forced {
        /// When to look again.
        next_look: Duration,
        /// The wait after that look; it grows, as what does not die now will not die soon.
        wait: Duration,
    },
}

/// A stop that is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    pub(super) stage: Stage,
    /// When it began, in time since boot.
    pub(super) since: Duration,
    /// When it began, in ms since the epoch.
    pub(super) since_ms: u64,
    /// Whether only the command has had the signal, as there was nothing else.
    pub(super) lone: bool,
    /// Whether the course was told of it, for the record. One that takes a moment only is never recorded on its own.
    pub(super) is_shown: bool,
    /// Whether the course was told which processes do not die.
    pub(super) is_named: bool,
}

impl Stop {
    pub(super) fn forced(&self) -> bool {
        matches!(self.stage, Stage::Forced { .. })
    }

    /// The stop as the record shows it.
    pub(super) fn shown(&self) -> Stopping {
        let signal = if self.forced() { KILL } else { TERM };
        Stopping {
            since_ms: self.since_ms,
            signal: signal as u8,
            forced: self.forced(),
        }
    }
}

/// The tree of one attempt.
pub(super) struct Tree {
    /// The command, kept unreaped until everything else has ended: its zombie pins its number (F42).
    pub(super) leader: Option<Leader>,
    /// How the command ended, once it has.
    pub(super) exit: Option<Exit>,
    pub(super) stop: Option<Stop>,
    /// What carries output that has a limit.
    pub(super) carriers: Vec<Carrier>,
    /// What the limits have cost on the streams that nobody writes to any more, in bytes.
    pub(super) dropped_of_ended: u64,
    /// How much of what the limits have cost is counted already, in bytes.
    pub(super) dropped_counted: u64,
    /// What makes a transfer, where the command is that.
    pub(super) fetcher: Option<Fetcher>,
    /// What holds its limits, where that is a control group.
    pub(super) group: Option<Group>,
    /// When the attempt started, in time since boot.
    pub(super) started: Duration,
    /// When the attempt has run too long, in time since boot; moved on by the time it spends frozen.
    pub(super) deadline: Option<Duration>,
    /// Since when it stands frozen, in time since boot.
    pub(super) frozen: Option<Duration>,
}

impl Tree {
    fn leader_pid(&self) -> Option<rustix::process::Pid> {
        self.leader.as_ref().map(Leader::pid)
    }

    /// See what has ended: the command, without reaping it, and anything that was left to us.
    pub(super) fn look(&mut self) -> std::io::Result<()> {
        if self.exit.is_none()
            && let Some(leader) = &self.leader
        {
            self.exit = leader.peek()?;
        }
        process::reap_adopted(self.leader_pid())?;
        Ok(())
    }

    /// The processes that are left beside the command.
    pub(super) fn others(&self) -> std::io::Result<usize> {
        Ok(process::others(self.leader_pid())?.len())
    }

    /// Whether nothing is left. Once it seems so the command is reaped, and then it is the kernel's word: a subreaper
    /// without children has no descendants (F47).
    pub(super) fn is_empty(&mut self) -> std::io::Result<bool> {
        if self.exit.is_none() || self.others()? > 0 {
            return Ok(false);
        }
        match self.leader.take() {
            Some(leader) => process::is_empty_after_reaping(leader),
            None => process::is_empty(),
        }
    }

    /// Send a signal to every process once. A frozen tree is thawed after it, so that its handlers can run.
    pub(super) fn signal(&mut self, signal: i32) -> std::io::Result<()> {
        process::signal_at_once(self.leader_pid(), signal)?;
        self.frozen = None;
        Ok(())
    }

    /// Send a signal to the command, if that is all there is and the signal ends it; says whether it was sent.
    pub(super) fn signal_lone(&self, signal: i32) -> std::io::Result<bool> {
        match &self.leader {
            Some(leader) if self.exit.is_none() && self.frozen.is_none() => {
                process::signal_lone(leader.pid(), signal)
            }
            _ => Ok(false),
        }
    }

    /// Kill everything that is found now.
    pub(super) fn kill(&self) -> std::io::Result<()> {
        process::kill_round(self.leader_pid())?;
        Ok(())
    }

    /// Stop every process where it stands.
    pub(super) fn freeze(&mut self, now: Duration) -> std::io::Result<process::Frozen> {
        let frozen = process::freeze(self.leader_pid())?;
        self.frozen = Some(now);
        Ok(frozen)
    }

    /// Let every process go on; the time that it stood does not count against its timeout.
    pub(super) fn thaw(&mut self, now: Duration) -> std::io::Result<()> {
        process::thaw()?;
        if let Some(since) = self.frozen.take() {
            self.deadline = self
                .deadline
                .map(|deadline| deadline + now.saturating_sub(since));
        }
        Ok(())
    }

    /// Take what the command has printed last.
    pub(super) fn drain(&mut self) {
        for carrier in &mut self.carriers {
            // What cannot be read from a pipe is not there.
            let _ = carrier.drain();
        }
    }

    /// Why it was ended, where the kernel did that for the memory that it took.
    pub(super) fn out_of_memory(&self) -> Option<String> {
        let group = self.group.as_ref()?;
        let was_killed =
            matches!(self.exit, Some(Exit::Signal(signal)) if i32::from(signal) == KILL);
        (was_killed && group.was_out_of_memory())
            .then(|| "it took more memory than its limit".to_owned())
    }

    /// How much output the limits have cost, in bytes.
    pub(super) fn dropped_bytes(&self) -> u64 {
        let of_open: u64 = self.carriers.iter().map(Carrier::dropped_bytes).sum();
        self.dropped_of_ended + of_open
    }
}
