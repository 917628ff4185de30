//! What the files of a job hold. Every type here is one JSON object on disk; unknown fields are passed over
//! (a newer version may have written them), an unknown state is an error, and nothing is ever filled in from a
//! default where the record is there but damaged (R21).

mod bytes;
mod descriptor;
mod environment;
mod ground;
mod history;
mod pool;
mod session;
mod slot;
mod status;

pub use bytes::Bytes;
pub(crate) use bytes::plain;
pub use descriptor::{
    After, AfterWhen, Command, Descriptor, Kind, Limits, OnInterrupt, Output, PauseMode, Pull,
};
pub use environment::Environment;
pub use ground::{Ground, MAINTENANCE_TIMEOUT_MS, Upkeep};
pub use history::{History, Line, What};
pub use pool::Pool;
pub use session::Session;
pub use slot::{Claim, Holder, Outcome, Slot};
pub use status::{Account, Exit, Failure, Progress, REGISTERING, Status, Stopping};

use thiserror::Error;

/// A record that is there and cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Error, serde::Serialize, serde::Deserialize)]
#[error("{0}")]
pub struct Damaged(pub String);

impl Damaged {
    fn from_json(bytes: &[u8], error: &serde_json::Error) -> Damaged {
        if bytes.is_empty() {
            Damaged("the file is empty".into())
        } else if bytes.iter().all(|&byte| byte == 0) {
            Damaged("the file holds only zero bytes".into())
        } else {
            Damaged(error.to_string())
        }
    }
}

/// How much room for a descriptor is laid in ([`blank`]), in bytes: what a command with a usual environment takes. A
/// longer one does without.
const ROOM: usize = 8 << 10;

/// Room for a record: what stands where one is to be filled in.
pub fn blank() -> Vec<u8> {
    padded(Vec::new(), ROOM)
}

/// The bytes of a record, with blanks up to `length` bytes if that is more.
pub fn padded(mut bytes: Vec<u8>, length: usize) -> Vec<u8> {
    if bytes.len() < length {
        bytes.resize(length - 1, b' ');
        bytes.push(b'\n');
    }
    bytes
}

/// Without most of the blanks at its end. A parser would walk over thousands of them one by one, in every job of a
/// listing.
fn without_room(bytes: &[u8]) -> &[u8] {
    let mut kept = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    while let Some(shorter) = kept.strip_suffix(&[b' '; 64]) {
        kept = shorter;
    }
    kept
}

/// Write a record as the bytes of its file: one line of JSON.
pub(crate) fn encode<T: serde::Serialize>(record: &T) -> Vec<u8> {
    // These types hold strings, numbers and maps with string keys, which always have a JSON form.
    let mut bytes = serde_json::to_vec(record).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// Read a record from the bytes of its file.
pub(crate) fn decode<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, Damaged> {
    let text = bytes.trim_ascii_start();
    // Serde takes an array for an object whose fields it lists; no record is one.
    if text.first() == Some(&b'[') {
        return Err(Damaged("it is an array, not an object".into()));
    }
    // Every start looks at one, a spare, and need not wait for a parser to find out in which line its error is.
    if !bytes.is_empty() && text.is_empty() {
        return Err(Damaged("the file holds only blanks".into()));
    }
    serde_json::from_slice(without_room(bytes)).map_err(|error| Damaged::from_json(bytes, &error))
}
