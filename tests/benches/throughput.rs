//! How many jobs a pool of two slots gets through, beside other queues and beside the least that they cost: `cargo bench -p
//! outlive-tests --bench throughput`.
//!
//! Each round runs every tool once, so that noise hits all alike. A tool that is not installed is left out. Nothing is asserted
//! here, and nothing is deleted before the end: ext4 without a journal makes creating files slow for minutes after many were
//! deleted, and whoever makes more files than others is hit harder.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// Jobs of each run.
const JOBS: usize = 1_000;
/// Runs of each tool.
const ROUNDS: usize = 5;
/// What a record is as long as, in bytes.
const RECORD: [u8; 200] = [b'x'; 200];

fn main() {
    // `cargo test --benches` only wants to know that it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let scratch = tempfile::tempdir().expect("a scratch directory can be made");
    let tools: [(&str, Run); 5] = [
        ("outlive queue --from, supervise", outlive),
        ("nq, in two directories", nq),
        ("parallel --joblog", parallel),
        ("floor: files, each synced", floor_synced),
        ("floor: files, nothing synced", floor),
    ];
    let mut samples = vec![Vec::new(); tools.len()];
    for round in 0..ROUNDS {
        for (number, (_, run)) in tools.iter().enumerate() {
            let dir = scratch.path().join(format!("{round}-{number}"));
            fs::create_dir(&dir).expect("a directory can be made in the scratch directory");
            samples[number].extend(run(&dir));
        }
    }
    println!(
        "{JOBS} × `true`, two at a time, until recorded: jobs/s (min, median, max of {ROUNDS})"
    );
    for ((name, _), mut taken) in tools.iter().zip(samples) {
        taken.sort();
        let rate = |taken: &Duration| JOBS as f64 / taken.as_secs_f64();
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

/// One run of a tool in a directory of its own: how long it took until all was recorded, if the tool is there.
type Run = fn(&Path) -> Option<Duration>;

/// From nothing to the last record; the supervisor's wait for more to do is not counted.
fn outlive(dir: &Path) -> Option<Duration> {
    let store = dir.join("store");
    let outlive = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_outlive-under-test"));
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
    fs::write(&lines, "{\"argv\":[\"true\"]}\n".repeat(JOBS)).expect("a file can be written");
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
    assert_eq!(records.len(), JOBS);
    records.into_iter().max()?.duration_since(began).ok()
}

/// Two queues, as one of `nq` runs one job at a time.
fn nq(dir: &Path) -> Option<Duration> {
    is_installed("nq").then(|| {
        let lanes = ["a", "b"].map(|lane| dir.join(lane));
        let began = Instant::now();
        for job in 0..JOBS {
            let queued = quiet("nq")
                .arg("true")
                .env("NQDIR", &lanes[job % 2])
                .status();
            assert!(queued.is_ok_and(|status| status.success()));
        }
        for lane in &lanes {
            let waited = quiet("nq").arg("-w").env("NQDIR", lane).status();
            assert!(waited.is_ok());
        }
        began.elapsed()
    })
}

fn parallel(dir: &Path) -> Option<Duration> {
    is_installed("parallel").then(|| {
        let numbers = dir.join("numbers");
        fs::write(&numbers, "1\n".repeat(JOBS)).expect("a file can be written");
        let began = Instant::now();
        let ran = quiet("parallel")
            .args(["-j2", "--will-cite", "-N0", "--joblog"])
            .arg(dir.join("log"))
            .arg("true")
            .arg("::::")
            .arg(&numbers)
            .env("HOME", dir)
            .status();
        assert!(ran.is_ok_and(|status| status.success()));
        began.elapsed()
    })
}

fn floor_synced(dir: &Path) -> Option<Duration> {
    Some(floor_with(dir, true))
}

fn floor(dir: &Path) -> Option<Duration> {
    Some(floor_with(dir, false))
}

/// What a job costs where nobody looks after it: a directory, a description, a log, a lock, the command, and how it ended.
fn floor_with(dir: &Path, synced: bool) -> Duration {
    let began = Instant::now();
    std::thread::scope(|scope| {
        for lane in 0..2 {
            scope.spawn(move || {
                for job in (lane..JOBS).step_by(2) {
                    let home = dir.join(job.to_string());
                    bare_job(dir, &home, synced).expect("the file system lets us");
                }
            });
        }
    });
    began.elapsed()
}

fn bare_job(parent: &Path, home: &Path, synced: bool) -> std::io::Result<()> {
    let sync_dir = |dir: &Path| {
        if synced {
            File::open(dir)?.sync_all()
        } else {
            Ok(())
        }
    };
    fs::create_dir(home)?;
    record(&home.join("spec"), synced)?;
    let log = File::create(home.join("log"))?;
    let lock = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(home.join("lock"))?;
    lock.lock()?;
    sync_dir(home)?;
    sync_dir(parent)?;
    let ran = Command::new("true")
        .stdin(Stdio::null())
        .stderr(log.try_clone()?)
        .stdout(log)
        .status()?;
    assert!(ran.success());
    record(&home.join("result.new"), synced)?;
    fs::rename(home.join("result.new"), home.join("result"))?;
    sync_dir(home)
}

fn record(path: &Path, synced: bool) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(&RECORD)?;
    if synced { file.sync_all() } else { Ok(()) }
}

fn quiet(program: &str) -> Command {
    let mut command = Command::new(program);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn is_installed(program: &str) -> bool {
    let path: PathBuf = std::env::var_os("PATH").unwrap_or_default().into();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}
