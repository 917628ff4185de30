//! What the slots of a pool are made of, and how they are kept: part of the record of a pool, and of its configuration.

use serde::{Deserialize, Serialize};

use super::Bytes;

/// How long a maintenance command may run where nobody says, in ms.
pub const MAINTENANCE_TIMEOUT_MS: u64 = 600_000;

/// What the slots of a pool hold. A pool of which nothing of this is said has slots without a place: they only count.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Ground {
    /// The git repository that worktrees are cut from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Bytes>,
    /// The command that fills the directory of a new slot, where it is no worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepare: Option<Vec<Bytes>>,
    /// The command that is run in a slot when it is given back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<Vec<Bytes>>,
    /// How a slot is maintained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintain: Option<Upkeep>,
}

/// How a slot is maintained.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Upkeep {
    /// The command: program and arguments, run without a shell.
    pub command: Vec<Bytes>,
    /// How long it may run, in ms.
    pub timeout_ms: u64,
    /// How often a supervisor has it run, in ms; never by itself where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_ms: Option<u64>,
}

impl Ground {
    /// Nothing said.
    pub const NONE: Ground = Ground {
        source: None,
        prepare: None,
        reset: None,
        maintain: None,
    };

    /// Whether a slot has a place to work in.
    pub fn has_place(&self) -> bool {
        self.source.is_some() || self.prepare.is_some()
    }

    /// The same, where a command without a word is none: so one is unset that is configured.
    #[must_use]
    pub fn settled(mut self) -> Ground {
        let is_one = |command: &Vec<Bytes>| !command.is_empty();
        self.prepare = self.prepare.filter(is_one);
        self.reset = self.reset.filter(is_one);
        self.maintain = self.maintain.filter(|upkeep| is_one(&upkeep.command));
        self
    }

    /// This, and what it does not say as `below` says it. How a place is made is said as a whole: who names another source
    /// does not want the other's command as well.
    #[must_use]
    pub fn over(&self, below: &Ground) -> Ground {
        let place = if self.has_place() { self } else { below };
        Ground {
            source: place.source.clone(),
            prepare: place.prepare.clone(),
            reset: self.reset.as_ref().or(below.reset.as_ref()).cloned(),
            maintain: self.maintain.as_ref().or(below.maintain.as_ref()).cloned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_without_a_word_is_none() {
        let below = Ground {
            source: Some("/repository".into()),
            reset: Some(vec!["clean".into()]),
            maintain: Some(Upkeep {
                command: vec!["warm".into()],
                timeout_ms: 1,
                every_ms: None,
            }),
            ..Ground::NONE
        };
        let above = Ground {
            reset: Some(Vec::new()),
            ..Ground::NONE
        };
        let both = above.over(&below).settled();
        assert_eq!((both.reset, both.maintain), (None, below.maintain.clone()));
    }

    #[test]
    fn what_is_said_above_counts_and_the_place_as_a_whole() {
        let below = Ground {
            prepare: Some(vec!["fill".into()]),
            reset: Some(vec!["clean".into()]),
            ..Ground::default()
        };
        let above = Ground {
            source: Some("/repository".into()),
            ..Ground::default()
        };
        let both = above.over(&below);
        assert_eq!((both.source, both.prepare), (above.source.clone(), None));
        assert_eq!(both.reset, below.reset);
        assert_eq!(Ground::default().over(&below), below);
        assert!(above.has_place() && !Ground::default().has_place());
    }
}
