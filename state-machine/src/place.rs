//! Where things are in a store: its directories and their entries. Only names; what stands there, and what can be done
//! with it, is the business of [`crate::disk`].

use serde::{Deserialize, Serialize};

use crate::id::{JobId, Key, PoolName, Ticket, Token};
use crate::record;

/// A directory of the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dir {
    /// The store itself.
    Root,
    /// Every job that can be seen.
    Jobs,
    /// What is on its way in.
    Staging,
    /// What is on its way out.
    Trash,
    /// The keys under which one start at a time is under way.
    Keys,
    /// Directories that are laid in for jobs to come.
    Spares,
    /// The pools that somebody made or changed.
    Pools,
    /// One job.
    Job(JobId),
    /// One job on its way in.
    Staged(Ticket),
    /// One job on its way out.
    Trashed(Ticket),
    /// One directory that is laid in, by its number.
    Spare(u8),
    /// One pool.
    Pool(PoolName),
    /// The slots of a pool.
    Slots(PoolName),
    /// One slot, by its number.
    Slot(PoolName, u32),
    /// The sessions that are open.
    Sessions,
    /// A directory outside of the store, by its absolute path: where something is fetched to.
    Outside(#[serde(with = "record::plain")] Vec<u8>),
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Name {
    /// `job.json`.
    Descriptor,
    /// `status.json`.
    Status,
    /// The next `status.json`, before it takes its place. One name is enough: only the lock's holder writes it.
    NewStatus,
    /// `events.jsonl`.
    Events,
    /// `lock`.
    Lock,
    /// `tree`.
    Tree,
    /// `control`: a request that waits to be taken.
    Control,
    /// `control.taken`: the request that the holder is honouring, kept until its effect is recorded (R6).
    Taken,
    /// `log`: the output of a job whose streams are not split. No protocol reads or writes it.
    Log,
    /// `<key>.lock` in `keys/`.
    KeyLock(Key),
    /// `<key>.json` in `keys/`: the job that was last started under the key.
    Pointer(Key),
    /// The next pointer, before it takes its place; written under the key's lock.
    NewPointer(Key),
    /// `supervisor.lock` in the root.
    SupervisorLock,
    /// `placement.lock` of a pool.
    PlacementLock,
    /// `pool.json`.
    Pool,
    /// The next `pool.json`, before it takes its place; written under the placement lock.
    NewPool,
    /// `maintain.lock` of a pool: one run of its maintenance at a time.
    MaintainLock,
    /// `slot.json`.
    Slot,
    /// The next `slot.json`, before it takes its place; written under the slot's occupancy lock.
    NewSlot,
    /// `occupancy` of a slot: locked by whoever works in it.
    Occupancy,
    /// `<token>.json` in `sessions/`.
    Session(Token),
    /// A request in `staging/`, before it takes its place.
    Request(Ticket),
    /// Anything else, as its bytes.
    Other(#[serde(with = "record::plain")] Vec<u8>),
}

/// Something with a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A directory.
    Dir(Dir),
    /// An entry of a directory.
    File(Dir, Name),
}

impl Dir {
    /// The place of one of its entries.
    pub fn at(&self, name: Name) -> Place {
        Place::File(self.clone(), name)
    }
}

impl Place {
    /// An entry of a job's directory.
    pub fn of_job(id: &JobId, name: Name) -> Place {
        Place::File(Dir::Job(id.clone()), name)
    }
}

impl Name {
    /// The name as it stands on disk.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Name::Descriptor => b"job.json".to_vec(),
            Name::Status => b"status.json".to_vec(),
            Name::NewStatus => b"status.json.new".to_vec(),
            Name::Events => b"events.jsonl".to_vec(),
            Name::Lock => b"lock".to_vec(),
            Name::Tree => b"tree".to_vec(),
            Name::Control => b"control".to_vec(),
            Name::Taken => b"control.taken".to_vec(),
            Name::Log => b"log".to_vec(),
            Name::KeyLock(key) => format!("{}.lock", key.as_str()).into_bytes(),
            Name::Pointer(key) => format!("{}.json", key.as_str()).into_bytes(),
            Name::NewPointer(key) => format!("{}.json.new", key.as_str()).into_bytes(),
            Name::SupervisorLock => b"supervisor.lock".to_vec(),
            Name::PlacementLock => b"placement.lock".to_vec(),
            Name::Pool => b"pool.json".to_vec(),
            Name::NewPool => b"pool.json.new".to_vec(),
            Name::MaintainLock => b"maintain.lock".to_vec(),
            Name::Slot => b"slot.json".to_vec(),
            Name::NewSlot => b"slot.json.new".to_vec(),
            Name::Occupancy => b"occupancy".to_vec(),
            Name::Session(token) => format!("{token}.json").into_bytes(),
            Name::Request(ticket) => ticket.as_str().as_bytes().to_vec(),
            Name::Other(bytes) => bytes.clone(),
        }
    }

    /// The name of an entry of a job's directory, as a listing found it.
    pub fn in_job(bytes: &[u8]) -> Name {
        [
            Name::Descriptor,
            Name::Status,
            Name::NewStatus,
            Name::Events,
            Name::Lock,
            Name::Tree,
            Name::Control,
            Name::Taken,
            Name::Log,
        ]
        .into_iter()
        .find(|name| name.to_bytes() == bytes)
        .unwrap_or_else(|| Name::Other(bytes.to_vec()))
    }

    /// The name as text, where it is UTF-8.
    pub fn to_text(&self) -> Option<String> {
        String::from_utf8(self.to_bytes()).ok()
    }
}
