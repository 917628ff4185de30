//! `stop` leaves nothing of a job, whatever its processes do, and says what it took.

use std::time::{Duration, Instant};

use outlive_tests::{Bench, Dice, Job, bench, free_port, is_terminal, rounds, state_of, until};

/// The job was stopped: cancelled, and nothing of the bench is left at the moment that `stop` returned.
#[track_caller]
fn gone(bench: &Bench, job: &Job) {
    // The worker itself may still be on its way out; what it started may not.
    let left: Vec<_> = bench
        .census()
        .into_iter()
        .filter(|process| !process.is_worker())
        .collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(job.recorded(), "cancelled");
    job.until_states(|states| states.last().is_some_and(|last| last == "cancelled"));
    assert_eq!(
        job.wait(),
        job.shown()["exit"]["code"]
            .as_i64()
            .filter(|code| *code != 0)
            .map_or_else(
                || job.shown()["exit"]["signal"]
                    .as_i64()
                    .map_or(143, |signal| 128 + signal as i32),
                |code| code as i32,
            )
    );
}

/// Start a script that prints `ready` once its tree stands, and wait for that.
#[track_caller]
fn standing<'a>(bench: &'a Bench, options: &[&str], script: &str) -> Job<'a> {
    let job = bench.sh_with(options, script);
    job.until_printed("ready");
    job
}

#[test]
fn children_in_the_background_go_too() {
    let bench = bench!();
    let job = standing(&bench, &[], "sleep 611 & sleep 612 & echo ready; wait");
    job.stop(0);
    gone(&bench, &job);
    bench.audit();
}

#[test]
fn the_innermost_of_nested_shells_goes_too() {
    let bench = bench!();
    let job = standing(
        &bench,
        &[],
        "sh -c 'sh -c \"echo ready; sleep 613; :\"; :'; :",
    );
    job.stop(0);
    gone(&bench, &job);
    bench.audit();
}

#[test]
fn a_sibling_that_ignores_the_signal_is_killed_after_the_grace() {
    let bench = bench!();
    let job = standing(
        &bench,
        &["--grace", "200ms"],
        "(trap '' TERM; echo ready; exec sleep 614) & exec sleep 615",
    );
    let asked = Instant::now();
    job.stop(1);
    assert!(
        asked.elapsed() >= Duration::from_millis(200),
        "the grace was cut short"
    );
    gone(&bench, &job);
    let shown = job.shown();
    assert_eq!(shown["stopping"]["forced"], true, "{shown}");
    assert!(
        shown["message"].as_str().unwrap().contains("SIGKILL"),
        "{shown}"
    );
    bench.audit();
}

#[test]
fn a_command_that_ignores_the_signal_is_killed_and_the_code_says_so() {
    let bench = bench!();
    let job = standing(
        &bench,
        &["--grace", "100ms"],
        "trap '' TERM; echo ready; while :; do sleep 0.05; done",
    );
    let ran = bench.run(["stop", job.id()]).expect(1);
    assert!(ran.errors().contains("SIGKILL"), "{ran:?}");
    gone(&bench, &job);
    bench.audit();
}

#[test]
fn what_forks_twice_and_lives_on_is_shown_and_stopped() {
    let bench = bench!();
    let job = bench.sh("( (sleep 616 &) & ) ; exit 0");
    assert_eq!(job.wait(), 0);
    let shown = job.shown();
    assert_eq!(shown["state"], "done");
    assert!(
        shown["leftovers"].as_u64().is_some_and(|left| left >= 1),
        "{shown}"
    );
    let listed = bench.run(["list"]).expect(0).text();
    assert!(listed.contains("processes left"), "{listed}");
    // It goes on until somebody says otherwise; then state and exit stay as they were.
    assert!(
        bench
            .census()
            .iter()
            .any(|process| process.title.contains("sleep 616"))
    );
    job.stop(0);
    until("nothing is left", || bench.census().is_empty());
    let shown = job.shown();
    assert_eq!(shown["state"], "done");
    assert_eq!(shown["exit"]["code"], 0);
    assert!(shown["leftovers"].is_null(), "{shown}");
    bench.run(["stop", job.id()]).expect(6);
    bench.audit();
}

#[test]
fn leftovers_that_end_by_themselves_are_forgotten() {
    let bench = bench!();
    let job = bench.sh("(while [ ! -e go ]; do sleep 0.02; done) & exit 4");
    assert_eq!(job.wait(), 4);
    assert_eq!(job.shown()["leftovers"], 1);
    std::fs::write(bench.file("go"), "").unwrap();
    until("the leftovers are gone from the record", || {
        job.shown()["leftovers"].is_null()
    });
    assert_eq!(job.shown()["state"], "failed");
    bench.audit();
}

