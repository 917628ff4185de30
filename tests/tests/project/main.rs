//! Projects through the binary: what a project file starts and in which order, what is said where that cannot be, and what a stop
//! takes with it.

mod again;
mod hooks;
mod limits;
mod order;
mod readiness;
mod up;

use std::fs;
use std::path::PathBuf;

use outlive_tests::{Bench, Job, Ran};
use serde_json::Value;

/// A project of a bench.
struct Project<'b> {
    bench: &'b Bench,
    root: PathBuf,
}

impl<'b> Project<'b> {
    fn new(bench: &'b Bench, file: &str) -> Project<'b> {
        let root = bench.dir().join("project");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("outlive.toml"), file).unwrap();
        Project { bench, root }
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let mut verb = self.bench.verb(arguments);
        verb.current_dir(&self.root);
        self.bench.end(verb)
    }

    /// What a start came to: each task with its outcome, and why.
    fn start(&self, tasks: &[&str], code: i32) -> Vec<(String, String, String)> {
        let started = self
            .run(&[&["start", "--json"], tasks].concat())
            .expect(code)
            .json();
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let outcomes = started.as_array().unwrap().iter();
        outcomes
            .map(|one| (word(&one["task"]), word(&one["outcome"]), word(&one["why"])))
            .collect()
    }

    /// The tasks whose jobs are under way.
    fn running(&self) -> Vec<String> {
        let jobs = self.bench.list();
        let mut running: Vec<String> = jobs
            .iter()
            .filter(|job| job["state"] == "running")
            .map(|job| job["task"].as_str().unwrap().to_owned())
            .collect();
        running.sort();
        running
    }

    /// The newest job of a task.
    fn job(&self, task: &str) -> Job<'b> {
        let jobs = self.bench.list();
        let job = jobs
            .iter()
            .rev()
            .find(|job| job["task"] == task)
            .expect("it has a job");
        self.bench.job(job["id"].as_str().unwrap())
    }
}
