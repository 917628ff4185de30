//! Full and read-only file systems. They need root to be mounted; where that is not given, each test says so.

use outlive_tests::{Bench, TmpFs, bench, until};
use serde_json::Value;

/// A store on a small file system of its own.
fn small(bench: &Bench) -> Option<&TmpFs> {
    let mounted = bench.mount("2m");
    if mounted.is_none() {
        bench.audit();
    }
    mounted
}

/// Every record of the store is whole.
#[track_caller]
fn whole(bench: &Bench) {
    for job in bench.jobs() {
        let descriptor = std::fs::read(job.file("job.json")).unwrap();
        serde_json::from_slice::<Value>(&descriptor).expect("a descriptor is whole");
        if job.file("status.json").exists() {
            job.status();
        }
        job.events();
    }
}

fn free(bench: &Bench) {
    std::fs::remove_file(bench.root().join("ballast")).unwrap();
}

#[test]
fn the_exit_status_of_a_job_is_recorded_once_there_is_space() {
    let bench = bench!();
    let Some(disk) = small(&bench) else { return };
    let job = bench.sh("while [ ! -e go ]; do sleep 0.02; done; echo output; exit 7");
    let idle = bench.sh("exec sleep 600");
    disk.fill("ballast");
    std::fs::write(bench.file("go"), "").unwrap();
    let pid = job.pid();
    until("the command has ended", || {
        !matches!(outlive_tests::state_of(pid), Some('S' | 'R' | 'D'))
    });
    // The job is held and reads as what was last recorded, whatever that costs.
    let shown = job.shown();
    assert_eq!(shown["alive"], true, "{shown}");
    assert_eq!(shown["state"], "running");
    assert_eq!(bench.list().len(), 2);
    whole(&bench);
    bench
        .run(["wait", "--timeout", "100ms", job.id()])
        .expect(5);
    let waiter = bench.background(bench.verb(["wait", job.id()]));
    free(&bench);
    assert_eq!(waiter.end().code(), 7);
    assert_eq!(job.shown()["exit"]["code"], 7);
    job.expect_states(&["queued", "running", "failed"]);
    idle.stop(0);
    whole(&bench);
    bench.audit();
}

#[test]
fn nothing_on_a_full_disk_is_replaced_by_something_empty() {
    let bench = bench!();
    let Some(disk) = small(&bench) else { return };
    let done = bench.sh("echo kept; exit 0");
    assert_eq!(done.wait(), 0);
    let running = bench.sh("exec sleep 600");
    let queued = bench.queue(&["sh", "-c", "exit 2"]);
    let before = std::fs::read(done.file("status.json")).unwrap();
    disk.fill("ballast");
    for _ in 0..3 {
        let refused = bench.run(["run", "--", "true"]);
        assert_ne!(refused.code(), 0, "{refused:?}");
        assert!(refused.errors().contains("space"), "{refused:?}");
        let listed = bench.list();
        assert_eq!(listed.len(), 3, "{listed:?}");
        whole(&bench);
    }
    assert_eq!(std::fs::read(done.file("status.json")).unwrap(), before);
    assert_eq!(done.log_text(), "kept\n");
    assert_eq!(running.state(), "running");
    assert!(matches!(queued.state().as_str(), "queued" | "interrupted"));
    free(&bench);
    running.stop(0);
    bench.run(["resume", queued.id()]).expect(0);
    assert_eq!(queued.wait(), 2);
    bench.run(["run", "--wait", "--", "true"]).expect(0);
    bench.audit();
}

#[test]
fn a_cancel_on_a_full_disk_is_refused_or_takes_effect() {
    let bench = bench!();
    let Some(disk) = small(&bench) else { return };
    let job = bench.sh("exec sleep 600");
    disk.fill("ballast");
    let stop = bench.run(["stop", "--timeout", "2s", job.id()]);
    assert_ne!(
        stop.code(),
        0,
        "it cannot be recorded, so it is not done: {stop:?}"
    );
    assert_eq!(job.state(), "running");
    free(&bench);
    let stop = bench.run(["stop", job.id()]);
    assert!(matches!(stop.code(), 0 | 6), "{stop:?}");
    job.until_recorded("cancelled");
    bench.audit();
}

#[test]
fn a_job_whose_log_is_on_a_full_disk_goes_on() {
    let bench = bench!();
    let Some(disk) = small(&bench) else { return };
    let script =
        "while [ ! -e go ]; do sleep 0.02; done; yes | head -c 300000; echo $? > wrote; exit 0";
    let plain = bench.sh(script);
    let carried = bench.sh_with(&["--log-max", "1M"], script);
    disk.fill("ballast");
    std::fs::write(bench.file("go"), "").unwrap();
    until("it has gone on", || bench.file("wrote").exists());
    free(&bench);
    assert_eq!(plain.wait(), 0);
    assert_eq!(carried.wait(), 0);
    whole(&bench);
    bench.audit();
}

#[test]
fn a_full_disk_keeps_nobody_busy() {
    let bench = bench!();
    let Some(disk) = small(&bench) else { return };
    let job = bench.sh("while [ ! -e go ]; do sleep 0.02; done; exit 7");
    disk.fill("ballast");
    let pid = job.pid();
    let worker = job.worker().unwrap();
    std::fs::write(bench.file("go"), "").unwrap();
    until("the command has ended", || {
        !matches!(outlive_tests::state_of(pid), Some('S' | 'R' | 'D'))
    });
    let before = cpu_ticks(worker.pid);
    bench
        .run(["wait", "--timeout", "1500ms", job.id()])
        .expect(5);
    let spent = cpu_ticks(worker.pid) - before;
    assert!(spent <= 30, "{spent} ticks of 10 ms in 1.5 s");
    free(&bench);
    assert_eq!(job.wait(), 7);
    bench.audit();
}

