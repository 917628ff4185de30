//! Faults that users of comparable tools reported of clients, upgrades and long queues, tried on this one.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use outlive_tests::{Bench, Job, bench, copy_program, rounds, state_of, until};
use serde_json::{Value, json};

/// B19. A job died with whoever had submitted it, if that one ended at once: the hand-over was not done when the submit returned.
#[test]
fn a_job_whose_id_was_printed_outlives_the_submitter_and_its_whole_group() {
    let bench = bench!();
    // Some are killed before the worker has written what it is about to.
    bench.crashes();
    let _supervisor = bench.supervise_ready();
    for round in 0..rounds(30) {
        let verb = ["run", "queue"][round % 2];
        // Right after it has returned, and at some moment of it.
        let script = match round % 3 {
            0 => r#""$0" $1 -- sleep 0.1 > "$2"; kill -9 0"#,
            1 => r#"(sleep 0.00$3; kill -9 0) & "$0" $1 -- sleep 0.1 > "$2"; wait"#,
            _ => r#"{ "$0" $1 -- sleep 0.1; kill -9 0; } > "$2""#,
        };
        let told = bench.file(&format!("told-{round}"));
        let mut submitter = bench.program("sh");
        submitter
            .args(["-c", script])
            .arg(bench.binary())
            .arg(verb)
            .arg(&told)
            .arg((round % 9).to_string())
            .process_group(0);
        assert_eq!(bench.end(submitter).code(), 128 + 9);
        let printed = fs::read_to_string(&told).unwrap_or_default();
        match printed.strip_suffix('\n') {
            Some(id) => assert_eq!(bench.job(id).wait(), 0, "{script}"),
            None => assert!(round % 3 == 1 && printed.is_empty(), "{printed}"),
        }
    }
    // Those that nobody was told of are what they are, and nobody is left in the middle.
    until("nobody works any more", || bench.workers().is_empty());
    for job in bench.jobs() {
        let state = job.state();
        let ended = ["done", "cancelled", "interrupted"].contains(&state.as_str());
        assert!(ended, "{}", job.shown());
        if state == "interrupted" {
            job.stop(0);
        }
    }
    bench.audit();
}

/// How often a process has read something so far.
fn reads(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).expect("it runs");
    let reads = text.lines().find_map(|line| line.strip_prefix("syscr: "));
    reads
        .and_then(|reads| reads.parse().ok())
        .expect("it is counted")
}

/// What a queue of so many jobs behind one slot costs its supervisor.
fn cost(jobs: usize) -> u64 {
    let bench = bench!();
    bench.configure("[pool.default]\nslots = 1\n");
    let lines: Vec<Value> = (0..jobs).map(|_| json!({"argv": ["true"]})).collect();
    let queued = bench.queued_from(&["--no-supervisor"], &lines);
    let supervisor = bench.supervise_ready();
    let pid = supervisor.process().expect("it runs").pid;
    for job in &queued {
        assert_eq!(job.wait(), 0);
    }
    let cost = reads(pid);
    supervisor.end();
    bench.audit();
    cost
}

/// B32. Each job that ended woke all that waited, which looked at all the others: dozens of queued jobs did nothing but look.
#[test]
fn a_queue_that_is_four_times_as_long_costs_four_times_as_much() {
    let (short, long) = (cost(50), cost(200));
    // Sixteen, were it every one for every one.
    assert!(
        long < 6 * short,
        "{short} reads for 50 jobs, {long} for 200"
    );
}

/// What a program that knew less has left: no directory but those of jobs, and in the records what has no default.
fn old_job(bench: &Bench, id: &str, status: Option<&Value>) {
    let dir = bench.root().join("jobs").join(id);
    let private = || {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder
    };
    for part in ["keys", "staging", "trash"] {
        private().create(bench.root().join(part)).unwrap();
    }
    private().create(&dir).unwrap();
    let command =
        json!({"argv": ["true"], "cwd": bench.work().to_str(), "env": {"PATH": "/bin:/usr/bin"}});
    let descriptor = json!({
        "id": id, "kind": {"command": command}, "display_name": "true", "pool": "default", "created_at_ms": 1_700_000_000_000_u64,
    });
    write(&dir.join("job.json"), &format!("{descriptor}\n"));
    for empty in ["lock", "log"] {
        write(&dir.join(empty), "");
    }
    if let Some(status) = status {
        write(&dir.join("status.json"), &format!("{status}\n"));
        let states: &[&str] = match status["state"].as_str() {
            Some("paused") => &["queued", "paused"],
            Some(end) => &["queued", "running", end],
            None => &[],
        };
        let line = |state: &&str| {
            format!(
                "{}\n",
                json!({"at_ms": 1, "event": "state", "state": state})
            )
        };
        let lines: String = states.iter().map(line).collect();
        write(&dir.join("events.jsonl"), &lines);
    }
    write(&bench.root().join("format"), "outlive 1\n");
}

