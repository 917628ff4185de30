//! Faults that users of comparable tools reported of their queues and managers, tried on this one.

use std::fs;

use outlive_tests::{Dice, Job, bench, rounds, until};
use serde_json::json;

/// How many descriptors a process has.
fn descriptors(pid: i32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// B37. A manager leaked descriptors: after a thousand jobs it had none left.
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

/// B57. A stop of a job that waited for a slot, for its time or for another one was not honoured while it waited.
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

/// B58. A job that waited for another, was stopped and queued anew, was run twice when that one ended.
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

/// B62. Degenerate arguments brought managers down, and their queues with them.
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

/// B64. Too many jobs to come after crashed a server and lost its queue.
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

/// B36. A manager died of the descriptors that its jobs cost.
#[test]
fn more_jobs_run_at_once_than_a_supervisor_may_have_descriptors() {
    let bench = bench!();
    bench.configure("[pool.default]\nslots = 150\n");
    let mut supervisor =
        bench.supervise_by(bench.verb_after("ulimit -Hn 64; ulimit -n 64", ["supervise"]));
    let lines: Vec<_> = (0..200)
        .map(|_| json!({"argv": ["sh", "-c", "while [ ! -e go ]; do sleep 1; done"]}))
        .collect();
    let jobs = bench.queued_from(&[], &lines);
    let running = || {
        jobs.iter()
            .filter(|job| job.recorded() == "running")
            .count()
    };
    // Step by step, as all of them may take longer than one wait.
    for many in (10..=150).step_by(10) {
        until(&format!("{many} slots have a job"), || running() >= many);
    }
    assert_eq!(running(), 150);
    // What exceeds the slots waits, and is none the worse for it.
    assert_eq!(
        jobs.iter().filter(|job| job.state() == "queued").count(),
        50
    );
    assert!(supervisor.runs());
    fs::write(bench.file("go"), "").expect("a scratch directory can be written to");
    for job in &jobs {
        assert_eq!(job.wait(), 0);
    }
    bench.audit();
}

/// B38, B42. A manager died when its own log could not be written, and a queue was written over with nothing on a full disk.
#[test]
fn a_supervisor_whose_own_log_is_on_a_full_disk_goes_on() {
    let bench = bench!();
    let Some(disk) = bench.mount("4m") else {
        return bench.audit();
    };
    bench.configure("[pool.default]\nslots = 1\n[supervisor]\nidle_exit = \"1h\"\n");
    // The first one starts the supervisor, whose log is in the store.
    let first = bench.queued(&[], "while [ ! -e go ]; do sleep 0.02; done; exit 7");
    let waiting: Vec<Job> = (0..3).map(|_| bench.queued(&[], "exit 3")).collect();
    let paused = bench.queued(&[], "exit 4");
    bench.run(["pause", paused.id()]).expect(0);
    first.until_recorded("running");
    let before = bench.supervisors();
    assert_eq!(before.len(), 1);
    disk.fill("ballast");
    let refused = bench.run(["queue", "--", "true"]);
    assert!(
        !refused.errors().is_empty() && refused.code() != 0,
        "{refused:?}"
    );
    fs::write(bench.file("go"), "").expect("the work is not in the store");
    // Its end cannot be recorded, so it has not ended; everything else is as it was.
    let waited = bench.run(["wait", "--timeout", "200ms", first.id()]);
    assert_eq!(waited.code(), 5);
    assert_eq!(bench.list().len(), 5);
    assert_eq!(paused.state(), "paused");
    fs::remove_file(bench.root().join("ballast")).expect("it was put there");
    assert_eq!(first.wait(), 7);
    for job in &waiting {
        assert_eq!(job.wait(), 3);
    }
    bench.run(["resume", paused.id()]).expect(0);
    assert_eq!(paused.wait(), 4);
    let after = bench.supervisors();
    assert_eq!(
        after.iter().map(|one| one.pid).collect::<Vec<_>>(),
        before.iter().map(|one| one.pid).collect::<Vec<_>>()
    );
    bench.end_supervisor();
    bench.crashes();
    bench.audit();
}

/// B45. On a read-only directory supervisors told of errors for ever.
#[test]
fn a_supervisor_of_a_read_only_store_tells_of_it_and_goes_on_when_it_can_be_written() {
    let bench = bench!();
    let Some(disk) = bench.mount("8m") else {
        return bench.audit();
    };
    bench.configure("[pool.default]\nslots = 1\n");
    let running = bench.queued(
        &["--no-supervisor"],
        "while [ ! -e go ]; do sleep 0.02; done; exit 7",
    );
    let queued = bench.queued(&["--no-supervisor"], "exit 3");
    let later = bench.queued(&["--no-supervisor", "--delay", "300ms"], "exit 4");
    let paused = bench.queued(&["--no-supervisor"], "exit 5");
    bench.run(["pause", paused.id()]).expect(0);
    let mut supervisor = bench.supervise_ready();
    running.until_recorded("running");
    let cover = disk.cover();
    fs::write(bench.file("go"), "").expect("the work is not in the store");
    for arguments in [
        &["queue", "--", "true"][..],
        &["stop", queued.id()],
        &["resume", paused.id()],
        &["pool", "set", "default", "--slots", "2"],
    ] {
        let refused = bench.run(arguments);
        assert!(matches!(refused.code(), 1 | 6), "{refused:?}");
        assert!(refused.errors().contains("read-only"), "{refused:?}");
        assert!(
            refused
                .errors()
                .contains(bench.root().to_str().unwrap_or("?")),
            "{refused:?}"
        );
    }
    let waited = bench.run(["wait", "--timeout", "1s", queued.id()]);
    assert_eq!(waited.code(), 5);
    assert_eq!(bench.list().len(), 4);
    assert!(supervisor.runs());
    let complaints = supervisor
        .told()
        .lines()
        .filter(|line| line.contains("WARN"))
        .count();
    assert!(complaints < 30, "{}", supervisor.told());
    drop(cover);
    assert_eq!(running.wait(), 7);
    assert_eq!(queued.wait(), 3);
    assert_eq!(later.wait(), 4);
    bench.run(["resume", paused.id()]).expect(0);
    assert_eq!(paused.wait(), 5);
    supervisor.end();
    bench.crashes();
    bench.audit();
}

/// B54. A job that ended late became a finished one again after it had been cancelled.
#[test]
fn a_queued_job_that_ends_as_it_is_stopped_has_one_end() {
    let bench = bench!();
    let _supervisor = bench.supervise_ready();
    let mut dice = Dice::new();
    for _ in 0..rounds(60) {
        // Now and then before it has a worker, now and then as its command ends.
        let job = bench.queued(&[], &format!("sleep 0.0{:02}; exit 5", dice.below(40)));
        let ran = bench.run(["stop", job.id()]);
        let code = job.wait();
        let ends = ["done", "failed", "cancelled"];
        // The history is written after the record.
        job.until_states(|states| {
            states
                .last()
                .is_some_and(|last| ends.contains(&last.as_str()))
        });
        let states = job.states();
        let ended = states.iter().filter(|state| ends.contains(&state.as_str()));
        assert_eq!(ended.count(), 1, "{states:?}");
        assert_eq!(states.last(), Some(&job.recorded()), "{ran:?}");
        match job.recorded().as_str() {
            "failed" => assert_eq!(code, 5),
            "cancelled" => assert!(matches!(code, 143 | 5), "{code}"),
            other => panic!("{other}: {ran:?}"),
        }
    }
    bench.audit();
}

/// B12, B50. A slot was given on while something of a job that had been stopped was still at work.
#[test]
fn the_next_job_of_a_slot_finds_nothing_of_the_one_before() {
    let bench = bench!();
    bench.configure("[pool.default]\nslots = 1\n");
    let _supervisor = bench.supervise_ready();
    for round in 0..rounds(10) {
        // Known by how long it sleeps, and to nobody else.
        let sleep = format!("600.{}{round}", std::process::id());
        let stubborn = format!(
            "trap '' TERM; setsid sh -c 'trap \"\" TERM; touch at-work; sleep {sleep}; echo old > out' & wait"
        );
        let first = bench.queued(&["--grace", "50ms"], &stubborn);
        until("it is at work", || bench.file("at-work").exists());
        let next = bench.queued(
            &[],
            &format!(
                "pgrep -f 'sleep [6]{}' && exit 1; echo new > out",
                &sleep[1..]
            ),
        );
        bench.run(["stop", first.id()]);
        assert_eq!(next.wait(), 0, "{}", next.log_text());
        let out = fs::read_to_string(bench.file("out")).expect("it was written");
        assert_eq!(out, "new\n");
        fs::remove_file(bench.file("at-work")).expect("it was put there");
    }
    bench.audit();
}
