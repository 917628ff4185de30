//! What a reader concludes from a record and from whether somebody holds the job's lock. No pid plays a part
//! in it (R4).

use crate::job::State;
use crate::record::{Damaged, Descriptor, History, Status};

/// The state that is true, given what is recorded and whether the lock is held.
///
/// A job that nobody holds cannot be running (R4), and one that somebody holds is never called interrupted
/// (R3). A job that was to start at once and is still queued has lost its starter in the same way.
pub fn conclude(descriptor: &Descriptor, status: &Status, held: bool) -> State {
    match status.state {
        State::Running if !held => State::Interrupted,
        State::Queued if !held && descriptor.starts_at_once() => State::Interrupted,
        recorded => recorded,
    }
}

/// Whether the record of a job that nobody holds must first be mended by the next holder: it says that
/// somebody works on it. A job that has lost its starter is only queued: there is no work to account for, and
/// whoever takes it next runs it.
pub fn is_abandoned(status: &Status) -> bool {
    status.state == State::Running
}

/// Whether the lock must be probed at all to know the state: an ended job stays ended, and only one that left
/// processes behind can still have a worker worth mentioning.
pub fn needs_probe(status: &Status) -> bool {
    !status.state.is_terminal() || status.leftovers.is_some()
}

/// What the history still knows of a record that a loss of power has taken: a stop that it tells of, for people to go
/// on from.
///
/// # Errors
///
/// When the history tells of an end: no loss of power takes the record of one (R19), so somebody else has emptied the
/// file, and only a person can say what it was (R21).
pub fn find_again(status: Status, history: &History) -> Result<Status, Damaged> {
    let mut status = status;
    if let Some(last) = history.lines.last() {
        status.updated_at_ms = last.at_ms;
    }
    match history.last_state() {
        Some(end) if end.is_terminal() => {
            return Err(Damaged(format!(
                "the file holds nothing, and the history says {end}"
            )));
        }
        Some(stopped) if stopped.is_resumable() => status.state = stopped,
        _ => {}
    }
    Ok(status)
}
