//! What is so now, for a collector of metrics: the text format 0.0.4 of Prometheus. All of it is gauges: it is counted from what is in the
//! store, which forgets what ended long ago, and no process has counted anything itself.

use std::fmt::Write;

use state_machine::job::State;
use state_machine::slot;

use crate::live::Live;
use crate::slots::PoolSlots;
use crate::store::PoolStanding;

/// What the text is, as HTTP says it.
pub(super) const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The states of slots, and their words.
const SLOT_STATES: [(slot::State, &str); 4] = [
    (slot::State::Idle, "idle"),
    (slot::State::Claimed, "claimed"),
    (slot::State::Maintaining, "maintaining"),
    (slot::State::Broken, "broken"),
];

/// All of them, as text.
pub(super) fn text(live: &Live, supervised: bool) -> String {
    let mut text = Text::default();
    add_jobs(&mut text, live);
    add_transfers(&mut text, live);
    add_pools(&mut text, &live.pools(), live.slots());
    text.gauge(
        "outlive_supervisor_up",
        "Whether the store has a supervisor: 1 or 0.",
    );
    text.sample(&[], u64::from(supervised));
    text.gauge(
        "outlive_unreadable",
        "Jobs and other records in the store that cannot be read.",
    );
    text.sample(&[], live.damaged().count() as u64);
    text.gauge("outlive_build_info", "Which version answers; always 1.");
    text.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    text.0
}

fn add_jobs(text: &mut Text, live: &Live) {
    let mut of_state = State::ALL.map(|state| (state, 0u64));
    let mut left = 0;
    for view in live.jobs() {
        for (state, count) in &mut of_state {
            *count += u64::from(*state == view.state);
        }
        left += u64::from(view.leftovers);
    }
    text.gauge(
        "outlive_jobs",
        "Jobs in the store by state; those that were forgotten are not among them.",
    );
    for (state, count) in of_state {
        text.sample(&[("state", state.word())], count);
    }
    text.gauge(
        "outlive_jobs_with_leftovers",
        "Jobs of which processes are left that nobody runs.",
    );
    text.sample(&[], left);
}

/// Of what has not ended and transfers something.
fn add_transfers(text: &mut Text, live: &Live) {
    let mut transfers: Vec<_> = live
        .jobs()
        .filter(|view| !view.state.is_terminal())
        .map(|view| (view.descriptor.id.as_str(), view.status.progress))
        .collect();
    transfers.retain(|(_, progress)| progress.done_bytes > 0 || progress.total_bytes.is_some());
    text.gauge(
        "outlive_job_progress_bytes",
        "Bytes that a job which has not ended has transferred.",
    );
    for (job, progress) in &transfers {
        text.sample(&[("job", job)], progress.done_bytes);
    }
    text.gauge(
        "outlive_job_expected_bytes",
        "Bytes that such a job is to transfer, where that is known.",
    );
    for (job, progress) in &transfers {
        if let Some(total) = progress.total_bytes {
            text.sample(&[("job", job)], total);
        }
    }
}

fn add_pools(text: &mut Text, pools: &[PoolStanding], slots: &[PoolSlots]) {
    text.gauge(
        "outlive_pool_slots",
        "Slots of a pool by state. Those of a pool without a place are idle or claimed.",
    );
    for pool in pools {
        let placed = slots.iter().find(|slots| slots.pool == pool.name);
        for (state, word) in SLOT_STATES {
            let count = match (placed, state) {
                // One that was not made yet is idle.
                (Some(placed), slot::State::Idle) => {
                    let others = placed.slots.iter().filter(|slot| slot.state != state);
                    u64::from(pool.slots).saturating_sub(others.count() as u64)
                }
                (Some(placed), _) => {
                    let those = placed.slots.iter().filter(|slot| slot.state == state);
                    those.count() as u64
                }
                (None, slot::State::Idle) => u64::from(pool.slots.saturating_sub(pool.taken)),
                (None, slot::State::Claimed) => u64::from(pool.taken),
                (None, _) => continue,
            };
            text.sample(&[("pool", &pool.name), ("state", word)], count);
        }
    }
    text.gauge(
        "outlive_queue_depth",
        "Jobs that wait for a slot of a pool.",
    );
    for pool in pools {
        text.sample(&[("pool", &pool.name)], pool.waiting as u64);
    }
    text.gauge(
        "outlive_pool_paused",
        "Whether a pool admits no job for now: 1 or 0.",
    );
    for pool in pools {
        text.sample(&[("pool", &pool.name)], u64::from(pool.paused));
    }
}

/// The text, and the name of what is told last.
#[derive(Default)]
struct Text(String, &'static str);

impl Text {
    fn gauge(&mut self, name: &'static str, help: &str) {
        self.1 = name;
        // What is written to is a text.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} gauge\n");
    }

    fn sample(&mut self, labels: &[(&str, &str)], value: u64) {
        self.0.push_str(self.1);
        for (nth, (name, value)) in labels.iter().enumerate() {
            self.0.push(if nth == 0 { '{' } else { ',' });
            let _ = write!(self.0, "{name}=\"{}\"", escaped(value));
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }
}

/// The value of a label, as it is written between quotation marks.
fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let mut text = Text::default();
        text.gauge("a", "What.");
        text.sample(&[("x", "q\"b\\n\nl"), ("y", "é")], 3);
        text.sample(&[], 4);
        let expected = "# HELP a What.\n# TYPE a gauge\na{x=\"q\\\"b\\\\n\\nl\",y=\"é\"} 3\na 4\n";
        assert_eq!(text.0, expected);
    }
}
