//! A process under check: the part that it plays and the replies that it has had.

use state_machine::id::JobId;

use crate::effect::{Effect, Reply};
use crate::past::Past;
use crate::replay::{Replay, Suspended};
use crate::role::{Outcome, Part};
use crate::shared::Shared;
use crate::stage::Standing;

/// How far a process is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Progress {
    /// It has had these replies and wants this effect next.
    Wants(Past, Shared<Effect>),
    /// It has come to its end.
    Ended(Outcome),
    /// It was killed.
    Dead,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// How far it is.
    pub progress: Progress,
    /// What it believes.
    pub standing: Standing,
    /// The states of its job that were true at some instant since it took its first step, one bit each. Kept
    /// for readers only, to judge what they say (R3, R4).
    pub truths: u8,
}

impl Process {
    /// A process that is about to begin.
    pub fn new(part: &Part) -> Process {
        let mut process = Process {
            progress: Progress::Dead,
            standing: Standing::default(),
            truths: 0,
        };
        process.resume(part, Past::default());
        process
    }

    /// The effect that it wants, unless it has ended.
    pub fn wants(&self) -> Option<&Effect> {
        match &self.progress {
            Progress::Wants(_, effect) => Some(effect),
            _ => None,
        }
    }

    /// Whether it has begun and not ended.
    pub fn is_under_way(&self) -> bool {
        matches!(&self.progress, Progress::Wants(past, _) if !past.is_empty())
    }

    /// What it came to, if it did.
    pub fn outcome(&self) -> Option<Outcome> {
        match self.progress {
            Progress::Ended(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// Take one reply more.
    pub fn take(&mut self, part: &Part, reply: Reply) {
        if let Progress::Wants(past, _) = &self.progress {
            let past = past.and(reply);
            self.resume(part, past);
        }
    }

    /// It is killed. What it was told before stays told.
    pub fn die(&mut self) {
        self.progress = Progress::Dead;
        self.standing.holds = None;
        self.truths = 0;
    }

    /// The job that it believes to hold.
    pub fn holds(&self) -> Option<&JobId> {
        self.standing.holds.as_ref()
    }

    fn resume(&mut self, part: &Part, past: Past) {
        let mut replay = Replay::of(&past);
        let played = part.play(&mut replay);
        self.standing = replay.0.standing;
        self.progress = match played {
            Ok(outcome) => Progress::Ended(outcome),
            Err(Suspended(effect)) => Progress::Wants(past, Shared::new(effect)),
        };
    }
}
