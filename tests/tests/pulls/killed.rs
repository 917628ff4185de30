//! Workers and fetchers that are killed, stopped or lose a file, and whatever is done before they go on: what has arrived is not
//! fetched again, nothing stays locked, and nothing is wedged.

use std::fs;

use outlive_tests::{Bench, Dice, Job, Process, Served, Server, bench, rounds, until, until_some};
use rustix::process::Signal;

use super::pull::{
    account, begin, halting, holding, nothing_is_left, only_job, pull, staged, until_arrived,
};

const LENGTH: usize = 300_000;
const THIRD: u64 = 100_000;

fn fetchers(bench: &Bench) -> Vec<Process> {
    let mut found = bench.census();
    found.retain(|process| process.title.contains("outlive fetcher"));
    found
}

/// P12: nothing that is done meanwhile takes away what has arrived, and a supervisor goes on with it.
#[test]
fn whatever_is_done_meanwhile_costs_nothing() {
    let bench = bench!();
    bench.crashes();
    let file = Served::of_length(LENGTH, 60);
    let bytes = file.bytes.clone();
    let server = halting(file, 1);
    let job = begin(&bench, &server.url("/file.bin"), &[]);
    until_arrived(&bench, THIRD);
    bench.run(["pause", job.id()]).expect(0);
    job.until_recorded("paused");
    let verbs: [&[&str]; 8] = [
        &["list"],
        &["list", "--all", "--json"],
        &["status", job.id()],
        &["log", job.id()],
        &["events", job.id()],
        &["doctor"],
        &["doctor", "--fix"],
        &["clean"],
    ];
    for verb in verbs {
        bench.run(verb).expect(0);
    }
    bench.run(["supervise", "--idle-exit", "10ms"]).expect(0);
    until_arrived(&bench, THIRD);
    assert_eq!(job.state(), "paused", "nobody has gone on with it");
    bench.run(["resume", job.id()]).expect(0);
    assert_eq!(job.wait(), 0);
    assert_eq!(server.asked()[1].range(), Some((THIRD, None)));
    assert!(fs::read(bench.file("file.bin")).unwrap() == *bytes);
    bench.audit();
}

/// P12, P33: a supervisor that comes after the worker was killed goes on with it, and fetches what is missing.
#[test]
fn a_supervisor_goes_on_with_what_was_killed() {
    let bench = bench!();
    let file = Served::of_length(LENGTH, 61);
    let bytes = file.bytes.clone();
    let server = halting(file, 1);
    let job = begin(&bench, &server.url("/file.bin"), &[]);
    until_arrived(&bench, THIRD);
    until_recorded(&bench, THIRD);
    job.kill_worker();
    bench.run(["supervise", "--idle-exit", "10ms"]).expect(0);
    job.until_ended();
    assert_eq!(job.recorded(), "done");
    assert_eq!(server.asked()[1].range(), Some((THIRD, None)));
    assert!(fs::read(bench.file("file.bin")).unwrap() == *bytes);
    nothing_is_left(&bench.work());
    bench.audit();
}

/// Wait until the record beside the part says that so much has come.
fn until_recorded(bench: &Bench, bytes: u64) {
    let staging = bench.work().join("file.bin.outlive-part");
    until("what has come is recorded", || {
        let record = staged(&staging, ".json").pop();
        let text = record.and_then(|path| fs::read_to_string(path).ok());
        text.is_some_and(|text| text.contains(&format!("\"done\":{bytes}")))
    });
}

/// P28, P50: whichever file of the job is taken away, emptied or garbled, there is an answer, and the same pull again is all that
/// is needed.
#[test]
fn no_file_of_a_job_that_is_spoilt_wedges_it() {
    type Spoil = fn(&std::path::Path);
    let spoils: [Spoil; 3] = [
        |path| fs::remove_file(path).unwrap(),
        |path| fs::write(path, b"").unwrap(),
        |path| fs::write(path, [0; 100]).unwrap(),
    ];
    let names = [
        "job.json",
        "status.json",
        "events.jsonl",
        "lock",
        "tree",
        "log",
        "parts",
    ];
    for name in names {
        // A line of the history that is no line is for people to see.
        let kinds = if name == "events.jsonl" { 2 } else { 3 };
        for spoil in &spoils[..kinds] {
            let bench = bench!();
            bench.crashes();
            let file = Served::of_length(LENGTH, 62);
            let bytes = file.bytes.clone();
            let server = halting(file, 1);
            let url = server.url("/file.bin");
            let job = begin(&bench, &url, &[]);
            until_arrived(&bench, THIRD);
            bench.run(["pause", job.id()]).expect(0);
            until("its worker is gone", || bench.census().is_empty());
            if !job.file(name).exists() {
                // It has none of these while it is at rest.
                bench.audit();
                break;
            }
            spoil(&job.file(name));
            bench.run(["status", job.id()]);
            bench.run(["list", "--all"]);
            bench.run(["resume", job.id()]);
            // What is needed to tell what it is, or to take it, is not made up: it is named, and people mend it.
            let mend: Option<fn(&Job<'_>)> = match name {
                "job.json" => Some(|job| fs::remove_dir_all(job.dir()).unwrap()),
                "lock" if !job.file(name).exists() => Some(|job| {
                    fs::write(job.file("lock"), b"").unwrap();
                }),
                _ => None,
            };
            if let Some(mend) = mend {
                let refused = pull(&bench, &url, &[]).expect(1);
                assert!(refused.errors().contains(name), "{}", refused.errors());
                mend(&job);
            }
            // Whether going on has worked or not.
            pull(&bench, &url, &[]).expect(0);
            assert!(
                fs::read(bench.file("file.bin")).unwrap() == *bytes,
                "{name}"
            );
            nothing_is_left(&bench.work());
            bench.audit();
        }
    }
}

