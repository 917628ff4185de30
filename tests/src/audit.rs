//! What must hold at the end of every test, whatever it did: nothing runs, nothing is locked, every record can be read,
//! every history is legal and agrees with its record, an end is final. Written from the format alone.

use std::fs::{self, File};
use std::sync::atomic::Ordering;

use rustix::fs::FlockOperation;
use serde_json::Value;

use crate::bench::Bench;
use crate::files::could_lock;
use crate::job::Job;
use crate::until::until;

/// Which state may follow which, the first of a history following "".
pub const LEGAL: [(&str, &[&str]); 8] = [
    ("", &["queued"]),
    (
        "queued",
        &["running", "failed", "paused", "interrupted", "cancelled"],
    ),
    (
        "running",
        &["done", "failed", "paused", "interrupted", "cancelled"],
    ),
    ("paused", &["running", "queued", "cancelled"]),
    ("interrupted", &["running", "queued", "paused", "cancelled"]),
    ("done", &[]),
    ("failed", &[]),
    ("cancelled", &[]),
];

/// Whether a job in this state has ended.
pub fn is_terminal(state: &str) -> bool {
    matches!(state, "done" | "failed" | "cancelled")
}

fn may_follow(from: &str, to: &str) -> bool {
    LEGAL
        .iter()
        .any(|(state, next)| *state == from && next.contains(&to))
}

/// What belongs into the directory of a job that is at rest.
fn belongs(name: &str) -> bool {
    matches!(
        name,
        "job.json"
            | "status.json"
            | "events.jsonl"
            | "lock"
            | "tree"
            | "log"
            | "parts"
            | "resolved"
            // A fetcher may be ended at any moment.
            | "parts.new"
            | "resolved.new"
            | "stdout.log"
            | "stderr.log"
            | "on_end.log"
    ) || name
        .rsplit_once('.')
        .is_some_and(|(log, number)| log.ends_with("log") && number.parse::<u32>().is_ok())
}

impl Bench {
    /// See that the store is at rest and legal, once its supervisor is told to end, if it has one. To be called when nothing
    /// else is meant to run any more.
    ///
    /// # Panics
    ///
    /// When something does not hold.
    #[track_caller]
    pub fn audit(&self) {
        self.audited.store(true, Ordering::Relaxed);
        if self.root().join("supervisor.lock").exists() {
            self.end_supervisor();
        }
        // A worker that has recorded the end may still be on its way out.
        let mut left = Vec::new();
        let gone = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            until("nothing of the bench runs", || {
                left = self.census();
                left.is_empty()
            });
        }));
        assert!(gone.is_ok(), "still running: {left:?}");
        for job in self.jobs() {
            self.audit_job(&job);
        }
        if !self.crashed.load(Ordering::Relaxed) {
            for aside in ["staging", "trash"] {
                let entries = fs::read_dir(self.root().join(aside)).into_iter().flatten();
                assert_eq!(entries.count(), 0, "{aside} is empty when nothing crashed");
            }
        }
        self.audit_supervisor();
        self.consult_the_doctor();
    }

    /// Nobody has the supervisor's lock, and none of them was lost to a fault of its own.
    #[track_caller]
    fn audit_supervisor(&self) {
        let Ok(lock) = File::open(self.root().join("supervisor.lock")) else {
            return;
        };
        until("the supervisor's lock is free", || {
            could_lock(&lock, FlockOperation::NonBlockingLockExclusive)
        });
        let log = fs::read(self.root().join("supervisor.log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        assert!(!log.contains("panicked at"), "{log}");
    }

    /// The product's own check-up must agree that nothing is wrong, once it has mended what a crash left.
    #[track_caller]
    fn consult_the_doctor(&self) {
        if !self.root().join("format").exists() {
            return;
        }
        let set_aside = self.set_aside();
        if self.crashed.load(Ordering::Relaxed) {
            self.run(["doctor", "--fix"]);
        }
        self.run(["doctor"]).expect(0);
        assert_eq!(
            self.set_aside(),
            set_aside,
            "no crash leaves what must be set aside"
        );
    }

    /// How often something was set aside.
    fn set_aside(&self) -> usize {
        let entries = fs::read_dir(self.root().join("broken"));
        entries.into_iter().flatten().count()
    }

    #[track_caller]
    fn audit_job(&self, job: &Job) {
        let crashed = self.crashed.load(Ordering::Relaxed);
        let id = job.id();
        let descriptor = fs::read(job.file("job.json"));
        let descriptor: Value = descriptor
            .map_err(|error| error.to_string())
            .and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string()))
            .unwrap_or_else(|error| panic!("{id}: its descriptor cannot be read: {error}"));
        assert_eq!(descriptor["id"], id);
        let state = job.recorded();
        let states = job.states();
        let mut at = "";
        for next in &states {
            assert!(may_follow(at, next), "{id}: {at} to {next} in {states:?}");
            at = next;
        }
        let behind = crashed
            && (at == state || at.is_empty() || may_follow(at, &state) || ahead(&states, &state));
        assert!(
            at == state || behind || (at.is_empty() && state == "queued"),
            "{id}: the record says {state} and the history {states:?}"
        );
        if let Some(status) = job.status() {
            assert_times(id, &status);
            assert!(
                crashed || is_terminal(&state) || status["pid"].is_null() || state == "running",
                "{id}: {status}"
            );
        }
        if let Ok(lock) = File::open(job.file("lock")) {
            until(&format!("the lock of {id} is free"), || {
                could_lock(&lock, FlockOperation::NonBlockingLockExclusive)
            });
        }
        for entry in fs::read_dir(job.dir()).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            // A request that came as the job ended is of no account, and may lie there.
            let request = name == "control";
            assert!(
                crashed || request || belongs(&name),
                "{id}: {name} does not belong there"
            );
        }
    }
}

/// Whether the history is one step ahead of the record: what the next holder mends after a loss of power.
fn ahead(states: &[String], state: &str) -> bool {
    states.len() > 1 && states[states.len() - 2] == state
}

fn assert_times(id: &str, status: &Value) {
    if let (Some(started), Some(ended)) = (
        status["started_at_ms"].as_u64(),
        status["ended_at_ms"].as_u64(),
    ) {
        assert!(started <= ended, "{id} ended before it started: {status}");
    }
}
