//! What a fetcher tells its worker, one JSON object a line, and the one thing that it is told back.
//!
//! The fetcher writes no record of the job: only the holder of its lock does (R2), and that is the worker.

use serde::{Deserialize, Serialize};

use crate::record::{Account, Progress};

/// What a fetcher says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// How far it is, and what that has cost.
    Moved(Progress, Account),
    /// What it is doing, for people; nothing worth saying where `None`.
    Doing(Option<String>),
    /// This belongs into the history.
    Note(String),
    /// Everything is fetched and verified, and it waits to be let register it.
    Register,
    /// Why it is about to end without having done its work.
    Cause(Cause),
}

/// Why an attempt, of a transfer as a rule, ended without having done its work, where more is known of it than how a process ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// It can go better the next time, but not before so many ms.
    Later {
        /// What happened.
        why: String,
        /// The server's wish, in ms; 0 where it has none.
        after_ms: u64,
    },
    /// It would go the same way every time.
    Never {
        /// What happened, and what to do.
        why: String,
    },
    /// There is no room for it. What has arrived is kept.
    NoRoom {
        /// Where, and how much is missing.
        why: String,
    },
}

impl Cause {
    /// What happened, for people.
    pub fn why(&self) -> &str {
        match self {
            Cause::Later { why, .. } | Cause::Never { why } | Cause::NoRoom { why } => why,
        }
    }
}

/// No text is longer than this, in bytes: what a server says may be of any length, and a word that is cut on its way is lost. Escaped
/// it takes six times as much at most.
const LONGEST_TEXT: usize = 8 << 10;

/// The beginning of a text, and a sign that there is more of it.
fn cut(text: &mut String) {
    if text.len() <= LONGEST_TEXT {
        return;
    }
    let end = (0..=LONGEST_TEXT)
        .rev()
        .find(|&at| text.is_char_boundary(at));
    text.truncate(end.unwrap_or(0));
    text.push('…');
}

impl Word {
    /// The same, short enough to arrive.
    fn cut(mut self) -> Word {
        match &mut self {
            Word::Doing(Some(text)) | Word::Note(text) => cut(text),
            Word::Cause(
                Cause::Later { why, .. } | Cause::Never { why } | Cause::NoRoom { why },
            ) => cut(why),
            Word::Moved(..) | Word::Doing(None) | Word::Register => {}
        }
        self
    }

    /// The line that says it, with its newline. Long texts are cut.
    pub fn encode(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(&self.clone().cut()).unwrap_or_default();
        line.push(b'\n');
        line
    }

    /// Read a line; `None` where it says nothing that is known here.
    pub fn decode(line: &[u8]) -> Option<Word> {
        serde_json::from_slice(line).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_still_arrives() {
        for long in ["x", "ä", "\u{1}", "\u{1f600}"] {
            let why = format!("it is {}", long.repeat(100_000));
            let after_ms = 7;
            for word in [
                Word::Note(why.clone()),
                Word::Doing(Some(why.clone())),
                Word::Cause(Cause::Later {
                    why: why.clone(),
                    after_ms,
                }),
                Word::Cause(Cause::Never { why: why.clone() }),
            ] {
                let line = word.encode();
                assert!(line.len() < 64 << 10, "{}", line.len());
                let heard = Word::decode(&line).unwrap();
                assert_eq!(
                    std::mem::discriminant(&heard),
                    std::mem::discriminant(&word)
                );
                if let Word::Cause(cause) = heard {
                    assert!(cause.why().starts_with("it is ") && cause.why().ends_with('…'));
                }
            }
        }
    }

    #[test]
    fn what_is_said_is_heard() {
        let words = [
            Word::Moved(Progress::default(), Account::default()),
            Word::Doing(Some("connecting\nto x".into())),
            Word::Doing(None),
            Word::Note("restarted from 0".into()),
            Word::Register,
            Word::Cause(Cause::Later {
                why: "503".into(),
                after_ms: 3_000,
            }),
        ];
        for word in words {
            let line = word.encode();
            assert_eq!(line.iter().filter(|&&it| it == b'\n').count(), 1);
            assert_eq!(Word::decode(&line), Some(word));
        }
        assert_eq!(Word::decode(b"{\"newer\":1}"), None);
    }
}
