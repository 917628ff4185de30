//! Pause and resume, and requests written by hand.

use std::fs::OpenOptions;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use outlive::state_machine::retention::Retention;
use outlive_tests::{Bench, Job, bench, rounds, state_of, until};

/// Counts in a file, with a child that does the same in a session of its own.
const COUNTERS: &str = "count() { i=0; while [ $i -lt 100000 ]; do i=$((i+1)); echo $i > $1.new; mv $1.new $1; sleep 0.005; done; }; \
                        if [ -n \"$1\" ]; then count $1; exit; fi; setsid sh count inner & count outer";

fn counting(bench: &Bench) -> Job<'_> {
    std::fs::write(bench.file("count"), COUNTERS).unwrap();
    let job = bench.start(["--", "sh", "count"]);
    until("both count", || {
        count(bench, "outer") > 1 && count(bench, "inner") > 1
    });
    job
}

fn count(bench: &Bench, name: &str) -> u32 {
    let text = std::fs::read_to_string(bench.file(name)).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// The processes of the job's tree, the worker left out.
fn tree(bench: &Bench) -> Vec<outlive_tests::Process> {
    let mut tree = bench.census();
    tree.retain(|process| !process.is_worker());
    tree
}

#[test]
fn a_pause_stops_the_whole_tree_and_a_resume_lets_it_go_on() {
    let bench = bench!();
    let job = counting(&bench);
    for _ in 0..3 {
        bench.run(["pause", job.id()]).expect(0);
        assert_eq!(job.recorded(), "paused");
        let stopped = tree(&bench);
        assert!(stopped.len() >= 2, "{stopped:?}");
        for process in &stopped {
            // D: it waits for a child of vfork(2) that was stopped before its exec.
            let state = state_of(process.pid);
            assert!(matches!(state, Some('T' | 'D')), "{state:?} {process:?}");
        }
        let before = (count(&bench, "outer"), count(&bench, "inner"));
        bench.run(["pause", job.id()]).expect(0);
        let shown = job.shown();
        assert_eq!(shown["state"], "paused");
        assert_eq!(shown["alive"], true);
        assert_eq!((count(&bench, "outer"), count(&bench, "inner")), before);
        bench.run(["resume", job.id()]).expect(0);
        assert_eq!(job.recorded(), "running");
        until("both count on", || {
            count(&bench, "outer") > before.0 && count(&bench, "inner") > before.1
        });
        bench.run(["resume", job.id()]).expect(0);
    }
    job.stop(0);
    bench.audit();
}

#[test]
fn a_pause_that_ends_the_tree_is_run_again_by_a_resume() {
    let bench = bench!();
    let job = bench.sh_with(
        &["--pause", "stop"],
        "echo run >> runs; echo ready; exec sleep 600",
    );
    job.until_printed("ready");
    bench.run(["pause", job.id()]).expect(0);
    assert_eq!(job.recorded(), "paused");
    until("worker and tree are gone", || bench.census().is_empty());
    assert_eq!(job.state(), "paused");
    bench.run(["resume", job.id()]).expect(0);
    until("it has run twice", || {
        std::fs::read_to_string(bench.file("runs")).unwrap() == "run\nrun\n"
    });
    assert_eq!(job.recorded(), "running");
    job.stop(0);
    job.expect_states(&["queued", "running", "paused", "running", "cancelled"]);
    bench.audit();
}

#[test]
fn a_queued_job_can_be_paused_and_resumed() {
    let bench = bench!();
    let job = bench.queue(&["sh", "-c", "exit 3"]);
    bench.run(["pause", job.id()]).expect(0);
    assert_eq!(job.state(), "paused");
    bench.run(["resume", job.id()]).expect(0);
    assert_eq!(job.wait(), 3);
    bench.audit();
}

#[test]
fn a_frozen_job_whose_worker_is_lost_can_be_run_again() {
    let bench = bench!();
    let job = bench.sh("echo run >> runs; exec sleep 600");
    until("it runs", || bench.file("runs").exists());
    bench.run(["pause", job.id()]).expect(0);
    job.kill_worker();
    let state = job.state();
    assert!(
        matches!(state.as_str(), "paused" | "interrupted"),
        "{state}"
    );
    assert_eq!(job.shown()["alive"], false);
    bench.run(["resume", job.id()]).expect(0);
    until("it has run twice", || {
        std::fs::read_to_string(bench.file("runs")).unwrap() == "run\nrun\n"
    });
    assert_eq!(tree(&bench).len(), 1, "never two beside each other");
    job.stop(0);
    bench.audit();
}

#[test]
fn a_pause_followed_at_once_by_a_cancel_ends_cancelled() {
    let bench = bench!();
    bench.run(["list"]).expect(0);
    let over = AtomicBool::new(false);
    let store = bench.store();
    std::thread::scope(|scope| {
        let _over = SetOnDrop(&over);
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                bench.run(["list", "--json"]).expect(0);
            }
        });
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let newest = Retention {
                    keep: Some(20),
                    older_than_ms: None,
                };
                store.sweep(newest, |_| true).unwrap();
                store.collect().unwrap();
                std::thread::yield_now();
            }
        });
        for round in 0..rounds(100) {
            let how = if round % 2 == 0 { "freeze" } else { "stop" };
            let options = ["--grace", "1s", "--pause", how];
            let job = bench.sh_with(&options, "sleep 600 & sleep 600");
            let pause = bench.background(bench.verb(["pause", job.id()]));
            if round % 3 == 0 {
                until("the pause has begun", || {
                    job.file("control").exists()
                        || job.recorded() == "paused"
                        || !job.states().is_empty()
                });
            }
            let stopped = bench.run(["stop", job.id()]);
            assert!(matches!(stopped.code(), 0 | 1), "{stopped:?}");
            assert_eq!(job.recorded(), "cancelled");
            // Whatever the pause came to, it came to an end.
            let paused = pause.end();
            assert!(matches!(paused.code(), 0 | 3 | 6), "{paused:?}");
            assert_eq!(job.recorded(), "cancelled");
        }
    });
    bench.audit();
}

