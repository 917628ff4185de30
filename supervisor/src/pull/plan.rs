//! What is to be fetched, and where it belongs. A provider makes it; nothing after that knows one from another.

use std::path::PathBuf;
use std::sync::Arc;

use state_machine::pull::word::Cause;
use url::Url;

use super::digest::{Digest, sha256};
use super::http::{Access, shown_whole};

/// Everything that a reference stands for.
pub(super) struct Plan {
    /// The files.
    pub(super) items: Vec<Item>,
    /// Files that are written and not fetched.
    pub(super) written: Vec<Written>,
    /// The directory below which all of them belong.
    pub(super) root: PathBuf,
    /// Where they stand until they are registered, on the same file system.
    pub(super) staging: PathBuf,
    /// Whether nobody else fetches into that directory, so that whatever else is in it is left from before.
    pub(super) owns_staging: bool,
    /// What makes them known, written last.
    pub(super) keystone: Option<Keystone>,
    /// What was chosen, for people.
    pub(super) note: Option<String>,
}

/// The file that makes all the others known.
pub(super) struct Keystone {
    /// Below the root.
    pub(super) path: Vec<String>,
    /// What is to be in it, from what is in it when it is written. Others may write it too, one after the other.
    pub(super) make: Make,
}

/// Makes what is to be in a file from what is in it now.
pub(super) type Make = Box<dyn Fn(Option<&[u8]>) -> Result<Vec<u8>, Cause>>;

/// A file that is written and not fetched.
pub(super) struct Written {
    /// Below the root.
    pub(super) path: Vec<String>,
    /// What is in it.
    pub(super) bytes: Vec<u8>,
}

impl Written {
    /// What its names in the staging directory begin with.
    pub(super) fn key(&self) -> String {
        key_of(&self.path.join("/"), "")
    }
}

impl Keystone {
    /// What its name in the staging directory begins with.
    pub(super) fn key(&self) -> String {
        key_of(&self.path.join("/"), "")
    }
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
    /// Whether an encoding that its server names is a part of what it is: it is kept as it comes, and its digest tells.
    pub(super) is_as_sent: bool,
}

impl Item {
    /// A file that is known by its path, and by its digest where it has one, else by its address: another version of it is another
    /// file, and what was fetched from elsewhere is not it.
    pub(super) fn at(path: Vec<String>, url: Url, access: Arc<dyn Access>) -> Item {
        let key = key_of(&path.join("/"), &shown_whole(&url));
        Item {
            url,
            access,
            digest: None,
            size: None,
            path,
            key,
            is_as_sent: false,
        }
    }

    /// A file that is known by its digest alone, wherever it is asked for and whoever does.
    pub(super) fn blob(
        path: Vec<String>,
        url: Url,
        access: Arc<dyn Access>,
        digest: Digest,
        size: u64,
    ) -> Item {
        let key = key_of("", &digest.to_string());
        Item {
            url,
            access,
            digest: Some(digest),
            size: Some(size),
            path,
            key,
            is_as_sent: true,
        }
    }

    /// The same, of which this is known.
    #[must_use]
    pub(super) fn known(mut self, digest: Option<Digest>, size: Option<u64>) -> Item {
        let which = digest
            .as_ref()
            .map_or_else(|| shown_whole(&self.url), Digest::to_string);
        self.key = key_of(&self.path.join("/"), &which);
        self.digest = digest;
        self.size = size;
        self
    }

    /// Its name, for people.
    pub(super) fn name(&self) -> String {
        self.path.join("/")
    }
}

/// Of a path, and of which file it is that belongs there.
fn key_of(path: &str, which: &str) -> String {
    let mut key = sha256(format!("{path}\0{which}").as_bytes());
    key.truncate(32);
    key
}