#[test]
fn grandchildren_in_sessions_of_their_own_go_too() {
    let bench = bench!();
    let script = "setsid sh -c 'setsid sh -c \"echo one; exec sleep 617\" & setsid sleep 618 & echo two; exec sleep 619' & \
                  until grep -q one out && grep -q two out; do sleep 0.02; done; echo ready; exec sleep 620";
    let script = script
        .replace("setsid sh -c '", "setsid sh -c 'exec >>out; ")
        .replace("echo one", "echo one >>out");
    std::fs::write(bench.file("out"), "").unwrap();
    let job = standing(&bench, &[], &script);
    assert!(bench.census().len() >= 5);
    job.stop(0);
    gone(&bench, &job);
    bench.audit();
}

#[test]
fn a_daemon_that_closes_everything_and_ignores_everything_goes_too() {
    let bench = bench!();
    let daemon = "trap '' TERM HUP INT; echo > up; exec <&- >&- 2>&-; for n in 3 4 5 6 7 8 9; do eval \"exec $n>&-\"; done; \
                  while :; do sleep 0.05; done";
    std::fs::write(bench.file("daemon"), daemon).unwrap();
    let job = standing(
        &bench,
        &["--grace", "100ms"],
        "( (setsid env -i sh daemon &) & ); until [ -e up ]; do sleep 0.01; done; echo ready; exec sleep 621",
    );
    job.stop(1);
    gone(&bench, &job);
    bench.audit();
}

/// A chain whose every link starts the next one in a session of its own and is gone 5 ms later. It ends by itself
/// after so many links.
const CHAIN: &str = "[ $1 -gt 0 ] || exit 0\n[ -z \"$2\" ] || trap '' TERM\nsetsid sh chain $(($1 - 1)) $2 &\n\
                     [ $1 -ne 290 ] || echo ready\nsleep 0.005\n";

#[test]
fn a_chain_that_keeps_leaving_its_session_is_caught_every_time() {
    let bench = bench!();
    std::fs::write(bench.file("chain"), CHAIN).unwrap();
    for round in 0..rounds(50).min(200) {
        let (stubborn, code) = if round % 2 == 0 {
            ("", 0..=1)
        } else {
            ("yes", 1..=1)
        };
        let script = format!("setsid sh chain 300 {stubborn} & exec sleep 622");
        let job = standing(&bench, &["--grace", "20ms"], &script);
        let ran = bench.run(["stop", job.id()]);
        assert!(
            code.contains(&ran.code()),
            "{}: {}",
            ran.code(),
            ran.errors()
        );
        assert!(
            is_terminal(&job.recorded()),
            "{}: {} {:?}",
            ran.code(),
            ran.errors(),
            job.status()
        );
        gone(&bench, &job);
    }
    bench.audit();
}

#[test]
fn a_chain_that_outlives_its_command_is_caught_too() {
    let bench = bench!();
    std::fs::write(bench.file("chain"), CHAIN).unwrap();
    for _ in 0..5 {
        let job = standing(
            &bench,
            &["--grace", "20ms"],
            "setsid sh chain 300 yes & exit 0",
        );
        assert_eq!(job.wait(), 0);
        job.stop(1);
        until("nothing is left", || bench.census().is_empty());
        assert_eq!(job.recorded(), "done");
    }
    bench.audit();
}

#[test]
fn the_next_job_finds_the_port_free() {
    let bench = bench!();
    // Python binds without SO_REUSEADDR; the grandchild holds it.
    let script = "python3 -c 'import socket,time\ns=socket.socket()\ns.bind((\"127.0.0.1\",PORT))\ns.listen()\n\
                  print(\"ready\",flush=True)\ntime.sleep(600)' & wait";
    let port = free_port().to_string();
    for _ in 0..25 {
        let job = standing(&bench, &[], &script.replace("PORT", &port));
        job.stop(0);
        assert!(!job.log_text().contains("in use"), "{}", job.log_text());
    }
    bench.audit();
}

#[test]
fn the_grace_is_long_enough_to_finish() {
    let bench = bench!();
    let script = "trap 'sleep 1; mv half whole; exit 0' TERM; echo > half; echo ready; while :; do sleep 0.02; done";
    let job = standing(&bench, &["--grace", "15s"], script);
    job.stop(0);
    assert!(bench.file("whole").exists());
    gone(&bench, &job);
    bench.audit();
}

