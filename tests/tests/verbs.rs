//! The verbs about histories, signals, reruns, cleaning and check-ups, and what the command line says of itself.

use std::fs;

use outlive_tests::{Bench, Job, bench, is_terminal, rounds, until};
use serde_json::Value;

/// The lines of `events`.
#[track_caller]
fn events(bench: &Bench, arguments: &[&str]) -> Vec<Value> {
    lines(
        &bench
            .run([&["events"], arguments].concat())
            .expect(0)
            .text(),
    )
}

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).expect("each line is an object"))
        .collect()
}

fn states(events: &[Value], id: &str) -> Vec<String> {
    events
        .iter()
        .filter(|event| event["job"] == id && event["event"] == "state")
        .map(|event| event["state"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn events_are_the_history_with_the_job_added() {
    let bench = bench!();
    let failed = bench.sh_with(&["--retry", "1", "--backoff", "1ms"], "exit 3");
    assert_eq!(failed.wait(), 3);
    let done = bench.sh("exit 0");
    assert_eq!(done.wait(), 0);
    let of_one = events(&bench, &[failed.id()]);
    assert_eq!(
        states(&of_one, failed.id()),
        ["queued", "running", "failed"]
    );
    assert_eq!(
        of_one
            .iter()
            .filter(|event| event["event"] == "retry")
            .count(),
        1
    );
    let mut stripped = of_one.clone();
    for event in &mut stripped {
        event.as_object_mut().unwrap().remove("job");
    }
    until("the history is written", || {
        failed.events().len() == stripped.len()
    });
    assert_eq!(stripped, failed.events());
    let of_all = events(&bench, &[]);
    assert_eq!(
        states(&of_all, failed.id()),
        ["queued", "running", "failed"]
    );
    assert_eq!(states(&of_all, done.id()), ["queued", "running", "done"]);
    let times: Vec<u64> = of_all
        .iter()
        .map(|event| event["at_ms"].as_u64().unwrap())
        .collect();
    assert!(times.is_sorted(), "{times:?}");
    bench.run(["events", "no-such-job"]).expect(3);
    bench.audit();
}

#[test]
fn following_events_ends_with_the_named_jobs() {
    let bench = bench!();
    let one = bench.sh("until [ -e go ]; do sleep 0.02; done; exit 3");
    let two = bench.sh("exec sleep 600");
    let follower = bench.background(bench.verb(["events", "-f", one.id(), two.id()]));
    fs::write(bench.file("go"), "").unwrap();
    bench.run(["pause", two.id()]).expect(0);
    bench.run(["resume", two.id()]).expect(0);
    two.stop(0);
    let events = lines(&follower.end().expect(0).text());
    assert_eq!(states(&events, one.id()), ["queued", "running", "failed"]);
    assert_eq!(
        states(&events, two.id()),
        ["queued", "running", "paused", "running", "cancelled"]
    );
    bench.audit();
}

#[test]
fn following_everything_tells_of_new_jobs_too() {
    use std::io::{BufRead, BufReader};
    let bench = bench!();
    bench.run(["list"]).expect(0);
    let mut follower = bench.background(bench.verb(["events", "-f"]));
    let (sender, receiver) = std::sync::mpsc::channel();
    let stdout = follower.child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines() {
            if sender.send(line.unwrap()).is_err() {
                return;
            }
        }
    });
    let job = bench.sh("exit 4");
    let mut seen = Vec::new();
    loop {
        let line = receiver
            .recv_timeout(outlive_tests::DEADLINE)
            .expect("the end is told");
        seen.extend(lines(&line));
        if seen
            .iter()
            .any(|event| event["job"] == job.id() && event["state"] == "failed")
        {
            break;
        }
    }
    assert_eq!(states(&seen, job.id()), ["queued", "running", "failed"]);
    assert!(follower.runs());
    follower.kill();
    drop(receiver);
    reader.join().unwrap();
    job.until_ended();
    bench.audit();
}

#[test]
fn a_signal_reaches_the_command_or_the_whole_tree() {
    let bench = bench!();
    let script = "trap 'echo outer' USR1; (trap 'echo inner' USR1; echo one; while :; do sleep 0.02; done) & \
                  echo two; while :; do sleep 0.02; done";
    let job = bench.sh_with(&["--grace", "2s"], script);
    job.until_printed("one\n");
    job.until_printed("two\n");
    for word in ["USR1", "SIGUSR1", "usr1", "10"] {
        let before = job.log_text().matches("outer").count();
        bench.run(["signal", job.id(), word]).expect(0);
        until("it is heard", || {
            job.log_text().matches("outer").count() > before
        });
    }
    assert!(!job.log_text().contains("inner"));
    for bad in ["NONE", "0", "99", ""] {
        bench.run(["signal", job.id(), bad]).expect(2);
    }
    assert_eq!(job.recorded(), "running");
    let stopped = bench.run(["stop", job.id()]);
    assert!(matches!(stopped.code(), 0 | 1), "{stopped:?}");
    bench.run(["signal", job.id(), "USR1"]).expect(6);
    bench.run(["signal", "no-such-job", "USR1"]).expect(3);
    bench.audit();
}

#[test]
fn a_signal_to_the_tree_reaches_every_session_of_it() {
    let bench = bench!();
    // The outer shell first: once the inner one tells that it is there, both are ready for the signal.
    let script = "trap 'echo outer' USR1; \
                  setsid sh -c 'trap \"echo inner; exit\" USR1; echo one; while :; do sleep 0.02; done' & \
                  wait; wait; exit 5";
    fs::write(bench.file("script"), script).unwrap();
    // The sleeps in between do not outlive the signal; the shells tell of it.
    let job = bench.start(["--", "sh", "script"]);
    job.until_printed("one\n");
    bench.run(["signal", "--tree", job.id(), "USR1"]).expect(0);
    job.until_printed("inner\n");
    assert_eq!(job.wait(), 5, "{}", job.log_text());
    bench.audit();
}

#[test]
fn a_signal_that_kills_is_how_it_ended() {
    let bench = bench!();
    let job = bench.sh("exec sleep 600");
    bench.run(["signal", job.id(), "KILL"]).expect(0);
    assert_eq!(job.wait(), 137);
    assert_eq!(job.state(), "failed");
    bench.audit();
}

#[test]
fn a_signal_is_never_sent_to_a_stranger() {
    let bench = bench!();
    let job = bench.sh("exec sleep 600");
    let mut innocent = bench.bystander("sleep", &["601"]);
    let mut status = job.status().unwrap();
    status["pid"] = innocent.pid().into();
    fs::write(job.file("status.json"), status.to_string()).unwrap();
    let ran = bench.run(["signal", job.id(), "TERM"]);
    assert_eq!(ran.code(), 6, "{ran:?}");
    assert!(innocent.runs());
    job.stop(0);
    assert!(innocent.runs());
    bench.audit();
}

#[test]
fn a_restart_is_a_new_job_with_everything_of_the_old() {
    let bench = bench!();
    let mut verb = bench.verb([
        "run",
        "-e",
        "COLOUR=blue",
        "--success-codes",
        "3",
        "--grace",
        "7s",
        "--",
        "sh",
        "-c",
        "echo $COLOUR $1 $(pwd); exit 3",
        "sh",
    ]);
    use std::os::unix::ffi::OsStrExt;
    verb.arg(std::ffi::OsStr::from_bytes(b"a\xff"));
    let old = bench.job(&bench.end(verb).expect(0).text());
    assert_eq!(old.wait(), 0);
    until("it is at rest", || old.worker().is_none());
    let before = fs::read(old.file("status.json")).unwrap();
    let mut again = bench.verb(["restart", old.id()]);
    again.current_dir("/").env("COLOUR", "red");
    let new = bench.job(&bench.end(again).expect(0).text());
    assert_ne!(new.id(), old.id());
    assert_eq!(new.wait(), 0);
    assert_eq!(new.log(), old.log());
    assert_eq!(new.shown()["previous"], old.id());
    assert_eq!(new.shown()["attempt"], 1);
    assert_eq!(
        fs::read(old.file("status.json")).unwrap(),
        before,
        "what has ended never changes"
    );
    bench.run(["restart", "no-such-job"]).expect(3);
    bench.audit();
}

#[test]
fn a_restart_of_what_runs_stops_it_first() {
    let bench = bench!();
    let old = bench.start([
        "--name",
        "web",
        "--",
        "sh",
        "-c",
        "echo $$ >> pids; exec sleep 600",
    ]);
    until("it runs", || bench.file("pids").exists());
    let new = bench.job(&bench.run(["restart", "web"]).expect(0).text());
    assert_eq!(old.recorded(), "cancelled");
    assert_eq!(new.recorded(), "running");
    assert_eq!(new.shown()["name"], "web");
    new.stop(0);
    let interrupted = bench.sh("exec sleep 600");
    interrupted.kill_worker();
    let again = bench.job(&bench.run(["restart", interrupted.id()]).expect(0).text());
    assert_eq!(interrupted.recorded(), "cancelled");
    again.stop(0);
    bench.audit();
}

fn ended(bench: &Bench, count: usize) -> Vec<Job<'_>> {
    let jobs: Vec<Job> = (0..count).map(|_| bench.sh("exit 0")).collect();
    for job in &jobs {
        assert_eq!(job.wait(), 0);
    }
    until("the workers are gone", || bench.census().is_empty());
    jobs
}

