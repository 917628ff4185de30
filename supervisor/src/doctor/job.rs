//! One job: its records, its history, what was asked of it, its processes, its files.

use std::time::Duration;

use state_machine::control::Control;
use state_machine::disk::{Dir, Disk, Name, Place, Read};
use state_machine::id::JobId;
use state_machine::job::{State, follows, path};
use state_machine::protocol::look::{Look, View, look};
use state_machine::record::History;

use super::{Finding, Mend, modes};
use crate::clock;
use crate::error::Result;
use crate::process::Marked;
use crate::store::Store;

/// How often a job that changes under the look is looked at again, and after which time: its holder writes the status
/// first and the history then.
const LOOKS: u32 = 6;
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
/// How long ago a record may have been written by somebody who is still at it: a sync can take that long.
const JUST_NOW: Duration = Duration::from_secs(2);

/// What to do about a record that is lost: nothing is ever made up in its place (R21).
const LOST: &str = "it was left as it is; bring the file back from a copy, or remove the directory when nothing in it is of use";
/// What to do about what the next holder mends by itself.
const MENDS_ITSELF: &str = "whoever holds the job next mends it, and 'outlive doctor --fix' does";

/// Everything worth saying about the job in the directory of this name.
pub(super) fn examine(store: &Store, id: &JobId, marked: &[Marked]) -> Vec<Finding> {
    match try_examine(store, id, marked) {
        Ok(findings) => findings,
        Err(error) => vec![Finding::problem(
            super::told(&error),
            "see to it that its owner can read and write the store",
        )],
    }
}

fn try_examine(store: &Store, id: &JobId, marked: &[Marked]) -> Result<Vec<Finding>> {
    let dir = store.job_dir(id);
    match std::fs::symlink_metadata(&dir) {
        Ok(there) if !there.is_dir() => {
            return Ok(vec![Finding::problem(
                "it is no directory",
                "nothing of ours; move it away if it is of use",
            )]);
        }
        Ok(_) => {}
        // It was cleaned meanwhile.
        Err(_) => return Ok(Vec::new()),
    }
    let mut findings = records(store, id, marked)?;
    findings.extend(modes::of_job(&dir));
    // Cleaned while it was looked at: nothing of that is worth saying.
    if !dir.exists() {
        findings.clear();
    }
    Ok(findings)
}

fn records(store: &Store, id: &JobId, marked: &[Marked]) -> Result<Vec<Finding>> {
    let mut disk = store.disk();
    let mut findings = Vec::new();
    // What is looked at under a descriptor's id would be another job.
    if let Read::Value(descriptor) = disk.read_descriptor(&Dir::Job(id.clone()))?
        && descriptor.id != *id
    {
        let what = format!("job.json is that of {}", descriptor.id);
        return Ok(vec![Finding::problem(
            what,
            "rename the directory back, or remove it",
        )]);
    }
    if !disk.exists(&Place::of_job(id, Name::Lock))? {
        findings.push(Finding::problem(
            "its lock is missing, so that nobody can hold it",
            "make an empty file of that name, or remove the directory when nothing in it is of use",
        ));
    }
    let (view, history) = match settled_look(store, id)? {
        Seen::Job(view, history) => (*view, history),
        Seen::Gone => return Ok(Vec::new()),
        Seen::Damaged(what) => {
            findings.push(Finding::problem(what, LOST));
            return Ok(findings);
        }
    };
    findings.extend(of_history(&view, &history));
    findings.extend(of_requests(store, &view)?);
    findings.extend(of_condition(&view));
    findings.extend(of_processes(store, &view, marked));
    Ok(findings)
}

enum Seen {
    Job(Box<View>, History),
    Gone,
    Damaged(String),
}