#[test]
fn the_grace_that_was_set_is_the_one_that_counts() {
    let bench = bench!();
    let script = "trap 'echo asked' TERM; echo ready; while :; do sleep 0.02; done";
    let job = standing(&bench, &["--grace", "3s"], script);
    let asked = Instant::now();
    job.stop(1);
    assert!(
        asked.elapsed() >= Duration::from_secs(3),
        "{:?}",
        asked.elapsed()
    );
    assert!(job.log_text().contains("asked"));
    bench.audit();
}

#[test]
fn what_is_printed_while_shutting_down_is_in_the_log_once() {
    let bench = bench!();
    let script = "trap 'for i in $(seq 1000); do echo bye $i; done; exit 0' TERM; echo ready; while :; do sleep .02; done";
    for options in [
        &[][..],
        &["--log-max", "10M"],
        &["--log-max", "10M", "--log-keep", "0"],
    ] {
        let job = standing(&bench, options, script);
        job.stop(0);
        let log = job.log_text();
        let byes: Vec<&str> = log.lines().filter(|line| line.starts_with("bye")).collect();
        let expected: Vec<String> = (1..=1000).map(|number| format!("bye {number}")).collect();
        assert_eq!(byes, expected);
    }
    bench.audit();
}

#[test]
fn a_frozen_tree_is_thawed_so_that_its_handlers_run() {
    let bench = bench!();
    let script = "trap 'echo bye > bye; exit 0' TERM; echo ready; while :; do sleep 0.02; done";
    let job = standing(&bench, &["--grace", "15s"], script);
    bench.run(["pause", job.id()]).expect(0);
    // One that was in the kernel stops as it comes out.
    until("it is stopped", || state_of(job.pid()) == Some('T'));
    job.stop(0);
    assert!(bench.file("bye").exists());
    gone(&bench, &job);
    bench.audit();
}

#[test]
fn a_frozen_tree_that_ignores_the_signal_is_killed() {
    let bench = bench!();
    let script =
        "trap '' TERM; (setsid sh -c 'sleep 623; :' &) & echo ready; while :; do sleep 0.02; done";
    let job = standing(&bench, &["--grace", "50ms"], script);
    bench.run(["pause", job.id()]).expect(0);
    job.stop(1);
    gone(&bench, &job);
    bench.audit();
}

#[test]
fn a_tree_that_stopped_itself_is_ended_too() {
    let bench = bench!();
    let job = standing(
        &bench,
        &["--grace", "100ms"],
        "echo ready; kill -STOP $$; echo never",
    );
    until("it has stopped itself", || state_of(job.pid()) == Some('T'));
    let ran = bench.run(["stop", job.id()]);
    assert!(matches!(ran.code(), 0 | 1), "{ran:?}");
    gone(&bench, &job);
    bench.audit();
}

#[test]
fn jobs_that_nobody_works_on_are_cancelled_at_once() {
    let bench = bench!();
    let queued = bench.queue(&["sleep", "600"]);
    assert_eq!(queued.recorded(), "queued");
    queued.stop(0);
    gone(&bench, &queued);
    queued.expect_states(&["queued", "cancelled"]);
    let paused = standing(&bench, &["--pause", "stop"], "echo ready; exec sleep 600");
    bench.run(["pause", paused.id()]).expect(0);
    assert!(paused.worker().is_none() || paused.recorded() == "paused");
    paused.stop(0);
    assert_eq!(paused.recorded(), "cancelled");
    let interrupted = standing(&bench, &[], "echo ready; exec sleep 600");
    interrupted.kill_worker();
    interrupted.stop(0);
    assert_eq!(interrupted.recorded(), "cancelled");
    interrupted.expect_states(&["queued", "running", "interrupted", "cancelled"]);
    bench.audit();
}

#[test]
fn an_ended_job_is_not_stopped_again() {
    let bench = bench!();
    let done = bench.sh("exit 0");
    assert_eq!(done.wait(), 0);
    let before = std::fs::read(done.file("status.json")).unwrap();
    let ran = bench.run(["stop", done.id()]).expect(6);
    assert!(ran.errors().contains("has ended (done)"), "{ran:?}");
    bench.run(["cancel", done.id()]).expect(6);
    bench.run(["pause", done.id()]).expect(6);
    bench.run(["resume", done.id()]).expect(6);
    assert_eq!(std::fs::read(done.file("status.json")).unwrap(), before);
    done.expect_states(&["queued", "running", "done"]);
    bench.audit();
}

