use std::fs;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use state_machine::control::Request;
use state_machine::id::PoolName;
use state_machine::job::State;
use state_machine::protocol::pool::Wish;

use super::*;
use crate::store::{Job, JobSpec};

const LONG: Duration = Duration::from_secs(30);

struct Scratch {
    _dir: tempfile::TempDir,
    store: Store,
}

fn scratch() -> Scratch {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().join("store")).unwrap();
    Scratch { _dir: dir, store }
}

impl Scratch {
    /// A job that waits, and that nobody starts.
    fn job(&self) -> Job {
        self.store.create(JobSpec::command(["true"])).unwrap()
    }
}

/// Whether it can be read within this time.
fn is_readable(live: &Live, time: Duration) -> bool {
    let time = Timespec::try_from(time).unwrap();
    let mut fds = [PollFd::from_borrowed_fd(live.as_fd(), PollFlags::IN)];
    poll(&mut fds, Some(&time)).unwrap() > 0
}

/// Wait, and see what changes, until that is as it should be.
#[track_caller]
fn see(live: &mut Live, mut as_it_should_be: impl FnMut(&Live, &Changes) -> bool) {
    let deadline = Instant::now() + LONG;
    let mut seen = Changes::default();
    while !as_it_should_be(live, &seen) {
        let left = deadline.saturating_duration_since(Instant::now());
        assert!(is_readable(live, left), "in vain; seen: {seen:?}");
        let changes = live.update().unwrap();
        seen.jobs.extend(changes.jobs);
        seen.output.extend(changes.output);
        seen.pools |= changes.pools;
        seen.damaged |= changes.damaged;
    }
}

/// Wait until nobody would wake it any more.
fn settle(live: &mut Live) {
    while !live.ear.sleeps() || is_readable(live, Duration::ZERO) {
        assert!(is_readable(live, LONG));
        live.update().unwrap();
    }
}

fn state(live: &Live, job: &Job) -> Option<State> {
    live.job(job.id()).map(|view| view.state)
}

#[test]
fn jobs_that_come_change_and_go_are_seen_and_named() {
    let scratch = scratch();
    let first = scratch.job();
    let mut live = Live::open(&scratch.store).unwrap();
    assert_eq!(live.jobs().count(), 1);
    assert_eq!(state(&live, &first), Some(State::Queued));
    settle(&mut live);

    let second = scratch.job();
    see(&mut live, |live, seen| {
        state(live, &second) == Some(State::Queued) && seen.jobs.contains(second.id())
    });
    let ids: Vec<_> = live.jobs().map(|view| view.descriptor.id.clone()).collect();
    assert_eq!(ids, [first.id().clone(), second.id().clone()]);

    first.request(Request::Cancel).unwrap();
    see(&mut live, |live, seen| {
        assert!(!seen.jobs.contains(second.id()));
        state(live, &first) == Some(State::Cancelled)
    });
    // What has ended is not watched any more, and still seen to go.
    settle(&mut live);
    fs::remove_dir_all(first.dir()).unwrap();
    see(&mut live, |live, seen| {
        live.job(first.id()).is_none() && seen.jobs.contains(first.id())
    });
    settle(&mut live);
    assert!(!is_readable(&live, Duration::ZERO));
}

#[test]
fn what_has_ended_is_not_read_again() {
    let scratch = scratch();
    let ended = scratch.job();
    ended.request(Request::Cancel).unwrap();
    let mut live = Live::open(&scratch.store).unwrap();
    settle(&mut live);
    // As nobody writes: a record that is written over tells nobody, and would be noticed by whoever reads it.
    let before = live.job(ended.id()).cloned();
    fs::write(ended.dir().join("status.json"), b"{").unwrap();
    let other = scratch.job();
    see(&mut live, |live, _| state(live, &other).is_some());
    settle(&mut live);
    assert_eq!(live.job(ended.id()).cloned(), before);
    assert_eq!(live.damaged().count(), 0);
}

