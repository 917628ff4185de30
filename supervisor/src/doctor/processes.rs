//! What lives of a job that nobody is responsible for, or that is not there any more (R11). Nothing is ended here, nor by mending:
//! what a process does, only a person can know.

use state_machine::id::JobId;
use state_machine::protocol::look::View;

use super::{Finding, kind};
use crate::process::Marked;
use crate::store::Store;

/// How many processes a finding names.
const NAMED: usize = 8;

/// R11: nobody is responsible, and yet there are processes.
pub(super) fn examine(store: &Store, view: &View, marked: &[Marked]) -> Option<Finding> {
    if view.held {
        return None;
    }
    let id = &view.descriptor.id;
    let dir = store.job_dir(id);
    // What is no plain file counts as locked, and is said to be odd.
    let tree_is_locked = view.leftovers && super::job::is_plain(&dir.join("tree"));
    let left: Vec<&Marked> = marked
        .iter()
        .filter(|it| it.dir == dir && it.is_still_there())
        .collect();
    let what = match left.as_slice() {
        [] if !tree_is_locked => return None,
        [] => "processes of it are left, and nobody is responsible for them".into(),
        left => format!(
            "processes of it are left, and nobody is responsible for them: {}",
            named(left)
        ),
    };
    let advice = if view.state.is_terminal() && !view.leftovers {
        "see what they do and end them; they carry its OUTLIVE_JOB_DIR".into()
    } else {
        format!("'outlive stop {id}' ends them")
    };
    Some(Finding::new(kind::PROCESSES_LEFT, what, advice).at(dir))
}

/// Processes of jobs of this store that are not there any more.
pub(super) fn of_nobody(store: &Store, ids: &[JobId], marked: &[Marked]) -> Vec<Finding> {
    let jobs = store.jobs_dir();
    let gone = |it: &&Marked| {
        it.dir.parent() == Some(&jobs)
            && !ids.iter().any(|id| store.job_dir(id) == it.dir)
            && !it.dir.exists()
            && it.is_still_there()
    };
    let left: Vec<&Marked> = marked.iter().filter(gone).collect();
    left.iter()
        .map(|it| {
            Finding::new(
                kind::PROCESSES_OF_NOBODY,
                format!(
                    "{} is of a job that is not there any more ({})",
                    it.process,
                    it.dir.display()
                ),
                "see what it does and end it",
            )
            .at(&it.dir)
        })
        .collect()
}

fn named(left: &[&Marked]) -> String {
    let mut names: Vec<String> = left
        .iter()
        .take(NAMED)
        .map(|it| it.process.to_string())
        .collect();
    if left.len() > NAMED {
        names.push(format!("and {} more", left.len() - NAMED));
    }
    names.join(", ")
}
