//! Tests that need a process of their own: what they use up, or count, is the whole process's.

use std::fs::{self, File};
use std::io::Write;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use outlive_mailbox::mailbox;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::bench::{Bench, DEADLINE};
use crate::watcher::{Changed, Watcher};

/// Runs the ignored test `name` of this module in a process that these words start, and wants it to pass.
fn alone(words: &[&str], name: &str) {
    let test = format!("{}::{name}", module_path!().split_once("::").unwrap().1);
    let output = Command::new("env")
        .args(words)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &test, "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn without_an_instance_it_is_blind_and_says_so_once_until_it_has_one() {
    alone(&[], "no_descriptor_is_left");
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn no_descriptor_is_left() {
    let warnings = Warnings::count();
    let limit = getrlimit(Resource::Nofile);
    let jobs = tempfile::tempdir().unwrap();
    let (poster, mailbox) = mailbox(10);
    // One more descriptor, which is the bell, and the next cannot be had.
    let next = rustix::io::dup(std::io::stdin()).unwrap();
    let lowest = std::os::fd::AsRawFd::as_raw_fd(&next) as u64;
    drop(next);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(lowest + 1),
            ..limit
        },
    )
    .unwrap();
    let watcher = Watcher::start(jobs.path(), poster).unwrap();
    setrlimit(Resource::Nofile, limit).unwrap();
    assert!(watcher.shared.book().instance().is_none());
    let mut bench = Bench::of(jobs, watcher, mailbox);
    bench.add("marker");

    // At the first look after the limit is gone, if no other test uses up what there is.
    bench.wait_for_everything();
    while bench.watcher.shared.book().is_blind() {
        bench.wait_for_everything();
    }
    assert_eq!(warnings.load(Ordering::SeqCst), 1);
    let a = bench.add("a");
    bench.settle();
    fs::write(bench.at(&a, "status.json"), "{}").unwrap();
    assert_eq!(bench.heard(), [Changed::Job(a)]);
}

#[test]
fn with_too_few_watches_it_is_blind_for_the_rest_and_says_so_once() {
    const FEW: &str = "echo 3 >/proc/sys/user/max_inotify_watches && exec \"$0\" \"$@\"";
    let words = ["unshare", "--user", "--map-root-user", "sh", "-c", FEW];
    let may = Command::new("env")
        .args(words)
        .arg("true")
        .output()
        .unwrap();
    if may.status.success() {
        alone(&words, "three_watches_are_left");
    }
    // Else there are no user namespaces here, and the limit of the whole machine is not for a test to change.
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn three_watches_are_left() {
    let warnings = Warnings::count();
    // The directory of the jobs, the marker, and one more.
    let (mut bench, [a]) = Bench::with(["a"]);
    assert!(!bench.watcher.shared.book().is_blind());
    let [b, c] = ["b", "c"].map(|job| bench.id(job));
    for id in [&b, &c] {
        fs::create_dir(bench.dir(id)).unwrap();
    }
    // Nothing else wakes the thread when it is to begin with looking.
    bench.settle();
    bench.watcher.watch(&b);
    bench.watcher.watch(&c);
    assert!(bench.watcher.shared.book().is_blind());
    // Again and again, as nothing tells of these.
    bench.wait_for_everything();
    bench.wait_for_everything();
    bench.assert_watched(["a", "marker"]);
    assert_eq!(warnings.load(Ordering::SeqCst), 1);

    // What is watched is told of meanwhile.
    let status = bench.at(&a, "status.json");
    bench.wait_until(&Changed::Job(a.clone()), || {
        fs::write(&status, "{}").unwrap()
    });

    // One watch is free, and one of the two has it at the next look; then nobody wants the other.
    bench.watcher.forget(&a);
    bench.wait_for_everything();
    bench.assert_watched(["b", "marker"]);
    bench.watcher.forget(&c);
    assert!(!bench.watcher.shared.book().is_blind());
    let status = bench.at(&b, "status.json");
    bench.wait_until(&Changed::Job(b), || fs::write(&status, "{}").unwrap());
    assert_eq!(warnings.load(Ordering::SeqCst), 1);
}

#[test]
fn while_nothing_happens_it_sleeps() {
    alone(&[], "nobody_else_is_busy");
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn nobody_else_is_busy() {
    let (mut bench, [a]) = Bench::with(["a"]);
    let mut log = File::create(bench.at(&a, "log")).unwrap();
    bench.settle();
    let before = sleeps_of_the_watcher();
    for _ in 0..1000 {
        log.write_all(b"a line\n").unwrap();
        assert!(fs::read(bench.at(&a, "log")).is_ok());
        fs::read_dir(bench.dir(&a)).unwrap().for_each(drop);
    }
    bench.watcher.watch(&a);
    assert_eq!(bench.heard(), []);
    let sleeps = sleeps_of_the_watcher() - before;
    // Four marks are set to hear that nothing is said. Each wakes it at most once, and it may have met us at the mailbox.
    assert!(sleeps <= 8, "it has slept {sleeps} times");
}

/// How often the thread has fallen asleep by itself, now that it sleeps.
fn sleeps_of_the_watcher() -> u64 {
    let deadline = Instant::now() + DEADLINE;
    let mut last = None;
    loop {
        let status = status_of_the_watcher();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap().trim().to_owned()
        };
        let sleeps = field("voluntary_ctxt_switches:").parse().unwrap();
        // Asleep before and after, and not a moment awake.
        if field("State:").starts_with('S') && last.replace(sleeps) == Some(sleeps) {
            return sleeps;
        }
        assert!(Instant::now() < deadline, "it does not fall asleep");
        thread::yield_now();
    }
}

fn status_of_the_watcher() -> String {
    fs::read_dir("/proc/self/task")
        .unwrap()
        .map(|task| fs::read_to_string(task.unwrap().path().join("status")).unwrap())
        .find(|status| status.starts_with("Name:\toutlive-watcher\n"))
        .unwrap()
}

/// Counts warnings, and hears nothing else.
struct Warnings(Arc<AtomicUsize>);

impl Warnings {
    /// Of this whole process, from now on.
    fn count() -> Arc<AtomicUsize> {
        let count = Arc::new(AtomicUsize::new(0));
        tracing::subscriber::set_global_default(Warnings(count.clone())).unwrap();
        count
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN
    }

    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}
