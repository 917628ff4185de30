//! How many jobs a spawner gets through in a second, asked for two at a time, until each is recorded and its worker gone.
//!
//! `cargo bench -p outlive-tests --bench spawner [-- DIR [JOBS [AT_A_TIME]]]`: the store is made in DIR (`/dev/shm`, say),
//! or where temporary files are. Beside it stands what the same number of `true` costs with nothing around it, unless
//! `OUTLIVE_BENCH_NO_FLOOR` is set.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use outlive::spawner::{Answer, Spawner};
use outlive::state_machine::id::JobId;
use outlive::state_machine::job::State;
use outlive::worker::Launcher;
use outlive::{JobSpec, Store};
use rustix::event::{PollFd, PollFlags, poll};

fn main() {
    // `cargo test --benches` only wants to know that it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let within = arguments
        .first()
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let number = |index: usize, usual: usize| {
        arguments
            .get(index)
            .map_or(usual, |word| word.parse().expect("a number"))
    };
    let (jobs, at_a_time) = (number(1, 1000), number(2, 2));
    let dir = tempfile::Builder::new()
        .prefix("outlive-bench-")
        .tempdir_in(&within)
        .expect("there is room for a store");
    let store = Store::open(dir.path().join("store")).expect("a store can be made");
    let ids: Vec<JobId> = (0..jobs)
        .map(|_| {
            let mut spec = JobSpec::command(["true"]);
            spec.cwd = dir.path().to_owned();
            store.create(spec).expect("a job can be made").id().clone()
        })
        .collect();
    let launcher = Launcher::outlive_at(env!("CARGO_BIN_EXE_outlive-under-test"));
    let spawner = Spawner::start(&store, &launcher, None).expect("a spawner can be started");
    println!("spawner {} in {}", spawner.pid(), dir.path().display());

    let took = go_through(&spawner, &ids, at_a_time);
    println!(
        "{jobs} jobs, {at_a_time} at a time: {:.0} ms, {:.0} jobs/s",
        took.as_secs_f64() * 1000.0,
        jobs as f64 / took.as_secs_f64()
    );
    let done = store.list().expect("the store can be listed").jobs;
    assert!(done.iter().all(|view| view.state == State::Done));
    if std::env::var_os("OUTLIVE_BENCH_NO_FLOOR").is_some() {
        return;
    }
    let plain = plain(jobs, at_a_time);
    println!(
        "{jobs} times 'true' alone, {at_a_time} at a time: {:.0}/s",
        jobs as f64 / plain.as_secs_f64()
    );
}

/// Ask for every job, so many at a time, and wait until the last worker has left.
fn go_through(spawner: &Spawner, ids: &[JobId], at_a_time: usize) -> Duration {
    let began = Instant::now();
    let (mut waiting, mut under_way) = (ids.iter(), 0);
    loop {
        while under_way < at_a_time {
            let Some(id) = waiting.next() else { break };
            spawner.ask(id, Some(1)).expect("it can be asked");
            under_way += 1;
        }
        if under_way == 0 {
            return began.elapsed();
        }
        let fd = spawner.as_fd();
        poll(&mut [PollFd::new(&fd, PollFlags::IN)], None).expect("a poll");
        while let Some(answer) = spawner.receive().expect("it answers") {
            match answer {
                Answer::Left { code: 0, .. } => under_way -= 1,
                Answer::Forked { .. }
                | Answer::Started { running: true, .. }
                | Answer::Vacated { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

/// The floor: the command alone, forked and executed by as many threads.
fn plain(jobs: usize, at_a_time: usize) -> Duration {
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..at_a_time {
            scope.spawn(|| {
                for _ in 0..jobs / at_a_time {
                    Command::new("/bin/true").status().expect("true can be run");
                }
            });
        }
    });
    began.elapsed()
}
