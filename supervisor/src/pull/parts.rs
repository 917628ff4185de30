//! What a transfer has of unfinished files, written down in the job's directory, so that they go when the job is forgotten. Only
//! names are in it: what they hold is told beside them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use state_machine::disk::Dir;
use state_machine::protocol::pull::{self as protocol, Site};
use state_machine::pull::reference::is_hex;
use state_machine::pull::word::Cause;
use state_machine::record::Bytes;

use super::landing::cause_of;
use super::plan::Plan;
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
        keys: plan.items.iter().map(|item| item.key.clone()).collect(),
    };
    let path = dir.join(NAME);
    let bytes = serde_json::to_vec(&parts).unwrap_or_default();
    super::fetcher::write_whole(&path, &bytes)
        .map_err(|error| cause_of(&DiskError::new("write", &path, error)))
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
    // Others may have something in it.
    let _ = fs::remove_dir(os_string(&parts.staging));
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
    let length = |place| fs::metadata(disk.path(&place)).map_or(0, |found| found.len());
    let bytes = length(site.part()) + length(site.whole());
    // What cannot be removed is left: nobody waits for it to go.
    let is_gone = protocol::discard(&mut disk, &site).ok()?;
    is_gone.then_some(bytes)
}
