//! What a transfer has of unfinished files, written down in the job's directory, so that they go when the job is forgotten. Only
//! names are in it: what they hold is told beside them.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use state_machine::disk::Dir;
use state_machine::protocol::pull::{self as protocol, Site};
use state_machine::pull::part;
use state_machine::pull::reference::is_hex;
use state_machine::pull::word::Cause;
use state_machine::record::Bytes;

use super::digest::Digest;
use super::landing::cause_of;
use super::plan::Plan;
use super::voice::Voice;
use crate::disk::FsDisk;
use crate::error::DiskError;
use crate::store::os_string;

/// The file in the job's directory.
pub(super) const NAME: &str = "parts";

#[derive(Serialize, Deserialize)]
struct Parts {
    /// The staging directory.
    staging: Bytes,
    /// What the names in it begin with.
    keys: Vec<String>,
}

impl Parts {
    fn read(dir: &Path) -> Option<Parts> {
        let bytes = fs::read(dir.join(NAME)).ok()?;
        serde_json::from_slice(&bytes).ok()
    }
}

/// Write down what there will be of this plan.
pub(super) fn note(dir: &Path, plan: &Plan) -> Result<(), Cause> {
    let parts = Parts {
        staging: staging_of(plan),
        keys: plan.keys().collect(),
    };
    let path = dir.join(NAME);
    let bytes = serde_json::to_vec(&parts).unwrap_or_default();
    super::fetcher::write_whole(&path, &bytes)
        .map_err(|error| cause_of(&DiskError::new("write", &path, error)))
}

/// Look again at the files that stand whole and that this job has not written down: they are of an earlier one.
pub(super) fn doubt(dir: &Path, plan: &Plan, voice: &Voice) -> Result<(), Cause> {
    let staging = staging_of(plan);
    let ours: BTreeSet<String> = Parts::read(dir)
        .filter(|parts| parts.staging == staging)
        .map_or_else(BTreeSet::new, |parts| parts.keys.into_iter().collect());
    for item in plan.items.iter().filter(|item| !ours.contains(&item.key)) {
        let path = plan.staging.join(format!("{}.whole", item.key));
        let failed = |error| cause_of(&DiskError::new("read back", &path, error));
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(failed(error)),
        };
        voice.doing(Some("reading back what an earlier transfer has left"));
        let length = file.metadata().map_err(failed)?.len();
        let wanted = item.digest.as_ref();
        let found = wanted
            .map(|wanted| wanted.of(&file, length))
            .transpose()
            .map_err(failed)?;
        let text = |digest: Option<&Digest>| digest.map(ToString::to_string);
        let (wanted, found) = (text(wanted), text(found.as_ref()));
        if let Some(why) = part::why_not_whole(wanted.as_deref(), found.as_deref())
            && remove(&staging, &item.key).is_some()
        {
            voice.discarded(length, false, &item.name(), why);
        }
    }
    voice.doing(None);
    Ok(())
}

/// The staging directory, as it is written down.
pub(super) fn staging_of(plan: &Plan) -> Bytes {
    use std::os::unix::ffi::OsStrExt;
    Bytes(plan.staging.as_os_str().as_bytes().to_vec())
}

/// Nothing of them is left: everything is in place.
pub(super) fn are_gone(dir: &Path) {
    // What cannot be removed names files that are not there.
    let _ = fs::remove_file(dir.join(NAME));
}

/// Remove what the job whose files are in `dir` has left, where nobody else fetches the same, and no job in `jobs` has it of use:
/// one that shares a layer may be about to put it into place.
pub(crate) fn discard(dir: &Path, jobs: &Path) {
    let Some(parts) = Parts::read(dir) else {
        return;
    };
    let needed = needed_by_others(jobs, &parts.staging);
    for key in &parts.keys {
        if is_hex(key, 32) && !needed.contains(key) {
            remove(&parts.staging, key);
        }
    }
    remove_staging(Path::new(&os_string(&parts.staging)));
}

/// Remove the staging directory where nothing is in it, and nobody has it for his transfer: his lock would be on nothing.
fn remove_staging(path: &Path) {
    let Ok(staging) = File::open(path) else {
        return;
    };
    match staging.try_lock() {
        Err(TryLockError::WouldBlock) => {}
        // Others may have something in it.
        Ok(()) | Err(TryLockError::Error(_)) => {
            let _ = fs::remove_dir(path);
        }
    }
}

/// The keys that the jobs have written down of this staging directory.
fn needed_by_others(jobs: &Path, staging: &Bytes) -> BTreeSet<String> {
    fs::read_dir(jobs)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|job| Parts::read(&job.path()))
        .filter(|parts| parts.staging == *staging)
        .flat_map(|parts| parts.keys)
        .collect()
}

/// Remove an unfinished file, and one that is whole and not in place, unless somebody fetches it. How many bytes that were.
pub(super) fn remove(staging: &Bytes, key: &str) -> Option<u64> {
    let mut disk = FsDisk::new("/".into());
    let site = Site {
        staging: Dir::Outside(staging.0.clone()),
        key: key.to_owned(),
    };
    // Nobody fetches into a link, and what it leads to is not ours.
    let part = disk.path(&site.part());
    if fs::symlink_metadata(&part).is_ok_and(|found| found.is_symlink()) {
        let _ = fs::remove_file(&part);
    }
    let length = |place| fs::metadata(disk.path(&place)).map_or(0, |found| found.len());
    let bytes = length(site.part()) + length(site.whole());
    // What cannot be removed is left: nobody waits for it to go.
    let is_gone = protocol::discard(&mut disk, &site).ok()?;
    is_gone.then_some(bytes)
}
