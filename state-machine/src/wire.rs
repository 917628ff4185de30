//! What is said over the socket of a supervisor: one JSON object a line, whichever way. Here are the requests and the notices,
//! how they are read and written, and where a line ends. What must never be here: a socket, and what is done about a
//! request.

use serde::{Deserialize, Serialize};

use crate::id::JobId;
use crate::job::State;

/// How long a line of a client may be, in bytes, its end not counted.
pub const LONGEST_LINE: usize = 64 << 10;

/// What a client asks of a supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// How it stands.
    Status,
    /// To be told of changes from now on.
    Subscribe(Interest),
    /// To admit nothing any more, and to end once nothing runs.
    Drain,
    /// To read the configuration again.
    Reload,
    /// To end now. Workers run on.
    Shutdown,
}

/// What a subscriber wants to be told of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Interest {
    /// The jobs; every job where absent.
    pub jobs: Option<Vec<JobId>>,
    /// Not only what state a job is in now, but also that anything else about it may have changed.
    pub every: bool,
}

/// What a subscriber is told. A hint to look, as every notice is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Notice {
    /// This job is in this state now; `None` where it is gone.
    State(JobId, Option<State>),
    /// Something about this job may have changed; `None`: about any job.
    Changed(Option<JobId>),
    /// Not everything was told, and nothing more will be: subscribe again, and look.
    Lagged,
}

/// Why a line is no request. For people, one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAsk {
    /// The line is too long.
    #[error("a line is longer than {LONGEST_LINE} bytes")]
    TooLong,
    /// The line is no JSON object of a request.
    #[error("not understood: {0}")]
    NoAsk(String),
    /// There is no such request.
    #[error("there is no op '{0}'; known are status, subscribe, drain, reload and shutdown")]
    Unknown(String),
}

/// How much of what was not understood is told again, in bytes.
const SHOWN: usize = 40;

/// A request as it is written. Fields that only a later version knows are passed over.
#[derive(Deserialize, Serialize)]
struct Written<'a> {
    op: std::borrow::Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    jobs: Option<Vec<JobId>>,
    #[serde(default, skip_serializing_if = "is_false")]
    every: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl Ask {
    /// Read a line, without its end.
    ///
    /// # Errors
    ///
    /// When it is no request that is known here.
    pub fn decode(line: &[u8]) -> Result<Ask, BadAsk> {
        let no_ask =
            |why: &dyn std::fmt::Display| BadAsk::NoAsk(shown(&why.to_string(), 2 * SHOWN));
        if line.len() > LONGEST_LINE {
            return Err(BadAsk::TooLong);
        }
        let text = std::str::from_utf8(line).map_err(|_| no_ask(&"it is not UTF-8"))?;
        let written: Written<'_> = serde_json::from_str(text).map_err(|error| no_ask(&error))?;
        match &*written.op {
            "status" => Ok(Ask::Status),
            "subscribe" => Ok(Ask::Subscribe(Interest {
                jobs: written.jobs,
                every: written.every,
            })),
            "drain" => Ok(Ask::Drain),
            "reload" => Ok(Ask::Reload),
            "shutdown" => Ok(Ask::Shutdown),
            unknown => Err(BadAsk::Unknown(shown(unknown, SHOWN))),
        }
    }

    /// The line, with its end.
    pub fn encode(&self) -> Vec<u8> {
        let (op, interest) = match self {
            Ask::Status => ("status", None),
            Ask::Subscribe(interest) => ("subscribe", Some(interest.clone())),
            Ask::Drain => ("drain", None),
            Ask::Reload => ("reload", None),
            Ask::Shutdown => ("shutdown", None),
        };
        let Interest { jobs, every } = interest.unwrap_or_default();
        line(&Written {
            op: op.into(),
            jobs,
            every,
        })
    }
}

impl Notice {
    /// The line, with its end.
    pub fn encode(&self) -> Vec<u8> {
        #[derive(Serialize)]
        struct Of<'a> {
            job: &'a JobId,
            state: Option<State>,
        }
        #[derive(Serialize)]
        struct Changed<'a> {
            changed: Option<&'a JobId>,
        }
        #[derive(Serialize)]
        struct Lagged {
            lagged: bool,
        }
        match self {
            Notice::State(job, state) => line(&Of { job, state: *state }),
            Notice::Changed(job) => line(&Changed {
                changed: job.as_ref(),
            }),
            Notice::Lagged => line(&Lagged { lagged: true }),
        }
    }
}

