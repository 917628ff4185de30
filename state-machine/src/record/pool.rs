//! What somebody made of a pool, `pool.json`: one that the configuration does not have, or one that is not to be as the
//! configuration says.

use serde::{Deserialize, Serialize};

use super::{Damaged, Ground};

/// What somebody made of a pool. What is absent is as it is configured.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Pool {
    /// How many slots it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// Whether no job is admitted; those inside stay.
    #[serde(default)]
    pub paused: bool,
    /// What its slots hold.
    #[serde(flatten)]
    pub ground: Ground,
}

impl Pool {
    /// The bytes of `pool.json`.
    pub fn encode(&self) -> Vec<u8> {
        super::encode(self)
    }

    /// Read the bytes of `pool.json`.
    pub fn decode(bytes: &[u8]) -> Result<Pool, Damaged> {
        super::decode(bytes)
    }
}
