//! Whether a store is legal, told from its files alone and from what callers were told. It shares no code with the
//! product.

use std::fs::{self, File};
use std::path::Path;

use outlive_tests::{LEGAL, could_lock, is_terminal};
use rustix::fs::FlockOperation;
use serde_json::Value;

/// What must be so, beside what always must.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    /// The states that the job of the scene may have come to; `None` among them where it may be gone.
    pub(crate) rest: Vec<Option<String>>,
    /// Jobs that somebody was told of.
    pub(crate) made: Vec<String>,
    /// What may be written down of the pool `web`; `None` among them where nothing may be.
    pub(crate) pool: Vec<Option<String>>,
    /// Files that must be as they were: those of an end.
    pub(crate) kept: Vec<(String, Vec<u8>)>,
    /// Whether a hand has made a control file and not filled it.
    pub(crate) may_ask: bool,
    /// What a hand has done to the spare 0, where that stands: a file in it and what that holds, `None` for a link.
    pub(crate) odd_spare: Option<(&'static str, Option<&'static str>)>,
}

/// The files of a spare, each of which must be there, and empty but for the descriptor.
const OF_A_SPARE: [&str; 6] = [
    "lock",
    "job.json",
    "tree",
    "log",
    "status.json.new",
    "events.jsonl",
];
/// The files that a job can have at rest.
const OF_A_JOB: [&str; 9] = [
    "lock",
    "job.json",
    "tree",
    "log",
    "status.json",
    "status.json.new",
    "events.jsonl",
    "control",
    "control.taken",
];
/// How much room for a descriptor there is in a spare, in bytes.
const ROOM: usize = 8 << 10;

/// Everything that is wrong with the store, whose one known job is `job`.
pub(crate) fn faults(root: &Path, job: &str, expected: &Expected) -> Vec<String> {
    let mut wrong = Vec::new();
    for aside in ["staging", "trash"] {
        for left in names(&root.join(aside)) {
            wrong.push(format!("{aside}/{left} is left"));
        }
    }
    for number in names(&root.join("spares")) {
        let odd = expected.odd_spare.filter(|_| number == "0");
        let of_it = of_spare(root, &number, odd);
        wrong.extend(of_it.iter().map(|why| format!("spares/{number}: {why}")));
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
    for made in expected.made.iter().filter(|made| !jobs.contains(made)) {
        wrong.push(format!("{made} was acknowledged and is not there"));
    }
    wrong.extend(of_pool(root, expected));
    if File::open(root.join("supervisor.lock")).is_ok_and(|lock| !becomes_free(&lock)) {
        wrong.push("nobody lives, and the store has a supervisor".into());
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

/// What is wrong with the pool `web`.
fn of_pool(root: &Path, expected: &Expected) -> Vec<String> {
    let mut wrong = Vec::new();
    let dir = root.join("pools/web");
    let recorded = fs::read_to_string(dir.join("pool.json")).ok();
    let recorded = recorded.map(|text| text.trim_end().to_owned());
    if !expected.pool.is_empty() && !expected.pool.contains(&recorded) {
        let may = &expected.pool;
        wrong.push(format!("the pool is {recorded:?}, not one of {may:?}"));
    }
    let known = ["placement.lock", "pool.json", "pool.json.new"];
    let strange = names(&dir).into_iter();
    let strange = strange.filter(|name| !known.contains(&&**name));
    wrong.extend(strange.map(|name| format!("{name} is in the pool")));
    if File::open(dir.join("placement.lock")).is_ok_and(|lock| !becomes_free(&lock)) {
        wrong.push("the placement lock is held".into());
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

/// What is wrong with a spare, of which a hand may have changed one file.
fn of_spare(root: &Path, number: &str, odd: Option<(&str, Option<&str>)>) -> Vec<String> {
    let mut wrong = Vec::new();
    if !["0", "1", "2", "3"].contains(&number) {
        wrong.push("there is no such number".into());
    }
    let dir = root.join("spares").join(number);
    let mut there = names(&dir);
    if let Some((name, text)) = odd {
        let now = fs::read(dir.join(name)).ok();
        if now.as_deref() != text.map(str::as_bytes) {
            wrong.push(format!("what a hand has put into {name} has changed"));
        }
        there.retain(|known| known != name);
    }
    for name in OF_A_SPARE {
        if odd.is_some_and(|(changed, _)| changed == name) {
            continue;
        }
        there.retain(|known| known != name);
        let whole = match fs::read(dir.join(name)) {
            Ok(bytes) if name == "job.json" => bytes.len() == ROOM && bytes.trim_ascii().is_empty(),
            Ok(bytes) => bytes.is_empty(),
            Err(_) => false,
        };
        if !whole {
            wrong.push(format!("its {name} is not as it was laid in"));
        }
    }
    wrong.extend(there.iter().map(|name| format!("{name} is in it")));
    if File::open(dir.join("lock")).is_ok_and(|lock| !becomes_free(&lock)) {
        wrong.push("its lock is held".into());
    }
    wrong
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
    let strange = names(&dir).into_iter();
    wrong.extend(
        strange
            .filter(|name| !OF_A_JOB.contains(&&**name))
            .map(|name| format!("{name} is in it")),
    );
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

/// Wait until nobody has a lock of a job, or of what may become one, any more, as nobody lives who could.
pub(crate) fn wait_for_locks(root: &Path) {
    for lock in ["supervisor.lock", "pools/web/placement.lock"] {
        if let Ok(file) = File::open(root.join(lock)) {
            becomes_free(&file);
        }
    }
    for parent in ["jobs", "staging", "spares"].map(|parent| root.join(parent)) {
        for dir in names(&parent).iter().map(|name| parent.join(name)) {
            for lock in ["lock", "tree"] {
                if let Ok(file) = File::open(dir.join(lock)) {
                    becomes_free(&file);
                }
            }
        }
    }
}

/// A lock can outlive its last close for a moment. Who reads the links in `/proc/<pid>/fd` has the description too
/// meanwhile, and the tests that run beside this one search there. And a child that is started while we have it open
/// closes it a little later than it lets its parent go on. For such a child, too, it is given back by name.
fn becomes_free(file: &File) -> bool {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    loop {
        if could_lock(file, FlockOperation::NonBlockingLockExclusive) {
            return true;
        }
        if std::time::Instant::now() > deadline {
            return false;
        }
        std::thread::yield_now();
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
