//! How many jobs a pool of two slots gets through, beside other queues and beside the least that they cost: `cargo bench -p
//! outlive-tests --bench throughput`.
//!
//! Each round runs every tool once, so that noise hits all alike. A tool that is not installed is said to be so. Nothing is asserted
//! here, and nothing is deleted before the end: ext4 without a journal makes creating files slow for minutes after many were
//! deleted, and whoever makes more files than others is hit harder. `TMPDIR` says on which disk it is, and `OUTLIVE_BENCHED` names
//! another binary of outlive, to compare it.

mod floor;
mod peers;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

/// Jobs of each run.
const JOBS: usize = 1_000;
/// Jobs of each run of a tool that would take minutes for as many as the others.
const FEWER_JOBS: usize = 100;
/// Runs of each tool, unless `OUTLIVE_TEST_ROUNDS` says otherwise.
const ROUNDS: usize = 5;

/// A tool, and how it is run.
struct Tool {
    name: &'static str,
    jobs: usize,
    run: Run,
}

/// One run of so many jobs in a directory of its own: how long it took until all was recorded, if the tool is there.
type Run = fn(&Path, usize) -> Option<Duration>;

const fn tool(name: &'static str, jobs: usize, run: Run) -> Tool {
    Tool { name, jobs, run }
}

const TOOLS: [Tool; 7] = [
    tool("outlive queue --from, supervise", JOBS, outlive),
    tool("nq, in two directories", JOBS, peers::nq),
    tool("parallel --joblog", JOBS, peers::parallel),
    tool("task-spooler, list in memory", JOBS, peers::task_spooler),
    tool("pueue, 100 jobs", FEWER_JOBS, peers::pueue),
    tool("floor: files, each synced", JOBS, floor::synced),
    tool("floor: files, nothing synced", JOBS, floor::unsynced),
];

fn main() {
    // `cargo test --benches` only wants to know that it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let scratch = tempfile::tempdir().expect("a scratch directory can be made");
    let mut samples = vec![Vec::new(); TOOLS.len()];
    println!("load before: {}", load());
    let rounds = std::env::var("OUTLIVE_TEST_ROUNDS").ok();
    let rounds = rounds
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(ROUNDS);
    for round in 0..rounds {
        for (number, tool) in TOOLS.iter().enumerate() {
            let dir = scratch.path().join(format!("{round}-{number}"));
            fs::create_dir(&dir).expect("a directory can be made in the scratch directory");
            samples[number].extend((tool.run)(&dir, tool.jobs));
        }
    }
    println!("load after: {}", load());
    println!(
        "{JOBS} × `true`, two at a time, until recorded: jobs/s (min, median, max of {rounds})"
    );
    for (tool, mut taken) in TOOLS.iter().zip(samples) {
        let name = tool.name;
        taken.sort();
        let rate = |taken: &Duration| tool.jobs as f64 / taken.as_secs_f64();
        match (taken.last(), taken.get(taken.len() / 2), taken.first()) {
            (Some(slow), Some(median), Some(fast)) => println!(
                "  {name:<34} {:>6.0} {:>6.0} {:>6.0}",
                rate(slow),
                rate(median),
                rate(fast)
            ),
            _ => println!("  {name:<34} not installed"),
        }
    }
}

/// How busy the machine is with other things.
fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// From nothing to the last record; the supervisor's wait for more to do is not counted.
fn outlive(dir: &Path, jobs: usize) -> Option<Duration> {
    let store = dir.join("store");
    let ours = || env!("CARGO_BIN_EXE_outlive-under-test").into();
    let binary = std::env::var_os("OUTLIVE_BENCHED").unwrap_or_else(ours);
    let outlive = |arguments: &[&str]| {
        let mut command = Command::new(&binary);
        command
            .args(arguments)
            .env("OUTLIVE_ROOT", &store)
            .env("OUTLIVE_TAPE", "")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    };
    assert!(
        outlive(&["list"])
            .status()
            .is_ok_and(|status| status.success())
    );
    let config = "[pool.default]\nslots = 2\n";
    fs::write(store.join("config.toml"), config).expect("the store is there");
    let lines = dir.join("lines");
    fs::write(&lines, "{\"argv\":[\"true\"]}\n".repeat(jobs)).expect("a file can be written");
    let began = SystemTime::now();
    let lines = lines.display().to_string();
    let queued = outlive(&["queue", "--no-supervisor", "--from", &lines]).status();
    assert!(queued.is_ok_and(|status| status.success()));
    let supervised = outlive(&["supervise", "--idle-exit", "50ms"]).status();
    assert!(supervised.is_ok_and(|status| status.success()));
    let records: Vec<SystemTime> = fs::read_dir(store.join("jobs"))
        .expect("the store has jobs")
        .map(|job| {
            let record = job.expect("an entry").path().join("status.json");
            let text = fs::read_to_string(&record).expect("it is recorded");
            assert!(text.contains(r#""state":"done""#), "{text}");
            record
                .metadata()
                .and_then(|of| of.modified())
                .expect("it has a time")
        })
        .collect();
    assert_eq!(records.len(), jobs);
    records.into_iter().max()?.duration_since(began).ok()
}
