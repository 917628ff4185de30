//! Faults that users of comparable tools reported of their queues and managers, tried on this one.

use std::fs;

use outlive_tests::{bench, until};
use serde_json::json;

/// How many descriptors a process has.
fn descriptors(pid: i32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// A manager leaked descriptors: after a thousand jobs it had none left.
#[test]
fn a_supervisor_has_as_many_descriptors_after_hundreds_of_jobs_as_before() {
    let bench = bench!();
    let supervisor = bench.supervise_ready();
    let pid = supervisor.process().expect("it runs").pid;
    let round = |jobs: usize| {
        let lines: Vec<_> = (0..jobs).map(|_| json!({"argv": ["true"]})).collect();
        for job in bench.queued_from(&[], &lines) {
            assert_eq!(job.wait(), 0);
        }
        let cancelled = bench.queued(&["--delay", "1h"], "true");
        cancelled.stop(0);
        // One that has ended this moment may be held a moment longer, and is kept then.
        until("nobody is left in the store", || {
            bench.run(["clean", "--all"]);
            bench.list().is_empty()
        });
    };
    round(20);
    let mut before = 0;
    until("what it has open does not change", || {
        let now = descriptors(pid);
        std::mem::replace(&mut before, now) == now
    });
    for _ in 0..4 {
        round(60);
    }
    until("it has closed what it opened", || {
        descriptors(pid) <= before
    });
    bench.audit();
}

/// A stop of a job that waited for a slot, for its time or for another one was not honoured while it waited.
#[test]
fn what_waits_is_cancelled_at_once_and_never_run() {
    let bench = bench!();
    bench.configure("[pool.default]\nslots = 1\n");
    let _supervisor = bench.supervise_ready();
    let long = bench.queued(&[], "sleep 600");
    long.until_recorded("running");
    let waiting = [
        bench.queued(&[], "touch ran"),
        bench.queued(&["--delay", "1h"], "touch ran"),
        bench.queued(&["--after", long.id()], "touch ran"),
    ];
    for job in &waiting {
        job.stop(0);
        job.expect_states(&["queued", "cancelled"]);
    }
    // By hand, as anybody may.
    let by_hand = bench.queued(&[], "touch ran");
    fs::write(by_hand.file("control"), "cancel\n").expect("a store can be written to");
    by_hand.until_recorded("cancelled");
    long.stop(0);
    assert!(!bench.file("ran").exists());
    bench.audit();
}

/// A job that waited for another, was stopped and queued anew, was run twice when that one ended.
#[test]
fn a_dependant_that_is_stopped_and_queued_again_runs_once() {
    let bench = bench!();
    let _supervisor = bench.supervise_ready();
    let first = bench.queued(&[], "until [ -e go ]; do sleep 0.02; done");
    let options = ["--after", first.id(), "--name", "second"];
    for _ in 0..2 {
        bench.queued(&options, "echo x >> ran").stop(0);
    }
    let last = bench.queued(&options, "echo x >> ran");
    fs::write(bench.file("go"), "").expect("a scratch directory can be written to");
    assert_eq!(last.wait(), 0);
    assert_eq!(first.wait(), 0);
    let ran = fs::read_to_string(bench.file("ran")).expect("it ran");
    assert_eq!(ran, "x\n");
    bench.audit();
}

/// Degenerate arguments brought managers down, and their queues with them.
#[test]
fn degenerate_arguments_are_refused_and_the_supervisor_lives() {
    let bench = bench!();
    let mut supervisor = bench.supervise_ready();
    let queued = bench.queued(&["--delay", "1h"], "true");
    let too_long = "x".repeat(300);
    for (code, arguments) in [
        (3, vec!["queue", "--after", "nobody", "--", "true"]),
        (3, vec!["queue", "--after", "", "--", "true"]),
        (3, vec!["queue", "--after", "..", "--", "true"]),
        (3, vec!["queue", "--after", "a/b:end", "--", "true"]),
        (3, vec!["queue", "--after", &too_long, "--", "true"]),
        (3, vec!["queue", "--pool", "nowhere", "--", "true"]),
        (2, vec!["queue", "--pool", "../x", "--", "true"]),
        (2, vec!["queue", "--slots", "0", "--", "true"]),
        (6, vec!["queue", "--slots", "4000000000", "--", "true"]),
        (2, vec!["queue", "--at", "yesterday", "--", "true"]),
        (2, vec!["queue", "--delay", "-1s", "--", "true"]),
        (2, vec!["pool", "add", "a b", "--slots", "1"]),
        (2, vec!["pool", "set", "default", "--slots", "0"]),
    ] {
        let ran = bench.run(&arguments);
        assert_eq!(ran.code(), code, "{arguments:?}: {}", ran.errors());
        assert!(ran.errors().starts_with("outlive: "), "{arguments:?}");
    }
    // One that waits is paused twice, resumed, and stopped; then there is nothing more to ask.
    for (code, verb) in [
        (0, "pause"),
        (0, "pause"),
        (0, "resume"),
        (0, "stop"),
        (6, "stop"),
    ] {
        let ran = bench.run([verb, queued.id()]);
        assert_eq!(ran.code(), code, "{verb}: {}", ran.errors());
    }
    assert!(supervisor.runs());
    assert_eq!(bench.queued(&[], "true").wait(), 0);
    bench.audit();
}

/// Too many jobs to come after crashed a server and lost its queue.
#[test]
fn a_job_may_come_after_very_many() {
    let bench = bench!();
    let _supervisor = bench.supervise_ready();
    let lines: Vec<_> = (0..200).map(|_| json!({"argv": ["true"]})).collect();
    let jobs = bench.queued_from(&[], &lines);
    let mut arguments = vec!["queue"];
    for _ in 0..20 {
        arguments.extend(jobs.iter().flat_map(|job| ["--after", job.id()]));
    }
    arguments.extend(["--", "true"]);
    let last = bench.job(&bench.run(&arguments).expect(0).text());
    assert_eq!(last.wait(), 0);
    bench.audit();
}
