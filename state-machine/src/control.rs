//! What a client can ask of a job, and which request outranks which. A request is one bare word in the job's
//! `control` file, so that `echo cancel > control` is a client too.

use serde::{Deserialize, Serialize};

/// A request to a job, from the weakest to the strongest: the derived order is the order of strength (R6).
///
/// Only cancel outranks the others. Between pause and resume the one that stands is honoured first, so that
/// neither is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Go on.
    Resume,
    /// Stop, keeping what is worth keeping.
    Pause,
    /// End, leaving nothing behind.
    Cancel,
}

impl Request {
    /// Every request.
    pub const ALL: [Request; 3] = [Request::Resume, Request::Pause, Request::Cancel];

    /// The word that stands in the control file.
    pub fn word(self) -> &'static str {
        match self {
            Request::Resume => "resume",
            Request::Pause => "pause",
            Request::Cancel => "cancel",
        }
    }

    /// Whether this request may take the place of `other`, which has not been honoured yet (R6).
    pub fn outranks(self, other: Request) -> bool {
        self == Request::Cancel && other != Request::Cancel
    }
}

impl std::fmt::Display for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.word())
    }
}

/// What a control file holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// A request.
    Asked(Request),
    /// Nothing yet: a hand that writes the file in two steps has made it and not filled it.
    Empty,
    /// Something that is no request, cut to a length that fits a message.
    Unknown(String),
}

impl Control {
    /// How much of an unknown word is kept, in bytes.
    const UNKNOWN_LIMIT: usize = 40;

    /// Read a control file. Blanks and line ends around the word do not matter; `stop` is cancel's other name.
    pub fn decode(bytes: &[u8]) -> Control {
        match bytes.trim_ascii() {
            b"" => Control::Empty,
            b"resume" => Control::Asked(Request::Resume),
            b"pause" => Control::Asked(Request::Pause),
            b"cancel" | b"stop" => Control::Asked(Request::Cancel),
            other => {
                let kept = &other[..other.len().min(Self::UNKNOWN_LIMIT)];
                Control::Unknown(String::from_utf8_lossy(kept).into_owned())
            }
        }
    }

    /// The bytes of a control file that asks for `request`.
    pub fn encode(request: Request) -> Vec<u8> {
        format!("{request}\n").into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_echo_writes_is_a_request() {
        for request in Request::ALL {
            assert_eq!(
                Control::decode(&Control::encode(request)),
                Control::Asked(request)
            );
            assert_eq!(
                Control::decode(format!(" {request}\r\n").as_bytes()),
                Control::Asked(request)
            );
        }
        assert_eq!(Control::decode(b"\n"), Control::Empty);
        assert_eq!(
            Control::decode(b"cancel now"),
            Control::Unknown("cancel now".into())
        );
    }

    #[test]
    fn nothing_outranks_cancel_and_cancel_outranks_the_rest() {
        for a in Request::ALL {
            assert!(!a.outranks(Request::Cancel));
            assert!(!a.outranks(a));
            assert_eq!(a.outranks(Request::Pause), a == Request::Cancel);
        }
    }

    #[test]
    fn an_endless_unknown_word_is_cut() {
        let Control::Unknown(word) = Control::decode(&[b'x'; 5000]) else {
            panic!("not a request");
        };
        assert_eq!(word.len(), 40);
    }
}