#[test]
fn what_cannot_be_read_hides_nothing_and_can_be_mended() {
    let scratch = scratch();
    let (good, bad) = (scratch.job(), scratch.job());
    let path = bad.dir().join("job.json");
    let was = fs::read(&path).unwrap();
    let replace = |bytes: &[u8]| {
        let new = bad.dir().join("new");
        fs::write(&new, bytes).unwrap();
        fs::rename(&new, &path).unwrap();
    };
    replace(b"{");
    fs::write(scratch.store.jobs_dir().join("not a job"), b"").unwrap();
    let mut live = Live::open(&scratch.store).unwrap();
    assert_eq!(state(&live, &good), Some(State::Queued));
    assert_eq!(live.jobs().count(), 1);
    assert_eq!(live.damaged().count(), 2);
    settle(&mut live);

    replace(&was);
    see(&mut live, |live, seen| {
        state(live, &bad).is_some() && seen.damaged && live.damaged().count() == 1
    });
    replace(b"");
    see(&mut live, |live, _| {
        state(live, &bad).is_none() && live.damaged().count() == 2
    });
    fs::remove_file(scratch.store.jobs_dir().join("not a job")).unwrap();
    see(&mut live, |live, _| live.damaged().count() == 1);
}

#[test]
fn the_output_of_a_job_is_told_of_while_it_is_followed() {
    let scratch = scratch();
    let job = scratch.job();
    let mut live = Live::open(&scratch.store).unwrap();
    let mut log = fs::File::create(job.dir().join("log")).unwrap();
    settle(&mut live);
    let mut print = || std::io::Write::write_all(&mut log, b"line\n").unwrap();
    print();
    assert!(!is_readable(&live, Duration::ZERO));

    live.follow(job.id());
    print();
    see(&mut live, |_, seen| seen.output.contains(job.id()));
    settle(&mut live);
    live.unfollow(job.id());
    print();
    assert!(!is_readable(&live, Duration::ZERO));
    // Also that of a job that has ended, which a process that was left may go on writing to.
    job.request(Request::Cancel).unwrap();
    see(&mut live, |live, _| {
        state(live, &job) == Some(State::Cancelled)
    });
    settle(&mut live);
    live.follow(job.id());
    print();
    see(&mut live, |_, seen| seen.output.contains(job.id()));
    live.unfollow(job.id());
    settle(&mut live);
    print();
    assert!(!is_readable(&live, Duration::ZERO));
}

#[test]
fn pools_are_seen_to_come_and_change_and_to_be_waited_in() {
    let scratch = scratch();
    let mut live = Live::open(&scratch.store).unwrap();
    assert_eq!(live.pools().len(), 1);
    let name = PoolName::parse("web").unwrap();
    let of = |slots| Wish {
        slots: Some(slots),
        ..Wish::default()
    };
    settle(&mut live);
    scratch.store.add_pool(&name, of(2)).unwrap();
    see(&mut live, |live, seen| {
        seen.pools && live.pools().len() == 2
    });
    settle(&mut live);
    scratch.store.set_pool(&name, of(5)).unwrap();
    see(&mut live, |live, _| live.pools()[1].slots == 5);
    let mut spec = JobSpec::command(["true"]);
    spec.pool = Some(name.to_string());
    scratch.store.queue(spec).unwrap();
    see(&mut live, |live, _| live.pools()[1].waiting == 1);
    settle(&mut live);
    fs::write(
        scratch.store.root().join("config.toml"),
        b"[pool.b]\nslots = 1\n",
    )
    .unwrap();
    see(&mut live, |live, _| live.pools().len() == 3);
    fs::write(scratch.store.root().join("config.toml"), b"[pool.").unwrap();
    see(&mut live, |live, _| live.damaged().count() == 1);
    assert_eq!(live.pools().len(), 3);
    fs::remove_file(scratch.store.root().join("config.toml")).unwrap();
    see(&mut live, |live, _| {
        live.damaged().count() == 0 && live.pools().len() == 2
    });
}

