//! Mending what was found: nothing but what any next holder or collector would do, and modes.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{Finding, Mend};
use crate::error::{DiskError, Result};
use crate::store::Store;

/// What mending came to.
#[derive(Debug, Default)]
pub(crate) struct Mended {
    /// What was done something about.
    pub(crate) mended: Vec<Finding>,
    /// What could not be, as findings of their own.
    pub(crate) failed: Vec<Finding>,
}

/// Mend what can be mended of these.
pub(crate) fn mend(store: &Store, findings: Vec<Finding>) -> Mended {
    let mut done: Vec<(Mend, bool)> = Vec::new();
    let mut result = Mended::default();
    for finding in findings {
        let Some(mend) = finding.mend.clone() else {
            continue;
        };
        // One step may mend several findings.
        let before = done.iter().find(|(step, _)| *step == mend);
        let worked = match before {
            Some((_, worked)) => *worked,
            None => {
                let tried = apply(store, &mend);
                let worked = tried.is_ok();
                if let Err(error) = tried {
                    let mut failed = Finding::problem(
                        format!("it cannot be mended: {error}"),
                        "see to that and try again",
                    );
                    failed.job.clone_from(&finding.job);
                    result.failed.push(failed);
                }
                done.push((mend, worked));
                worked
            }
        };
        if worked {
            result.mended.push(finding);
        }
    }
    result
}

fn apply(store: &Store, mend: &Mend) -> Result<()> {
    match mend {
        Mend::Chmod(path, mode) => chmod(path, *mode),
        Mend::Settle(id) => store.job(id).settle().map(|_| ()),
        Mend::Collect => store.collect(),
    }
}

/// Set the mode of what is no link: a link's target may be anything.
fn chmod(path: &Path, mode: u32) -> Result<()> {
    let failed = |error| DiskError::new("chmod", path, error);
    if path.symlink_metadata().map_err(failed)?.is_symlink() {
        return Ok(());
    }
    std::fs::set_permissions(path, Permissions::from_mode(mode)).map_err(failed)?;
    Ok(())
}
