//! Attempts that fail and are tried again, and attempts that take too long.

use std::time::{Duration, Instant};

use outlive_tests::{Job, bench, until};

/// The ceiling of a wait, as documented: it doubles from `first` and never exceeds `most`.
fn ceiling(first: u64, most: u64, failures: u32) -> u64 {
    first
        .saturating_mul(2_u64.saturating_pow(failures - 1))
        .min(most)
}

#[track_caller]
fn expect_retries(job: &Job, first: u64, most: u64, count: usize) {
    let retries = job.retries();
    assert_eq!(retries.len(), count, "{retries:?}");
    for (failures, retry) in (1..).zip(&retries) {
        assert_eq!(retry["attempt"], failures + 1);
        assert!(
            retry["delay_ms"].as_u64().unwrap() <= ceiling(first, most, failures),
            "{retry}"
        );
        assert!(!retry["reason"].as_str().unwrap().is_empty());
    }
}

#[test]
fn a_failing_command_is_tried_as_often_as_was_said_and_no_more() {
    let bench = bench!();
    let job = bench.sh_with(
        &["--retry", "5", "--backoff", "10ms", "--backoff-max", "40ms"],
        "echo x >> tries; exit 3",
    );
    assert_eq!(job.wait(), 3);
    assert_eq!(
        std::fs::read_to_string(bench.file("tries"))
            .unwrap()
            .lines()
            .count(),
        6
    );
    expect_retries(&job, 10, 40, 5);
    assert!(job.retries()[0]["reason"].as_str().unwrap().contains('3'));
    assert_eq!(job.shown()["attempt"], 6);
    job.expect_states(&["queued", "running", "failed"]);
    bench.audit();
}

#[test]
fn one_that_succeeds_at_last_is_done() {
    let bench = bench!();
    let script = "echo x >> tries; [ $(wc -l < tries) -ge 3 ] || exit 9; echo good";
    let job = bench.sh_with(&["--retry", "10", "--backoff", "5ms"], script);
    assert_eq!(job.wait(), 0);
    expect_retries(&job, 5, 60_000, 2);
    let shown = job.shown();
    assert_eq!(shown["attempt"], 3);
    assert_eq!(shown["state"], "done");
    assert!(shown["next_attempt_at_ms"].is_null());
    job.expect_states(&["queued", "running", "done"]);
    bench.audit();
}

#[test]
fn a_storm_of_failures_ends_and_its_history_stays_small() {
    let bench = bench!();
    let job = bench.start([
        "--retry",
        "200",
        "--backoff",
        "1ms",
        "--backoff-max",
        "2ms",
        "--",
        "false",
    ]);
    assert_eq!(job.wait(), 1);
    expect_retries(&job, 1, 2, 200);
    assert!(job.events().len() <= 200 + 5);
    bench.audit();
}

#[test]
fn nothing_of_a_failed_attempt_runs_beside_the_next() {
    let bench = bench!();
    let script = "[ -z \"$(cat alive 2>/dev/null)\" ] || ! kill -0 $(cat alive) 2>/dev/null || echo beside; \
                  setsid sleep 600 & echo $! > alive; exit 1";
    let job = bench.sh_with(
        &["--retry", "5", "--backoff", "2ms", "--grace", "2s"],
        script,
    );
    until("it has been tried to the end", || {
        job.recorded() == "failed"
    });
    assert!(!job.log_text().contains("beside"), "{}", job.log_text());
    job.stop(0);
    assert_eq!(job.wait(), 1);
    bench.audit();
}

#[test]
fn a_job_that_waits_for_its_next_attempt_is_stopped_at_once() {
    let bench = bench!();
    // The jitter may make a single wait short; the sum of many is not.
    let job = bench.sh_with(
        &["--retry", "1000", "--backoff", "1h", "--backoff-max", "1h"],
        "exit 1",
    );
    until("it waits", || !job.retries().is_empty());
    let shown = job.shown();
    assert_eq!(shown["state"], "running");
    assert!(shown["pid"].is_null(), "{shown}");
    assert!(shown["next_attempt_at_ms"].as_u64().is_some());
    job.stop(0);
    assert_eq!(job.recorded(), "cancelled");
    job.expect_states(&["queued", "running", "cancelled"]);
    bench.audit();
}

#[test]
fn a_job_that_waits_for_its_next_attempt_can_be_paused_and_resumed() {
    let bench = bench!();
    for how in ["freeze", "stop"] {
        let script = "echo x >> tries; [ -e go ] || exit 1; echo good";
        let job = bench.sh_with(
            &[
                "--pause",
                how,
                "--retry",
                "1000",
                "--backoff",
                "1h",
                "--backoff-max",
                "1h",
            ],
            script,
        );
        until("it waits", || !job.retries().is_empty());
        bench.run(["pause", job.id()]).expect(0);
        assert_eq!(job.state(), "paused");
        std::fs::write(bench.file("go"), "").unwrap();
        bench.run(["resume", job.id()]).expect(0);
        assert_eq!(job.wait(), 0, "{}", job.shown());
        std::fs::remove_file(bench.file("go")).unwrap();
    }
    bench.audit();
}

