//! What a modelled file holds: a typed value instead of bytes, so that states stay small. A file that was cut
//! short by a death is one of the values.

use std::fmt;

use state_machine::control::{Control, Request};
use state_machine::disk::{Content, Pointer, Read};
use state_machine::pull::part::Part;
use state_machine::record::{
    self, Damaged, Descriptor, History, Line, Pool, Session, Slot, Status,
};

/// The content of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Data {
    /// Nothing: a lock, or a file whose writer died before its first byte.
    Empty,
    /// A descriptor.
    Descriptor(Box<Descriptor>),
    /// A status.
    Status(Box<Status>),
    /// A request.
    Request(Request),
    /// A pointer.
    Pointer(Pointer),
    /// What somebody made of a pool.
    Pool(Box<Pool>),
    /// What is known of a slot.
    Slot(Box<Slot>),
    /// An open session.
    Session(Box<Session>),
    /// What is in an unfinished file.
    Part(Box<Part>),
    /// Bytes that mean something to somebody else.
    Raw(Vec<u8>),
    /// What is in a file that is fetched: of each block the version that it is of. Never none.
    Blocks(Vec<u8>),
    /// A history.
    History(History),
    /// Something that is no record of any kind.
    Garbage,
    /// What a directory is to who reads it as a file. No file holds it.
    Directory,
    /// Room for a descriptor.
    Blank,
    /// What was written over the beginning of a file, with blanks up to the length that the file had, in bytes.
    /// Garbage where that was cut short: then it is neither the old nor the new.
    Filled(Box<Data>, usize),
}

/// No control file that is longer is read, in bytes.
const CONTROL_LIMIT: usize = 4096;

impl From<&Content> for Data {
    fn from(content: &Content) -> Data {
        match content {
            Content::Descriptor(descriptor) => Data::Descriptor(descriptor.clone()),
            Content::Status(status) => Data::Status(status.clone()),
            Content::Request(request) => Data::Request(*request),
            Content::Pointer(pointer) => Data::Pointer(pointer.clone()),
            Content::Pool(pool) => Data::Pool(pool.clone()),
            Content::Slot(slot) => Data::Slot(slot.clone()),
            Content::Session(session) => Data::Session(session.clone()),
            Content::Part(part) => Data::Part(part.clone()),
            Content::Raw(bytes) => Data::Raw(bytes.clone()),
            Content::Blank => Data::Blank,
        }
    }
}

impl Data {
    /// Whether it is no record of any kind, and not one that was cut short.
    pub fn is_garbage(&self) -> bool {
        *self == Data::Garbage
    }

    /// Whether it is what no writer meant to write.
    pub fn is_broken(&self) -> bool {
        match self {
            Data::Empty | Data::Garbage => true,
            Data::Filled(data, _) => data.is_broken(),
            Data::History(history) => history.torn,
            _ => false,
        }
    }

    /// What is to be read from it: blanks after a record do not matter.
    pub fn record(&self) -> &Data {
        match self {
            Data::Filled(data, _) => data,
            other => other,
        }
    }

    /// How long its file is, in bytes. Garbage and a history count for nothing, as nobody knows: a torn line is as long as
    /// it got, and a mended one leaves a line end behind.
    pub fn length(&self) -> usize {
        match self {
            Data::Empty | Data::Garbage | Data::Directory | Data::History(_) => 0,
            Data::Blank => record::blank().len(),
            Data::Filled(_, length) => *length,
            Data::Descriptor(descriptor) => descriptor.encode().len(),
            Data::Status(status) => status.encode().len(),
            Data::Request(request) => Control::encode(*request).len(),
            Data::Pointer(pointer) => pointer.encode().len(),
            Data::Pool(pool) => pool.encode().len(),
            Data::Slot(slot) => slot.encode().len(),
            Data::Session(session) => session.encode().len(),
            Data::Part(part) => part.encode().len(),
            Data::Raw(bytes) | Data::Blocks(bytes) => bytes.len(),
        }
    }

    /// It, written over the beginning of a file of this length, in bytes; `None` where it is too long for that.
    pub fn filled_into(self, length: usize) -> Option<Data> {
        (self.length() <= length).then(|| match self {
            Data::Blank => Data::Blank,
            data => Data::Filled(Box::new(data), length),
        })
    }

    /// The file read as a descriptor.
    pub fn descriptor(&self) -> Read<Descriptor> {
        match self.record() {
            Data::Descriptor(descriptor) => Read::Value((**descriptor).clone()),
            other => Read::Damaged(Damaged(other.to_string())),
        }
    }

    /// The file read as a status.
    pub fn status(&self) -> Read<Status> {
        match self.record() {
            Data::Status(status) => Read::Value((**status).clone()),
            // What the shipped decoder makes of no bytes.
            Data::Empty => Read::Value(Status::lost()),
            other => Read::Damaged(Damaged(other.to_string())),
        }
    }