#[test]
fn several_and_all() {
    let bench = bench!();
    let jobs: Vec<Job> = (0..6).map(|_| bench.sh("sleep 600")).collect();
    let ran = bench
        .run(["stop", "--json", jobs[0].id(), jobs[1].id(), jobs[0].id()])
        .expect(0);
    assert_eq!(ran.json().as_array().unwrap().len(), 2);
    assert_eq!(jobs[2].recorded(), "running");
    // One that is unknown stops the command before it has done anything.
    bench.run(["stop", jobs[2].id(), "no-such-job"]).expect(3);
    assert_eq!(jobs[2].recorded(), "running");
    bench.run(["stop", "--all"]).expect(0);
    for job in &jobs {
        assert_eq!(job.recorded(), "cancelled");
    }
    bench.run(["stop", "--all"]).expect(0);
    bench.audit();
}

#[test]
fn the_graces_of_several_run_side_by_side() {
    let bench = bench!();
    // Each ends once all have been asked to: with one grace after the other, the first would wait for that in vain.
    let script = "trap 'echo >> asked; until [ $(wc -l < asked) = 5 ]; do sleep 0.05; done; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    let jobs: Vec<Job> = (0..5)
        .map(|_| standing(&bench, &["--grace", "30s"], script))
        .collect();
    bench.run(["stop", "--all"]).expect(0);
    for job in &jobs {
        assert_eq!(job.recorded(), "cancelled");
    }
    bench.audit();
}

#[test]
fn a_stop_that_is_not_waited_for_goes_on() {
    let bench = bench!();
    let script = "trap '' TERM; echo ready; while :; do sleep 0.02; done";
    let job = standing(&bench, &["--grace", "1s"], script);
    bench.run(["stop", "--timeout", "50ms", job.id()]).expect(5);
    until("the stop is shown", || {
        let status = job.status().unwrap();
        status["stopping"]["signal"] == 15 || status["state"] == "cancelled"
    });
    job.until_recorded("cancelled");
    bench.audit();
}

#[test]
fn the_project_is_what_a_stop_without_a_name_means() {
    let bench = bench!();
    let outside = bench.sh("sleep 600");
    let project = bench.file("project");
    std::fs::create_dir_all(project.join("deep")).unwrap();
    std::fs::write(project.join("outlive.toml"), "").unwrap();
    let inside = |arguments: &[&str]| {
        let mut verb = bench.verb(arguments);
        verb.current_dir(project.join("deep"));
        bench.end(verb)
    };
    let job = bench.job(&inside(&["run", "--", "sleep", "600"]).expect(0).text());
    let listed = inside(&["list", "--json"]).expect(0).json();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["id"], job.id());
    assert_eq!(bench.list().len(), 2);
    inside(&["stop"]).expect(0);
    assert_eq!(job.recorded(), "cancelled");
    assert_eq!(outside.recorded(), "running");
    bench.run(["stop"]).expect(2);
    outside.stop(0);
    bench.audit();
}

#[test]
fn a_job_that_ends_as_it_is_stopped_ends_once() {
    let bench = bench!();
    for round in 0..rounds(60) {
        let job = bench.sh(&format!("sleep 0.0{:02}; exit 5", round % 30));
        let ran = bench.run(["stop", job.id()]);
        let state = job.recorded();
        match ran.code() {
            0 => assert!(matches!(state.as_str(), "cancelled" | "failed"), "{state}"),
            6 => assert_eq!(state, "failed"),
            other => panic!("{other}: {ran:?}"),
        }
        let code = job.wait();
        assert!(
            if state == "failed" {
                code == 5
            } else {
                code == 143 || code == 5
            },
            "{state} {code}"
        );
    }
    bench.audit();
}

#[test]
fn a_stop_that_comes_as_the_command_ends_ends_what_it_leaves() {
    let bench = bench!();
    let mut dice = Dice::new();
    for round in 0..rounds(60) {
        let job = bench.sh("sleep 617 & exec sleep 0.05");
        dice.moment(90_000);
        let ran = bench.run(["stop", job.id()]).expect(0);
        // The shell and its children have this in their command lines; the worker, on its way out, has not.
        let mut left = bench.census();
        left.retain(|process| process.title.contains("sleep 617"));
        assert!(left.is_empty(), "round {round}: {left:?} after {ran:?}");
        let state = job.recorded();
        assert!(matches!(state.as_str(), "cancelled" | "done"), "{state}");
        // Nothing is left to be stopped, whichever of the two came first.
        bench.run(["stop", job.id()]).expect(6);
    }
    bench.audit();
}
