//! Records, histories and locks that are torn, emptied or gone.

use outlive_tests::{bench, until};

use crate::{TREE, commands};

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
