//! What a transfer has of unfinished files, written down in the job's directory, so that they go when the job is forgotten. Only
//! names are in it: what they hold is told beside them.

use std::fs::{self, File};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use state_machine::disk::{Dir, Place};
use state_machine::protocol::pull::Site;
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

/// Write down what there will be of this plan.
pub(super) fn note(dir: &Path, plan: &Plan) -> Result<(), Cause> {
    use std::os::unix::ffi::OsStrExt;
    let parts = Parts {
        staging: Bytes(plan.staging.as_os_str().as_bytes().to_vec()),
        keys: plan.items.iter().map(|item| item.key.clone()).collect(),
    };
    let path = dir.join(NAME);
    let bytes = serde_json::to_vec(&parts).unwrap_or_default();
    super::fetcher::write_whole(&path, &bytes)
        .map_err(|error| cause_of(&DiskError::new("write", &path, error)))
}

/// Nothing of them is left: everything is in place.
pub(super) fn are_gone(dir: &Path) {
    // What cannot be removed names files that are not there.
    let _ = fs::remove_file(dir.join(NAME));
}

/// Remove what the job whose files are in `dir` has left, where nobody else fetches the same.
pub(crate) fn discard(dir: &Path) {
    let read = fs::read(dir.join(NAME)).ok();
    let Some(parts) = read.and_then(|bytes| serde_json::from_slice::<Parts>(&bytes).ok()) else {
        return;
    };
    let disk = FsDisk::new("/".into());
    for key in parts.keys {
        if !state_machine::pull::reference::is_hex(&key, 32) {
            continue;
        }
        let staging = Dir::Outside(parts.staging.0.clone());
        let site = Site { staging, key };
        let path = |place: Place| disk.path(&place);
        let part = File::open(path(site.part()));
        let _lock = match part {
            Ok(part) => match flock(&part, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => Some(part),
                Err(_) => continue,
            },
            Err(_) => None,
        };
        for place in [site.record(), site.part(), site.whole()] {
            let _ = fs::remove_file(path(place));
        }
    }
    // Others may have something in it.
    let _ = fs::remove_dir(os_string(&parts.staging));
}
