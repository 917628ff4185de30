//! Stops that lose their worker, their client, or both.

use outlive_tests::{Bench, Dice, bench, rounds, until};
use rustix::process::Signal;

use crate::{TREE, commands};

#[test]
fn a_stop_whose_worker_is_killed_is_completed_by_whoever_waits() {
    let bench = bench!();
    let job = bench.sh_with(
        &["--grace", "60s"],
        "trap '' TERM; (trap '' TERM; sleep 600; :) & echo ready; while :; do sleep 0.05; done",
    );
    job.until_printed("ready");
    let stop = bench.background(bench.verb(["stop", job.id()]));
    until("the stop is shown", || {
        !job.status().unwrap()["stopping"].is_null()
    });
    // What is left ignores TERM; the next one to look has the rest of the grace to wait, so it is told to be short.
    job.kill_worker();
    kill_stubborn(&bench);
    let ran = stop.end();
    assert!(matches!(ran.code(), 0 | 1), "{ran:?}");
    assert_eq!(job.state(), "cancelled");
    bench.audit();
}

/// End what ignores SIGTERM, so that a long grace need not be waited for.
fn kill_stubborn(bench: &Bench) {
    for process in bench.census() {
        if !process.title.contains("outlive") {
            process.kill();
        }
    }
}

#[test]
fn a_stop_that_lost_worker_and_client_is_completed_by_the_next_to_look() {
    let bench = bench!();
    for look in [
        &["status", "--json"][..],
        &["list"],
        &["wait"],
        &["resume"],
        &["stop"],
    ] {
        let script = "trap '' TERM; setsid sleep 600 & echo ready; while :; do sleep 0.05; done";
        let job = bench.sh_with(&["--grace", "2s"], script);
        job.until_printed("ready");
        let stop = bench.background(bench.verb(["stop", job.id()]));
        until("the stop is shown", || {
            !job.status().unwrap()["stopping"].is_null()
        });
        stop.kill();
        job.kill_worker();
        let mut arguments = look.to_vec();
        if look != ["list"] {
            arguments.push(job.id());
        }
        let ran = bench.run(&arguments);
        assert_eq!(job.recorded(), "cancelled", "after {ran:?}");
        assert!(commands(&bench).is_empty(), "{ran:?}");
    }
    bench.audit();
}

#[test]
fn everybody_killed_at_random_moments_during_a_stop_still_ends_cancelled() {
    let bench = bench!();
    let mut dice = Dice::new();
    for _ in 0..rounds(15) {
        let job = bench.sh_with(&["--grace", "200ms"], TREE);
        let stop = bench.background(bench.verb(["stop", job.id()]));
        dice.moment(15_000);
        let worker = job.worker();
        stop.kill();
        if let Some(worker) = worker {
            worker.kill();
            until("the worker is gone", || !worker.lives());
        }
        bench.crashes();
        let ran = bench.run(["stop", job.id()]);
        assert!(matches!(ran.code(), 0 | 1 | 6), "{ran:?}");
        assert_eq!(job.state(), "cancelled");
        assert!(commands(&bench).is_empty());
    }
    bench.audit();
}

#[test]
fn ten_who_stop_at_once_are_all_told() {
    let bench = bench!();
    for lost in [false, true] {
        let job = bench.sh_with(&["--grace", "2s"], TREE);
        until("the tree stands", || commands(&bench).len() >= 2);
        if lost {
            job.kill_worker();
        }
        let stops: Vec<_> = (0..10)
            .map(|_| bench.background(bench.verb(["stop", job.id()])))
            .collect();
        let ran: Vec<_> = stops
            .into_iter()
            .map(outlive_tests::Background::end)
            .collect();
        assert!(ran.iter().all(|ran| matches!(ran.code(), 0 | 6)), "{ran:?}");
        assert!(ran.iter().any(|ran| ran.code() == 0), "{ran:?}");
        assert_eq!(job.recorded(), "cancelled");
        assert!(commands(&bench).is_empty());
    }
    bench.audit();
}

#[test]
fn a_frozen_job_whose_worker_is_told_to_end_is_not_being_stopped() {
    let bench = bench!();
    let job = bench.sh("trap 'exit 0' TERM; echo ready; while :; do sleep 0.02; done");
    job.until_printed("ready");
    bench.run(["pause", job.id()]).expect(0);
    job.worker().unwrap().signal(Signal::TERM);
    until("nothing runs", || bench.census().is_empty());
    let listed = bench.run(["list", "--all"]).expect(0).text();
    assert!(
        listed.contains("paused") && !listed.contains("stopping"),
        "{listed}"
    );
    job.stop(0);
    bench.crashes();
    bench.audit();
}