/// A message as a line, with its end.
pub fn line(message: &impl Serialize) -> Vec<u8> {
    // Words, numbers and text in a structure: there is nothing in it that JSON could not hold.
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// As much of a text as is told again.
fn shown(text: &str, most: usize) -> String {
    text[..text.floor_char_boundary(most)].to_owned()
}

/// Bytes as they come in, and the lines in them. Holds no more than one line and what came with its end.
#[derive(Debug)]
pub struct Lines {
    pending: Vec<u8>,
    /// So much of it holds no end of a line.
    searched: usize,
    longest: usize,
}

impl Default for Lines {
    /// Lines of a client.
    fn default() -> Lines {
        Lines::up_to(LONGEST_LINE)
    }
}

impl Lines {
    /// Lines of at most so many bytes.
    pub fn up_to(longest: usize) -> Lines {
        Lines {
            pending: Vec::new(),
            searched: 0,
            longest,
        }
    }

    /// Take what has come in.
    pub fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// The next whole line, without its end. Ask until there is none, before more is pushed.
    ///
    /// # Errors
    ///
    /// [`BadAsk::TooLong`] where it is longer than it may be, whether or not its end has come. There is no going on
    /// after that.
    pub fn next_line(&mut self) -> Result<Option<Vec<u8>>, BadAsk> {
        let unseen = &self.pending[self.searched..];
        let end = unseen.iter().position(|&byte| byte == b'\n');
        let length = end.map_or(self.pending.len(), |end| self.searched + end);
        if length > self.longest {
            return Err(BadAsk::TooLong);
        }
        if end.is_none() {
            self.searched = length;
            return Ok(None);
        }
        let rest = self.pending.split_off(length + 1);
        let mut line = std::mem::replace(&mut self.pending, rest);
        line.pop();
        self.searched = 0;
        Ok(Some(line))
    }

    /// Whether the beginning of a line has come, and not its end.
    pub fn is_within_a_line(&self) -> bool {
        !self.pending.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(word: &str) -> JobId {
        JobId::parse(word).unwrap()
    }

    #[test]
    fn requests_are_what_is_written_down() {
        let of = |jobs: Option<Vec<JobId>>, every| Ask::Subscribe(Interest { jobs, every });
        let asks = [
            (r#"{"op":"status"}"#, Ask::Status),
            (r#"{"op":"drain"}"#, Ask::Drain),
            (r#"{"op":"reload"}"#, Ask::Reload),
            (r#"{"op":"shutdown"}"#, Ask::Shutdown),
            (r#"{"op":"subscribe"}"#, of(None, false)),
            (
                r#"{"op":"subscribe","jobs":["7-a"],"every":true}"#,
                of(Some(vec![id("7-a")]), true),
            ),
        ];
        for (text, ask) in asks {
            assert_eq!(Ask::decode(text.as_bytes()), Ok(ask.clone()));
            assert_eq!(ask.encode(), format!("{text}\n").into_bytes());
        }
        let later = br#" {"op":"status","since":5} "#;
        assert_eq!(Ask::decode(later), Ok(Ask::Status));
    }

    #[test]
    fn what_is_no_request_is_said_in_one_short_line() {
        let long = format!(r#"{{"op":"{}"}}"#, "ä".repeat(900));
        let lines: [&[u8]; 9] = [
            b"",
            b"status",
            b"[]",
            b"{}",
            b"\xff",
            br#"{"op":7}"#,
            br#"{"op":"subscribe","jobs":["../x"]}"#,
            long.as_bytes(),
            &[b'['; 60_000],
        ];
        for line in lines {
            let why = Ask::decode(line).unwrap_err().to_string();
            assert!(why.len() < 200 && !why.contains('\n'), "{why}");
        }
        let why = Ask::decode(br#"{"op":"dance"}"#).unwrap_err();
        assert_eq!(why, BadAsk::Unknown("dance".into()));
        assert_eq!(
            Ask::decode(&vec![b' '; LONGEST_LINE + 1]),
            Err(BadAsk::TooLong)
        );
    }

    #[test]
    fn notices_are_what_is_written_down() {
        let notices = [
            (
                Notice::State(id("7-a"), Some(State::Running)),
                r#"{"job":"7-a","state":"running"}"#,
            ),
            (
                Notice::State(id("7-a"), None),
                r#"{"job":"7-a","state":null}"#,
            ),
            (Notice::Changed(Some(id("7-a"))), r#"{"changed":"7-a"}"#),
            (Notice::Changed(None), r#"{"changed":null}"#),
            (Notice::Lagged, r#"{"lagged":true}"#),
        ];
        for (notice, text) in notices {
            assert_eq!(notice.encode(), format!("{text}\n").into_bytes());
        }
    }

    #[test]
    fn lines_come_out_as_they_went_in_however_they_are_cut() {
        let whole = b"one\n\nthree\nfour";
        for size in 1..=whole.len() {
            let mut lines = Lines::default();
            let mut seen = Vec::new();
            for part in whole.chunks(size) {
                lines.push(part);
                while let Some(line) = lines.next_line().unwrap() {
                    seen.push(line);
                }
            }
            assert_eq!(seen, [&b"one"[..], b"", b"three"]);
            assert!(lines.is_within_a_line());
        }
    }

    #[test]
    fn a_line_without_end_is_given_up() {
        let mut lines = Lines::default();
        lines.push(&[b'x'; LONGEST_LINE]);
        assert_eq!(lines.next_line(), Ok(None));
        lines.push(b"\n");
        assert_eq!(lines.next_line().unwrap().unwrap().len(), LONGEST_LINE);
        lines.push(&[b'x'; LONGEST_LINE + 1]);
        assert_eq!(lines.next_line(), Err(BadAsk::TooLong));
    }
}
