//! Any one process may be killed at any moment, and every other one still reads the truth.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use outlive_tests::{Bench, Dice, Job, Process, bench, is_terminal, rounds, until};
use rustix::process::{Pid, Signal, kill_process_group};

/// A command with children, one of them in a session of its own.
const TREE: &str = "echo $$ >> starts; setsid sleep 600 & sleep 600 & wait";

/// The processes of the jobs, the workers and verbs left out.
fn commands(bench: &Bench) -> Vec<Process> {
    let mut commands = bench.census();
    commands
        .retain(|process| process.title.contains("sleep") && !process.title.contains("outlive"));
    commands
}

fn starts(bench: &Bench) -> usize {
    std::fs::read_to_string(bench.file("starts"))
        .unwrap_or_default()
        .lines()
        .count()
}

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
fn leftovers_of_a_dead_worker_are_shown_and_ended_by_a_stop() {
    let bench = bench!();
    let job = bench.sh(TREE);
    until("the tree stands", || commands(&bench).len() >= 2);
    job.kill_worker();
    let shown = job.shown();
    assert_eq!(shown["state"], "interrupted");
    assert!(
        shown["leftovers"].as_u64().is_some_and(|left| left >= 1),
        "{shown}"
    );
    job.stop(0);
    assert!(commands(&bench).is_empty());
    assert_eq!(job.state(), "cancelled");
    bench.audit();
}

#[test]
fn leftovers_are_never_run_beside() {
    let bench = bench!();
    let job = bench.sh_with(&["--grace", "1s"], TREE);
    until("the tree stands", || commands(&bench).len() >= 2);
    job.kill_worker();
    let old = commands(&bench);
    bench.run(["resume", job.id()]).expect(0);
    for process in &old {
        assert!(!process.lives(), "{process:?} runs beside the new command");
    }
    until("the new tree stands", || {
        starts(&bench) == 2 && commands(&bench).len() >= 2
    });
    job.stop(0);
    bench.audit();
}

#[test]
fn leftovers_that_ignore_the_signal_and_close_everything_are_found_too() {
    let bench = bench!();
    let hidden = "trap '' TERM; echo > up; exec <&- >&- 2>&-; for n in 3 4 5 6 7 8 9; do eval \"exec $n>&-\"; done; sleep 600; :";
    std::fs::write(bench.file("hidden"), hidden).unwrap();
    let job = bench.sh_with(&["--grace", "100ms"], "setsid sh hidden & wait");
    until("it has hidden", || bench.file("up").exists());
    job.kill_worker();
    let old: Vec<Process> = bench.census();
    assert!(!old.is_empty());
    bench.run(["resume", job.id()]).expect(0);
    for process in &old {
        assert!(!process.lives(), "{process:?} runs beside the new command");
    }
    let stopped = bench.run(["stop", job.id()]);
    assert!(matches!(stopped.code(), 0 | 1), "{stopped:?}");
    bench.audit();
}

