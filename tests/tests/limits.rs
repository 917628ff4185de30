//! Few descriptors, no inotify, few processes: it works with less, or it says what is missing.

use outlive_tests::{Bench, Job, Ran, bench, copy_program, state_of, until};

#[test]
fn few_descriptors_are_enough() {
    let bench = bench!();
    let verb = |arguments: &[&str]| bench.end(bench.verb_after("ulimit -n 64", arguments));
    let jobs: Vec<Job> = (0..100)
        .map(|_| bench.job(&verb(&["run", "--", "sleep", "600"]).expect(0).text()))
        .collect();
    let ids: Vec<&str> = jobs.iter().map(Job::id).collect();
    assert_eq!(
        verb(&["list", "--json"])
            .expect(0)
            .json()
            .as_array()
            .unwrap()
            .len(),
        100
    );
    verb(&[&["wait", "--timeout", "50ms"], ids.as_slice()].concat()).expect(5);
    verb(&[&["wait", "--any", "--timeout", "50ms"], ids.as_slice()].concat()).expect(5);
    verb(&["stop", "--all"]).expect(0);
    for job in &jobs {
        assert_eq!(job.recorded(), "cancelled");
    }
    bench.audit();
}

#[test]
fn very_few_descriptors_work_or_are_said_to_be_too_few() {
    let bench = bench!();
    // What cannot be collected for want of descriptors is left for the next one.
    bench.crashes();
    for limit in [4, 5, 6, 10, 12, 16] {
        let verb = bench.verb_after(
            &format!("ulimit -n {limit}"),
            ["run", "--wait", "--", "sh", "-c", "exit 5"],
        );
        let ran = bench.end(verb);
        println!("{limit}: {} {}", ran.code(), ran.errors());
        assert!(ran.code() == 5 || !ran.errors().is_empty(), "{ran:?}");
        assert!(!ran.errors().contains("panicked"), "{ran:?}");
        if ran.code() != 5 {
            // Whatever there is of it is not running, and can be stopped.
            bench.stop_all();
        }
    }
    bench.audit();
}

#[test]
fn a_worker_holds_few_descriptors_however_often_it_is_asked() {
    let bench = bench!();
    let job = bench.sh("exec sleep 600");
    let worker = job.worker().unwrap();
    let open = || {
        std::fs::read_dir(format!("/proc/{}/fd", worker.pid))
            .unwrap()
            .count()
    };
    bench.run(["pause", job.id()]).expect(0);
    bench.run(["resume", job.id()]).expect(0);
    // Who has just been answered may still have a file open that was written for it.
    let pid = worker.pid;
    until("the worker sleeps", || state_of(pid) == Some('S'));
    let before = open();
    for _ in 0..30 {
        bench.run(["pause", job.id()]).expect(0);
        bench.run(["resume", job.id()]).expect(0);
    }
    until("as many are open as before", || open() == before);
    assert!(before < 16, "{before}");
    job.stop(0);
    bench.audit();
}

/// Run a script in a user namespace that allows no inotify instance. `None`, with the reason printed, where there
/// can be none.
fn without_inotify(bench: &Bench, script: &str) -> Option<Ran> {
    let mut shell = bench.program("unshare");
    let script = format!("echo 0 > /proc/sys/user/max_inotify_instances || exit 99\n{script}");
    shell
        .args(["--user", "--map-root-user", "sh", "-c", &script])
        .arg(bench.binary());
    let ran = bench.end(shell);
    let denied = ran.code() == 99 || ran.errors().starts_with("unshare:");
    if denied {
        println!("skipped: no user namespace: {}", ran.errors());
    }
    (!denied).then_some(ran)
}