#[test]
fn a_worker_lost_while_it_waits_leaves_a_job_that_can_be_resumed() {
    let bench = bench!();
    let job = bench.sh_with(
        &["--retry", "3", "--backoff", "1h", "--backoff-max", "1h"],
        "[ -e go ] || exit 1",
    );
    until("it waits", || !job.retries().is_empty());
    job.kill_worker();
    assert_eq!(job.state(), "interrupted");
    std::fs::write(bench.file("go"), "").unwrap();
    bench.run(["resume", job.id()]).expect(0);
    assert_eq!(job.wait(), 0);
    bench.audit();
}

#[test]
fn a_command_that_cannot_be_started_is_not_tried_in_vain() {
    let bench = bench!();
    let ran = bench
        .run([
            "run",
            "--retry",
            "5",
            "--backoff",
            "1ms",
            "--",
            "/no/such/program",
        ])
        .expect(127);
    let job = bench.job(&ran.text());
    assert!(job.retries().is_empty());
    bench.audit();
}

#[test]
fn an_attempt_that_takes_too_long_is_ended() {
    let bench = bench!();
    let job = bench.sh_with(&["--timeout", "2s"], "setsid sleep 600 & exec sleep 600");
    assert_eq!(job.wait(), 124);
    let shown = job.shown();
    assert_eq!(shown["state"], "failed");
    assert_eq!(shown["failure"], "timeout");
    assert!(
        shown["message"].as_str().unwrap().contains("timed out"),
        "{shown}"
    );
    assert!(
        bench
            .census()
            .iter()
            // The worker, which is called after its job, may still be on its way out.
            .all(|process| process.is_worker() || !process.title.contains("sleep"))
    );
    bench.audit();
}

#[test]
fn a_command_that_ignores_its_timeout_is_killed_after_the_grace() {
    let bench = bench!();
    let began = Instant::now();
    let job = bench.sh_with(
        &["--timeout", "2s", "--grace", "300ms"],
        "trap '' TERM; while :; do sleep 0.02; done",
    );
    assert_eq!(job.wait(), 124);
    assert!(began.elapsed() >= Duration::from_millis(2300));
    assert_eq!(job.shown()["stopping"]["forced"], true);
    assert_eq!(job.shown()["exit"]["signal"], 9);
    bench.audit();
}

#[test]
fn a_command_that_ends_well_when_its_time_is_up_has_still_failed() {
    let bench = bench!();
    let job = bench.sh_with(
        &["--timeout", "2s"],
        "trap 'exit 0' TERM; while :; do sleep 0.02; done",
    );
    assert_eq!(job.wait(), 124);
    assert_eq!(job.shown()["exit"]["code"], 0);
    bench.audit();
}

#[test]
fn every_attempt_has_the_whole_time() {
    let bench = bench!();
    let job = bench.sh_with(
        &["--timeout", "2s", "--retry", "2", "--backoff", "1ms"],
        "echo x >> tries; exec sleep 600",
    );
    assert_eq!(job.wait(), 124);
    assert_eq!(
        std::fs::read_to_string(bench.file("tries")).unwrap(),
        "x\nx\nx\n"
    );
    assert_eq!(job.retries().len(), 2);
    bench.audit();
}

#[test]
fn time_spent_frozen_does_not_count() {
    let bench = bench!();
    let job = bench.sh_with(
        // Long enough for two verbs on a machine that is busy.
        &["--timeout", "10s"],
        "echo ready; while [ ! -e go ]; do sleep 0.02; done",
    );
    job.until_printed("ready");
    bench.run(["pause", job.id()]).expect(0);
    let frozen = Instant::now();
    until("more than the timeout has passed", || {
        frozen.elapsed() > Duration::from_millis(10_500)
    });
    assert_eq!(job.state(), "paused");
    bench.run(["resume", job.id()]).expect(0);
    std::fs::write(bench.file("go"), "").unwrap();
    assert_eq!(job.wait(), 0);
    bench.audit();
}

#[test]
fn the_wait_and_the_job_have_timeouts_that_are_told_apart() {
    let bench = bench!();
    let job = bench.sh_with(&["--timeout", "1h"], "exec sleep 600");
    bench.run(["wait", "--timeout", "20ms", job.id()]).expect(5);
    job.stop(0);
    bench.audit();
}