/// P29: at any moment, by any signal, to whoever works: what stands under the final name is all of it, or nothing.
#[test]
fn at_no_moment_a_part_stands_for_the_whole() {
    let mut dice = Dice::new();
    for _ in 0..rounds(3) {
        let bench = bench!();
        bench.crashes();
        let file = Served::of_length(6_000_000, 63);
        let bytes = file.bytes.clone();
        let server = Server::new(move |request, reply| {
            file.serve_some(request, reply, 500_000);
        });
        let url = server.url("/file.bin");
        let lands = || match fs::read(bench.file("file.bin")) {
            Ok(found) => assert!(found == *bytes, "{} bytes stand there", found.len()),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound),
        };
        for _ in 0..6 {
            begin(&bench, &url, &[]);
            dice.moment(300_000);
            let mut found = bench.census();
            found.retain(|it| it.is_worker() || it.title.contains("outlive fetcher"));
            if !found.is_empty() {
                let signal = *dice.pick(&[Signal::INT, Signal::TERM, Signal::KILL]);
                let victim = dice.pick(&found);
                victim.signal(signal);
                // Until then its job runs, and who pulls joins it and is told how it ends.
                until("what was signalled is gone", || !victim.lives());
            }
            lands();
        }
        pull(&bench, &url, &[]).expect(0);
        lands();
        assert!(bench.file("file.bin").exists());
        nothing_is_left(&bench.work());
        bench.audit();
    }
}

/// P38: a fetcher that cannot run does not keep the job of a worker that was killed.
#[test]
fn a_fetcher_that_stands_still_keeps_nothing_locked() {
    let bench = bench!();
    let file = Served::of_length(LENGTH, 64);
    let bytes = file.bytes.clone();
    let server = halting(file, 1);
    let job = begin(&bench, &server.url("/file.bin"), &[]);
    until_arrived(&bench, THIRD);
    let fetcher = until_some("there is a fetcher", || fetchers(&bench).pop());
    fetcher.signal(Signal::STOP);
    job.kill_worker();
    assert_eq!(job.state(), "interrupted");
    bench.run(["resume", job.id()]).expect(0);
    assert_eq!(job.wait(), 0);
    assert!(!fetcher.lives());
    assert!(fs::read(bench.file("file.bin")).unwrap() == *bytes);
    bench.audit();
}

/// P39: a lock is held by a process, and no file that is there stands for one; nor does what another boot has left.
#[test]
fn what_another_boot_has_left_is_no_lock() {
    for synced in [0, 50_000] {
        let bench = bench!();
        let file = Served::of_length(LENGTH, 65);
        let bytes = file.bytes.clone();
        let server = halting(file, 1);
        let url = server.url("/file.bin");
        let job = begin(&bench, &url, &[]);
        until_arrived(&bench, THIRD);
        until_recorded(&bench, THIRD);
        job.kill_worker();
        let staging = bench.work().join("file.bin.outlive-part");
        assert_eq!(staged(&staging, ".part").len(), 1);
        let path = staged(&staging, ".json").pop().unwrap();
        let mut record: serde_json::Value =
            serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        record["boot"] = "another".into();
        record["runs"][0]["synced"] = synced.into();
        fs::write(&path, record.to_string()).unwrap();
        fs::write(path.with_extension("json.new"), b"{").unwrap();
        pull(&bench, &url, &[]).expect(0);
        assert!(fs::read(bench.file("file.bin")).unwrap() == *bytes);
        // Only what was synced survives a loss of power.
        let range = (synced > 0).then_some((synced, None));
        assert_eq!(server.asked()[1].range(), range);
        assert_eq!(account(&only_job(&bench), "reused_bytes"), synced);
        nothing_is_left(&bench.work());
        bench.audit();
    }
}

/// P13: what was cancelled can be seen, with what it has.
#[test]
fn what_was_cancelled_is_listed_with_what_it_has() {
    let bench = bench!();
    let (server, go) = holding(Served::of_length(LENGTH, 66));
    let job = begin(&bench, &server.url("/file.bin"), &[]);
    until_arrived(&bench, 150_000);
    job.stop(0);
    go.store(true, std::sync::atomic::Ordering::Relaxed);
    let listed = bench.list();
    assert_eq!(listed[0]["state"], "cancelled");
    assert_eq!(listed[0]["progress"]["done_bytes"], 150_000);
    until("its worker is gone", || job.worker().is_none());
    bench.run(["clean", job.id()]).expect(0);
    nothing_is_left(&bench.work());
    bench.audit();
}
