//! What is to be fetched, and where it belongs. A provider makes it; nothing after that knows one from another.

use std::path::PathBuf;
use std::sync::Arc;

use url::Url;

use super::digest::{Digest, sha256};
use super::http::Access;

/// Everything that a reference stands for.
pub(super) struct Plan {
    /// The files.
    pub(super) items: Vec<Item>,
    /// The directory below which all of them belong.
    pub(super) root: PathBuf,
    /// Where they stand until they are registered, on the same file system.
    pub(super) staging: PathBuf,
    /// Whether nobody else fetches into that directory, so that whatever else is in it is left from before.
    pub(super) owns_staging: bool,
    /// What makes them known, written last.
    pub(super) keystone: Option<Written>,
}

/// A file that is written and not fetched.
pub(super) struct Written {
    /// Below the root.
    pub(super) path: Vec<String>,
    /// What is in it.
    pub(super) bytes: Vec<u8>,
}

/// A file to be fetched.
#[derive(Clone)]
pub(super) struct Item {
    /// Where it is asked for.
    pub(super) url: Url,
    /// Who asks.
    pub(super) access: Arc<dyn Access>,
    /// What it must come to, where that is known.
    pub(super) digest: Option<Digest>,
    /// How long it is, in bytes, where that is known.
    pub(super) size: Option<u64>,
    /// Where it belongs, below the root.
    pub(super) path: Vec<String>,
    /// What its names in the staging directory begin with.
    pub(super) key: String,
}

impl Item {
    /// A file that is known by its path, and by its digest where it has one: another version of it is another file.
    pub(super) fn at(path: Vec<String>, url: Url, access: Arc<dyn Access>) -> Item {
        let key = key_of(&path.join("/"), None);
        Item {
            url,
            access,
            digest: None,
            size: None,
            path,
            key,
        }
    }

    /// The same, of which this is known.
    #[must_use]
    pub(super) fn known(mut self, digest: Option<Digest>, size: Option<u64>) -> Item {
        self.key = key_of(&self.path.join("/"), digest.as_ref());
        self.digest = digest;
        self.size = size;
        self
    }

    /// Its name, for people.
    pub(super) fn name(&self) -> String {
        self.path.join("/")
    }
}

fn key_of(path: &str, digest: Option<&Digest>) -> String {
    let digest = digest.map_or(String::new(), Digest::to_string);
    let mut key = sha256(format!("{path}\0{digest}").as_bytes());
    key.truncate(32);
    key
}
