//! What a supervisor and its spawner say to each other: one JSON object per datagram.

use serde::{Deserialize, Serialize};
use state_machine::id::JobId;

/// No message is longer, in bytes. An id has a bound, and a reason is cut.
pub(super) const LONGEST: usize = 4096;

/// How much of a reason is told, in bytes; escaped it still fits.
const LONGEST_REASON: usize = 512;

/// Start a worker on a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ask {
    /// The job.
    pub(super) job: JobId,
    /// The slot that it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) slot: Option<u32>,
}

/// What a spawner tells.
///
/// Every [`Spawner::ask`](super::Spawner::ask) is answered by exactly one of [`Answer::Refused`] and [`Answer::Forked`], and
/// every `Forked` is followed by exactly one [`Answer::Left`], with at most one [`Answer::Started`] and one
/// [`Answer::Vacated`] between them, in either order, as long as the spawner lives. Answers about different jobs come in any order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A worker has taken the job.
    Forked {
        /// The job.
        job: JobId,
        /// The worker. For display only: it may be anybody's by now.
        pid: u32,
    },
    /// Whether the command runs. If not, it will not either, and the record says why.
    Started {
        /// The job.
        job: JobId,
        /// Whether it runs.
        running: bool,
    },
    /// There is no worker: somebody else has the job, it does not wait to be run (any more), it is gone or damaged, or the
    /// system had no process to give. Nothing was done to it.
    Refused {
        /// The job.
        job: JobId,
        /// Why, for people.
        why: String,
        /// Whether it is because its pool has no slot to be had that has a place: then it is the same for every job of the pool.
        full: bool,
    },
    /// Nothing of the command is left, so that its slot is idle; the worker records the end now. May be left out.
    Vacated {
        /// The job.
        job: JobId,
    },
    /// The worker has left the job. How the job is, its record says.
    Left {
        /// The job.
        job: JobId,
        /// The exit code of the worker, or 128 and the signal that killed it; 0 for one that goes on to another job.
        code: i32,
    },
    /// The spawner itself is gone. Its workers, and asks that were not answered, may have come to anything: look at the
    /// jobs. There will be no other answer.
    Gone,
}

/// What a spawner says, as it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Word {
    /// The first word: it can be asked now.
    Ready { ready: bool },
    /// The first word: it cannot do its work.
    Unfit { unfit: String },
    /// [`Answer::Forked`].
    Forked { job: JobId, forked: u32 },
    /// [`Answer::Started`].
    Started { job: JobId, started: bool },
    /// [`Answer::Refused`].
    Refused {
        job: JobId,
        refused: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        full: bool,
    },
    /// [`Answer::Vacated`].
    Vacated { job: JobId, vacated: bool },
    /// [`Answer::Left`].
    Left { job: JobId, left: i32 },
}

impl Word {
    pub(super) fn unfit(why: &str) -> Word {
        Word::Unfit {
            unfit: short(why).to_owned(),
        }
    }

    pub(super) fn refused(job: JobId, why: &str, full: bool) -> Word {
        Word::Refused {
            job,
            refused: short(why).to_owned(),
            full,
        }
    }

    /// What it answers; `None` for a first word.
    pub(super) fn into_answer(self) -> Option<Answer> {
        Some(match self {
            Word::Ready { .. } | Word::Unfit { .. } => return None,
            Word::Forked { job, forked } => Answer::Forked { job, pid: forked },
            Word::Started { job, started } => Answer::Started {
                job,
                running: started,
            },
            Word::Refused { job, refused, full } => Answer::Refused {
                job,
                why: refused,
                full,
            },
            Word::Vacated { job, .. } => Answer::Vacated { job },
            Word::Left { job, left } => Answer::Left { job, code: left },
        })
    }
}

/// As much of a reason as is told.
fn short(why: &str) -> &str {
    &why[..why.floor_char_boundary(LONGEST_REASON)]
}

/// The bytes of a message.
pub(super) fn encode(message: &impl Serialize) -> Vec<u8> {
    // Words, numbers and text in a structure: there is nothing in it that JSON could not hold.
    serde_json::to_vec(message).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> JobId {
        JobId::parse("7-a").unwrap()
    }

    #[test]
    fn messages_are_what_is_written_down() {
        let ask = Ask {
            job: id(),
            slot: Some(2),
        };
        assert_eq!(encode(&ask), br#"{"job":"7-a","slot":2}"#);
        let said: [(&str, Word); 8] = [
            (
                r#"{"job":"7-a","vacated":true}"#,
                Word::Vacated {
                    job: id(),
                    vacated: true,
                },
            ),
            (r#"{"ready":true}"#, Word::Ready { ready: true }),
            (r#"{"unfit":"no"}"#, Word::unfit("no")),
            (
                r#"{"job":"7-a","forked":5}"#,
                Word::Forked {
                    job: id(),
                    forked: 5,
                },
            ),
            (
                r#"{"job":"7-a","started":false}"#,
                Word::Started {
                    job: id(),
                    started: false,
                },
            ),
            (
                r#"{"job":"7-a","refused":"held"}"#,
                Word::refused(id(), "held", false),
            ),
            (
                r#"{"job":"7-a","refused":"none","full":true}"#,
                Word::refused(id(), "none", true),
            ),
            (
                r#"{"job":"7-a","left":137}"#,
                Word::Left {
                    job: id(),
                    left: 137,
                },
            ),
        ];
        for (bytes, word) in said {
            assert_eq!(String::from_utf8(encode(&word)).unwrap(), bytes);
            let read: Word = serde_json::from_slice(bytes.as_bytes()).unwrap();
            assert_eq!(read, word);
        }
    }

    #[test]
    fn no_reason_makes_a_message_too_long() {
        for why in ["x".repeat(9000), "ä".repeat(9000), "\u{1}".repeat(9000)] {
            let job = JobId::parse(&format!("7-{}", "a".repeat(40))).unwrap();
            assert!(encode(&Word::refused(job, &why, true)).len() < LONGEST);
        }
    }
}