/// Says that it is over also when something panics.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What `echo WORD > control` does.
fn by_hand(job: &Job, word: &str) {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(job.file("control"));
    file.unwrap().write_all(word.as_bytes()).unwrap();
}

#[test]
fn requests_by_hand_are_honoured() {
    let bench = bench!();
    let job = bench.sh("echo ready; exec sleep 600");
    job.until_printed("ready");
    by_hand(&job, "pause\n");
    job.until_recorded("paused");
    until("it is frozen", || state_of(job.pid()) == Some('T'));
    by_hand(&job, "resume\n");
    job.until_recorded("running");
    until("it is thawed", || state_of(job.pid()) == Some('S'));
    by_hand(&job, "  pause");
    job.until_recorded("paused");
    by_hand(&job, "cancel\n");
    job.until_recorded("cancelled");
    bench.audit();
}

#[test]
fn a_request_by_hand_to_a_running_job_needs_no_other_process() {
    let bench = bench!();
    for word in ["cancel\n", "cancel", "stop\n", " cancel \r\n"] {
        let job = bench.sh("exec sleep 600");
        by_hand(&job, word);
        job.until_recorded("cancelled");
    }
    bench.audit();
}

#[test]
fn a_file_that_is_filled_later_is_read_then() {
    let bench = bench!();
    let job = bench.sh("exec sleep 600");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(job.file("control"))
        .unwrap();
    // Another request makes the worker look while the file is empty.
    job.worker().unwrap();
    file.write_all(b"can").unwrap();
    file.write_all(b"cel\n").unwrap();
    drop(file);
    // Where the first half was read it was no request; then a second hand is heard all the same.
    let honoured = || job.recorded() == "cancelled";
    until("it is honoured or said to be nothing", || {
        honoured() || !job.file("control").exists()
    });
    if !honoured() {
        by_hand(&job, "cancel\n");
    }
    job.until_recorded("cancelled");
    bench.audit();
}

