//! A supervisor that is the first process of a container: every orphan is its child, and when it ends everything does. The
//! case B21 is here.

use std::fs;
use std::process::Command;

use outlive_tests::{Background, Bench, bench, state_of, until, until_some};
use rustix::process::{Pid, Signal, kill_process};

/// A supervisor as process 1. `None`, with the reason printed, where that is not allowed.
fn container(bench: &Bench) -> Option<Container> {
    let mut tried = Command::new("unshare");
    tried.args(["--fork", "--pid", "--mount-proc", "true"]);
    if !tried.output().is_ok_and(|ran| ran.status.success()) {
        println!("skipped: there are no namespaces to be had here");
        return None;
    }
    let mut command = bench.program("unshare");
    command
        .args(["--fork", "--kill-child", "--pid", "--mount-proc"])
        .arg(bench.binary())
        .args(["supervise", "--foreground"]);
    let outside = bench.background(command);
    until("the supervisor is ready", || {
        let status = bench.run(["supervisor", "status", "--json"]);
        status.code() == 0 && status.json()["ready"] == true
    });
    let status = bench.run(["supervisor", "status", "--json"]).expect(0);
    assert_eq!(status.json()["pid"], 1);
    let init = until_some("it has a process", || {
        children(outside.child.id()).first().copied()
    });
    Some(Container { outside, init })
}

struct Container {
    outside: Background,
    /// The process that is number 1 within.
    init: i32,
}

impl Container {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.init).unwrap(), signal).unwrap();
    }
}

/// The children of a process, ended ones included.
fn children(pid: impl std::fmt::Display) -> Vec<i32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let children = fs::read_to_string(path).unwrap_or_default();
    children
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

#[test]
fn orphans_are_reaped_and_a_sigterm_ends_it() {
    let bench = bench!();
    let Some(container) = container(&bench) else {
        return bench.audit();
    };
    let id = bench
        .run([
            "queue",
            "--",
            "sh",
            "-c",
            "setsid sleep 600 & setsid sleep 601 & wait",
        ])
        .expect(0)
        .text();
    let job = bench.job(&id);
    job.until_recorded("running");
    bench.crashes();
    job.kill_worker();
    job.until_recorded("interrupted");
    bench.run(["stop", &id]).expect(0);
    // The spawner has the workers; everybody else's orphans are children of process 1.
    until("nobody is left unreaped", || {
        let of_init = children(container.init);
        of_init.len() == 1 && state_of(of_init[0]) != Some('Z')
    });
    container.signal(Signal::TERM);
    container.outside.end().expect(0);
    bench.run(["supervisor", "status"]).expect(3);
    bench.audit();
}

/// B21.
#[test]
fn a_container_that_was_killed_is_started_again_on_the_same_disk() {
    let bench = bench!();
    let Some(container_before) = container(&bench) else {
        return bench.audit();
    };
    let queue = |options: &[&str]| {
        let arguments = [&["queue"], options, &["--", "sleep", "600"]].concat();
        bench.job(&bench.run(arguments).expect(0).text())
    };
    let left = queue(&[]);
    let resumed = queue(&["--on-interrupt", "resume"]);
    let waits = queue(&["--delay", "1h"]);
    left.until_recorded("running");
    resumed.until_recorded("running");
    bench.crashes();
    container_before.signal(Signal::KILL);
    assert_ne!(container_before.outside.end().code(), 0);
    assert_eq!(left.state(), "interrupted");
    assert_eq!(waits.state(), "queued");

    let Some(container_after) = container(&bench) else {
        panic!("there was one before");
    };
    resumed.until_states(|states| states.iter().filter(|state| *state == "running").count() == 2);
    left.until_recorded("interrupted");
    assert_eq!(waits.state(), "queued");
    bench.stop_all();
    container_after.signal(Signal::TERM);
    container_after.outside.end().expect(0);
    bench.audit();
}
