//! One job as an outsider sees it: its files, read as the format documents them, and the command line's word.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::audit::is_terminal;
use crate::bench::Bench;
use crate::census::{Process, openers};
use crate::until::{until, until_some};

/// A job of a bench.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    bench: &'a Bench,
    id: String,
}

impl<'a> Job<'a> {
    pub(crate) fn new(bench: &'a Bench, id: &str) -> Job<'a> {
        assert!(
            !id.is_empty() && !id.contains(['/', '\n']),
            "'{id}' is no id of a job"
        );
        Job {
            bench,
            id: id.to_owned(),
        }
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its directory.
    pub fn dir(&self) -> PathBuf {
        self.bench.root().join("jobs").join(&self.id)
    }

    /// A file of it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    /// The live record; `None` where there is none.
    ///
    /// # Panics
    ///
    /// When it is there and not JSON.
    #[track_caller]
    pub fn status(&self) -> Option<Value> {
        let bytes = fs::read(self.file("status.json")).ok()?;
        let parsed = serde_json::from_slice(&bytes);
        Some(parsed.unwrap_or_else(|error| {
            panic!(
                "{}: {error}: {:?}",
                self.id,
                String::from_utf8_lossy(&bytes)
            )
        }))
    }

    /// The state that the record holds; `queued` where there is no record.
    #[track_caller]
    pub fn recorded(&self) -> String {
        self.status()
            .map_or("queued".into(), |status| word(&status["state"]))
    }

    /// Every line of the history.
    ///
    /// # Panics
    ///
    /// When a whole line of it is not JSON. A torn last one is passed over.
    #[track_caller]
    pub fn events(&self) -> Vec<Value> {
        let bytes = fs::read(self.file("events.jsonl")).unwrap_or_default();
        let whole = bytes
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |end| end + 1);
        bytes[..whole]
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| {
                serde_json::from_slice(line).unwrap_or_else(|error| {
                    panic!("{}: {error}: {:?}", self.id, String::from_utf8_lossy(line))
                })
            })
            .collect()
    }

    /// The states that the history holds, in order.
    #[track_caller]
    pub fn states(&self) -> Vec<String> {
        self.events()
            .iter()
            .filter(|event| event["event"] == "state")
            .map(|event| word(&event["state"]))
            .collect()
    }

    /// What the history says of attempts that failed and were to be tried again.
    #[track_caller]
    pub fn retries(&self) -> Vec<Value> {
        let mut events = self.events();
        events.retain(|event| event["event"] == "retry");
        events
    }

    /// Everything it has printed, as `log` shows it.
    #[track_caller]
    pub fn log(&self) -> Vec<u8> {
        self.bench.run(["log", &self.id]).expect(0).stdout
    }

    /// As [`Job::log`], as text.
    #[track_caller]
    pub fn log_text(&self) -> String {
        String::from_utf8_lossy(&self.log()).into_owned()
    }

    /// What `status --json` says of it.
    #[track_caller]
    pub fn shown(&self) -> Value {
        self.bench
            .run(["status", "--json", &self.id])
            .expect(0)
            .json()
    }

    /// The state that `status --json` says.
    #[track_caller]
    pub fn state(&self) -> String {
        word(&self.shown()["state"])
    }

    /// Wait for its end with `wait`; the exit code of that.
    #[track_caller]
    pub fn wait(&self) -> i32 {
        self.bench.run(["wait", &self.id]).code()
    }

    /// Stop it with `stop`, and see that this exits with `code`.
    #[track_caller]
    pub fn stop(&self, code: i32) {
        self.bench.run(["stop", &self.id]).expect(code);
    }

    /// Wait until the record holds `state`.
    #[track_caller]
    pub fn until_recorded(&self, state: &str) {
        until(&format!("{} is recorded as {state}", self.id), || {
            self.recorded() == state
        });
    }

    /// Wait until the record holds an end.
    #[track_caller]
    pub fn until_ended(&self) {
        until(&format!("{} has ended", self.id), || {
            is_terminal(&self.recorded())
        });
    }

    /// Wait until the states of the history are as `looks` wants them: the history is written after the record.
    #[track_caller]
    pub fn until_states(&self, looks: impl Fn(&[String]) -> bool) {
        let mut states = Vec::new();
        let reached = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            until("the history of the job", || {
                states = self.states();
                looks(&states)
            });
        }));
        assert!(reached.is_ok(), "{}: {states:?}", self.id);
    }

    /// See that the states of the history are these.
    #[track_caller]
    pub fn expect_states(&self, expected: &[&str]) {
        let ended = expected.last().is_some_and(|last| is_terminal(last));
        self.until_states(|states| {
            assert!(
                states.len() <= expected.len(),
                "{}: {states:?} for {expected:?}",
                self.id
            );
            states.len() == expected.len() || !ended
        });
        assert_eq!(self.states(), expected);
    }

    /// Wait until the log holds `text`.
    #[track_caller]
    pub fn until_printed(&self, text: &str) {
        until(&format!("{} has printed {text:?}", self.id), || {
            let log = fs::read(self.file("log")).unwrap_or_default();
            String::from_utf8_lossy(&log).contains(text)
        });
    }

    /// The process that holds the job.
    pub fn worker(&self) -> Option<Process> {
        openers(&self.file("lock"))
            .into_iter()
            .filter_map(Process::find)
            .find(|process| process.is_worker())
    }

    /// Kill the worker, as nobody should, and wait until it is gone.
    #[track_caller]
    pub fn kill_worker(&self) {
        let worker = until_some(&format!("{} has a worker", self.id), || self.worker());
        worker.kill();
        until("the worker is gone", || !worker.lives());
        self.bench.crashes();
    }

    /// The process of the command, as the record has it.
    ///
    /// # Panics
    ///
    /// When the record has none.
    #[track_caller]
    pub fn pid(&self) -> i32 {
        let pid = self.status().and_then(|status| status["pid"].as_i64());
        pid.expect("the record names a process") as i32
    }
}

fn word(value: &Value) -> String {
    value.as_str().expect("a state is a word").to_owned()
}