#[test]
fn an_empty_file_does_not_block_what_comes_later() {
    let bench = bench!();
    let job = bench.sh("exec sleep 600");
    by_hand(&job, "");
    job.stop(0);
    let job = bench.sh("exec sleep 600");
    by_hand(&job, "");
    bench.run(["pause", job.id()]).expect(0);
    by_hand(&job, "");
    until("the empty file is thrown away", || {
        !job.file("control").exists()
    });
    by_hand(&job, "cancel\n");
    job.until_recorded("cancelled");
    bench.audit();
}

#[test]
fn what_is_no_request_is_said_to_be_none_and_harms_nothing() {
    let bench = bench!();
    let job = bench.sh("exec sleep 600");
    for (number, garbage) in [
        "explode\n",
        "\u{0}\u{0}",
        "cancel me gently\n",
        &"x".repeat(100_000),
    ]
    .iter()
    .enumerate()
    {
        by_hand(&job, garbage);
        until("it is taken away", || !job.file("control").exists());
        until("the history says so", || {
            job.events()
                .iter()
                .filter(|event| event["event"] == "status")
                .count()
                == number + 1
        });
        assert_eq!(job.recorded(), "running");
    }
    by_hand(&job, "cancel\n");
    job.until_recorded("cancelled");
    bench.audit();
}

#[test]
fn a_control_that_is_no_plain_file_harms_nothing() {
    let bench = bench!();
    let job = bench.sh("exec sleep 600");
    std::os::unix::fs::symlink("/etc/passwd", job.file("control")).unwrap();
    bench.run(["list"]).expect(0);
    job.stop(0);
    assert!(std::path::Path::new("/etc/passwd").exists());
    bench.audit();
}

#[test]
fn a_request_by_hand_to_a_job_that_nobody_holds_is_answered_at_the_next_look() {
    let bench = bench!();
    let job = bench.sh("exec sleep 600");
    job.kill_worker();
    by_hand(&job, "cancel\n");
    assert_eq!(job.state(), "cancelled");
    bench.audit();
}

#[test]
fn a_control_that_is_a_directory_does_not_keep_a_job_from_being_stopped() {
    let bench = bench!();
    let job = bench.sh("exec sleep 600");
    std::fs::create_dir(job.file("control")).unwrap();
    let ran = bench.run(["stop", "--timeout", "10s", job.id()]);
    assert_eq!(job.recorded(), "cancelled", "{ran:?}");
    for name in ["control", "control.taken"] {
        // Whatever it is now, it is nothing that the audit wants to see.
        let _ = std::fs::remove_dir(job.file(name));
    }
    // It went to the trash, which `clean` collects.
    bench.run(["clean", "--keep", "9"]);
    bench.audit();
}

#[test]
fn a_control_in_the_form_of_a_directory_is_put_aside_and_said_once() {
    let bench = bench!();
    for form in ["control", "control/x", "control.taken", "control.taken/x/y"] {
        for held in [true, false] {
            let job = bench.sh("exec sleep 600");
            if !held {
                job.kill_worker();
            }
            // Made elsewhere and moved there: a worker takes it away before anything could be made inside of it.
            let (name, inside) = form.split_once('/').unwrap_or((form, ""));
            std::fs::create_dir_all(bench.file("made").join(inside)).unwrap();
            std::fs::rename(bench.file("made"), job.file(name)).unwrap();
            bench.run(["list"]).expect(0);
            let ran = bench.run(["stop", "--timeout", "20s", job.id()]);
            assert_eq!(job.recorded(), "cancelled", "{form}, {held}: {ran:?}");
            // A line per round of a loop would make it thousands.
            assert!(
                job.events().len() < 10,
                "{form}, {held}: {:?}",
                job.events()
            );
            for name in ["control", "control.taken"] {
                // What is left of it is nothing that the audit wants to see.
                let _ = std::fs::remove_dir_all(job.file(name));
            }
        }
    }
    bench.run(["clean", "--keep", "9"]).expect(0);
    bench.audit();
}

