//! What is in a store, byte by byte.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    File(u32, Vec<u8>),
    Directory(u32),
    Link(String),
    Other,
}

/// Everything in a store, by its path from there, but for what remembers listings.
pub(crate) type Snapshot = BTreeMap<String, Entry>;

pub(crate) fn take(root: &Path) -> Snapshot {
    let mut found = Snapshot::new();
    let mut dirs = vec![root.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).unwrap().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            let Ok(metadata) = path.symlink_metadata() else {
                continue;
            };
            let mode = metadata.mode() & 0o7777;
            let kind = metadata.file_type();
            let what = if kind.is_dir() {
                dirs.push(path);
                Entry::Directory(mode)
            } else if kind.is_symlink() {
                Entry::Link(fs::read_link(&path).unwrap().display().to_string())
            } else if kind.is_file() {
                Entry::File(mode, fs::read(&path).unwrap())
            } else {
                assert!(kind.is_socket() || kind.is_fifo());
                Entry::Other
            };
            if name != "listing" {
                found.insert(name, what);
            }
        }
    }
    found
}

/// Whether what stood at `path` is still there, or somewhere else as it was: set aside under its path, or under its name.
pub(crate) fn keeps(after: &Snapshot, path: &str, entry: &Entry) -> bool {
    let Entry::File(_, bytes) = entry else {
        return match entry {
            Entry::Link(_) => after.values().any(|there| there == entry),
            _ => true,
        };
    };
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_it = |there: &Entry| matches!(there, Entry::File(_, other) if other == bytes);
    let same_name = |other: &&String| other.rsplit('/').next() == Some(name);
    bytes.is_empty()
        || after.get(path).is_some_and(is_it)
        || after
            .iter()
            .any(|(other, there)| same_name(&other) && is_it(there))
        // What is appended to is not lost.
        || matches!(after.get(path), Some(Entry::File(_, longer)) if name == "events.jsonl" && longer.starts_with(bytes))
}
