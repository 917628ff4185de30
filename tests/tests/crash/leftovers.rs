//! What a killed worker leaves: found, shown, ended, and never run beside.

use outlive_tests::{Process, bench, until};

use crate::{TREE, commands, starts};

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
