//! Workers that are killed, told to end, or lose what they hold.

use outlive_tests::{Dice, Process, bench, rounds, until};
use rustix::process::Signal;

use crate::{TREE, commands, starts};

#[test]
fn a_job_whose_worker_is_killed_reads_interrupted_and_its_command_is_gone() {
    let bench = bench!();
    let job = bench.sh("exec sleep 600");
    let pid = job.pid();
    job.kill_worker();
    assert_eq!(job.state(), "interrupted");
    until("the command is gone with it", || {
        Process::find(pid).is_none_or(|process| !process.lives())
    });
    assert_eq!(job.wait(), 75);
    let shown = job.shown();
    assert_eq!(shown["alive"], false);
    assert!(shown["pid"].is_null());
    // The record is the dead worker's; nobody has touched it.
    assert_eq!(job.recorded(), "running");
    bench.run(["resume", job.id()]).expect(0);
    assert_eq!(job.state(), "running");
    job.stop(0);
    job.expect_states(&["queued", "running", "interrupted", "running", "cancelled"]);
    bench.audit();
}

#[test]
fn a_worker_killed_at_a_random_moment_leaves_the_truth() {
    let bench = bench!();
    let mut dice = Dice::new();
    for round in 0..rounds(25) {
        let job = bench.sh_with(&["--grace", "500ms"], TREE);
        dice.moment(20_000);
        job.kill_worker();
        assert_eq!(job.state(), "interrupted");
        assert_eq!(bench.run(["wait", job.id()]).code(), 75);
        if round % 2 == 0 {
            bench.run(["resume", job.id()]).expect(0);
            assert_eq!(job.state(), "running");
        }
        let stopped = bench.run(["stop", job.id()]);
        assert!(matches!(stopped.code(), 0 | 1), "{stopped:?}");
        assert_eq!(job.state(), "cancelled");
        assert!(commands(&bench).is_empty());
    }
    bench.audit();
}

#[test]
fn a_worker_killed_as_its_command_ends_leaves_the_end_or_an_interruption() {
    let bench = bench!();
    let mut dice = Dice::new();
    bench.crashes();
    for _ in 0..rounds(25) {
        let job = bench.sh("exit 7");
        let worker = job.worker();
        dice.moment(3_000);
        if let Some(worker) = worker {
            worker.kill();
            until("the worker is gone", || !worker.lives());
        }
        let state = job.state();
        match state.as_str() {
            "failed" => assert_eq!(job.wait(), 7),
            "interrupted" => {
                assert_eq!(job.wait(), 75);
                bench.run(["resume", job.id()]).expect(0);
                assert_eq!(job.wait(), 7);
            }
            other => panic!("{other}"),
        }
    }
    bench.audit();
}

#[test]
fn a_worker_that_is_told_to_end_takes_its_tree_along_and_can_be_resumed() {
    let bench = bench!();
    let job = bench.sh(
        "trap 'echo bye; exit 0' TERM; echo ready; setsid sleep 600 & while :; do sleep 0.02; done",
    );
    job.until_printed("ready");
    job.worker().unwrap().signal(Signal::TERM);
    until("nothing runs", || bench.census().is_empty());
    assert!(job.log_text().contains("bye"));
    assert_eq!(job.state(), "interrupted");
    bench.run(["resume", job.id()]).expect(0);
    assert_eq!(job.state(), "running");
    job.stop(0);
    bench.crashes();
    bench.audit();
}

#[test]
fn output_goes_on_to_the_log_until_the_worker_is_gone() {
    let bench = bench!();
    let job = bench.sh("i=0; while :; do i=$((i+1)); echo line $i; sleep 0.005; done");
    job.until_printed("line 20\n");
    job.kill_worker();
    until("it is gone", || bench.census().is_empty());
    let log = job.log_text();
    for (number, line) in log.lines().enumerate() {
        assert_eq!(line, format!("line {}", number + 1));
    }
    bench.audit();
}

#[test]
fn a_job_whose_directory_is_removed_is_ended_and_leaves_nothing() {
    let bench = bench!();
    for options in [&[][..], &["--log-max", "1M"]] {
        let job = bench.sh_with(options, TREE);
        until("the tree stands", || commands(&bench).len() >= 2);
        // Its worker may make a file there meanwhile.
        until("its directory is gone", || {
            let _ = std::fs::remove_dir_all(job.dir());
            !job.dir().exists()
        });
        until("nothing is left", || bench.census().is_empty());
        bench.run(["status", job.id()]).expect(3);
        bench.run(["list"]).expect(0);
        assert!(bench.jobs().is_empty());
    }
    bench.audit();
}

#[test]
fn a_hang_up_of_the_submitters_session_does_not_reach_the_job() {
    let bench = bench!();
    for signal in ["HUP", "INT", "TERM", "QUIT"] {
        let mut shell = bench.program("setsid");
        let script = format!(
            "\"$0\" run -- sh -c 'until [ -e go ]; do sleep 0.02; done; exit 3'; kill -{signal} 0; exit 0"
        );
        shell
            .args(["--wait", "sh", "-c", &script])
            .arg(bench.binary());
        let id = bench.end(shell).text();
        let job = bench.job(&id);
        assert_eq!(job.state(), "running");
        std::fs::write(bench.file("go"), "").unwrap();
        assert_eq!(job.wait(), 3);
        std::fs::remove_file(bench.file("go")).unwrap();
    }
    bench.audit();
}

#[test]
fn ten_who_resume_at_once_make_one_worker() {
    let bench = bench!();
    let job = bench.sh_with(&["--grace", "1s"], TREE);
    until("the tree stands", || commands(&bench).len() >= 2);
    for round in 2..6 {
        job.kill_worker();
        let resumes: Vec<_> = (0..10)
            .map(|_| bench.background(bench.verb(["resume", job.id()])))
            .collect();
        for resume in resumes {
            let ran = resume.end();
            assert_eq!(ran.code(), 0, "{ran:?}");
        }
        until("it has started again", || starts(&bench) >= round);
        assert_eq!(starts(&bench), round, "it was started once");
        // The shell, and what it starts; for a moment there are more, while that moves to where it stays.
        until("the tree stands", || commands(&bench).len() == 3);
    }
    job.stop(0);
    bench.audit();
}
