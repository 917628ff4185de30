//! Having a lock of the store while something is mended, and making one that is missing. The locks are those of the protocols,
//! taken as they take them: tried without waiting, and only on the file that stands there (R1).

use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, open};

use super::aside::{Aside, sync_parents};
use crate::disk::LockFile;
use crate::doctor::root::may_be_served;
use crate::error::{DiskError, Error, Result};
use crate::process::{Tenancy, all_marked, named};
use crate::store::Store;

/// How often a lock is tried that others have for a moment, and how long is waited in between.
const ROUNDS: u32 = 40;
const PAUSE: Duration = Duration::from_millis(5);

/// Have the lock at `path` alone.
///
/// # Errors
///
/// [`Error::NotNow`] where somebody has it.
pub(super) fn alone(path: &Path) -> Result<LockFile> {
    for _ in 0..ROUNDS {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = open(path, flags, Mode::empty())
            .map_err(|error| DiskError::new("open", path, error))?;
        let locked = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        if locked && stands(&file, path) {
            return Ok(file.into());
        }
        drop(file);
        std::thread::sleep(PAUSE);
    }
    let shown = path.display();
    Err(Error::NotNow(format!("somebody has the lock {shown}")))
}

/// As [`alone`], of a lock that is made when it is first needed.
pub(super) fn alone_or_made(path: &Path) -> Result<LockFile> {
    create(path)?;
    alone(path)
}

fn stands(file: &impl std::os::fd::AsFd, path: &Path) -> bool {
    match (fstat(file), rustix::fs::lstat(path)) {
        (Ok(ours), Ok(there)) => ours.st_ino == there.st_ino && ours.st_dev == there.st_dev,
        _ => false,
    }
}

/// Make an empty file, unless there is one.
fn create(path: &Path) -> Result<()> {
    let made = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    match made {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(DiskError::new("create", path, error).into())
        }
        _ => Ok(()),
    }
}

/// Make a lock where there is none, or where something stands that can be none. Whoever has had one there works in its directory
/// as long as he lives: beside him nobody is to be let in.
pub(super) fn make_lock(store: &Store, aside: &mut Aside, path: &Path) -> Result<()> {
    if let Some(dir) = path.parent()
        && dir != store.root()
        && dir != store.root().join("keys")
    {
        see_that_nobody_is_in(dir)?;
    }
    // One that has lost his lock goes on: beside him there must be no other.
    let root = store.root();
    if path == root.join("supervisor.lock") && may_be_served(&root.join("supervisor.sock")) {
        let why = "a supervisor is at work; end it with: outlive supervisor stop";
        return Err(Error::NotNow(why.into()));
    }
    match path.symlink_metadata() {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => aside.put_in_place_of(path, b"").map(drop),
        Err(_) => {
            create(path)?;
            sync_parents(path, path)
        }
    }
}

/// Whether no process works in a directory of the store, nor carries its mark.
///
/// # Errors
///
/// [`Error::NotNow`] that names them.
pub(super) fn see_that_nobody_is_in(dir: &Path) -> Result<()> {
    let tenants = Tenancy::of(dir, dir).tenants();
    if !tenants.is_empty() {
        return Err(Error::NotNow(format!("it is in use: {}", named(&tenants))));
    }
    let marked = all_marked();
    let marked = marked
        .iter()
        .find(|it| it.dir == dir && it.is_still_there());
    match marked {
        Some(it) => Err(Error::NotNow(format!("{} is of it", it.process))),
        None => Ok(()),
    }
}
