//! How a command ended reaches whoever asks, exactly: every exit code, every killing signal, and what no command had
//! a say in.

use outlive_tests::{Bench, bench};
use serde_json::{Value, json};

/// The signals that do not kill by default: ignored ones, and those that stop or continue.
const HARMLESS: [i32; 9] = [17, 18, 19, 20, 21, 22, 23, 28, 32];

fn killing() -> impl Iterator<Item = i32> {
    // 33 belongs to some C libraries as 32 does.
    (1..=64).filter(|signal| !HARMLESS.contains(signal) && *signal != 33)
}

fn by_id<'a>(list: &'a [Value], id: &str) -> &'a Value {
    list.iter()
        .find(|job| job["id"] == id)
        .expect("it is listed")
}

#[test]
fn all_256_codes_are_recorded_and_given_by_wait() {
    let bench = bench!();
    let jobs: Vec<_> = (0..=255)
        .map(|code| (code, bench.sh(&format!("exit {code}"))))
        .collect();
    for (code, job) in &jobs {
        assert_eq!(job.wait(), *code);
    }
    let list = bench.list();
    assert_eq!(list.len(), 256);
    for (code, job) in &jobs {
        let shown = by_id(&list, job.id());
        assert_eq!(shown["exit"], json!({ "code": code }), "{shown}");
        let state = if *code == 0 { "done" } else { "failed" };
        assert_eq!(shown["state"], state);
        assert_eq!(job.status().unwrap()["exit"], json!({ "code": code }));
        job.expect_states(&["queued", "running", state]);
    }
    bench.audit();
}

#[test]
fn run_with_wait_gives_all_256_codes() {
    let bench = bench!();
    for code in 0..=255 {
        let script = format!("exit {code}");
        bench
            .run(["run", "--wait", "--", "sh", "-c", &script])
            .expect(code);
    }
    bench.audit();
}

#[test]
fn every_killing_signal_is_recorded_as_one_and_named() {
    let bench = bench!();
    // With a core dump the kernel sets one more bit in the status.
    let start = |signal: i32| {
        let script = format!("kill -{signal} $$; exit 99");
        let verb = bench.verb_after("ulimit -c unlimited", ["run", "--", "sh", "-c", &script]);
        bench.job(&bench.end(verb).expect(0).text())
    };
    let jobs: Vec<_> = killing().map(|signal| (signal, start(signal))).collect();
    for (signal, job) in &jobs {
        assert_eq!(job.wait(), 128 + signal);
        let shown = job.shown();
        assert_eq!(shown["exit"], json!({ "signal": signal }), "{shown}");
        assert_eq!(shown["state"], "failed");
    }
    let message = |number: i32| {
        let (_, job) = jobs.iter().find(|(signal, _)| *signal == number).unwrap();
        job.shown()["message"].as_str().unwrap().to_owned()
    };
    for (signal, name) in [
        (1, "SIGHUP"),
        (6, "SIGABRT"),
        (9, "SIGKILL"),
        (11, "SIGSEGV"),
        (13, "SIGPIPE"),
        (15, "SIGTERM"),
        (31, "SIGSYS"),
    ] {
        assert!(message(signal).contains(name), "{}", message(signal));
    }
    assert!(message(34).contains("34"), "{}", message(34));
    bench.audit();
}

#[test]
fn run_with_wait_gives_128_and_the_signal() {
    let bench = bench!();
    for signal in killing() {
        let script = format!("kill -{signal} $$; exit 99");
        let verb = bench.verb_after("ulimit -c 0", ["run", "--wait", "--", "sh", "-c", &script]);
        bench.end(verb).expect(128 + signal);
    }
    bench.audit();
}

/// One job of each kind of end, with the code that `wait` gives for it.
fn one_of_each(bench: &Bench) -> Vec<(i32, &'static str, outlive_tests::Job<'_>)> {
    let done = bench.sh("exit 0");
    let failed = bench.sh("exit 3");
    let cancelled = bench.sh("sleep 600");
    cancelled.stop(0);
    let interrupted = bench.sh("exec sleep 600");
    interrupted.kill_worker();
    let missing = bench.run(["run", "--", "/no/such/program"]).expect(127);
    let plain = bench.file("plain");
    std::fs::write(&plain, "no program").unwrap();
    let locked = bench
        .run(["run", "--", plain.to_str().unwrap()])
        .expect(126);
    let late = bench.sh_with(&["--timeout", "50ms"], "sleep 600");
    vec![
        (0, "done", done),
        (3, "failed", failed),
        (143, "cancelled", cancelled),
        (75, "interrupted", interrupted),
        (127, "failed", bench.job(&missing.text())),
        (126, "failed", bench.job(&locked.text())),
        (124, "failed", late),
    ]
}

/// B66. A wait was successful whatever had become of the task.
#[test]
fn wait_tells_every_kind_of_end_apart() {
    let bench = bench!();
    for (code, state, job) in one_of_each(&bench) {
        assert_eq!(job.wait(), code, "{}", job.shown());
        assert_eq!(job.state(), state);
        let waited = bench.run(["wait", "--json", job.id()]).expect(code).json();
        assert_eq!(waited[0]["id"], job.id());
        assert_eq!(waited[0]["state"], state);
        let failure = &waited[0]["failure"];
        match code {
            127 => assert_eq!(failure, "missing"),
            126 => assert_eq!(failure, "not_executable"),
            124 => assert_eq!(failure, "timeout"),
            _ => assert!(failure.is_null(), "{failure}"),
        }
    }
    bench.stop_all();
    bench.audit();
}

