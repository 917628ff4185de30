//! A process under check: the part that it plays and the replies that it has had.

use state_machine::id::JobId;

use crate::effect::{Effect, Reply};
use crate::mutant::Editing;
use crate::past::Past;
use crate::replay::{Asking, Awakening, Remembering, Stop, Wanted};
use crate::role::{Outcome, Part};
use crate::shared::Shared;
use crate::stage::Standing;

/// How far a process is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Progress {
    /// It has had these replies and wants this effect next.
    Wants(Past, Shared<Wanted>),
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
    /// When it woke up last, if it has slept: there its past begins. Few do.
    woke: Option<Shared<Awakening>>,
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
            woke: None,
            standing: Standing::default(),
            truths: 0,
        };
        process.resume(part, Past::default());
        process
    }

    /// The effect that it wants, unless it has ended.
    pub fn wants(&self) -> Option<&Effect> {
        self.wanted().map(|wanted| &wanted.effect)
    }

    /// The same, with where it is asked for.
    pub fn wanted(&self) -> Option<&Wanted> {
        match &self.progress {
            Progress::Wants(_, wanted) => Some(wanted),
            _ => None,
        }
    }

    /// How many replies it has had, while it goes on.
    pub fn age(&self) -> usize {
        match &self.progress {
            Progress::Wants(past, _) => past.len(),
            _ => 0,
        }
    }

    /// Whether it has begun and not ended.
    pub fn is_under_way(&self) -> bool {
        matches!(&self.progress, Progress::Wants(..)) && self.has_begun()
    }

    /// Whether it has begun, be it over or not.
    pub fn has_begun(&self) -> bool {
        let is_at_beginning = matches!(&self.progress, Progress::Wants(past, _) if past.is_empty());
        !is_at_beginning || self.woke.is_some()
    }

    /// Whether it was killed.
    pub fn is_dead(&self) -> bool {
        self.progress == Progress::Dead
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
        let Progress::Wants(past, _) = &self.progress else {
            return;
        };
        let past = match reply {
            // Whoever wakes up is the same, however it came to sleep.
            Reply::Slept(memory) => {
                self.woke = Some(Shared::new(Awakening {
                    memory,
                    standing: self.standing.clone(),
                }));
                Past::default()
            }
            reply => past.and(reply),
        };
        self.resume(part, past);
    }

    /// It is killed. What it was told before stays told; what it had seen is nobody's business any more.
    pub fn die(&mut self) {
        self.progress = Progress::Dead;
        self.woke = None;
        self.standing.holds = None;
        self.standing.ended = None;
        self.standing.supervises = false;
        self.standing.has = None;
        self.standing.maintains = false;
        self.truths = 0;
    }

    /// The job that it believes to hold.
    pub fn holds(&self) -> Option<&JobId> {
        self.standing.holds.as_ref().map(|(id, _)| id)
    }

    fn resume(&mut self, part: &Part, past: Past) {
        let mut replay = Asking {
            host: Editing::new(Remembering::new(&past, self.woke.as_deref()), part.edit),
            syncs: part.syncs,
        };
        let played = part
            .play(&mut replay)
            .and_then(|outcome| replay.host.finish().map(|()| outcome));
        self.standing = replay.host.host.standing;
        self.progress = match played {
            Ok(outcome) => Progress::Ended(outcome),
            // What it had open is closed as it leaves (F2).
            Err(Stop::Failed) => Progress::Ended(Outcome::Failed),
            Err(Stop::Wants(wanted)) => Progress::Wants(past, Shared::new(*wanted)),
        };
        if self.progress == Progress::Ended(Outcome::Failed) {
            self.standing.holds = None;
            self.standing.supervises = false;
            self.standing.has = None;
            self.standing.maintains = false;
        }
        if !matches!(self.progress, Progress::Wants(..)) {
            self.woke = None;
        }
    }
}
