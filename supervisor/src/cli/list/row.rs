//! A job as a line of the table.

use std::time::Duration;

use state_machine::id::JobId;
use state_machine::job::State;
use state_machine::protocol::look::View;
use state_machine::record::Bytes;

use super::table::{Cells, STATE};
use crate::cli::print;
use crate::cli::waiting::{Waiting, waits};
use crate::store::Store;

/// A line of the table.
pub(super) struct Row {
    id: JobId,
    state: State,
    pub(super) project: Option<Bytes>,
    pub(super) cells: Cells,
    /// The job, where there is more to say of how it is.
    waiting: Option<Box<View>>,
}

impl Row {
    /// The line of a job, with how long ago it was started.
    pub(super) fn new(view: &View, now_ms: u64) -> Row {
        let descriptor = &view.descriptor;
        let since = |at_ms| print::short(Duration::from_millis(now_ms.saturating_sub(at_ms)));
        Row {
            id: descriptor.id.clone(),
            state: view.state,
            project: descriptor.project.clone(),
            cells: cells(view, since),
            waiting: waits(view).then(|| Box::new(view.clone())),
        }
    }

    /// The colour of how it is, as a terminal is told it.
    pub(super) fn colour(&self) -> Option<&'static str> {
        match self.state {
            State::Running => Some("32"),
            State::Failed => Some("31"),
            State::Interrupted => Some("35"),
            State::Paused | State::Cancelled => Some("33"),
            State::Queued => Some("36"),
            State::Done => None,
        }
    }
}

/// The cells of a job; `since` puts into words when it was started.
pub(in crate::cli) fn cells(view: &View, since: impl FnOnce(u64) -> String) -> Cells {
    let descriptor = &view.descriptor;
    let name = descriptor.name.as_ref();
    [
        descriptor.id.to_string(),
        name.map_or_else(String::new, ToString::to_string),
        descriptor.task.clone().unwrap_or_default(),
        print::condition(view),
        view.status.started_at_ms.map_or_else(String::new, since),
        slot(view),
        print::work(view),
    ]
}

/// The slot that a job has now.
fn slot(view: &View) -> String {
    match (&view.descriptor.pool, view.status.slot) {
        (Some(pool), Some(slot)) if view.held => format!("{pool}/{slot}"),
        _ => String::new(),
    }
}

/// Complete the condition of those that are queued.
pub(super) fn say_what_is_waited_for(store: &Store, rows: &mut [Row]) {
    if rows.iter().all(|row| row.waiting.is_none()) {
        return;
    }
    let states = rows.iter().map(|row| (row.id.clone(), row.state)).collect();
    let waiting = Waiting::new(store, states);
    for row in rows {
        if let Some(view) = &row.waiting {
            row.cells[STATE] = waiting.condition(view);
        }
    }
}
