//! A directory of jobs, its watcher, and what that says.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use outlive_mailbox::{Drained, Mailbox, Notices, mailbox};
use state_machine::id::JobId;
use tempfile::TempDir;

use crate::watcher::{Changed, Watcher};

/// How long is waited for what must come.
pub(super) const DEADLINE: Duration = Duration::from_secs(30);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Unpark>) {
        self.0.unpark();
    }
}

/// The next that is said. What is not said in time is a failure.
pub(super) fn next(mailbox: &mut Mailbox<Changed>) -> Drained<Changed> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Poll::Ready(drained) = mailbox.poll_next(&mut Context::from_waker(&waker)) {
            return drained;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "nothing was said");
        thread::park_timeout(left);
    }
}

pub(super) struct Bench {
    pub(super) jobs: TempDir,
    pub(super) watcher: Watcher,
    pub(super) mailbox: Mailbox<Changed>,
}

impl Bench {
    /// With a watched job, `marker`, and nothing to say about it.
    pub(super) fn new() -> Bench {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let jobs = tempfile::tempdir().unwrap();
            let (poster, mailbox) = mailbox(10_000);
            let watcher = Watcher::start(jobs.path(), poster).unwrap();
            let mut bench = Bench::of(jobs, watcher, mailbox);
            // Another test uses up all that this user may have, for a moment.
            if bench.watcher.shared.book().instance().is_some() {
                bench.add("marker");
                bench.settle();
                return bench;
            }
            assert!(Instant::now() < deadline, "there is no instance to be had");
        }
    }

    /// Of what is there already.
    pub(super) fn of(jobs: TempDir, watcher: Watcher, mailbox: Mailbox<Changed>) -> Bench {
        Bench {
            jobs,
            watcher,
            mailbox,
        }
    }

    /// With these jobs too.
    pub(super) fn with<const N: usize>(jobs: [&str; N]) -> (Bench, [JobId; N]) {
        let mut bench = Bench::new();
        let jobs = jobs.map(|job| bench.add(job));
        bench.settle();
        (bench, jobs)
    }

    pub(super) fn id(&self, job: &str) -> JobId {
        JobId::parse(job).unwrap()
    }

    pub(super) fn dir(&self, job: &JobId) -> PathBuf {
        self.jobs.path().join(job.as_str())
    }

    pub(super) fn at(&self, job: &JobId, name: &str) -> PathBuf {
        self.dir(job).join(name)
    }

    /// A directory on the same file system that is not watched.
    pub(super) fn root(&self) -> &Path {
        self.jobs.path().parent().unwrap()
    }

    pub(super) fn add(&self, job: &str) -> JobId {
        let id = self.id(job);
        fs::create_dir(self.dir(&id)).unwrap();
        self.watcher.watch(&id);
        id
    }

    /// All that is said of what has happened until now.
    ///
    /// The queue of the kernel has an order, so the marker's turn comes last. It comes twice: what was read together is said
    /// in any order, but all of it before what was read later.
    pub(super) fn heard(&mut self) -> Vec<Changed> {
        let marker = Changed::Job(self.id("marker"));
        let mut all = BTreeSet::new();
        for _twice in 0..2 {
            // One event each: a directory is not closed. A name that is told of.
            let mark = self.at(&self.id("marker"), "control");
            fs::create_dir(&mark).unwrap();
            self.wait_for(&marker, &mut all);
            fs::remove_dir(&mark).unwrap();
            self.wait_for(&marker, &mut all);
        }
        Vec::from_iter(all)
    }

    /// Until everything is said of what has happened, whatever it is.
    pub(super) fn settle(&mut self) {
        self.heard();
    }

    fn wait_for(&mut self, awaited: &Changed, all: &mut BTreeSet<Changed>) {
        loop {
            match next(&mut self.mailbox) {
                Drained::Notices(Notices::Of(mut some)) => all.append(&mut some),
                other => panic!("{other:?}"),
            }
            if all.remove(awaited) {
                return;
            }
        }
    }

    pub(super) fn wait_for_everything(&mut self) {
        while next(&mut self.mailbox) != Drained::Notices(Notices::Everything) {}
    }

    /// Until what is done is told of with this word. Where "everything" has swallowed it, it is done again.
    pub(super) fn wait_until(&mut self, awaited: &Changed, act: impl Fn()) {
        act();
        loop {
            match next(&mut self.mailbox) {
                Drained::Notices(Notices::Of(some)) if some.contains(awaited) => return,
                Drained::Notices(Notices::Of(_)) => {}
                Drained::Notices(Notices::Everything) => act(),
                Drained::Gone => panic!("the watcher is gone"),
            }
        }
    }

    /// These jobs have a watch and no others.
    pub(super) fn assert_watched<const N: usize>(&self, jobs: [&str; N]) {
        let jobs = jobs.map(|job| Changed::Job(self.id(job)));
        assert_eq!(self.watcher.shared.book().watched(), jobs);
    }
}