#[test]
fn a_cleaning_takes_what_was_said_and_only_what_has_ended() {
    let bench = bench!();
    let jobs = ended(&bench, 6);
    let running = bench.sh("exec sleep 600");
    let interrupted = bench.sh("exec sleep 600");
    interrupted.kill_worker();
    bench.run(["clean", "--older-than", "1h"]).expect(0);
    assert_eq!(bench.list().len(), 8);
    let cleaned = bench
        .run(["clean", "--keep", "4", "--json"])
        .expect(0)
        .json();
    assert_eq!(cleaned["forgotten"].as_array().unwrap().len(), 2);
    bench.run(["clean", jobs[5].id()]).expect(0);
    assert!(!jobs[5].dir().exists());
    let refused = bench.run(["clean", running.id()]).expect(6);
    assert!(refused.errors().contains(running.id()), "{refused:?}");
    bench.run(["clean", interrupted.id()]).expect(6);
    bench.run(["clean", "no-such-job"]).expect(3);
    bench.run(["clean", "--all", "--keep", "0"]).expect(0);
    assert_eq!(bench.list().len(), 2);
    assert_eq!(running.state(), "running");
    assert_eq!(interrupted.state(), "interrupted");
    bench.stop_all();
    bench.audit();
}

#[test]
fn a_job_with_leftovers_is_not_cleaned_away() {
    let bench = bench!();
    let job = bench.sh("setsid sleep 600 & exit 0");
    assert_eq!(job.wait(), 0);
    let refused = bench.run(["clean", job.id()]).expect(6);
    assert!(!refused.stderr.is_empty());
    bench.run(["clean", "--all", "--keep", "0"]).expect(0);
    assert_eq!(job.state(), "done");
    job.stop(0);
    until("the worker is gone", || bench.census().is_empty());
    bench.run(["clean", job.id()]).expect(0);
    assert!(bench.jobs().is_empty());
    bench.audit();
}

