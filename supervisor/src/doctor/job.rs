//! One job: what of it is looked at, and in which order. What is wrong with each part is known by the room for that.

use std::path::Path;
use std::time::Duration;

use state_machine::disk::{Dir, Disk, Name, Place, Read};
use state_machine::id::JobId;
use state_machine::protocol::look::{Look, View, look};
use state_machine::record::{Damaged, History};

use super::{Finding, Mend, history, kind, logs, modes, processes, status};
use crate::clock;
use crate::error::{Error, Result};
use crate::process::Marked;
use crate::store::Store;

/// How often a job that changes under the look is looked at again, and after which time: its holder writes the status
/// first and the history then.
const LOOKS: u32 = 6;
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
/// How long a record may be that is read, in bytes; a longer history counts as empty.
pub(super) const LONGEST: u64 = 64 << 20;
/// How long ago a record may have been written by somebody who is still at it: a sync can take that long.
const JUST_NOW: Duration = Duration::from_secs(2);

/// What to do about a record that is lost: nothing is ever made up in its place (R21).
const LOST: &str = "bring the file back from a copy; or have 'outlive doctor --fix' set the job aside, whole, once nobody holds it";
/// What to do about what the next holder mends by itself.
pub(super) const MENDS_ITSELF: &str =
    "whoever holds the job next mends it, and 'outlive doctor --fix' does";

/// What was seen of a job.
#[derive(Default)]
pub(super) struct Seen {
    /// Everything worth saying about it.
    pub(super) findings: Vec<Finding>,
    /// What is true about it, where it has not ended and can be read: of ended ones there may be very many.
    pub(super) under_way: Option<Box<View>>,
}

impl Seen {
    fn only(finding: Finding) -> Seen {
        Seen {
            findings: vec![finding],
            under_way: None,
        }
    }
}

/// What is said of an entry of `jobs/` whose name can be no id.
pub(super) fn no_job(error: &Error) -> Finding {
    let finding = Finding::new(
        kind::NOT_A_JOB,
        super::told(error),
        "nothing of ours; move it away if it is of use",
    );
    match error {
        Error::Damaged { path, .. } => finding.at(path).mended_by(Mend::SetAside(path.clone())),
        _ => finding,
    }
}

/// Everything worth saying about the job in the directory of this name.
pub(super) fn examine(store: &Store, id: &JobId, marked: &[Marked]) -> Seen {
    match try_examine(store, id, marked) {
        Ok(seen) => seen,
        Err(error) => {
            let mut seen = Seen::only(super::unreadable(&error));
            // Most often that is why.
            seen.findings.extend(modes::of_job(id, &store.job_dir(id)));
            seen
        }
    }
}

fn try_examine(store: &Store, id: &JobId, marked: &[Marked]) -> Result<Seen> {
    let dir = store.job_dir(id);
    match std::fs::symlink_metadata(&dir) {
        Ok(there) if !there.is_dir() => {
            let advice = "nothing of ours; move it away if it is of use";
            let finding = Finding::new(kind::NOT_A_JOB, "it is no directory", advice);
            let mend = Mend::SetAside(dir.clone());
            return Ok(Seen::only(finding.at(&dir).mended_by(mend)));
        }
        Ok(_) => {}
        // It was cleaned meanwhile.
        Err(_) => return Ok(Seen::default()),
    }
    let mut seen = records(store, id, marked)?;
    seen.findings.extend(modes::of_job(id, &dir));
    // Cleaned while it was looked at: nothing of that is worth saying.
    if !dir.exists() {
        return Ok(Seen::default());
    }
    Ok(seen)
}

