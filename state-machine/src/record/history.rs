//! The history, `events.jsonl`: one JSON object a line, appended under the job's lock (R2). A torn last line
//! can be left by a crash; readers pass over what does not decode, and the next append first gives it its
//! newline back.

use serde::{Deserialize, Serialize};

use crate::job::State;

/// One line of a history.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Line {
    /// When, in ms since the epoch.
    pub at_ms: u64,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum What {
    /// The job entered a state.
    State {
        /// The state that it entered.
        state: State,
    },
    /// Something worth keeping was said.
    Status {
        /// What was said.
        text: String,
    },
    /// An attempt failed and another one is due.
    Retry {
        /// The attempt that is due.
        attempt: u32,
        /// Why the one before failed.
        reason: String,
        /// How long it waits, in ms.
        delay_ms: u64,
    },
}

impl Line {
    /// The line that records a state.
    pub fn state(at_ms: u64, state: State) -> Line {
        Line {
            at_ms,
            what: What::State { state },
        }
    }

    /// The bytes of the line, with its newline.
    pub fn encode(&self) -> Vec<u8> {
        super::encode(self)
    }

    /// Read one line, without its newline. `None` where it does not decode.
    pub fn decode(bytes: &[u8]) -> Option<Line> {
        serde_json::from_slice(bytes).ok()
    }
}

/// A history as a protocol needs it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct History {
    /// The lines that decode, in order.
    pub lines: Vec<Line>,
    /// How many lines do not decode.
    pub undecodable: u32,
    /// Whether the file ends without a newline, so that the next append must begin with one.
    pub torn: bool,
}

impl History {
    /// Read the bytes of `events.jsonl`.
    pub fn decode(bytes: &[u8]) -> History {
        let mut history = History {
            torn: bytes.last().is_some_and(|&last| last != b'\n'),
            ..History::default()
        };
        for line in bytes.split(|&byte| byte == b'\n') {
            if line.is_empty() {
                continue;
            }
            match Line::decode(line) {
                Some(line) => history.lines.push(line),
                None => history.undecodable += 1,
            }
        }
        history
    }

    /// The last state that was recorded.
    pub fn last_state(&self) -> Option<State> {
        self.states().last()
    }

    /// The states that were recorded, in order.
    pub fn states(&self) -> impl Iterator<Item = State> + '_ {
        self.lines.iter().filter_map(|line| match line.what {
            What::State { state } => Some(state),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_documented_form() {
        let line = Line::state(7, State::Running);
        assert_eq!(
            line.encode(),
            b"{\"at_ms\":7,\"event\":\"state\",\"state\":\"running\"}\n"
        );
    }

    #[test]
    fn a_torn_end_and_rubbish_are_passed_over() {
        let mut bytes = Line::state(1, State::Queued).encode();
        bytes.extend(b"rubbish\n\xff\n");
        bytes.extend(Line::state(2, State::Running).encode());
        bytes.extend(br#"{"at_ms":3,"event":"sta"#);
        let history = History::decode(&bytes);
        assert_eq!(
            history.states().collect::<Vec<_>>(),
            [State::Queued, State::Running]
        );
        assert_eq!(history.undecodable, 3);
        assert!(history.torn);
    }
}