#[test]
fn what_was_seen_to_end_can_be_forgotten_at_once() {
    let bench = bench!();
    for _ in 0..rounds(40) {
        let job = bench.sh("exec sleep 600");
        job.stop(0);
        bench.run(["clean", job.id()]).expect(0);
        let job = bench.sh("exit 3");
        assert_eq!(job.wait(), 3);
        bench.run(["clean", job.id()]).expect(0);
    }
    assert!(bench.jobs().is_empty());
    bench.audit();
}

#[test]
fn a_cleaning_while_somebody_waits_lets_both_end() {
    let bench = bench!();
    for _ in 0..10 {
        let job = bench.sh("until [ -e go ]; do sleep 0.01; done; exit 3");
        let waiter = bench.background(bench.verb(["wait", job.id()]));
        let follower = bench.background(bench.verb(["log", "-f", job.id()]));
        let listener = bench.background(bench.verb(["events", "-f", job.id()]));
        fs::write(bench.file("go"), "").unwrap();
        until("it is cleaned away", || {
            bench.run(["clean", job.id()]).code() != 6
        });
        let waited = waiter.end();
        assert!(
            matches!(waited.code(), 3),
            "its own code or that it is gone: {waited:?}"
        );
        let followed = follower.end();
        assert!(matches!(followed.code(), 0 | 3), "{followed:?}");
        let listened = listener.end();
        assert!(matches!(listened.code(), 0 | 3), "{listened:?}");
        fs::remove_file(bench.file("go")).unwrap();
    }
    bench.audit();
}

