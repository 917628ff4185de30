//! A project that is started and shown.

use std::fs;

use outlive_tests::{bench, is_blocked, is_ignored, until};
use rustix::process::Signal;

use crate::Project;

#[test]
fn up_shows_what_each_task_prints_until_all_have_ended() {
    let bench = bench!();
    let project = Project::new(
        &bench,
        "[task.a]\ncommand = \"echo one; printf 'no end'\"\n[task.long]\ncommand = \"echo two\"\nneeds = [\"a\"]\n",
    );
    let ran = project.run(&["up"]).expect(0);
    let mut lines: Vec<String> = ran.text().lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["a    | no end", "a    | one", "long | two"]);
    fs::write(
        project.root.join("outlive.toml"),
        "[task.bad]\ncommand = \"sleep 0.1; exit 4\"\n",
    )
    .unwrap();
    let said = project.run(&["up"]).expect(1).errors();
    assert!(said.contains("exited 4"), "{said}");
    bench.audit();
}

#[test]
fn up_that_is_interrupted_leaves_the_tasks_or_stops_them_as_asked() {
    let bench = bench!();
    let project = Project::new(
        &bench,
        "[task.web]\ncommand = \"echo here; exec sleep 600\"\n",
    );
    for (arguments, left) in [(&["up"][..], 1), (&["up", "--stop"], 0)] {
        let mut verb = bench.verb(arguments);
        verb.current_dir(&project.root);
        let up = bench.background(verb);
        until("it runs", || project.running() == ["web"]);
        project.job("web").until_printed("here");
        // The second one finds the task there, and may still be on its way.
        until("it hears", || is_blocked(up.pid(), Signal::TERM));
        up.signal(Signal::TERM);
        up.end().expect(128 + 15);
        assert_eq!(project.running().len(), left);
    }
    bench.audit();
}

#[test]
fn whoever_interrupts_up_twice_does_not_wait_for_the_stop() {
    for signal in [Signal::HUP, Signal::INT] {
        if is_ignored(signal) {
            println!(
                "left out: {signal:?} is ignored here, and so by whatever is started from here"
            );
            return;
        }
    }
    let bench = bench!();
    let project = Project::new(
        &bench,
        "[task.deaf]\ncommand = \"trap '' TERM; echo here; while :; do sleep 0.1; done\"\ngrace = \"10m\"\n",
    );
    let mut verb = bench.verb(["up", "--stop"]);
    verb.current_dir(&project.root);
    let up = bench.background(verb);
    until("it runs", || project.running() == ["deaf"]);
    let job = project.job("deaf");
    job.until_printed("here");
    // From a terminal that is closed a second one comes, and it must not leave anything running.
    for _ in 0..2 {
        up.signal(Signal::HUP);
    }
    until("it is being stopped", || {
        job.shown()["stopping"].is_object()
    });
    up.signal(Signal::INT);
    up.end().expect(128 + 2);
    assert_eq!(project.running(), ["deaf"]);
    bench.run(["signal", job.id(), "KILL"]).expect(0);
    assert_eq!(job.wait(), 137);
    bench.audit();
}
