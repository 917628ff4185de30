//! Who waits for whom: jobs that come after one that is not there, and jobs that wait for each other.

use std::collections::{BTreeMap, BTreeSet};

use state_machine::disk::{Dir, Disk, Place};
use state_machine::id::JobId;
use state_machine::protocol::look::View;
use state_machine::record::AfterWhen;

use super::{Finding, kind};
use crate::error::Result;
use crate::store::Store;

/// Everything worth saying about what these jobs, which have not ended, wait for.
pub(super) fn examine(store: &Store, jobs: &[Box<View>]) -> Result<Vec<Finding>> {
    let waiting: BTreeMap<&JobId, Vec<&JobId>> = jobs
        .iter()
        .filter(|view| !view.descriptor.after.is_empty())
        .map(|view| {
            let after = view.descriptor.after.iter().map(|after| &after.job);
            (&view.descriptor.id, after.collect())
        })
        .collect();
    let mut findings = Vec::new();
    for view in jobs {
        let id = &view.descriptor.id;
        for after in &view.descriptor.after {
            let gone = !store
                .disk()
                .exists(&Place::Dir(Dir::Job(after.job.clone())))?;
            // That it has ended is all there was to know of it.
            if gone && after.when != AfterWhen::End {
                let finding = Finding::new(
                    kind::AFTER_UNKNOWN,
                    format!("it comes after {}, which is not there", after.job),
                    format!(
                        "nobody knows how that ended, so it is failed when it is to be started; 'outlive stop {id}' ends it now"
                    ),
                );
                findings.push(finding.at(store.job_dir(id)).of(id));
            }
        }
        if waits_for_itself(id, &waiting) {
            let finding = Finding::new(
                kind::AFTER_CYCLE,
                "it waits for itself, by what it comes after",
                format!(
                    "it never starts; stop it, or one of those it waits for: outlive stop {id}"
                ),
            );
            findings.push(finding.at(store.job_dir(id)).of(id));
        }
    }
    Ok(findings)
}

fn waits_for_itself(id: &JobId, waiting: &BTreeMap<&JobId, Vec<&JobId>>) -> bool {
    let mut seen = BTreeSet::new();
    let mut next: Vec<&JobId> = waiting.get(id).cloned().unwrap_or_default();
    while let Some(one) = next.pop() {
        if one == id {
            return true;
        }
        if seen.insert(one) {
            next.extend(waiting.get(one).into_iter().flatten());
        }
    }
    false
}