#[test]
fn a_doctor_finds_nothing_in_a_healthy_store() {
    let bench = bench!();
    let running = bench.sh("exec sleep 600");
    let paused = bench.sh("exec sleep 600");
    bench.run(["pause", paused.id()]).expect(0);
    let done = bench.sh("exit 0");
    assert_eq!(done.wait(), 0);
    let report = bench.run(["doctor", "--json"]).expect(0).json();
    assert_eq!(report["jobs"], 3);
    assert_eq!(report["findings"], Value::Array(vec![]), "{report}");
    bench.run(["doctor"]).expect(0);
    running.stop(0);
    paused.stop(0);
    bench.audit();
}

#[test]
fn a_doctor_names_what_is_damaged_and_leaves_it() {
    let bench = bench!();
    let (broken, fine) = (bench.sh("exit 3"), bench.sh("exit 0"));
    for job in [&broken, &fine] {
        job.wait();
    }
    until("the workers are gone", || bench.census().is_empty());
    let whole = fs::read(broken.file("status.json")).unwrap();
    fs::write(broken.file("status.json"), vec![0; 50]).unwrap();
    for arguments in [&["doctor"][..], &["doctor", "--json"]] {
        let ran = bench.run(arguments).expect(1);
        assert!(
            format!("{}{}", ran.text(), ran.errors()).contains(broken.id()),
            "{ran:?}"
        );
        assert_eq!(
            fs::read(broken.file("status.json")).unwrap(),
            vec![0; 50],
            "never touched unasked"
        );
    }
    fs::write(broken.file("status.json"), whole).unwrap();
    bench.run(["doctor"]).expect(0);
    bench.audit();
}

#[test]
fn a_doctor_collects_what_crashes_left() {
    let bench = bench!();
    let job = bench.sh("exit 0");
    assert_eq!(job.wait(), 0);
    for aside in ["staging", "trash"] {
        let dir = bench.root().join(aside).join("1-2-3");
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("job.json"), "{").unwrap();
        fs::write(dir.join("lock"), "").unwrap();
    }
    bench.run(["doctor"]);
    assert!(
        bench.root().join("trash/1-2-3").exists(),
        "it changes nothing unasked"
    );
    bench.run(["doctor", "--fix"]);
    until("it is collected", || {
        bench.run(["clean", "--keep", "9"]).expect(0);
        ["staging", "trash"]
            .iter()
            .all(|aside| !bench.root().join(aside).join("1-2-3").exists())
    });
    assert_eq!(job.state(), "done");
    bench.audit();
}

#[test]
fn a_stop_that_nobody_completed_is_found_by_the_doctor() {
    let bench = bench!();
    let job = bench.sh("exec sleep 600");
    job.kill_worker();
    fs::write(job.file("control"), "cancel\n").unwrap();
    bench.run(["doctor", "--fix"]);
    assert_eq!(job.state(), "cancelled");
    bench.audit();
}