#[test]
fn without_inotify_nothing_is_lost() {
    let bench = bench!();
    let script = "set -e
        job=$(\"$0\" run -- sh -c 'echo first; while [ ! -e go ]; do sleep 0.02; done; echo last; exit 6')
        \"$0\" log -f $job > followed & follower=$!
        \"$0\" wait $job & waiter=$!
        \"$0\" pause $job
        \"$0\" resume $job
        echo > go
        wait $waiter && exit 51 || [ $? -eq 6 ] || exit 52
        wait $follower
        [ \"$(cat followed)\" = \"first\nlast\" ] || exit 53
        sleeper=$(\"$0\" run -- sleep 600)
        \"$0\" stop $sleeper
        sleeper=$(\"$0\" run -- sleep 600)
        echo cancel > \"$OUTLIVE_ROOT/jobs/$sleeper/control\"
        \"$0\" wait $sleeper && exit 54 || [ $? -eq 143 ] || exit 55
        frozen=$(\"$0\" run --pause stop -- sleep 600)
        \"$0\" pause $frozen
        \"$0\" stop $frozen";
    if let Some(ran) = without_inotify(&bench, &script.replace("first\\nlast", "first\nlast")) {
        ran.expect(0);
        assert_eq!(bench.jobs().len(), 4);
    }
    bench.audit();
}

#[test]
fn without_processes_a_job_cannot_be_started_and_says_so() {
    let bench = bench!();
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can become somebody with no processes");
        bench.audit();
        return;
    }
    // A user of its own, so that the limit counts nobody else.
    let uid = 60_000 + std::process::id() % 5_000;
    let (root, binary) = (bench.dir().join("theirs"), bench.dir().join("outlive"));
    std::fs::create_dir(&root).unwrap();
    copy_program(bench.binary(), &binary);
    for path in [bench.dir(), &bench.work()] {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
    }
    std::os::unix::fs::chown(&root, Some(uid), Some(uid)).unwrap();
    let run = |limit: u32| {
        let mut command = bench.program("setpriv");
        let script = format!("ulimit -u {limit}; exec \"$0\" \"$@\"");
        command
            .args([
                &format!("--reuid={uid}"),
                &format!("--regid={uid}"),
                "--clear-groups",
                "sh",
                "-c",
                &script,
            ])
            .arg(&binary)
            .args(["run", "--wait", "--", "sh", "-c", "exit 5"])
            .env("OUTLIVE_ROOT", &root);
        bench.end(command)
    };
    run(100).expect(5);
    for limit in [1, 2] {
        let ran = run(limit);
        println!("{limit}: {} {}", ran.code(), ran.errors());
        assert_ne!(ran.code(), 0, "{ran:?}");
        assert!(
            !ran.errors().is_empty() && !ran.errors().contains("panicked"),
            "{ran:?}"
        );
    }
    run(100).expect(5);
    bench.audit();
}

#[test]
fn many_jobs_at_once_are_all_honoured() {
    let bench = bench!();
    // More workers than a user has inotify instances.
    let starts = outlive_tests::rounds(150);
    let jobs: Vec<Job> = (0..starts)
        .map(|_| bench.start(["--", "sleep", "600"]))
        .collect();
    for job in jobs.iter().step_by(10) {
        std::fs::write(job.file("control"), "cancel\n").unwrap();
    }
    for job in jobs.iter().step_by(10) {
        job.until_recorded("cancelled");
    }
    bench.run(["stop", "--all"]).expect(0);
    until("all of them have ended", || {
        jobs.iter().all(|job| job.recorded() == "cancelled")
    });
    bench.audit();
}

#[test]
fn a_job_whose_worker_cannot_be_set_up_has_failed_and_bars_no_name() {
    let bench = bench!();
    // What cannot be collected for want of descriptors is left for the next one.
    bench.crashes();
    let mut refused = 0;
    for limit in 8..=14 {
        let name = format!("web_{limit}");
        let before = bench.jobs().len();
        let verb = bench.verb_after(
            &format!("ulimit -n {limit}"),
            ["run", "--name", &name, "--", "sleep", "600"],
        );
        let ran = bench.end(verb);
        if ran.code() == 0 {
            bench.run(["stop", &name]).expect(0);
        } else {
            assert!(!ran.errors().is_empty(), "{ran:?}");
            if bench.jobs().len() > before {
                refused += 1;
                let job = bench.run(["status", "--json", &name]).expect(0).json();
                assert_eq!(job["state"], "failed", "{limit}: {job}");
                assert!(!job["message"].is_null(), "{limit}: {job}");
            }
        }
        bench
            .run(["run", "--name", &name, "--wait", "--", "sh", "-c", "exit 5"])
            .expect(5);
    }
    assert!(refused > 0, "one of these is too few for a worker");
    bench.audit();
}
