//! The record of a slot, `slot.json`.

use serde::{Deserialize, Serialize};

use super::Damaged;
use crate::id::{JobId, Token};
use crate::slot::State;

/// What is known of a slot.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Slot {
    /// The number of the slot in its pool.
    pub number: u32,
    /// The state as last written.
    pub state: State,
    /// Who holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// When it was last maintained, however that ended, as an RFC 3339 stamp (R17).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_maintained: Option<String>,
    /// How that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_outcome: Option<Outcome>,
    /// When maintenance last succeeded, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_succeeded: Option<String>,
    /// When the maintenance that is under way, or was interrupted, started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_started: Option<String>,
    /// Whether it was given back cleanly.
    #[serde(default)]
    pub returned: bool,
    /// What is wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
}

/// A claim on a slot. Its token fences it: what was done under an older token touches nothing (R23).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Claim {
    /// The token of this claim, never used before.
    pub token: Token,
    /// What kind of holder it is.
    pub holder: Holder,
    /// The process that claimed it.
    pub pid: u32,
    /// When that process started, in clock ticks since boot (F36).
    pub started: u64,
    /// The boot that it ran in (F36).
    pub boot_id: String,
    /// Since when, as an RFC 3339 stamp.
    pub since: String,
}

/// Who can hold a slot.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holder {
    /// The job of this id.
    Job(JobId),
    /// A person or a tool.
    Session,
    /// A run of the maintenance command.
    Maintenance,
}

/// How a maintenance command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It exited with 0.
    Succeeded,
    /// It exited with something else, or could not be started.
    Failed {
        /// Its exit code, where it has one.
        exit: Option<u8>,
    },
    /// Its timeout ended it.
    TimedOut,
    /// Whoever ran it died.
    Interrupted,
}

impl Slot {
    /// A slot of which nothing is known but its number: what stands in it is to be looked at before it is used.
    pub fn new(number: u32) -> Slot {
        Slot {
            number,
            state: State::Idle,
            claim: None,
            last_maintained: None,
            last_outcome: None,
            last_succeeded: None,
            attempt_started: None,
            returned: false,
            broken: None,
        }
    }

    /// The bytes of `slot.json`.
    pub fn encode(&self) -> Vec<u8> {
        super::encode(self)
    }

    /// Read the bytes of `slot.json`.
    pub fn decode(bytes: &[u8]) -> Result<Slot, Damaged> {
        super::decode(bytes)
    }

    /// The record, read as that of the slot of this number. One that names another is none of it, however it came there: whoever
    /// went by it would have the other slot, which may be somebody's.
    pub fn of(self, number: u32) -> Result<Slot, Damaged> {
        if self.number == number {
            Ok(self)
        } else {
            Err(Damaged(format!("it is that of slot {}", self.number)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_have_the_documented_form() {
        let json = serde_json::to_string(&Outcome::Failed { exit: Some(2) }).unwrap();
        assert_eq!(json, r#"{"failed":{"exit":2}}"#);
        assert_eq!(
            serde_json::to_string(&Outcome::TimedOut).unwrap(),
            r#""timed-out""#
        );
    }
}