    /// The file read as a pointer.
    pub fn pointer(&self) -> Read<Pointer> {
        match self.record() {
            Data::Pointer(pointer) => Read::Value(pointer.clone()),
            other => Read::Damaged(Damaged(other.to_string())),
        }
    }

    /// The file read as what somebody made of a pool.
    pub fn pool(&self) -> Read<Pool> {
        let record = self.record();
        let decoded = match record {
            Data::Pool(pool) => Ok((**pool).clone()),
            // Nothing must be in such a record, so others pass for one: what the shipped decoder makes of their bytes.
            Data::Descriptor(descriptor) => Pool::decode(&descriptor.encode()),
            Data::Status(status) => Pool::decode(&status.encode()),
            Data::Pointer(pointer) => Pool::decode(&pointer.encode()),
            Data::Slot(slot) => Pool::decode(&slot.encode()),
            Data::Session(session) => Pool::decode(&session.encode()),
            Data::History(history) if !history.torn && history.undecodable == 0 => {
                let lines = history.lines.iter().flat_map(Line::encode);
                Pool::decode(&lines.collect::<Vec<u8>>())
            }
            other => Err(Damaged(other.to_string())),
        };
        decoded.map_or_else(Read::Damaged, Read::Value)
    }

    /// The file read as the record of the slot of this number.
    pub fn slot(&self, number: u32) -> Read<Slot> {
        let read = match self.record() {
            Data::Slot(slot) => (**slot).clone().of(number),
            other => Err(Damaged(other.to_string())),
        };
        read.map_or_else(Read::Damaged, Read::Value)
    }

    /// The file read as an open session.
    pub fn session(&self) -> Read<Session> {
        match self.record() {
            Data::Session(session) => Read::Value((**session).clone()),
            other => Read::Damaged(Damaged(other.to_string())),
        }
    }

    /// The file read as the record of an unfinished file.
    pub fn part(&self) -> Read<Part> {
        match self.record() {
            Data::Part(part) => Read::Value((**part).clone()),
            other => Read::Damaged(Damaged(other.to_string())),
        }
    }

    /// The file read as a history. Anything else that is written has one line, which does not decode, and blanks after
    /// it are another.
    pub fn history(&self) -> History {
        match self {
            Data::Filled(data, length) => {
                let blanks = **data != Data::Garbage && *length > data.length() + 1;
                History {
                    undecodable: 1 + u32::from(blanks),
                    ..History::default()
                }
            }
            Data::History(history) => history.clone(),
            Data::Empty | Data::Directory => History::default(),
            Data::Descriptor(_)
            | Data::Status(_)
            | Data::Request(_)
            | Data::Pointer(_)
            | Data::Pool(_)
            | Data::Slot(_)
            | Data::Session(_)
            | Data::Part(_)
            | Data::Raw(_)
            | Data::Blocks(_)
            | Data::Blank
            | Data::Garbage => History {
                undecodable: 1,
                ..History::default()
            },
        }
    }

    /// The file read as a control file.
    pub fn control(&self) -> Control {
        match self.record() {
            _ if self.length() > CONTROL_LIMIT => Control::Unknown(self.to_string()),
            Data::Request(request) => Control::Asked(*request),
            Data::Empty => Control::Empty,
            other => Control::Unknown(other.to_string()),
        }
    }
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Data::Empty => f.write_str("empty"),
            Data::Garbage => f.write_str("garbage"),
            Data::Directory => f.write_str("a directory"),
            Data::Blank => f.write_str("blank"),
            Data::Filled(data, _) => write!(f, "{data}, filled in"),
            Data::Descriptor(descriptor) => write!(f, "job {}", descriptor.id),
            Data::Status(status) => write!(f, "{}", status.state),
            Data::Request(request) => write!(f, "{request}"),
            Data::Pointer(pointer) => write!(f, "-> {} ({})", pointer.job, pointer.count),
            Data::Pool(pool) => write!(f, "{pool:?}"),
            Data::Slot(slot) => {
                let holder = slot.claim.as_ref().map(|claim| claim.token.as_str());
                write!(f, "{:?} {}", slot.state, holder.unwrap_or("-"))
            }
            Data::Session(session) => write!(f, "session in {}", session.slot),
            Data::Part(part) => write!(f, "{} bytes of {}", part.done_bytes(), part.source),
            Data::Raw(bytes) => f.write_str(&String::from_utf8_lossy(bytes)),
            Data::Blocks(blocks) => write!(f, "blocks {blocks:?}"),
            Data::History(history) => {
                let states: Vec<_> = history.states().map(|state| state.to_string()).collect();
                let torn = if history.torn { " torn" } else { "" };
                write!(f, "[{}]{torn}", states.join(" "))
            }
        }
    }
}