fn write(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// B43. After an upgrade the queue was empty, and its groups had to be made again. What a newer version has written is refused:
/// `a_store_of_another_format_is_refused_and_left`.
#[test]
fn what_a_program_that_knew_less_has_written_goes_on() {
    let bench = bench!();
    let ended = |state: &str, steps: u32, exit: i32| json!({"state": state, "steps": steps, "attempt": 1, "exit": {"code": exit}, "started_at_ms": 1, "ended_at_ms": 2, "updated_at_ms": 2});
    let paused = json!({"state": "paused", "steps": 2, "updated_at_ms": 1});
    old_job(&bench, "1700000000000-queued", None);
    old_job(&bench, "1700000000001-paused", Some(&paused));
    old_job(&bench, "1700000000002-done", Some(&ended("done", 3, 0)));
    old_job(&bench, "1700000000003-failed", Some(&ended("failed", 3, 7)));
    let states: Vec<Value> = bench
        .list()
        .iter()
        .map(|job| job["state"].clone())
        .collect();
    assert_eq!(states, ["queued", "paused", "done", "failed"]);

    let supervisor = bench.supervise_ready();
    let [queued, paused, done, failed] = [
        "1700000000000-queued",
        "1700000000001-paused",
        "1700000000002-done",
        "1700000000003-failed",
    ]
    .map(|id| bench.job(id));
    assert_eq!(queued.wait(), 0);
    assert_eq!(paused.state(), "paused");
    bench.run(["resume", paused.id()]).expect(0);
    assert_eq!(paused.wait(), 0);
    assert_eq!((done.wait(), failed.wait()), (0, 7));
    let again = bench.run(["restart", failed.id()]).expect(0).text();
    assert_eq!(bench.job(&again).wait(), 0);
    supervisor.end();
    bench.audit();
}

/// The binary under test as it was before an upgrade: at a path where it is no more, once it runs.
fn old_binary(bench: &Bench) -> PathBuf {
    let old = bench.dir().join("outlive-before");
    copy_program(bench.binary(), &old);
    old
}

/// B44. After an upgrade, those that ran before went on as what they were, and whoever asked of them was not answered.
#[test]
fn what_ran_before_an_upgrade_obeys_what_comes_after_it() {
    let bench = bench!();
    let old = old_binary(&bench);
    let start = |verb: &str| {
        let mut command = bench.program(&old);
        command.args([verb, "--", "sleep", "600"]);
        bench.end(command).expect(0).text()
    };
    let mut supervise = bench.program(&old);
    supervise.args(["supervise", "--log-level", "debug"]);
    let mut supervisor = bench.supervise_by(supervise);
    supervisor.until_told("ready");
    let [ran, queued]: [Job; 2] = [start("run"), start("queue")].map(|id| bench.job(&id));
    queued.until_recorded("running");
    fs::remove_file(&old).expect("it may be replaced while it runs");

    for job in [&ran, &queued] {
        assert_eq!(job.state(), "running");
        bench.run(["pause", job.id()]).expect(0);
        until("it stands", || state_of(job.pid()) == Some('T'));
        bench.run(["resume", job.id()]).expect(0);
        assert_eq!(job.state(), "running");
    }
    // The supervisor of before starts what is queued now, though its file is gone.
    let new = bench.queued(&[], "exit 3");
    assert_eq!(new.wait(), 3);
    bench.run(["supervisor", "status"]).expect(0);
    ran.stop(0);
    // The one that comes after it takes over what it had started.
    supervisor.end();
    let supervisor = bench.supervise_ready();
    assert_eq!(queued.state(), "running");
    queued.stop(0);
    supervisor.end();
    bench.audit();
}
