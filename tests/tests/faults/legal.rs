//! Whether a store is legal, told from its files alone and from what callers were told. It shares no code with the
//! product.

use std::fs::{self, File};
use std::path::Path;

use outlive_tests::{LEGAL, is_terminal};
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;

/// What must be so, beside what always must.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    /// The states that the job of the scene may have come to; `None` among them where it may be gone.
    pub(crate) rest: Vec<Option<String>>,
    /// A job that somebody was told of.
    pub(crate) made: Option<String>,
    /// Files that must be as they were: those of an end.
    pub(crate) kept: Vec<(String, Vec<u8>)>,
    /// Whether a hand has made a control file and not filled it.
    pub(crate) may_ask: bool,
}

/// Everything that is wrong with the store, whose one known job is `job`.
pub(crate) fn faults(root: &Path, job: &str, expected: &Expected) -> Vec<String> {
    let mut wrong = Vec::new();
    for aside in ["staging", "trash"] {
        for left in names(&root.join(aside)) {
            wrong.push(format!("{aside}/{left} is left"));
        }
    }
    let jobs = names(&root.join("jobs"));
    for id in &jobs {
        wrong.extend(
            of_job(root, id, expected)
                .into_iter()
                .map(|why| format!("{id}: {why}")),
        );
    }
    for pointer in names(&root.join("keys")) {
        if pointer.ends_with(".json") {
            let named = json(&root.join("keys").join(&pointer));
            if named.is_none_or(|named| named["job"].as_str().is_none()) {
                wrong.push(format!("keys/{pointer} cannot be read"));
            }
        }
    }
    if let Some(made) = &expected.made
        && !jobs.contains(made)
    {
        wrong.push(format!("{made} was acknowledged and is not there"));
    }
    let state = jobs.iter().any(|id| id == job).then(|| recorded(root, job));
    if !expected.rest.contains(&state) {
        wrong.push(format!(
            "{job} is {state:?}, not one of {:?}",
            expected.rest
        ));
    }
    for (file, bytes) in &expected.kept {
        // Where the whole job may be gone, it may be gone.
        let now = fs::read(root.join(file)).ok();
        if now.as_ref() != Some(bytes) && jobs.iter().any(|id| id == job) {
            wrong.push(format!("{file} of an ended job has changed"));
        }
    }
    wrong
}

fn names(dir: &Path) -> Vec<String> {
    fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

fn json(file: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

fn recorded(root: &Path, id: &str) -> String {
    let status = json(&root.join("jobs").join(id).join("status.json"));
    let state = status.and_then(|status| Some(status["state"].as_str()?.to_owned()));
    state.unwrap_or_else(|| "queued".into())
}

fn of_job(root: &Path, id: &str, expected: &Expected) -> Vec<String> {
    let mut wrong = Vec::new();
    let dir = root.join("jobs").join(id);
    match json(&dir.join("job.json")) {
        Some(descriptor) if descriptor["id"] == id => {}
        other => wrong.push(format!("its descriptor says {other:?}")),
    }
    if dir.join("status.json").exists() && json(&dir.join("status.json")).is_none() {
        wrong.push("its status cannot be read".into());
    }
    let state = recorded(root, id);
    let states = states(&dir.join("events.jsonl"));
    let mut at = "";
    for next in &states {
        let legal = LEGAL
            .iter()
            .any(|(from, to)| *from == at && to.contains(&&**next));
        if !legal {
            wrong.push(format!(
                "its history goes from '{at}' to {next}: {states:?}"
            ));
        }
        at = next;
    }
    let unbegun = at.is_empty() && state == "queued";
    if at != state && !unbegun {
        wrong.push(format!("it says {state}, and its history {states:?}"));
    }
    if state == "running" {
        wrong.push("it says running, and nobody runs it".into());
    }
    for lock in ["lock", "tree"] {
        match File::open(dir.join(lock)) {
            Ok(file) => {
                if !becomes_free(&file) {
                    wrong.push(format!("its {lock} is held"));
                }
            }
            Err(_) if lock == "tree" => {}
            Err(error) => wrong.push(format!("its {lock}: {error}")),
        }
    }
    for request in ["control", "control.taken"] {
        let Ok(bytes) = fs::read(dir.join(request)) else {
            continue;
        };
        // What is empty asks for nothing: it is still being written, or was about to be thrown away.
        let may =
            bytes.is_empty() && expected.may_ask || request == "control" && is_terminal(&state);
        if !may {
            wrong.push(format!("its {request} is unanswered"));
        }
    }
    wrong
}

/// Wait until nobody has a lock of the job in `dir` any more, as nobody lives who could.
pub(crate) fn wait_for_locks(dir: &Path) {
    for lock in ["lock", "tree"] {
        if let Ok(file) = File::open(dir.join(lock)) {
            becomes_free(&file);
        }
    }
}

/// A lock can outlive its last close for a moment. Who reads the links in `/proc/<pid>/fd` has the description too
/// meanwhile, and the tests that run beside this one search there. And a child that is started while we have it open
/// closes it a little later than it lets its parent go on.
fn becomes_free(file: &File) -> bool {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(2);
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return true,
            Err(_) if std::time::Instant::now() < deadline => std::thread::yield_now(),
            Err(_) => return false,
        }
    }
}

/// The states of a history, in order; lines that cannot be read are passed over, as the format has it.
fn states(file: &Path) -> Vec<String> {
    let bytes = fs::read(file).unwrap_or_default();
    bytes
        .split(|&byte| byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<Value>(line).ok())
        .filter_map(|line| Some(line["state"].as_str()?.to_owned()))
        .collect()
}
