//! The command that is told of an end.

use outlive_tests::{Job, bench, until};
use rustix::process::Signal;
use serde_json::Value;

/// Wait for what the history says of the hook.
fn noted(job: &Job) -> String {
    outlive_tests::until_some("the history tells of the hook", || {
        job.events()
            .iter()
            .find(|event| event["event"] == "status")
            .map(|event| event["text"].as_str().unwrap().to_owned())
    })
}

#[test]
fn it_is_given_the_json_of_the_job() {
    let bench = bench!();
    for (script, state, code) in [("exit 0", "done", 0), ("exit 7", "failed", 7)] {
        let job = bench.sh_with(
            &[
                "--name",
                "web",
                "--on-end",
                "cat > told.new; mv told.new told",
            ],
            script,
        );
        assert_eq!(job.wait(), code);
        until("it is told", || bench.file("told").exists());
        let told: Value =
            serde_json::from_slice(&std::fs::read(bench.file("told")).unwrap()).unwrap();
        assert_eq!(told["id"], job.id());
        assert_eq!(told["state"], state);
        assert_eq!(told["name"], "web");
        assert_eq!(told["exit"]["code"], code);
        std::fs::remove_file(bench.file("told")).unwrap();
    }
    bench.audit();
}

#[test]
fn it_is_told_of_every_kind_of_end() {
    let bench = bench!();
    let hook = "cat >> told; echo >> told";
    let missing = bench
        .run(["run", "--on-end", hook, "--", "/no/such/program"])
        .expect(127)
        .text();
    let cancelled = bench.start(["--on-end", hook, "--", "sleep", "600"]);
    cancelled.stop(0);
    let late = bench.start(["--on-end", hook, "--timeout", "50ms", "--", "sleep", "600"]);
    assert_eq!(late.wait(), 124);
    let mut told = Vec::new();
    until("all three are told", || {
        let text = std::fs::read_to_string(bench.file("told")).unwrap_or_default();
        told = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .collect();
        told.len() == 3
    });
    let state = |id: &str| told.iter().find(|job| job["id"] == id).unwrap()["state"].clone();
    assert_eq!(state(&missing), "failed");
    assert_eq!(state(cancelled.id()), "cancelled");
    assert_eq!(state(late.id()), "failed");
    bench.audit();
}

#[test]
fn one_that_fails_is_recorded_and_changes_nothing() {
    let bench = bench!();
    let job = bench.sh_with(&["--on-end", "echo trouble >&2; exit 5"], "exit 0");
    assert_eq!(job.wait(), 0);
    assert!(noted(&job).contains('5'), "{}", noted(&job));
    assert_eq!(job.state(), "done");
    assert_eq!(
        std::fs::read_to_string(job.file("on_end.log")).unwrap(),
        "trouble\n"
    );
    let job = bench.sh_with(&["--on-end", "kill -9 $$"], "exit 3");
    assert_eq!(job.wait(), 3);
    assert!(noted(&job).contains('9'), "{}", noted(&job));
    bench.audit();
}

#[test]
fn one_that_reads_nothing_does_no_harm() {
    let bench = bench!();
    let job = bench.sh_with(&["--on-end", "true"], "exit 0");
    assert_eq!(job.wait(), 0);
    until("the worker is gone", || job.worker().is_none());
    assert!(job.events().iter().all(|event| event["event"] == "state"));
    bench.audit();
}

#[test]
fn nobody_waits_for_it() {
    let bench = bench!();
    let job = bench.sh_with(
        &["--on-end", "until [ -e go ]; do sleep 0.02; done"],
        "exit 3",
    );
    assert_eq!(job.wait(), 3);
    assert_eq!(job.state(), "failed");
    assert_eq!(
        bench
            .run([
                "run",
                "--wait",
                "--on-end",
                "until [ -e go ]; do sleep 0.02; done",
                "--",
                "true"
            ])
            .code(),
        0
    );
    std::fs::write(bench.file("go"), "").unwrap();
    bench.audit();
}

