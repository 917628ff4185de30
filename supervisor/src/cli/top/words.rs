//! What is shown, in words.

use state_machine::protocol::look::View;
use state_machine::slot::State as SlotState;

use crate::cli::list::row;
use crate::cli::list::table::{Cells, STATE};
use crate::cli::progress;
use crate::slots::{PoolSlots, SlotStanding};
use crate::store::PoolStanding;

/// The cells of a job.
pub(super) fn cells(
    view: &View,
    condition: &dyn Fn(&View) -> String,
    instant: &dyn Fn(u64) -> String,
) -> Cells {
    let mut cells = row::cells(view, instant);
    cells[STATE] = condition(view);
    if let Some(percent) = percent(view) {
        cells[STATE].push_str(&format!(" {percent} %"));
    }
    cells
}

/// How far a transfer is that has not ended.
fn percent(view: &View) -> Option<u64> {
    let progress = &view.status.progress;
    let total = progress.total_bytes.filter(|total| *total > 0)?;
    let hundredfold = u128::from(progress.done_bytes) * 100;
    let percent = u64::try_from(hundredfold / u128::from(total)).ok()?;
    (!view.state.is_terminal()).then_some(percent)
}

/// The pools, in a line.
pub(super) fn pools(pools: &[PoolStanding]) -> String {
    let pools = pools.iter().map(|pool| {
        let mut words = format!("{} {}/{}", pool.name, pool.taken, pool.slots);
        if pool.waiting > 0 {
            words.push_str(&format!(", {} waiting", pool.waiting));
        }
        match (pool.declared, pool.paused) {
            (false, _) => words.push_str(", not there"),
            (true, true) => words.push_str(", paused"),
            (true, false) => {}
        }
        words
    });
    format!("slots taken: {}", pools.collect::<Vec<_>>().join(" | "))
}

/// What the panel says of the chosen job, beside its output.
pub(super) fn about(view: &View, errors: bool) -> String {
    let (descriptor, status) = (&view.descriptor, &view.status);
    let mut words = vec![descriptor.id.to_string()];
    words.extend(progress::line(&status.progress));
    words.extend(status.status_line.clone());
    words.extend(status.message.clone());
    if descriptor.output.split {
        words.push(
            if errors {
                "standard error"
            } else {
                "standard output"
            }
            .into(),
        );
    }
    words.join("; ")
}

/// A slot that has a place.
pub(super) fn slot(pool: &str, slot: &SlotStanding) -> String {
    let state = match slot.state {
        SlotState::Idle => "idle",
        SlotState::Claimed => "claimed",
        SlotState::Maintaining => "maintaining",
        SlotState::Broken => "broken",
    };
    let mut words = vec![format!("{pool}/{}  {state}", slot.number)];
    words.extend(slot.holder.clone());
    words.extend(slot.since.as_ref().map(|since| format!("since {since}")));
    words.extend(slot.broken.clone().or_else(|| slot.note.clone()));
    words.join("  ")
}

/// The slot of a job in a pool whose slots have no place: those that have one are told of by themselves.
pub(super) fn inside(view: &View, placed: &[PoolSlots]) -> Option<String> {
    let pool = view.descriptor.pool.as_deref()?;
    let slot = view.status.slot.filter(|_| view.held)?;
    let is_placed = placed.iter().any(|placed| placed.pool == pool);
    (!is_placed).then(|| format!("{pool}/{slot}  claimed  {}", view.descriptor.id))
}