#[test]
fn a_stop_ends_leftovers_that_closed_everything() {
    let bench = bench!();
    let hidden = "echo > up; exec <&- >&- 2>&-; for n in 3 4 5 6 7 8 9; do eval \"exec $n>&-\"; done; exec sleep 600";
    std::fs::write(bench.file("hidden"), hidden).unwrap();
    let job = bench.sh_with(&["--grace", "1s"], "setsid sh hidden & wait");
    until("it has hidden", || {
        bench.file("up").exists() && !commands(&bench).is_empty()
    });
    job.kill_worker();
    job.stop(0);
    assert!(commands(&bench).is_empty(), "{:?}", commands(&bench));
    assert_eq!(job.recorded(), "cancelled");
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
        let job = bench.sh_with(&["--grace", "700ms"], script);
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
fn a_pid_that_is_somebody_elses_by_now_is_left_alone() {
    let bench = bench!();
    let job = bench.sh("exec sleep 600");
    job.kill_worker();
    // It dies with its worker, which takes the kernel a moment.
    until("the command is gone", || commands(&bench).is_empty());
    let mut innocent = bench.bystander("sleep", &["601"]);
    let mut status = job.status().unwrap();
    status["pid"] = innocent.pid().into();
    std::fs::write(job.file("status.json"), status.to_string()).unwrap();
    let shown = job.shown();
    assert_eq!(shown["state"], "interrupted");
    assert!(shown["pid"].is_null(), "{shown}");
    assert!(shown["leftovers"].is_null(), "{shown}");
    job.stop(0);
    assert!(innocent.runs());
    assert_eq!(job.state(), "cancelled");
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
fn a_torn_history_is_mended_by_the_next_holder() {
    use std::io::Write;
    let bench = bench!();
    let job = bench.sh("exec sleep 600");
    job.kill_worker();
    let mut history = std::fs::OpenOptions::new()
        .append(true)
        .open(job.file("events.jsonl"))
        .unwrap();
    history.write_all(b"{\"at_ms\":3,\"event\":\"sta").unwrap();
    bench.run(["resume", job.id()]).expect(0);
    job.stop(0);
    until("the worker is gone", || job.worker().is_none());
    let text = std::fs::read_to_string(job.file("events.jsonl")).unwrap();
    let broken: Vec<&str> = text
        .lines()
        .filter(|line| serde_json::from_str::<serde_json::Value>(line).is_err())
        .collect();
    assert_eq!(
        broken,
        ["{\"at_ms\":3,\"event\":\"sta"],
        "one line is lost, and no more"
    );
    // The audit reads strictly, so what it cannot read is taken out.
    std::fs::write(
        job.file("events.jsonl"),
        text.replace(&format!("{}\n", broken[0]), ""),
    )
    .unwrap();
    job.expect_states(&["queued", "running", "interrupted", "running", "cancelled"]);
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
        std::fs::remove_dir_all(job.dir()).unwrap();
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
fn what_a_lost_worker_left_frozen_is_ended_too() {
    let bench = bench!();
    for resume in [true, false] {
        let job = bench.sh_with(&["--grace", "5s"], TREE);
        until("the tree stands", || commands(&bench).len() >= 2);
        bench.run(["pause", job.id()]).expect(0);
        job.kill_worker();
        let old = commands(&bench);
        assert!(!old.is_empty());
        if resume {
            bench.run(["resume", job.id()]).expect(0);
            for process in &old {
                assert!(!process.lives(), "{process:?} runs beside the new command");
            }
            until("the new tree stands", || commands(&bench).len() >= 2);
        }
        // Nothing of it ignores SIGTERM, so no force is needed.
        job.stop(0);
        assert!(commands(&bench).is_empty());
        assert_eq!(job.state(), "cancelled");
    }
    bench.audit();
}

/// A record that was not synced when the power went is a file without content: it was no end, so the job can go on.
#[test]
fn a_status_that_a_loss_of_power_has_emptied_reads_interrupted_and_goes_on() {
    let bench = bench!();
    for left in [Vec::new(), vec![0; 300]] {
        let job = bench.sh("[ -e again ] && exit 3; touch again; exec sleep 630");
        until("it runs", || bench.file("again").exists());
        job.kill_worker();
        std::fs::write(job.file("status.json"), &left).unwrap();
        assert_eq!(job.state(), "interrupted");
        let doctor = bench.run(["doctor"]);
        assert!(doctor.text().contains("loss of power"), "{doctor:?}");
        bench.run(["resume", job.id()]).expect(0);
        assert_eq!(job.wait(), 3);
        job.until_states(|states| {
            states == ["queued", "running", "interrupted", "running", "failed"]
        });
        std::fs::remove_file(bench.file("again")).unwrap();
    }
    bench.audit();
}

#[test]
fn records_that_are_lost_while_it_runs_do_not_lose_the_processes() {
    let bench = bench!();
    for file in ["events.jsonl", "status.json"] {
        let job = bench.sh_with(&["--grace", "1s"], TREE);
        until("the tree stands", || commands(&bench).len() >= 2);
        std::fs::remove_file(job.file(file)).unwrap();
        job.kill_worker();
        bench.run(["status", job.id()]);
        let stopped = bench.run(["stop", job.id()]);
        assert!(
            matches!(stopped.code(), 0 | 1),
            "without {file}: {stopped:?}"
        );
        assert!(commands(&bench).is_empty(), "without {file}: {stopped:?}");
        // What was taken away cannot be audited.
        std::fs::remove_dir_all(job.dir()).unwrap();
    }
    bench.audit();
}

#[test]
fn a_store_has_one_name_however_it_is_spelled() {
    let bench = bench!();
    bench.run(["list"]).expect(0);
    let link = bench.dir().join("link");
    std::os::unix::fs::symlink(bench.root(), &link).unwrap();
    let hidden = "echo > up; exec <&- >&- 2>&-; for n in 3 4 5 6 7 8 9; do eval \"exec $n>&-\"; done; exec sleep 600";
    std::fs::write(bench.file("hidden"), hidden).unwrap();
    for (spelling, ends) in [
        (link.clone(), "stop"),
        ("../work/../store".into(), "stop"),
        (link, "resume"),
    ] {
        let mut verb = bench.verb([
            "run",
            "--grace",
            "1s",
            "--",
            "sh",
            "-c",
            "[ -e up ] || { setsid sh hidden & wait; }; exec sleep 601",
        ]);
        verb.env("OUTLIVE_ROOT", &spelling);
        let job = bench.job(&bench.end(verb).expect(0).text());
        // Whoever is only ever told the directory by its environment is found by that alone.
        until("it has hidden", || {
            bench.file("up").exists()
                && commands(&bench)
                    .iter()
                    .any(|process| process.title.contains("sleep 600"))
        });
        job.kill_worker();
        bench.run([ends, job.id()]).expect(0);
        let left = commands(&bench);
        assert!(
            left.iter().all(|process| !process.title.contains("600")),
            "{spelling:?}, {ends}: {left:?}"
        );
        if ends == "resume" {
            job.stop(0);
        }
        assert_eq!(job.recorded(), "cancelled");
        std::fs::remove_file(bench.file("up")).unwrap();
    }
    bench.audit();
}

#[test]
fn a_job_whose_lock_is_gone_is_said_to_be_damaged_by_whoever_would_wait_for_it() {
    let bench = bench!();
    let interrupted = bench.sh("exec sleep 600");
    interrupted.kill_worker();
    let paused = bench.sh_with(&["--pause", "stop"], "exec sleep 600");
    bench.run(["pause", paused.id()]).expect(0);
    for job in [&interrupted, &paused] {
        let lock = job.file("lock");
        until("nobody holds it", || job.worker().is_none());
        std::fs::remove_file(&lock).unwrap();
        for verb in ["stop", "resume"] {
            let ran = bench.run([verb, job.id()]).expect(1);
            assert!(ran.errors().contains(lock.to_str().unwrap()), "{ran:?}");
            assert_eq!(ran.errors().lines().count(), 1, "{ran:?}");
        }
        assert_eq!(bench.list().len(), 2);
        // What the message says mends it.
        empty(&lock);
        bench.run(["stop", job.id()]);
        job.until_recorded("cancelled");
    }
    bench.audit();
}

#[test]
fn a_worker_whose_lock_is_gone_keeps_nobody_waiting() {
    let bench = bench!();
    let job = bench.sh("exec sleep 600");
    let lock = job.file("lock");
    std::fs::remove_file(&lock).unwrap();
    // It may go on, and honour what is asked, or leave: then that is said.
    let ran = bench.run(["stop", job.id()]);
    assert!(matches!(ran.code(), 0 | 1), "{ran:?}");
    assert!(
        ran.code() == 0 || ran.errors().contains(lock.to_str().unwrap()),
        "{ran:?}"
    );
    until("nothing of it runs", || bench.census().is_empty());
    empty(&lock);
    bench.run(["stop", job.id()]);
    job.until_recorded("cancelled");
    bench.crashes();
    bench.audit();
}

/// Make an empty file for the owner's eyes only.
fn empty(path: &std::path::Path) {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .unwrap();
}

#[test]
fn a_history_that_contradicts_the_record_is_said_to_be_damaged_and_left() {
    use std::io::Write;
    let bench = bench!();
    let job = bench.sh("exec sleep 600");
    job.kill_worker();
    let history = job.file("events.jsonl");
    let good = std::fs::read(&history).unwrap();
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(&history)
        .unwrap();
    file.write_all(b"{\"at_ms\":1,\"event\":\"state\",\"state\":\"done\"}\n")
        .unwrap();
    let before = std::fs::read(&history).unwrap();
    for verb in ["stop", "resume", "pause"] {
        let ran = bench.run([verb, job.id()]).expect(1);
        assert!(ran.errors().contains(job.id()), "{ran:?}");
        assert!(ran.errors().contains("cannot be read"), "{ran:?}");
    }
    bench.run(["doctor"]).expect(1);
    assert_eq!(std::fs::read(&history).unwrap(), before);
    std::fs::write(&history, good).unwrap();
    bench.run(["stop", job.id()]);
    job.until_recorded("cancelled");
    bench.audit();
}

#[test]
fn a_job_whose_leftovers_are_being_ended_for_a_resume_can_be_stopped() {
    let bench = bench!();
    let job = bench.sh_with(
        &["--grace", "2s"],
        "(trap '' TERM; echo > up; exec sleep 602) & exec sleep 603",
    );
    until("it ignores the signal", || {
        bench.file("up").exists()
            && commands(&bench)
                .iter()
                .any(|process| process.title.contains("sleep 602"))
    });
    job.kill_worker();
    let resume = bench.background(bench.verb(["resume", job.id()]));
    let stop = bench.run(["stop", job.id()]);
    assert!(matches!(stop.code(), 0 | 1), "{stop:?}");
    assert_eq!(job.recorded(), "cancelled");
    assert!(commands(&bench).is_empty(), "{:?}", commands(&bench));
    // Whichever of the two was first, neither waits for the other for ever.
    let resumed = resume.end();
    assert!(!resumed.errors().contains("panicked"), "{resumed:?}");
    assert_eq!(job.recorded(), "cancelled");
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