#[test]
#[ignore = "it takes the minute that the command is given"]
fn one_that_hangs_is_ended_and_recorded() {
    let bench = bench!();
    let job = bench.sh_with(&["--on-end", "exec sleep 600"], "exit 0");
    assert_eq!(job.wait(), 0);
    let began = std::time::Instant::now();
    while !job.events().iter().any(|event| event["event"] == "status") {
        assert!(began.elapsed().as_secs() < 100, "it is never ended");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert!(noted(&job).contains("longer"), "{}", noted(&job));
    bench.audit();
}

#[test]
fn a_worker_that_is_told_to_end_takes_it_and_what_is_left_along() {
    let bench = bench!();
    bench.crashes();
    for script in ["sleep 618 & exit 3", "exit 3"] {
        let job = bench.sh_with(&["--on-end", "echo > told; exec sleep 619"], script);
        until("it is told", || bench.file("told").exists());
        job.worker().unwrap().signal(Signal::TERM);
        until("nothing runs", || bench.census().is_empty());
        assert_eq!(job.wait(), 3);
        assert_eq!(job.state(), "failed");
        std::fs::remove_file(bench.file("told")).unwrap();
    }
    bench.audit();
}

#[test]
fn a_stop_of_what_is_left_does_not_wait_for_it() {
    let bench = bench!();
    let job = bench.sh_with(
        &["--on-end", "echo > told; exec sleep 620"],
        "sleep 621 & exit 3",
    );
    until("it is told", || bench.file("told").exists());
    // It could take a minute; the one who asks is bounded by much less.
    job.stop(0);
    assert!(noted(&job).contains("stop"), "{}", noted(&job));
    assert_eq!(job.state(), "failed");
    assert_eq!(job.wait(), 3);
    bench.audit();
}

#[test]
fn the_output_of_what_is_left_goes_on_beside_it() {
    let bench = bench!();
    // More than a pipe holds: whoever prints it waits until somebody takes it.
    let job = bench.sh_with(
        &[
            "--log-max",
            "4M",
            "--on-end",
            "until [ -e printed ]; do sleep 0.02; done; echo > seen",
        ],
        "{ yes | head -c 1000000; echo > printed; } & exit 0",
    );
    until("it has seen what is left print", || {
        bench.file("seen").exists()
    });
    assert_eq!(job.wait(), 0);
    bench.audit();
}

#[test]
fn it_is_told_of_a_job_that_is_cancelled_between_two_attempts() {
    let bench = bench!();
    let job = bench.sh_with(
        &[
            "--retry",
            "1000",
            "--backoff",
            "1h",
            "--backoff-max",
            "1h",
            "--on-end",
            "cat > told.new; mv told.new told",
        ],
        "exit 3",
    );
    until("it waits", || !job.retries().is_empty());
    job.stop(0);
    until("it is told", || bench.file("told").exists());
    let told: Value = serde_json::from_slice(&std::fs::read(bench.file("told")).unwrap()).unwrap();
    assert_eq!(told["id"], job.id());
    assert_eq!(told["state"], "cancelled");
    let message = job.shown()["message"].as_str().unwrap().to_owned();
    assert!(!message.contains("before it ran"), "{message}");
    bench.audit();
}

#[test]
fn a_job_that_it_starts_is_nobodys_but_its_own() {
    let bench = bench!();
    let next = format!(
        "{} run --name second -- sleep 622 > second.new; mv second.new second",
        bench.binary().display()
    );
    let first = bench.start(["--name", "first", "--on-end", &next, "--", "true"]);
    until("the second is started", || bench.file("second").exists());
    let second = std::fs::read_to_string(bench.file("second")).unwrap();
    let second = bench.job(second.trim());
    until("the first is let go of", || first.worker().is_none());
    bench.run(["doctor"]).expect(0);
    bench.run(["stop", first.id()]).expect(6);
    bench.run(["clean", first.id()]).expect(0);
    assert!(!first.dir().exists());
    assert_eq!(second.state(), "running");
    second.stop(0);
    bench.audit();
}
