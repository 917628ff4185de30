//! A record: whether what it says can be true, what was asked of the job, and whether somebody runs it.

use state_machine::control::Control;
use state_machine::disk::{Disk, Name, Place};
use state_machine::job::State;
use state_machine::protocol::look::View;
use state_machine::record::{Kind, Status};

use super::job::MENDS_ITSELF;
use super::{Finding, Mend, kind};
use crate::clock;
use crate::error::Result;
use crate::store::Store;

/// Everything worth saying about the record of a job.
pub(super) fn examine(store: &Store, view: &View) -> Result<Vec<Finding>> {
    let path = store.job_dir(&view.descriptor.id).join("status.json");
    let of_record = of_end(view).into_iter().chain(of_progress(&view.status));
    let of_record = of_record.chain(of_times(&view.status));
    let mut findings: Vec<Finding> = of_record
        .chain(of_condition(view))
        .map(|finding| finding.at(&path))
        .collect();
    findings.extend(of_requests(store, view)?);
    Ok(findings)
}

/// R13: how a command ended is known where it has ended.
fn of_end(view: &View) -> Option<Finding> {
    let status = &view.status;
    let is_command = matches!(view.descriptor.kind, Kind::Command(_));
    let ran_to_its_end = match status.state {
        State::Done => is_command,
        State::Failed => is_command && status.failure.is_none(),
        _ => false,
    };
    (ran_to_its_end && status.exit.is_none()).then(|| {
        Finding::new(
            kind::EXIT_MISSING,
            format!(
                "it is {}, and its status.json does not say how its command ended",
                status.state
            ),
            "nobody knows it any more; its log may tell",
        )
    })
}

fn of_progress(status: &Status) -> Option<Finding> {
    let progress = &status.progress;
    let is_over = |done: u64, total: Option<u64>| total.is_some_and(|total| done > total);
    let over = is_over(progress.done_bytes, progress.total_bytes)
        || is_over(progress.files_done, progress.files_total);
    over.then(|| {
        Finding::new(
            kind::PROGRESS,
            "its status.json says that more is done than there is in all",
            "for display only; the next record of its worker puts it right",
        )
    })
}

fn of_times(status: &Status) -> Option<Finding> {
    let (started, ended) = (status.started_at_ms?, status.ended_at_ms?);
    (ended < started).then(|| {
        Finding::new(
            kind::TIME_BACKWARDS,
            "its status.json says that it ended before it started",
            "for display only; nothing is timed by that",
        )
    })
}

fn of_condition(view: &View) -> Option<Finding> {
    let id = &view.descriptor.id;
    if view.state != State::Interrupted {
        return None;
    }
    let advice = format!("'outlive resume {id}' runs it again, 'outlive stop {id}' ends it");
    let lost = |kind, what| Finding::new(kind, what, &advice).mended_by(Mend::Settle(id.clone()));
    Some(if view.status.state != State::Running {
        Finding::new(kind::INTERRUPTED, "it was interrupted", &advice)
    } else if view.status.updated_at_ms < booted_at_ms() && !view.status.lost {
        lost(
            kind::REBOOTED,
            "it ran when the machine went down, and its history does not say so yet",
        )
    } else {
        lost(
            kind::WORKER_LOST,
            "it lost its worker, and its history does not say so yet",
        )
    })
}

/// When the machine was started, by the clock as it is now.
fn booted_at_ms() -> u64 {
    let since_boot = u64::try_from(clock::since_boot().as_millis()).unwrap_or(u64::MAX);
    clock::now_ms().saturating_sub(since_boot)
}

/// R6: what was asked of a job that nobody holds is answered by the next to look.
fn of_requests(store: &Store, view: &View) -> Result<Option<Finding>> {
    if view.held {
        return Ok(None);
    }
    let id = &view.descriptor.id;
    let mut disk = store.disk();
    for name in [Name::Taken, Name::Control] {
        let place = Place::of_job(id, name);
        let asked = match disk.read_control(&place)? {
            None => continue,
            Some(Control::Asked(request)) => request.to_string(),
            Some(Control::Empty) => "nothing yet".into(),
            Some(Control::Unknown(word)) => format!("'{word}'"),
        };
        let finding = if view.state.is_terminal() {
            Finding::new(
                kind::REQUEST_LEFT,
                format!("a request ({asked}) is left, and the job has ended"),
                "harmless; it goes when the job is cleaned, or with 'outlive doctor --fix'",
            )
        } else {
            let what = format!("{asked} was asked of it and is not answered");
            Finding::new(kind::REQUEST_WAITS, what, MENDS_ITSELF)
        };
        let path = store.disk().path(&place);
        return Ok(Some(finding.at(path).mended_by(Mend::Settle(id.clone()))));
    }
    Ok(None)
}
