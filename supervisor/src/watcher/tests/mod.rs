//! The watcher on real directories. What needs a machine that has run out of something, or a process in which nobody else is
//! busy, is in `alone` and runs in a process of its own.

mod alone;
mod bench;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::time::Instant;

use outlive_mailbox::Drained;

use super::*;
use bench::{Bench, DEADLINE};

#[test]
fn a_record_that_takes_its_place_is_told_of_once_and_of_that_job_only() {
    let (mut bench, [a, _b]) = Bench::with(["a", "b"]);
    let (next, record) = (bench.at(&a, "status.json.new"), bench.at(&a, "status.json"));
    fs::write(&next, "{}").unwrap();
    assert_eq!(bench.heard(), []);
    fs::rename(&next, &record).unwrap();
    assert_eq!(bench.heard(), [Changed::Job(a)]);
}

#[test]
fn printing_and_reading_are_not_told_of() {
    let (mut bench, [a]) = Bench::with(["a"]);
    let mut log = File::create(bench.at(&a, "log")).unwrap();
    for _ in 0..100 {
        log.write_all(b"a line\n").unwrap();
    }
    fs::rename(bench.at(&a, "log"), bench.at(&a, "log.1")).unwrap();
    drop(log);
    assert_eq!(fs::read_dir(bench.dir(&a)).unwrap().count(), 1);
    assert_eq!(fs::read(bench.at(&a, "log.1")).unwrap().len(), 700);
    assert_eq!(bench.heard(), []);
}

#[test]
fn a_worker_that_lets_go_of_its_lock_is_told_of_and_a_reader_is_not() {
    let (mut bench, [a]) = Bench::with(["a"]);
    let lock = File::create(bench.at(&a, "lock")).unwrap();
    assert_eq!(bench.heard(), [Changed::Job(a.clone())]);
    drop(File::open(bench.at(&a, "lock")).unwrap());
    assert_eq!(bench.heard(), []);
    drop(lock);
    assert_eq!(bench.heard(), [Changed::Job(a)]);
}

#[test]
fn a_request_is_told_of_however_it_comes() {
    let (mut bench, [a]) = Bench::with(["a"]);
    let outside = tempfile::tempdir().unwrap();
    let ticket = outside.path().join("ticket");
    fs::write(&ticket, "stop").unwrap();
    fs::hard_link(&ticket, bench.at(&a, "control")).unwrap();
    assert_eq!(bench.heard(), [Changed::Job(a.clone())]);
    fs::rename(&ticket, bench.at(&a, "control")).unwrap();
    // Both are one file, so that this rename does nothing; the kernel has nothing to tell.
    assert_eq!(bench.heard(), []);
    fs::write(&ticket, "cancel").unwrap();
    fs::remove_file(bench.at(&a, "control")).unwrap();
    assert_eq!(bench.heard(), [Changed::Job(a.clone())]);
    fs::rename(&ticket, bench.at(&a, "control")).unwrap();
    assert_eq!(bench.heard(), [Changed::Job(a)]);
}

#[test]
fn jobs_that_come_and_go_are_told_of() {
    let (mut bench, [a, b]) = Bench::with(["a", "b"]);
    let staging = tempfile::tempdir_in(bench.root()).unwrap();
    fs::create_dir(staging.path().join("c")).unwrap();
    fs::rename(
        staging.path().join("c"),
        bench.dir(&JobId::parse("c").unwrap()),
    )
    .unwrap();
    assert_eq!(bench.heard(), [Changed::Job(JobId::parse("c").unwrap())]);

    fs::remove_dir(bench.dir(&a)).unwrap();
    assert_eq!(bench.heard(), [Changed::Job(a)]);

    let trashed = staging.path().join("b");
    fs::rename(bench.dir(&b), &trashed).unwrap();
    assert_eq!(bench.heard(), [Changed::Job(b)]);
    // What is done with it in the trash is nobody's business.
    fs::write(trashed.join("status.json"), "{}").unwrap();
    fs::remove_dir_all(trashed).unwrap();
    assert_eq!(bench.heard(), []);
    bench.assert_watched(["marker"]);
}

#[test]
fn a_job_that_is_forgotten_is_not_told_of() {
    let (mut bench, [a]) = Bench::with(["a"]);
    fs::write(bench.at(&a, "status.json"), "{}").unwrap();
    bench.watcher.forget(&a);
    bench.heard();
    fs::write(bench.at(&a, "status.json"), "{}").unwrap();
    assert_eq!(bench.heard(), []);
    bench.watcher.forget(&a);
    bench.assert_watched(["marker"]);

    bench.watcher.watch(&a);
    bench.watcher.watch(&a);
    fs::write(bench.at(&a, "status.json"), "{}").unwrap();
    assert_eq!(bench.heard(), [Changed::Job(a)]);
    bench.assert_watched(["a", "marker"]);
}

