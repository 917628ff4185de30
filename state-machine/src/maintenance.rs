//! What a run of maintenance reports, slot by slot, in the form that is documented: for people, and for tools that read it.

use serde::{Deserialize, Serialize};

use crate::record::Outcome;

/// What a run of maintenance did about one pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolReport {
    /// The pool.
    pub pool: String,
    /// What came of it.
    pub result: PoolResult,
}

/// What came of a run about one pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PoolResult {
    /// It has no maintenance command, and no slot was one too many.
    NoMaintainCommand,
    /// None of its slots was ever cut.
    NoSlots,
    /// Another run is at it.
    Claimed {
        /// The process that runs it; 0 where that cannot be told.
        by_pid: u32,
    },
    /// Its slots were visited.
    Visited {
        /// Those that were more than there are to be, and are gone.
        shed: Vec<u32>,
        /// The others, in the order of their numbers; none where there is no maintenance command.
        slots: Vec<SlotReport>,
    },
}

/// What a run did about one slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotReport {
    /// Its number.
    pub slot: u32,
    /// What came of the visit.
    pub result: SlotResult,
}

/// What came of a visit to a slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlotResult {
    /// It was maintained within the span.
    NotDue {
        /// When, as it is recorded.
        last_maintained: String,
    },
    /// A session is open in it, or a job runs in it.
    InUse {
        /// Whose it is.
        by: String,
    },
    /// It could not be had for another reason.
    Unavailable {
        /// Who or what is in the way.
        by: String,
    },
    /// It is broken, or was found so now.
    Broken {
        /// What is wrong with it.
        why: String,
    },
    /// Its command was run.
    Ran {
        /// How that ended.
        outcome: Outcome,
        /// How long it took.
        duration_ms: u64,
        /// The file that holds everything that it wrote.
        artifact: String,
    },
}

impl PoolReport {
    /// Whether a command failed, or was ended by its timeout.
    pub fn has_failed(&self) -> bool {
        let PoolResult::Visited { slots, .. } = &self.result else {
            return false;
        };
        slots.iter().any(|slot| {
            matches!(&slot.result, SlotResult::Ran { outcome, .. } if *outcome != Outcome::Succeeded)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_the_documented_form() {
        let report = PoolReport {
            pool: "web".into(),
            result: PoolResult::Visited {
                shed: vec![3],
                slots: vec![
                    SlotReport {
                        slot: 1,
                        result: SlotResult::NotDue {
                            last_maintained: "2026-11-18T11:06:40Z".into(),
                        },
                    },
                    SlotReport {
                        slot: 2,
                        result: SlotResult::Ran {
                            outcome: Outcome::Failed { exit: Some(2) },
                            duration_ms: 7,
                            artifact: "/a".into(),
                        },
                    },
                ],
            },
        };
        assert!(report.has_failed());
        assert_eq!(
            serde_json::to_string(&report).expect("it has a JSON form"),
            r#"{"pool":"web","result":{"visited":{"shed":[3],"slots":[{"slot":1,"result":{"not-due":{"last_maintained":"2026-11-18T11:06:40Z"}}},{"slot":2,"result":{"ran":{"outcome":{"failed":{"exit":2}},"duration_ms":7,"artifact":"/a"}}}]}}}"#
        );
        let claimed = PoolResult::Claimed { by_pid: 7 };
        assert_eq!(
            serde_json::to_string(&claimed).expect("it has a JSON form"),
            r#"{"claimed":{"by_pid":7}}"#
        );
        assert_eq!(
            serde_json::to_string(&PoolResult::NoMaintainCommand).expect("it has a JSON form"),
            r#""no-maintain-command""#
        );
    }
}