/// A look at the record and the history that no holder was writing to meanwhile, as far as there is such a time.
fn settled_look(store: &Store, id: &JobId) -> Result<Seen> {
    let mut disk = store.disk();
    let mut round = 0;
    loop {
        let view = match look(&mut disk, id)? {
            Look::Job(view) => view,
            Look::Gone => return Ok(Seen::Gone),
            Look::Damaged { file, why } => {
                let file = String::from_utf8_lossy(&file.to_bytes()).into_owned();
                return Ok(Seen::Damaged(format!("{file} cannot be read: {why}")));
            }
        };
        let history = store.job(id).raw_history()?;
        round += 1;
        if agrees(&view, &history) || round == LOOKS || !may_be_at_work(&view) {
            return Ok(Seen::Job(view, history));
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

/// Whether the record is what the history ends with. A job that was never held needs no history yet.
fn agrees(view: &View, history: &History) -> bool {
    history.last_state().unwrap_or(State::Queued) == view.status.state
}

/// R7: a path of the table, and the record is its end.
fn of_history(view: &View, history: &History) -> Vec<Finding> {
    let mut findings = Vec::new();
    let states: Vec<State> = history.states().collect();
    if let Some(first) = states.first()
        && *first != State::Queued
    {
        findings.push(Finding::problem(
            format!("its history begins with {first} and not with queued"),
            LOST,
        ));
    }
    for step in states.windows(2) {
        if let [from, to] = step
            && !follows(*from, *to)
        {
            findings.push(Finding::problem(
                format!("its history goes from {from} to {to}, which no job can"),
                LOST,
            ));
        }
    }
    findings.extend(of_agreement(view, history));
    let torn_end = u32::from(history.torn);
    if history.undecodable > torn_end {
        findings.push(Finding::note(
            format!(
                "{} lines of its history cannot be read",
                history.undecodable
            ),
            "they are passed over; nothing need be done",
        ));
    } else if history.undecodable > 0 && !view.held {
        findings.push(Finding::note(
            "the last line of its history is torn",
            "it is passed over; nothing need be done",
        ));
    }
    findings
}

fn of_agreement(view: &View, history: &History) -> Option<Finding> {
    if view.status.lost {
        let mend = Mend::Settle(view.descriptor.id.clone());
        let what = "a loss of power has emptied its status.json";
        return Some(Finding::note(what, MENDS_ITSELF).mended_by(mend));
    }
    if agrees(view, history) {
        return None;
    }
    let recorded = view.status.state;
    let last = history.last_state().unwrap_or(State::Queued);
    let entered = u32::try_from(history.states().count()).unwrap_or(u32::MAX);
    let is_behind = entered > view.status.steps;
    let what = format!("status.json says {recorded} and its history ends with {last}");
    // An end is synced before it enters the history: no crash leaves it so.
    let lost = is_behind && (recorded.is_terminal() || last.is_terminal());
    Some(if lost || path(last, recorded).is_none() {
        Finding::problem(what, LOST)
    } else if view.held {
        Finding::note(
            what,
            "its worker cannot write the history; see whether the disk is full",
        )
    } else {
        Finding::note(what, MENDS_ITSELF).mended_by(Mend::Settle(view.descriptor.id.clone()))
    })
}

/// R6: what was asked of a job that nobody holds is answered by the next to look.
fn of_requests(store: &Store, view: &View) -> Result<Option<Finding>> {
    if view.held {
        return Ok(None);
    }
    let id = &view.descriptor.id;
    let mut disk = store.disk();
    for name in [Name::Taken, Name::Control] {
        let asked = match disk.read_control(&Place::of_job(id, name))? {
            None => continue,
            Some(Control::Asked(request)) => request.to_string(),
            Some(Control::Empty) => "nothing yet".into(),
            Some(Control::Unknown(word)) => format!("'{word}'"),
        };
        return Ok(Some(if view.state.is_terminal() {
            Finding::note(
                format!("a request ({asked}) is left, and the job has ended"),
                "harmless; it goes when the job is cleaned",
            )
        } else {
            Finding::note(
                format!("{asked} was asked of it and is not answered"),
                MENDS_ITSELF,
            )
            .mended_by(Mend::Settle(id.clone()))
        }));
    }
    Ok(None)
}

fn of_condition(view: &View) -> Option<Finding> {
    let id = &view.descriptor.id;
    if view.state != State::Interrupted {
        return None;
    }
    let advice = format!("'outlive resume {id}' runs it again, 'outlive stop {id}' ends it");
    Some(if view.status.state == State::Running {
        Finding::note(
            "it lost its worker, and its history does not say so yet",
            advice,
        )
        .mended_by(Mend::Settle(id.clone()))
    } else {
        Finding::note("it was interrupted", advice)
    })
}

/// R11: nobody is responsible, and yet there are processes.
fn of_processes(store: &Store, view: &View, marked: &[Marked]) -> Option<Finding> {
    if view.held {
        return None;
    }
    let id = &view.descriptor.id;
    let dir = store.job_dir(id);
    let left: Vec<&Marked> = marked
        .iter()
        .filter(|it| it.dir == dir && it.is_still_there())
        .collect();
    let what = match left.as_slice() {
        [] if !view.leftovers => return None,
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
    Some(Finding::problem(what, advice))
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
            Finding::problem(
                format!(
                    "{} is of a job that is not there any more ({})",
                    it.process,
                    it.dir.display()
                ),
                "see what it does and end it",
            )
        })
        .collect()
}

/// How many processes a finding names.
const NAMED: usize = 8;

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
