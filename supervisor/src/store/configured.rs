//! Reading the configuration of a store. It is read for every job that is started in a pool, and hardly ever changes: as long as
//! its file is the one that was read, it is not read again. What must never be here: what the configuration says.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use state_machine::config::Config;
use state_machine::record::Damaged;

use crate::clock;
use crate::disk::read_small;
use crate::error::{Error, Result};

/// How long a configuration may be, in bytes.
const CONFIG_LIMIT: u64 = 1 << 20;
/// How old a change must be for the next one to have another time, in ms. The clock of a file system goes in steps of 10 ms at
/// the most.
const SETTLED_MS: u64 = 100;
/// The same for file systems that know whole seconds only.
const COARSELY_SETTLED_MS: u64 = 2_100;

/// What was read last. A process that is forked has what its parent has read.
static LAST: Mutex<Option<Known>> = Mutex::new(None);

struct Known {
    path: PathBuf,
    stamp: Stamp,
    config: Config,
}

/// What tells a file from the same one after a change, and from another one.
#[derive(PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// The stamp of a file, where the next change will show in it.
    fn of(file: &Metadata) -> Option<Stamp> {
        let changed_ms =
            u64::try_from(file.ctime()).ok()? * 1000 + file.ctime_nsec() as u64 / 1_000_000;
        let settled_ms = if file.ctime_nsec() == 0 {
            COARSELY_SETTLED_MS
        } else {
            SETTLED_MS
        };
        let is_settled = changed_ms + settled_ms < clock::now_ms();
        (file.is_file() && is_settled).then(|| Stamp {
            device: file.dev(),
            inode: file.ino(),
            size: file.size(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        })
    }
}

impl Known {
    /// Whether this is what the configuration of the store at `root` says now.
    fn is_of(&self, root: &Path) -> bool {
        self.path.parent() == Some(root) && look_at(&self.path).as_ref() == Some(&self.stamp)
    }
}

fn look_at(path: &Path) -> Option<Stamp> {
    std::fs::symlink_metadata(path)
        .ok()
        .as_ref()
        .and_then(Stamp::of)
}

/// Look at the configuration of the store at `root`; everything is default where there is none.
///
/// What is remembered is neither copied nor counted: a worker has as much memory of its own as it writes to.
pub(super) fn with<T>(root: &Path, look: impl FnOnce(&Config) -> T) -> Result<T> {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = &*last
        && known.is_of(root)
    {
        return Ok(look(&known.config));
    }
    *last = None;
    let path = root.join("config.toml");
    // Before it is read: what is changed in between shows at the next look.
    let stamp = look_at(&path);
    let config = parse(root, &path)?;
    let seen = look(&config);
    *last = stamp.map(|stamp| Known {
        path,
        stamp,
        config,
    });
    Ok(seen)
}

fn parse(root: &Path, path: &Path) -> Result<Config> {
    let read = match read_small(path, CONFIG_LIMIT)? {
        None => return Ok(Config::default()),
        Some(read) => read,
    };
    read.map_err(|Damaged(why)| why)
        .and_then(|bytes| Config::decode(&bytes).map_err(|why| why.to_string()))
        .map(|config| config.standing_in(&root.to_string_lossy()))
        .map_err(|why| Error::Damaged {
            path: path.to_owned(),
            why,
        })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_change_shows_at_the_next_look() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("config.toml");
        let slots = || {
            let slots = |config: &Config| config.pool.values().next().and_then(|pool| pool.slots);
            with(root.path(), slots).unwrap()
        };
        let is_known = || {
            let last = LAST.lock().unwrap();
            last.as_ref().is_some_and(|known| known.path == path)
        };
        assert_eq!(slots(), None);
        // In place and of the same length, once it is remembered.
        let deadline = Instant::now() + Duration::from_secs(30);
        for number in [1, 2, 3] {
            fs::write(&path, format!("[pool.a]\nslots = {number}\n")).unwrap();
            assert_eq!(slots(), Some(number));
            while !is_known() {
                assert!(Instant::now() < deadline, "it is never remembered");
                std::thread::yield_now();
                assert_eq!(slots(), Some(number));
            }
            assert_eq!(slots(), Some(number));
        }
        fs::write(&path, "[pool.a]\nslots = ?\n").unwrap();
        assert!(with(root.path(), |_| ()).is_err());
        fs::remove_file(&path).unwrap();
        assert_eq!(slots(), None);
    }
}
