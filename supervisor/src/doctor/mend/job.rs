//! Mending a job that nobody holds.

use std::ffi::OsStr;
use std::path::Path;

use state_machine::disk::{Dir, Disk, Name, Place, Read};
use state_machine::id::JobId;
use state_machine::job::State;
use state_machine::protocol::claim::{Claim, claim};
use state_machine::protocol::hold::note;
use state_machine::protocol::look::{Look, look};
use state_machine::record::{Line, Status, What};

use super::aside::{Aside, rename_new, sync_parents};
use super::held::see_that_nobody_is_in;
use crate::clock;
use crate::doctor::history::{is_legal, is_too_long, record_is_better};
use crate::doctor::job::is_plain;
use crate::error::{Error, Result};
use crate::store::Store;

/// Do something with a job that nobody holds, nobody can hold meanwhile, and nothing is left of.
fn with_it_alone<T>(store: &Store, id: &JobId, act: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    let dir = store.job_dir(id);
    let mut disk = store.disk();
    // Without a lock that can be had nobody holds it, as long as nobody works there.
    let lock = match claim(&mut disk, id)? {
        Claim::Mine(lock) => Some(lock),
        Claim::Owned if is_plain(&dir.join("lock")) => return Err(held(id)),
        Claim::Owned | Claim::Gone => None,
    };
    let done = see_that_nobody_is_in(&dir).and_then(|()| act(&dir));
    if let Some(lock) = lock {
        disk.release(lock)?;
    }
    done
}

fn held(id: &JobId) -> Error {
    Error::NotNow(format!(
        "somebody holds {id}; let it end, or stop it, and try again"
    ))
}

/// Take a job out of the listing as it is, in one step, if it still is one that must be.
pub(super) fn set_aside(store: &Store, aside: &mut Aside, id: &JobId) -> Result<()> {
    with_it_alone(store, id, |dir| {
        if is_beyond_mending(store, id)? {
            aside.take(dir)?;
        }
        Ok(())
    })
}

/// Whether a job cannot be read, or its history tells of an end which its record does not know of.
fn is_beyond_mending(store: &Store, id: &JobId) -> Result<bool> {
    let view = match look(&mut store.disk(), id)? {
        Look::Damaged { .. } => return Ok(true),
        Look::Gone => return Ok(false),
        Look::Job(view) => view,
    };
    let history = store.job(id).raw_history()?;
    Ok(!record_is_better(view.status.state, &history))
}

/// Set a file of a job aside that is no plain file: nobody has written to it, and nobody can.
pub(super) fn set_file_aside(
    store: &Store,
    aside: &mut Aside,
    id: &JobId,
    name: &OsStr,
) -> Result<()> {
    with_it_alone(store, id, |dir| {
        let path = dir.join(name);
        if is_plain(&path) {
            return Ok(());
        }
        aside.take(&path).map(drop)
    })
}

/// Call the directory of a job by the id inside, or set it aside where a job of that id is there.
pub(super) fn rename(store: &Store, aside: &mut Aside, from: &JobId, to: &JobId) -> Result<()> {
    with_it_alone(store, from, |dir| {
        let right = store.job_dir(to);
        if right.symlink_metadata().is_ok() {
            return aside.take(dir).map(drop);
        }
        rename_new(dir, &right)?;
        sync_parents(dir, &right)
    })
}

/// Set a history aside that no job can have, or that its record contradicts, and begin it anew from the record, in one step. The
/// rest is completed as any history that is behind is by the next holder; after a crash in between, too.
pub(super) fn rewrite(store: &Store, aside: &mut Aside, id: &JobId) -> Result<()> {
    let mut disk = store.disk();
    let lock = match claim(&mut disk, id)? {
        Claim::Mine(lock) => lock,
        Claim::Owned => return Err(held(id)),
        Claim::Gone => return Err(Error::Gone(id.clone())),
    };
    let moved = set_history_aside(store, aside, id);
    disk.release(lock)?;
    let Some(moved) = moved? else {
        return Ok(());
    };
    let job = store.job(id);
    let Some(mut taken) = job.hold()? else {
        return Err(held(id));
    };
    let text = format!("the history before this was set aside: {moved}");
    note(
        &mut disk,
        &mut taken.holder,
        What::Status { text },
        clock::now_ms(),
    )?;
    job.let_go(taken)
}

/// Where the history of a job that we hold was moved to, if it is one that must be.
fn set_history_aside(store: &Store, aside: &mut Aside, id: &JobId) -> Result<Option<String>> {
    let dir = Dir::Job(id.clone());
    let mut disk = store.disk();
    let Read::Value(descriptor) = disk.read_descriptor(&dir)? else {
        return Ok(None);
    };
    let history = disk.read_history(&dir)?;
    let status = match disk.read_status(&dir)? {
        Read::Value(status) => status,
        Read::Absent => Status::queued(descriptor.created_at_ms),
        Read::Damaged(_) => return Ok(None),
    };
    let path = disk.path(&Place::of_job(id, Name::Events));
    let is_wrong = !is_plain(&path)
        || is_too_long(&path)
        || !is_legal(&history)
        || history.last_state() != Some(status.state);
    if status.lost || !is_wrong || !record_is_better(status.state, &history) {
        return Ok(None);
    }
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let begun = beginning(&status, descriptor.created_at_ms);
    let bytes: Vec<u8> = begun.iter().flat_map(Line::encode).collect();
    let moved = aside.put_in_place_of(&path, &bytes)?;
    let inside = moved.strip_prefix(store.root()).unwrap_or(&moved);
    Ok(Some(inside.display().to_string()))
}

/// What the record of a job says of the beginning. The next holder goes on from there by the shortest way, which for a job that
/// has failed, say, would be one that never ran. Nothing where the record counts fewer states: the history must not be ahead.
fn beginning(status: &Status, created_at_ms: u64) -> Vec<Line> {
    let has_run = status.attempt > 0 && status.steps > 2 && status.state != State::Queued;
    let started_at_ms = status.started_at_ms.unwrap_or(created_at_ms);
    let mut lines = vec![Line::state(created_at_ms, State::Queued)];
    if has_run {
        lines.push(Line::state(started_at_ms, State::Running));
    }
    if status.steps as usize >= lines.len() {
        lines
    } else {
        Vec::new()
    }
}