fn records(store: &Store, id: &JobId, marked: &[Marked]) -> Result<Seen> {
    let mut disk = store.disk();
    // What is looked at under a descriptor's id would be another job.
    if let Read::Value(descriptor) = disk.read_descriptor(&Dir::Job(id.clone()))?
        && descriptor.id != *id
    {
        let finding = Finding::new(
            kind::WRONG_NAME,
            format!("job.json is that of {}", descriptor.id),
            "rename the directory back, or move it away; 'outlive doctor --fix' does",
        );
        let mend = Mend::Rename(id.clone(), descriptor.id);
        return Ok(Seen::only(finding.at(store.job_dir(id)).mended_by(mend)));
    }
    let mut findings: Vec<Finding> = of_lock(store, id)?.into_iter().collect();
    let (view, lines) = match settled_look(store, id)? {
        Settled::Job(view, lines) => (view, lines),
        Settled::Gone => return Ok(Seen::default()),
        Settled::Damaged(file, why) => {
            findings.push(damaged(store, id, file, &why)?);
            return Ok(Seen {
                findings,
                under_way: None,
            });
        }
    };
    let dir = store.job_dir(id);
    findings.extend(history::examine(&view, &lines, &dir));
    findings.extend(status::examine(store, &view)?);
    findings.extend(logs::examine(&view, &dir));
    findings.extend(processes::examine(store, &view, marked));
    Ok(Seen {
        findings,
        under_way: Some(view).filter(|view| !view.state.is_terminal()),
    })
}

/// The lock: without one nobody can hold the job, and what is no plain file counts as held (R3).
fn of_lock(store: &Store, id: &JobId) -> Result<Option<Finding>> {
    let place = Place::of_job(id, Name::Lock);
    let path = store.disk().path(&place);
    let advice =
        "'outlive doctor --fix' puts an empty file there, once no process of the job is at work";
    let finding = if !store.disk().exists(&place)? {
        Finding::new(
            kind::LOCK_MISSING,
            "its lock is missing, so that nobody can hold it",
            advice,
        )
    } else if !is_plain(&path) {
        Finding::new(
            kind::LOCK_ODD,
            "its lock is no plain file, so that it counts as held for ever",
            advice,
        )
    } else {
        return Ok(None);
    };
    let mend = Mend::Lock(path.clone());
    Ok(Some(finding.at(path).mended_by(mend)))
}

/// Whether a plain file stands there.
pub(super) fn is_plain(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_file())
}

/// A record that cannot be read. One that is whole and says what this version does not know may be of a newer one, and is
/// nobody's to set aside.
fn damaged(store: &Store, id: &JobId, file: Name, why: &Damaged) -> Result<Finding> {
    let path = store.disk().path(&Place::of_job(id, file.clone()));
    let shown = String::from_utf8_lossy(&file.to_bytes()).into_owned();
    let kind = match file {
        _ if is_of_newer(&path, why)? => kind::NEWER,
        Name::Descriptor => kind::DESCRIPTOR,
        _ => kind::STATUS,
    };
    let what = format!("{shown} cannot be read: {why}");
    Ok(if kind == kind::NEWER {
        let advice = "use the version that wrote it; if none did, bring the file back from a copy or move the job away";
        Finding::new(kind, what, advice).at(path)
    } else {
        let mend = Mend::SetJobAside(id.clone());
        Finding::new(kind, what, LOST).at(path).mended_by(mend)
    })
}

/// Whether a record that cannot be read is JSON that holds an unknown word where this version knows some.
pub(super) fn is_of_newer(path: &Path, why: &Damaged) -> Result<bool> {
    if !why.0.contains("unknown variant") {
        return Ok(false);
    }
    let read = crate::disk::read_small(path, LONGEST)?;
    let Some(Ok(bytes)) = read else {
        return Ok(false);
    };
    let value = serde_json::from_slice::<serde_json::Value>(&bytes);
    Ok(value.is_ok_and(|value| value.is_object()))
}

enum Settled {
    Job(Box<View>, History),
    Gone,
    Damaged(Name, Damaged),
}

/// A look at the record and the history that no holder was writing to meanwhile, as far as there is such a time.
fn settled_look(store: &Store, id: &JobId) -> Result<Settled> {
    let mut disk = store.disk();
    let mut round = 0;
    loop {
        let view = match look(&mut disk, id)? {
            Look::Job(view) => view,
            Look::Gone => return Ok(Settled::Gone),
            Look::Damaged { file, why } => return Ok(Settled::Damaged(file, why)),
        };
        let lines = store.job(id).raw_history()?;
        round += 1;
        if history::agrees(&view, &lines) || round == LOOKS || !may_be_at_work(&view) {
            return Ok(Settled::Job(view, lines));
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

/// Whether somebody may be between the record and the history now. Who holds an ended job is not asked for, so the
/// time of its end tells.
fn may_be_at_work(view: &View) -> bool {
    let since_ms = clock::now_ms().abs_diff(view.status.updated_at_ms);
    view.held || Duration::from_millis(since_ms) < JUST_NOW
}