#[test]
fn another_directory_in_the_place_of_the_first_is_watched() {
    let (mut bench, [a]) = Bench::with(["a"]);
    for _ in 0..20 {
        // Sometimes the thread sees this at once, and sometimes late.
        fs::remove_dir_all(bench.dir(&a)).unwrap();
        fs::create_dir(bench.dir(&a)).unwrap();
        bench.watcher.watch(&a);
        bench.heard();
        fs::write(bench.at(&a, "status.json"), "{}").unwrap();
        assert_eq!(bench.heard(), [Changed::Job(a.clone())]);
        bench.assert_watched(["a", "marker"]);
    }
}

#[test]
fn a_directory_that_takes_another_name_is_told_of_under_the_one_it_has() {
    let (mut bench, [a]) = Bench::with(["a"]);
    let b = JobId::parse("b").unwrap();
    {
        let mut book = bench.watcher.shared.book();
        fs::rename(bench.dir(&a), bench.dir(&b)).unwrap();
        // Before the thread could hear of it: one directory, one watch.
        book.watch(&Changed::Job(b.clone()));
    }
    bench.heard();
    fs::write(bench.at(&b, "status.json"), "{}").unwrap();
    assert_eq!(bench.heard(), [Changed::Job(b)]);
    bench.assert_watched(["b", "marker"]);
}

#[test]
fn a_link_is_not_followed_and_nothing_is_not_waited_for() {
    let mut bench = Bench::new();
    let outside = tempfile::tempdir().unwrap();
    let (link, file, none) = (bench.id("link"), bench.id("file"), bench.id("none"));
    symlink(outside.path(), bench.dir(&link)).unwrap();
    fs::write(bench.dir(&file), "").unwrap();
    for id in [&link, &file, &none] {
        bench.watcher.watch(id);
    }
    bench.heard();
    fs::write(outside.path().join("status.json"), "{}").unwrap();
    assert_eq!(bench.heard(), []);
    bench.assert_watched(["marker"]);
    assert!(!bench.watcher.shared.book().is_blind());
}

#[test]
fn a_thousand_jobs_are_told_of() {
    let mut bench = Bench::new();
    let ids: Vec<JobId> = (0..1000).map(|nth| bench.add(&format!("j{nth}"))).collect();
    bench.heard();
    for id in &ids {
        fs::write(bench.at(id, "status.json.new"), "{}").unwrap();
        fs::rename(bench.at(id, "status.json.new"), bench.at(id, "status.json")).unwrap();
    }
    let all: BTreeSet<Changed> = ids.into_iter().map(Changed::Job).collect();
    assert_eq!(bench.heard(), Vec::from_iter(all));
}

#[test]
fn when_events_are_lost_everybody_is_told_to_look_and_the_watches_are_right_again() {
    let room = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let room: usize = room.trim().parse().unwrap();
    if room > 100_000 {
        return; // it would take too long to fill
    }
    let (mut bench, [a, gone, anew]) = Bench::with(["a", "gone", "anew"]);
    {
        // While somebody has the book, the thread cannot read on.
        let book = bench.watcher.shared.book();
        let noise = bench.at(&a, "noise");
        for _ in 0..=room {
            drop(File::create(&noise).unwrap());
            fs::remove_file(&noise).unwrap();
        }
        // Nothing of this is told of any more.
        fs::remove_dir(bench.dir(&gone)).unwrap();
        fs::remove_dir(bench.dir(&anew)).unwrap();
        fs::create_dir(bench.dir(&anew)).unwrap();
        drop(book);
    }
    bench.wait_for_everything();
    bench.settle();
    bench.assert_watched(["a", "anew", "marker"]);
    fs::write(bench.at(&anew, "status.json"), "{}").unwrap();
    assert_eq!(bench.heard(), [Changed::Job(anew)]);
}

#[test]
fn dropped_it_is_gone_and_closed_it_ends() {
    let Bench {
        jobs: _jobs,
        watcher,
        mut mailbox,
    } = Bench::new();
    drop(watcher);
    while let Drained::Notices(_) = bench::next(&mut mailbox) {}

    let bench = Bench::new();
    bench.mailbox.close();
    fs::create_dir(bench.jobs.path().join("unheard")).unwrap();
    let deadline = Instant::now() + DEADLINE;
    while !bench.watcher.thread.as_ref().unwrap().is_finished() {
        assert!(Instant::now() < deadline, "it goes on");
        thread::yield_now();
    }
}