/// The processor time that a process has used, in ticks.
fn cpu_ticks(pid: i32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn a_read_only_store_is_read_and_every_write_to_it_fails_at_once() {
    let bench = bench!();
    let Some(disk) = small(&bench) else { return };
    let done = bench.sh("echo kept; exit 3");
    assert_eq!(done.wait(), 3);
    let paused = bench.sh_with(&["--pause", "stop"], "exec sleep 600");
    bench.run(["pause", paused.id()]).expect(0);
    let queued = bench.queue(&["true"]);
    until("nothing runs", || bench.census().is_empty());
    disk.remount("ro");
    assert_eq!(bench.list().len(), 3);
    assert_eq!(done.state(), "failed");
    assert_eq!(done.wait(), 3);
    assert_eq!(done.log_text(), "kept\n");
    let refused = |arguments: &[&str]| {
        let ran = bench.run(arguments);
        assert!(matches!(ran.code(), 1 | 6), "{ran:?}");
        assert!(ran.errors().contains("read-only"), "{ran:?}");
        assert!(
            ran.errors().contains(bench.root().to_str().unwrap()),
            "{ran:?}"
        );
    };
    refused(&["run", "--", "true"]);
    refused(&["stop", queued.id()]);
    refused(&["resume", queued.id()]);
    refused(&["resume", paused.id()]);
    refused(&["stop", paused.id()]);
    disk.remount("rw");
    paused.stop(0);
    queued.stop(0);
    bench.audit();
}

#[test]
fn a_worker_lost_on_a_full_disk_leaves_an_interrupted_job() {
    let bench = bench!();
    let Some(disk) = small(&bench) else { return };
    let job = bench.sh("while [ ! -e go ]; do sleep 0.02; done; exit 7");
    disk.fill("ballast");
    std::fs::write(bench.file("go"), "").unwrap();
    let pid = job.pid();
    until("the command has ended", || {
        !matches!(outlive_tests::state_of(pid), Some('S' | 'R' | 'D'))
    });
    // Losing the worker now loses what could not be recorded, and nothing else.
    job.kill_worker();
    assert_eq!(job.state(), "interrupted");
    free(&bench);
    bench.run(["resume", job.id()]).expect(0);
    assert_eq!(job.wait(), 7);
    bench.audit();
}

#[test]
fn an_end_that_comes_while_the_store_is_read_only_is_recorded_after() {
    let bench = bench!();
    let Some(disk) = small(&bench) else { return };
    let job = bench.sh("while [ ! -e go ]; do sleep 0.02; done; exit 7");
    let idle = bench.sh("exec sleep 600");
    let cover = disk.cover();
    std::fs::write(bench.file("go"), "").unwrap();
    let pid = job.pid();
    until("the command has ended", || {
        !matches!(outlive_tests::state_of(pid), Some('S' | 'R' | 'D'))
    });
    assert_eq!(job.shown()["alive"], true);
    assert_eq!(bench.list().len(), 2);
    for arguments in [
        &["stop", idle.id()][..],
        &["pause", idle.id()],
        &["run", "--", "true"],
    ] {
        let refused = bench.run(arguments);
        assert!(matches!(refused.code(), 1 | 6), "{refused:?}");
        assert!(refused.errors().contains("read-only"), "{refused:?}");
        assert_eq!(refused.errors().lines().count(), 1, "{refused:?}");
    }
    bench
        .run(["wait", "--timeout", "100ms", job.id()])
        .expect(5);
    drop(cover);
    assert_eq!(job.wait(), 7);
    assert_eq!(idle.state(), "running");
    idle.stop(0);
    job.expect_states(&["queued", "running", "failed"]);
    bench.audit();
}

#[test]
fn a_job_whose_next_attempt_is_due_on_a_full_disk_goes_on_once_there_is_space() {
    let bench = bench!();
    let Some(disk) = small(&bench) else { return };
    let job = bench.sh_with(
        &["--retry", "2", "--backoff", "100ms"],
        "echo x >> tries; while [ ! -e go ]; do sleep 0.02; done; exit 3",
    );
    let tries = || {
        let text = std::fs::read_to_string(bench.file("tries")).unwrap_or_default();
        text.lines().count()
    };
    until("it is tried", || tries() == 1);
    disk.fill("ballast");
    let (pid, worker) = (job.pid(), job.worker().unwrap());
    std::fs::write(bench.file("go"), "").unwrap();
    until("the command has ended", || {
        !matches!(outlive_tests::state_of(pid), Some('S' | 'R' | 'D'))
    });
    // The next attempt is due long before this returns; it cannot be recorded, and the worker stays, at rest.
    let before = cpu_ticks(worker.pid);
    bench
        .run(["wait", "--timeout", "1500ms", job.id()])
        .expect(5);
    let spent = cpu_ticks(worker.pid) - before;
    assert!(spent <= 30, "{spent} ticks of 10 ms in 1.5 s");
    assert_eq!(job.shown()["alive"], true);
    assert_eq!(tries(), 1, "an attempt that is not recorded is not made");
    free(&bench);
    assert_eq!(job.wait(), 3);
    assert_eq!(tries(), 3);
    assert_eq!(job.shown()["attempt"], 3);
    job.expect_states(&["queued", "running", "failed"]);
    assert_eq!(job.retries().len(), 2, "{:?}", job.events());
    whole(&bench);
    bench.audit();
}
