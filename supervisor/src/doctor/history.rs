//! A history: whether it is one that a job can have, whether the record is its end (R7), and what in it cannot be read.

use std::path::Path;

use state_machine::job::{State, follows, path};
use state_machine::protocol::look::View;
use state_machine::record::History;

use super::job::{LONGEST, MENDS_ITSELF};
use super::kind::{self, Kind};
use super::{Finding, Mend};

/// Everything worth saying about the history of a job in this directory.
pub(super) fn examine(view: &View, history: &History, dir: &Path) -> Vec<Finding> {
    let events = dir.join("events.jsonl");
    let mut findings = of_path(view, history);
    if is_too_long(&events) && !view.status.lost {
        // Of what is in it nothing is known.
        let what = "its history is so long that nobody reads it";
        findings = vec![lost(view, history, kind::HISTORY_TOO_LONG, what.into())];
    } else {
        findings.extend(of_agreement(view, history));
        findings.extend(of_lines(view, history));
    }
    findings
        .into_iter()
        .map(|finding| finding.at(&events))
        .collect()
}

/// Whether the record is what the history ends with. A job that was never held needs no history yet.
pub(super) fn agrees(view: &View, history: &History) -> bool {
    history.last_state().unwrap_or(State::Queued) == view.status.state
}

/// Whether a history is longer than what is read of one. It counts as empty then, whatever is added to it.
pub(super) fn is_too_long(events: &Path) -> bool {
    let found = events.symlink_metadata();
    found.is_ok_and(|found| found.is_file() && found.len() > LONGEST)
}

/// Whether the states of a history are a path of the table.
pub(super) fn is_legal(history: &History) -> bool {
    wrong_steps(history).is_empty()
}

fn wrong_steps(history: &History) -> Vec<String> {
    let states: Vec<State> = history.states().collect();
    let mut wrong = Vec::new();
    if let Some(first) = states.first()
        && *first != State::Queued
    {
        wrong.push(format!(
            "its history begins with {first} and not with queued"
        ));
    }
    for step in states.windows(2) {
        if let [from, to] = step
            && !follows(*from, *to)
        {
            wrong.push(format!(
                "its history goes from {from} to {to}, which no job can"
            ));
        }
    }
    wrong
}

fn of_path(view: &View, history: &History) -> Vec<Finding> {
    let wrong = wrong_steps(history).into_iter();
    wrong
        .map(|what| lost(view, history, kind::HISTORY_ILLEGAL, what))
        .collect()
}

/// Whether the record of a job tells more than its history does: then a history that is wrong can be begun anew from it. A
/// history that tells of an end which the record does not know of is the better witness, and then neither is touched: the job
/// would be run again.
pub(super) fn record_is_better(recorded: State, history: &History) -> bool {
    recorded.is_terminal() || !history.states().any(State::is_terminal)
}

/// What no crash leaves.
fn lost(view: &View, history: &History, kind: Kind, what: String) -> Finding {
    let id = view.descriptor.id.clone();
    if record_is_better(view.status.state, history) {
        let advice = "'outlive doctor --fix' sets the history aside and begins it anew from the record, once nobody holds the job";
        Finding::new(kind, what, advice).mended_by(Mend::Rewrite(id))
    } else {
        let advice = "bring the files back from a copy; or have 'outlive doctor --fix' set the job aside, whole, once nobody holds it";
        Finding::new(kind, what, advice).mended_by(Mend::SetJobAside(id))
    }
}

fn of_agreement(view: &View, history: &History) -> Option<Finding> {
    let id = &view.descriptor.id;
    if view.status.lost {
        let what = "a loss of power has emptied its status.json";
        let finding = Finding::new(kind::RECORD_LOST, what, MENDS_ITSELF);
        return Some(finding.mended_by(Mend::Settle(id.clone())));
    }
    let entered = u32::try_from(history.states().count()).unwrap_or(u32::MAX);
    if agrees(view, history) {
        // One that is absent or empty stands for its first line.
        return (entered.max(1) < view.status.steps).then(|| {
            let what = format!(
                "its history tells of {entered} states and its status.json has counted {}",
                view.status.steps
            );
            let advice = "lines of it are lost; nothing need be done, as the record is the truth";
            Finding::new(kind::HISTORY_SHORT, what, advice)
        });
    }
    let recorded = view.status.state;
    let last = history.last_state().unwrap_or(State::Queued);
    let is_behind = entered > view.status.steps;
    let what = format!("status.json says {recorded} and its history ends with {last}");
    // An end is synced before it enters the history: no crash leaves it so.
    let contradicts = is_behind && (recorded.is_terminal() || last.is_terminal());
    Some(if contradicts || path(last, recorded).is_none() {
        lost(view, history, kind::HISTORY_CONTRADICTS, what)
    } else if view.held {
        let advice = "its worker cannot write the history; see whether the disk is full";
        Finding::new(kind::HISTORY_BEHIND, what, advice)
    } else {
        let finding = Finding::new(kind::HISTORY_BEHIND, what, MENDS_ITSELF);
        finding.mended_by(Mend::Settle(id.clone()))
    })
}

/// Lines that cannot be read, and times that go backwards.
fn of_lines(view: &View, history: &History) -> Vec<Finding> {
    let mut findings = Vec::new();
    let torn_end = u32::from(history.torn);
    if history.undecodable > torn_end {
        let what = format!(
            "{} lines of its history cannot be read",
            history.undecodable
        );
        let advice = "they are passed over; nothing need be done";
        findings.push(Finding::new(kind::HISTORY_GARBAGE, what, advice));
    } else if history.undecodable > 0 && !view.held {
        let advice = "it is passed over; nothing need be done";
        let what = "the last line of its history is torn";
        findings.push(Finding::new(kind::HISTORY_TORN, what, advice));
    }
    let goes_back = |pair: &[state_machine::record::Line]| match pair {
        [before, after] => after.at_ms < before.at_ms,
        _ => false,
    };
    if history.lines.windows(2).any(goes_back) {
        findings.push(Finding::new(
            kind::TIME_BACKWARDS,
            "the times in its history go backwards",
            "the clock was set, most likely; nothing is timed by them",
        ));
    }
    findings
}
