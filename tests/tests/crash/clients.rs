//! Whoever makes, reads, waits for or removes jobs is killed, or loses its terminal.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use outlive_tests::{Dice, Job, bench, is_terminal, rounds, until};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::commands;

#[test]
fn a_submitter_killed_at_a_random_moment_leaves_a_whole_job_or_none() {
    let bench = bench!();
    let mut dice = Dice::new();
    bench.crashes();
    bench.run(["list"]).expect(0);
    for _ in 0..rounds(25) {
        let submitter = bench.background(bench.verb([
            "run",
            "--name",
            "web",
            "--",
            "sh",
            "-c",
            "exec sleep 600",
        ]));
        dice.moment(12_000);
        submitter.kill();
        // Whatever came of it, there is one job of that name or none, and another start is never in the way of it.
        let listed = bench.run(["list", "--json"]).expect(0).json();
        let live: Vec<_> = listed
            .as_array()
            .unwrap()
            .iter()
            .filter(|job| !is_terminal(job["state"].as_str().unwrap()))
            .collect();
        assert!(live.len() <= 1, "{live:?}");
        bench.stop_all();
    }
    until("nothing runs", || commands(&bench).is_empty());
    bench.audit();
}

#[test]
fn every_id_that_was_printed_is_a_job_that_ends() {
    let bench = bench!();
    for _ in 0..rounds(25) {
        // The submitter's whole group is killed as soon as the id is out.
        let mut shell: Command = bench.program("sh");
        shell
            .args(["-c", "\"$0\" run -- sh -c 'sleep 0.05; exit 3'; kill -9 $$"])
            .arg(bench.binary())
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = shell.spawn().unwrap();
        let mut id = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut id)
            .unwrap();
        let group = Pid::from_child(&child);
        // It has not been waited for, so the number is still its own.
        let _ = kill_process_group(group, Signal::KILL);
        child.wait().unwrap();
        let job = bench.job(id.trim());
        assert_eq!(job.wait(), 3, "{}", job.shown());
    }
    bench.audit();
}

#[test]
fn readers_and_waiters_killed_at_random_moments_harm_nothing() {
    let bench = bench!();
    let mut dice = Dice::new();
    let job = bench.sh("exec sleep 600");
    for _ in 0..rounds(25) {
        let readers: Vec<_> = [
            &["list"][..],
            &["status", job.id()],
            &["wait", job.id()],
            &["log", "-f", job.id()],
        ]
        .iter()
        .map(|arguments| bench.background(bench.verb(*arguments)))
        .collect();
        dice.moment(8_000);
        for reader in readers {
            reader.kill();
        }
        assert_eq!(job.state(), "running");
    }
    job.stop(0);
    bench.audit();
}

#[test]
fn a_sweeper_killed_at_a_random_moment_leaves_whole_jobs_or_none() {
    let bench = bench!();
    if !bench.has_verb("clean") {
        println!("skipped: there is no 'clean' yet");
        bench.audit();
        return;
    }
    let mut dice = Dice::new();
    bench.crashes();
    for _ in 0..rounds(25) {
        let jobs: Vec<Job> = (0..3).map(|_| bench.sh("exit 0")).collect();
        for job in &jobs {
            assert_eq!(job.wait(), 0);
        }
        let sweeper = bench.background(bench.verb(["clean", "--all"]));
        dice.moment(8_000);
        sweeper.kill();
        let listed = bench.list();
        for job in &jobs {
            let shown = listed.iter().any(|shown| shown["id"] == job.id());
            assert_eq!(shown, job.file("job.json").exists());
        }
    }
    bench.run(["clean", "--all"]).expect(0);
    assert!(bench.jobs().is_empty());
    until("what the sweepers left is collected", || {
        bench.run(["clean", "--all"]).expect(0);
        ["staging", "trash"]
            .iter()
            .all(|aside| std::fs::read_dir(bench.root().join(aside)).unwrap().count() == 0)
    });
    bench.audit();
}