#[test]
fn a_command_that_exits_with_a_reserved_code_can_be_told_apart_by_json() {
    let bench = bench!();
    for code in [75, 124, 126, 127, 143] {
        let job = bench.sh(&format!("exit {code}"));
        assert_eq!(job.wait(), code);
        let shown = job.shown();
        assert_eq!(shown["exit"], json!({ "code": code }));
        assert_eq!(shown["state"], "failed");
        assert!(shown["failure"].is_null(), "{shown}");
    }
    bench.audit();
}

#[test]
fn success_codes_decide_what_is_done() {
    let bench = bench!();
    let three = bench.sh_with(&["--success-codes", "0,3,10-12"], "exit 3");
    assert_eq!(three.wait(), 0);
    assert_eq!(three.shown()["state"], "done");
    assert_eq!(three.shown()["exit"], json!({"code": 3}));
    let eleven = bench.sh_with(&["--success-codes", "0,3,10-12"], "exit 11");
    assert_eq!(eleven.wait(), 0);
    let four = bench.sh_with(&["--success-codes", "0,3,10-12"], "exit 4");
    assert_eq!(four.wait(), 4);
    // A zero that is no success must not look like one.
    let zero = bench.sh_with(&["--success-codes", "3"], "exit 0");
    assert_eq!(zero.wait(), 1);
    assert_eq!(zero.shown()["state"], "failed");
    let signal = bench.sh_with(&["--success-codes", "0-255"], "kill -9 $$");
    assert_eq!(signal.wait(), 137);
    for bad in ["256", "5-3", "x", ""] {
        bench
            .run(["run", "--success-codes", bad, "--", "true"])
            .expect(2);
    }
    bench.audit();
}

#[test]
fn wait_for_several_gives_the_first_that_did_not_end_well() {
    let bench = bench!();
    let (good, seven, eight) = (bench.sh("exit 0"), bench.sh("exit 7"), bench.sh("exit 8"));
    bench
        .run(["wait", good.id(), seven.id(), eight.id()])
        .expect(7);
    bench
        .run(["wait", eight.id(), good.id(), seven.id()])
        .expect(8);
    bench.run(["wait", good.id(), good.id()]).expect(0);
    bench.audit();
}

#[test]
fn wait_for_any_returns_with_the_first_to_end() {
    let bench = bench!();
    let long = bench.sh("sleep 600");
    let short = bench.sh("exit 9");
    let waited = bench
        .run(["wait", "--any", "--json", long.id(), short.id()])
        .expect(9);
    assert_eq!(waited.json()[0]["id"], short.id());
    assert_eq!(long.recorded(), "running");
    long.stop(0);
    bench.audit();
}

#[test]
fn a_wait_that_takes_too_long_is_told_apart_and_harms_nothing() {
    let bench = bench!();
    let job = bench.sh("sleep 600");
    bench.run(["wait", "--timeout", "50ms", job.id()]).expect(5);
    bench
        .run(["wait", "--any", "--timeout", "50ms", job.id()])
        .expect(5);
    bench.run(["wait", "--timeout", "0", job.id()]).expect(5);
    assert_eq!(job.state(), "running");
    job.stop(0);
    bench.run(["wait", "--timeout", "0", job.id()]).expect(143);
    bench.audit();
}

#[test]
fn usage_is_told_apart_from_everything_else() {
    let bench = bench!();
    for bad in [
        &["run"][..],
        &["run", "--"],
        &["run", "--timeout", "soon", "--", "true"],
        &["run", "--no-such-option", "--", "true"],
        &["run", "--env", "=x", "--", "true"],
        &["run", "--log-max", "10X", "--", "true"],
        &["run", "--if-running", "join", "--", "true"],
        &["no-such-verb"],
        &["wait"],
        &["stop"],
        &[],
    ] {
        let ran = bench.run(bad);
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(!ran.stderr.is_empty());
    }
    assert!(bench.jobs().is_empty());
    bench.audit();
}

#[test]
fn a_list_tells_success_from_failure_whatever_the_code() {
    let bench = bench!();
    let three = bench.sh_with(&["--success-codes", "3"], "exit 3");
    let zero = bench.sh_with(&["--success-codes", "3"], "exit 0");
    let plain = bench.sh("exit 0");
    let left = bench.sh("sleep 600 & exit 0");
    for (job, code) in [(&three, 0), (&zero, 1), (&plain, 0), (&left, 0)] {
        assert_eq!(job.wait(), code);
    }
    let listed = bench.run(["list", "--all"]).expect(0).text();
    let line = |job: &outlive_tests::Job| {
        let line = listed.lines().find(|line| line.contains(job.id()));
        line.unwrap_or_else(|| panic!("{listed}")).to_owned()
    };
    assert!(line(&three).contains(" done, exited 3 ("), "{listed}");
    assert!(line(&zero).contains(" failed, exited 0 ("), "{listed}");
    assert!(line(&plain).contains(" exited 0 ("), "{listed}");
    assert!(!line(&plain).contains("done"), "{listed}");
    let words = line(&left);
    assert!(
        words.contains(" exited 0 (") && words.contains("s, processes left)"),
        "{listed}"
    );
    left.stop(0);
    bench.audit();
}
