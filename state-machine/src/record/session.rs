//! The record of an open session, `sessions/<token>.json`. It is there as long as the session is open: nothing else says
//! that one is, and no process belongs to it.

use serde::{Deserialize, Serialize};

use super::Damaged;
use crate::id::{PoolName, Token};
use crate::stamp;

/// An open session.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Session {
    /// What tells it from every other claim (R23).
    pub token: Token,
    /// Its pool.
    pub pool: PoolName,
    /// The number of its slot.
    pub slot: u32,
    /// Since when it is open, as an RFC 3339 stamp.
    pub since: String,
    /// From when on whoever looks may close it if nothing in its slot would be lost, as an RFC 3339 stamp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// What its holder wants others to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Session {
    /// Whether it has expired. A stamp that names no instant expires nothing.
    pub fn has_expired(&self, now_ms: u64) -> bool {
        let expires = self.expires.as_deref().and_then(stamp::to_ms);
        expires.is_some_and(|at| at <= now_ms)
    }

    /// The bytes of its file.
    pub fn encode(&self) -> Vec<u8> {
        super::encode(self)
    }

    /// Read the bytes of its file.
    ///
    /// # Errors
    ///
    /// In what way they are no session.
    pub fn decode(bytes: &[u8]) -> Result<Session, Damaged> {
        super::decode(bytes)
    }
}