#[test]
fn directories_in_place_of_a_request_are_put_aside_one_after_the_other() {
    let bench = bench!();
    let job = bench.sh("exec sleep 600");
    for verb in ["pause", "resume", "pause"] {
        std::fs::create_dir_all(bench.file("made/x")).unwrap();
        // What was asked last is recorded, and its request stands a moment longer.
        until("the last request is gone", || {
            !job.file("control.taken").exists()
        });
        std::fs::rename(bench.file("made"), job.file("control.taken")).unwrap();
        bench.run([verb, job.id()]).expect(0);
        until("it is put aside", || !job.file("control.taken").is_dir());
    }
    job.stop(0);
    bench.run(["clean", "--keep", "9"]).expect(0);
    bench.audit();
}

#[test]
fn a_cancel_over_a_request_that_waits_is_heard_while_a_pause_is_under_way() {
    let bench = bench!();
    let job = bench.sh_with(
        &["--pause", "stop", "--grace", "10m"],
        "trap '' TERM; echo ready; until [ -e go ]; do sleep 0.02; done",
    );
    job.until_printed("ready");
    let pause = bench.background(bench.verb(["pause", job.id()]));
    until("the pause is under way", || {
        !job.shown()["stopping"].is_null()
    });
    by_hand(&job, "resume\n");
    // It must wait; and what is written over it is no notice to anybody.
    bench
        .run(["wait", "--timeout", "300ms", job.id()])
        .expect(5);
    assert!(job.file("control").exists(), "a resume waits for the pause");
    by_hand(&job, "cancel\n");
    until("it is taken", || {
        let taken = std::fs::read_to_string(job.file("control.taken"));
        taken.is_ok_and(|word| word.trim() == "cancel")
    });
    std::fs::write(bench.file("go"), "").unwrap();
    job.until_recorded("cancelled");
    // Whoever asked for the pause is told that it came to something else.
    assert_ne!(pause.end().code(), 0);
    bench.audit();
}

#[test]
fn a_wait_beside_an_empty_control_is_at_rest() {
    let bench = bench!();
    let job = bench.sh_with(&["--pause", "stop"], "exec sleep 600");
    bench.run(["pause", job.id()]).expect(0);
    by_hand(&job, "");
    let mut wait = bench.program("sh");
    wait.args([
        "-c",
        "\"$0\" wait --timeout 2s \"$1\"; code=$?; times; exit $code",
    ])
    .arg(bench.binary())
    .arg(job.id());
    let ran = bench.end(wait).expect(5);
    // The second line of `times` is that of the children: `0m0.010s 0m0.020s`.
    let text = ran.text();
    let spent: f64 = text.lines().last().map_or(9.0, |line| {
        line.split_whitespace()
            .filter_map(|time| {
                time.strip_prefix("0m")?
                    .strip_suffix('s')?
                    .parse::<f64>()
                    .ok()
            })
            .sum()
    });
    assert!(spent < 0.7, "{text}");
    job.stop(0);
    bench.audit();
}

/// A request moves from one file to another when it is taken: whoever looks for it just then must find it in one of them.
#[test]
fn a_pause_that_ends_the_command_is_over_when_it_says_so() {
    let bench = bench!();
    // It takes a moment to end, in which it still runs.
    let script = "trap 'sleep 0.03; exit' TERM; echo ready; while :; do sleep 600 & wait; done";
    let job = bench.sh_with(&["--pause", "stop"], script);
    for round in 1..=rounds(60) {
        until("the command minds the signal", || {
            job.log_text().matches("ready").count() == round
        });
        bench.run(["pause", job.id()]).expect(0);
        assert_eq!(job.state(), "paused");
        bench.run(["resume", job.id()]).expect(0);
        assert_eq!(job.state(), "running");
    }
    job.stop(0);
    bench.audit();
}
