//! Mending the pointer of a key, under the key's lock: no start is under way meanwhile (R12).

use state_machine::disk::{Dir, Disk, Name, Pointer, Read};
use state_machine::id::{JobId, Key};
use state_machine::protocol::look::View;

use super::aside::Aside;
use super::held::alone_or_made;
use crate::doctor::keys::{key_of, number_of};
use crate::error::{DiskError, Error, Result};
use crate::store::Store;

/// Have the pointer of a key name the job under way that bears it. One that cannot be read is set aside; what it counted is
/// found again by the jobs that it numbered, as far as they are there.
pub(super) fn point(store: &Store, aside: &mut Aside, key: &Key) -> Result<()> {
    let mut disk = store.disk();
    let lock = alone_or_made(&disk.path(&Dir::Keys.at(Name::KeyLock(key.clone()))))?;
    let path = disk.path(&Dir::Keys.at(Name::Pointer(key.clone())));
    let jobs = store.list()?;
    let bearer = bearer(&jobs.jobs, key)?;
    let numbered = last_numbered(&jobs.jobs, key);
    let pointer = match disk.read_pointer(key)? {
        Read::Value(pointer) => bearer.map(|job| Pointer { job, ..pointer }),
        Read::Absent => bearer.map(|job| Pointer { job, count: 1 }),
        Read::Damaged(_) if !jobs.damaged.is_empty() && bearer.is_none() => {
            return Err(Error::NotNow(
                "a job that cannot be read may bear it".into(),
            ));
        }
        Read::Damaged(_) => match (bearer, numbered) {
            (Some(job), _) => Some(Pointer { job, count: 1 }),
            (None, Some((job, count))) => Some(Pointer { job, count }),
            (None, None) => {
                aside.take(&path)?;
                None
            }
        },
    };
    if let Some(pointer) = pointer {
        let there = path.symlink_metadata().is_ok();
        if there {
            aside.put_in_place_of(&path, &pointer.encode())?;
        } else {
            write_new(&path, &pointer)?;
        }
    }
    disk.release(lock)?;
    Ok(())
}

/// The one job under way that bears a key.
fn bearer(jobs: &[View], key: &Key) -> Result<Option<JobId>> {
    let mut bearers = jobs
        .iter()
        .filter(|view| !view.state.is_terminal())
        .filter(|view| key_of(&view.descriptor).as_ref() == Some(key))
        .map(|view| view.descriptor.id.clone());
    match (bearers.next(), bearers.next()) {
        (Some(one), Some(other)) => Err(Error::NotNow(format!(
            "{one} and {other} both bear it; stop one of them"
        ))),
        (one, _) => Ok(one),
    }
}

/// The job with the highest number that was numbered under a key.
fn last_numbered(jobs: &[View], key: &Key) -> Option<(JobId, u64)> {
    let numbered = jobs.iter().filter_map(|view| {
        let (of, number) = number_of(&view.descriptor)?;
        (of == *key).then(|| (view.descriptor.id.clone(), number))
    });
    numbered.max_by_key(|(_, number)| *number)
}

fn write_new(path: &std::path::Path, pointer: &Pointer) -> Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt;
    let new = path.with_extension("json.new");
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)
        .and_then(|mut file| {
            file.write_all(&pointer.encode())?;
            file.sync_all()
        })
        .and_then(|()| std::fs::rename(&new, path));
    written.map_err(|error| DiskError::new("write", path, error))?;
    super::aside::sync_parents(path, path)
}