#[test]
fn the_command_line_describes_itself() {
    let bench = bench!();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = bench.run(["completions", shell]).expect(0);
        assert!(
            ran.text().contains("outlive") && ran.text().contains("OUTLIVE_COMPLETE"),
            "{shell}"
        );
    }
    bench.run(["completions", "nosuchshell"]).expect(2);
    let mut check = bench.program("bash");
    check.args(["-n", "/dev/stdin"]);
    let script = bench.run(["completions", "bash"]).expect(0).stdout;
    outlive_tests::Ran::run_with_input(check, &script, outlive_tests::DEADLINE).expect(0);
    let page = bench.run(["man"]).expect(0).text();
    assert!(page.contains(".TH outlive 1"), "{page}");
    let pages = bench.file("pages");
    bench
        .run(["man", "--out", pages.to_str().unwrap()])
        .expect(0);
    for verb in [
        "run", "list", "status", "log", "wait", "pause", "resume", "stop", "signal", "restart",
        "clean", "events", "doctor", "top",
    ] {
        assert!(pages.join(format!("outlive-{verb}.1")).exists(), "{verb}");
        let help = bench.run([verb, "--help"]).expect(0);
        assert!(help.text().contains("Usage:"), "{verb}");
        assert!(help.stderr.is_empty());
    }
    assert!(
        bench
            .run(["--version"])
            .expect(0)
            .text()
            .starts_with("outlive ")
    );
    let help = bench.run(["--help"]).expect(0).text();
    for code in ["75", "124", "143"] {
        assert!(help.contains(code), "the exit codes are told: {help}");
    }
    // None of this needs a store, nor makes one.
    assert!(!bench.root().exists());
    bench.audit();
}

#[test]
fn what_scripts_read_has_the_documented_shape() {
    let bench = bench!();
    let ran = bench
        .run(["run", "--json", "--name", "web", "--", "sh", "-c", "exit 3"])
        .expect(0);
    let made = ran.json();
    let job = bench.job(made["id"].as_str().unwrap());
    assert_eq!(job.wait(), 3);
    let fields = [
        "id",
        "name",
        "task",
        "project",
        "kind",
        "command",
        "reference",
        "pool",
        "slot",
        "state",
        "alive",
        "pid",
        "attempt",
        "exit",
        "leftovers",
        "progress",
        "status_line",
        "message",
        "created_at_ms",
        "started_at_ms",
        "ended_at_ms",
        "updated_at_ms",
        "dir",
        "log",
    ];
    let waited = bench.run(["wait", "--json", job.id()]).expect(3).json();
    for shown in [&made, &job.shown(), &bench.list()[0], &waited[0]] {
        for field in fields {
            assert!(shown.get(field).is_some(), "{field} is missing in {shown}");
        }
        assert_eq!(shown["kind"], "command");
        assert_eq!(shown["command"], serde_json::json!(["sh", "-c", "exit 3"]));
        assert_eq!(
            shown["dir"].as_str().unwrap(),
            job.dir().canonicalize().unwrap().to_str().unwrap()
        );
    }
    assert!(is_terminal(job.shown()["state"].as_str().unwrap()));
    // Oldest first.
    let second = bench.sh("exit 0");
    second.wait();
    let ids: Vec<Value> = bench.list().iter().map(|job| job["id"].clone()).collect();
    assert_eq!(ids, [job.id(), second.id()]);
    bench.audit();
}

#[test]
fn errors_are_one_line_that_names_the_program() {
    let bench = bench!();
    let done = bench.sh("exit 0");
    done.wait();
    for arguments in [
        &["status", "no-such-job"][..],
        &["stop", done.id()],
        &["resume", done.id()],
        &["log", "--stderr", done.id()],
        &["signal", done.id(), "HUP"],
    ] {
        let ran = bench.run(arguments);
        assert_ne!(ran.code(), 0);
        assert!(ran.errors().starts_with("outlive: "), "{ran:?}");
        assert_eq!(ran.errors().lines().count(), 1, "{ran:?}");
        assert!(ran.stdout.is_empty(), "{ran:?}");
    }
    bench.audit();
}
