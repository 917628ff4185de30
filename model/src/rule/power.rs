//! What a loss of power must not take (R19).

use state_machine::disk::{Name, Place, Read};
use state_machine::id::JobId;

use super::{Broken, Rule};
use crate::filesystem::Filesystem;
use crate::world::State;

/// What is broken in `after`, which a loss of power has made of `before`.
pub fn lost(before: &State, after: &State) -> Vec<Broken> {
    let (was, is) = (&before.machine.files, &after.machine.files);
    let mut broken = Vec::new();
    for process in &before.processes {
        if let Some(id) = &process.standing.acknowledged {
            // One that was swept may be gone.
            let swept = !was.has_job(id);
            if !swept && !is_whole(is, id) {
                broken.push(Rule::R19.broken(format!("{id} was acknowledged, and is not whole")));
            }
        }
        if let Some((id, state)) = &process.standing.recorded
            && state.is_terminal()
            && is.has_job(id)
            && is.recorded(id) != *state
        {
            let now = is.recorded(id);
            broken.push(Rule::R19.broken(format!("{id} was recorded as {state}, and is {now}")));
        }
    }
    for id in is.jobs() {
        broken.extend(torn(is, &id).map(|what| Rule::R19.broken(what)));
    }
    broken
}

fn is_whole(files: &Filesystem, id: &JobId) -> bool {
    files.descriptor_of(id).is_some() && files.has(&Place::of_job(id, Name::Lock))
}

/// Which record of the job cannot be read.
fn torn(files: &Filesystem, id: &JobId) -> Option<String> {
    let unreadable = |name: Name| match name {
        Name::Descriptor => matches!(
            files.data(&Place::of_job(id, name))?.descriptor(),
            Read::Damaged(_)
        )
        .then_some("descriptor"),
        _ => matches!(
            files.data(&Place::of_job(id, name))?.status(),
            Read::Damaged(_)
        )
        .then_some("status"),
    };
    let what = unreadable(Name::Descriptor).or_else(|| unreadable(Name::Status))?;
    Some(format!("the {what} of {id} is torn"))
}