/// As on a machine with nothing left.
fn without_inotify(store: &Store) -> Live {
    let none = || Err(io::Error::from(io::ErrorKind::OutOfMemory));
    Live::with(store, Ear::with(store, none).unwrap()).unwrap()
}

#[test]
fn with_no_inotify_it_looks_on_its_own() {
    let scratch = scratch();
    let gone = scratch.job();
    let mut live = without_inotify(&scratch.store);
    let job = scratch.job();
    see(&mut live, |live, _| {
        state(live, &job) == Some(State::Queued)
    });
    job.request(Request::Cancel).unwrap();
    fs::remove_dir_all(gone.dir()).unwrap();
    see(&mut live, |live, _| {
        state(live, &job) == Some(State::Cancelled) && live.job(gone.id()).is_none()
    });
}

#[test]
fn with_no_inotify_a_supervisor_tells_as_long_as_there_is_one() {
    use std::io::{Read, Write};
    let scratch = scratch();
    let listener = crate::dial::listen(scratch.store.root()).unwrap();
    listener.set_nonblocking(false).unwrap();
    let mut live = without_inotify(&scratch.store);
    assert!(live.ear.is_told());
    let (mut supervisor, _) = listener.accept().unwrap();
    let mut ask = [0; 64];
    assert!(supervisor.read(&mut ask).unwrap() > 0);
    supervisor.write_all(b"{\"ok\":\"subscribed\"}\n").unwrap();
    let job = scratch.job();
    supervisor.write_all(b"{\"changed\":null}\n").unwrap();
    see(&mut live, |live, _| {
        state(live, &job) == Some(State::Queued)
    });
    assert!(live.ear.is_told());
    drop((supervisor, listener));
    job.request(Request::Cancel).unwrap();
    see(&mut live, |live, _| {
        state(live, &job) == Some(State::Cancelled)
    });
    assert!(!live.ear.is_told());
}

#[test]
fn when_events_were_lost_everything_is_looked_at() {
    let scratch = scratch();
    let (kept, gone) = (scratch.job(), scratch.job());
    let mut live = Live::open(&scratch.store).unwrap();
    settle(&mut live);
    fs::remove_dir_all(gone.dir()).unwrap();
    kept.request(Request::Cancel).unwrap();
    let new = scratch.job();
    let mut changes = Changes::default();
    let lost = Heard {
        lost: true,
        ..Heard::default()
    };
    live.look(lost, &mut changes).unwrap();
    assert_eq!(state(&live, &kept), Some(State::Cancelled));
    assert_eq!(state(&live, &new), Some(State::Queued));
    let ids = [kept.id(), gone.id(), new.id()].map(Clone::clone);
    assert_eq!(changes.jobs, BTreeSet::from(ids));
    // And heard of from now on.
    settle(&mut live);
    new.request(Request::Cancel).unwrap();
    see(&mut live, |live, _| {
        state(live, &new) == Some(State::Cancelled)
    });
}

#[test]
fn a_runtime_that_hears_of_edges_misses_nothing() {
    let scratch = scratch();
    let live = Live::open(&scratch.store).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let store = scratch.store.clone();
    let writer = std::thread::spawn(move || {
        for _ in 0..40 {
            let job = store.create(JobSpec::command(["true"])).unwrap();
            job.request(Request::Cancel).unwrap();
        }
    });
    runtime.block_on(async {
        let mut live = crate::reactor::readable(live).unwrap();
        let is_over = |live: &Live| {
            let cancelled = live.jobs().filter(|view| view.state == State::Cancelled);
            cancelled.count() == 40
        };
        while !is_over(live.get_ref()) {
            let readable = tokio::time::timeout(LONG, live.readable_mut()).await;
            let mut readable = readable.expect("it is told in time").unwrap();
            readable.clear_ready();
            readable.get_inner_mut().update().unwrap();
        }
    });
    writer.join().unwrap();
}
