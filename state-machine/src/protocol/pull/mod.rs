//! Fetching files and putting them into place (R12, R24): no byte that was not verified ever stands under a final name, what
//! was fetched once is not fetched again, and two versions of a file never get mixed.
//!
//! An unfinished file stands in a staging directory on the file system of its destination, and is locked by whoever fetches it:
//!
//! | name | what it is |
//! |---|---|
//! | `<key>.part` | what has arrived; locked while it is fetched |
//! | `<key>.json` | which bytes of which version of what that is |
//! | `<key>.synced` | the same, as it was when that was last synced |
//! | `<key>.whole` | all of it, verified and synced |
//!
//! [`fetch`] leads from nothing to `<key>.whole`; [`register`] moves every whole file of a job to its final name, and writes what
//! makes them known last; [`discard`] removes what is left of a file that nobody fetches. What a server sends is poured by a [`Source`]; its deeds are in the supervisor, and in the model.

mod discard;
mod fetch;
mod part;
mod record;
mod register;
mod source;
mod staging;

pub use discard::discard;
pub use fetch::{Fetched, fetch};
pub use record::{begin_anew, keep, keep_synced};
pub use register::{Keystone, Move, Registered, register};
pub use source::{Poured, Source, Verified};
pub use staging::make_staging;

use crate::disk::{Dir, Name, Place};

/// Where a file is while it is not registered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// The directory.
    pub staging: Dir,
    /// What its names begin with: the same for the same file, however often it is asked for.
    pub key: String,
}

impl Site {
    /// What has arrived of it.
    pub fn part(&self) -> Place {
        self.entry("part")
    }

    /// The record of what that is.
    pub fn record(&self) -> Place {
        self.entry("json")
    }

    /// The next record, before it takes its place. One name is enough: only who has the part locked writes it.
    fn new_record(&self) -> Place {
        self.entry("json.new")
    }

    /// The last record that was synced, together with what it tells of.
    pub fn synced_record(&self) -> Place {
        self.entry("synced")
    }

    /// All of it, verified.
    pub fn whole(&self) -> Place {
        self.entry("whole")
    }

    fn entry(&self, ending: &str) -> Place {
        let name = format!("{}.{ending}", self.key).into_bytes();
        self.staging.at(Name::Other(name))
    }
}
