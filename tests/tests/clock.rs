//! The wall clock is set by a year, either way, while everything is under way. Nobody sets the clock of the machine for it: the
//! binary under test asks a file how far its clock is off. That the kernel tells of a clock that was set is not part of it; the
//! supervisor is made to look by other notices.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use outlive_tests::{Bench, Job, Supervisor, bench, until};

const YEAR_MS: i64 = 365 * 24 * 60 * 60 * 1000;

/// A bench whose clock can be set.
struct Clock<'a> {
    bench: &'a Bench,
    file: PathBuf,
}

impl<'a> Clock<'a> {
    fn of(bench: &'a Bench) -> Clock<'a> {
        let file = bench.dir().join("clock");
        let clock = Clock { bench, file };
        clock.set(0);
        clock
    }

    fn set(&self, by_ms: i64) {
        let new = self.file.with_extension("new");
        fs::write(&new, by_ms.to_string()).unwrap();
        fs::rename(&new, &self.file).unwrap();
    }

    fn verb(&self, arguments: &[&str]) -> Command {
        let mut verb = self.bench.verb(arguments);
        verb.env("OUTLIVE_CLOCK", &self.file);
        verb
    }

    fn supervise(&self) -> Supervisor {
        let verb = self.verb(&["supervise", "--log-level", "debug"]);
        let mut supervisor = self.bench.supervise_by(verb);
        supervisor.until_told("ready");
        supervisor
    }

    fn queued(&self, options: &[&str], script: &str) -> Job<'a> {
        let arguments = [&["queue"], options, &["--", "sh", "-c", script]].concat();
        let id = self.bench.end(self.verb(&arguments)).expect(0).text();
        self.bench.job(&id)
    }

    /// Tell the supervisor that each of these may have changed, as when the clock is set.
    fn poke(&self, jobs: &[&Job]) {
        for job in jobs {
            let lock = fs::File::options().append(true).open(job.file("lock"));
            drop(lock.expect("a job has a lock"));
        }
    }
}

/// A script that notes each time that it is started, and ends when it is told to.
fn noting(name: &str) -> String {
    format!("echo x >> {name}.started; until [ -e {name}.go ]; do sleep 0.02; done")
}

fn started(bench: &Bench, name: &str) -> usize {
    fs::read_to_string(bench.file(&format!("{name}.started")))
        .map_or(0, |text| text.lines().count())
}

fn release(bench: &Bench, name: &str) {
    fs::write(bench.file(&format!("{name}.go")), "").unwrap();
}

fn no_time_is_negative(job: &Job) {
    let status = job.status().expect("it is recorded");
    let at = |field: &str| status[field].as_u64().expect("it has both");
    assert!(at("started_at_ms") <= at("ended_at_ms"), "{status}");
    let shown = job.shown();
    assert!(
        shown["ended_at_ms"].as_u64() >= shown["started_at_ms"].as_u64(),
        "{shown}"
    );
}

fn set_by(by_ms: i64) {
    let bench = bench!();
    let clock = Clock::of(&bench);
    bench.configure("[pool.default]\nslots = 3\n[retention]\nolder_than = \"30d\"\n");
    let supervisor = clock.supervise();
    let kept = clock.queued(&[], "true");
    assert_eq!(kept.wait(), 0);
    let runs = clock.queued(&["--timeout", "1h"], &noting("runs"));
    let starts = clock.queued(&[], &noting("starts"));
    // Tried again for ever, a little later each time.
    let retried = clock.queued(
        &[
            "--retry",
            "100",
            "--backoff",
            "50ms",
            "--backoff-max",
            "100ms",
        ],
        "echo x >> tries; [ -e enough ]",
    );
    for name in ["runs", "starts"] {
        until("it runs", || started(&bench, name) == 1);
    }
    let waits = clock.queued(&[], &noting("waits"));
    let long = clock.queued(&["--delay", "1h"], &noting("long"));
    let short = clock.queued(&["--delay", "3s"], &noting("short"));
    let all = [&runs, &starts, &retried, &waits, &long, &short];

    clock.set(by_ms);
    clock.poke(&all);
    // What is done by the clock that nobody sets goes on.
    let tries = || fs::read_to_string(bench.file("tries")).map_or(0, |text| text.lines().count());
    let before = tries();
    until("it is tried again", || tries() > before + 2);
    fs::write(bench.file("enough"), "").unwrap();
    assert_eq!(retried.wait(), 0);
    until("the next one has its slot", || {
        started(&bench, "waits") == 1
    });
    let listed = bench.end(clock.verb(&["list"])).expect(0).text();
    assert!(listed.contains("running"), "{listed}");

    // One who comes in the other year finds everything.
    supervisor.kill();
    let supervisor = clock.supervise();
    clock.poke(&all);
    for (name, job) in [("runs", &runs), ("starts", &starts), ("waits", &waits)] {
        release(&bench, name);
        assert_eq!(job.wait(), 0);
    }
    // It has waited for seconds, and not for a year.
    until("what was to wait for seconds runs", || {
        started(&bench, "short") == 1
    });
    release(&bench, "short");
    assert_eq!(short.wait(), 0);
    bench.end(clock.verb(&["wait", short.id()])).expect(0);
    for (name, job) in [
        ("runs", &runs),
        ("starts", &starts),
        ("waits", &waits),
        ("short", &short),
    ] {
        assert_eq!(started(&bench, name), 1, "{name}");
        job.expect_states(&["queued", "running", "done"]);
        no_time_is_negative(job);
    }
    no_time_is_negative(&retried);
    if by_ms < 0 {
        // An end that lies in the future counts as just now.
        assert!(kept.dir().exists());
        // Whoever came in the other year sees it wait the whole time from then.
        assert_eq!(started(&bench, "long"), 0);
        assert_eq!(long.state(), "queued");
        long.stop(0);
    } else {
        // By what stands in the records, it ended a year ago, and half of that is what was to be kept.
        until("what is too old by now is forgotten", || {
            !kept.dir().exists()
        });
        until("its time has long come", || started(&bench, "long") == 1);
        release(&bench, "long");
        assert_eq!(long.wait(), 0);
    }
    // And back to where it was.
    clock.set(0);
    let last = clock.queued(&[], "true");
    assert_eq!(last.wait(), 0);
    no_time_is_negative(&last);
    supervisor.end();
    bench.audit();
}

/// B72. A manager crashed when the clock was set back, and what was timed hung until the old time was reached again.
#[test]
fn a_clock_that_is_set_forward_by_a_year_harms_no_job() {
    set_by(YEAR_MS);
}

#[test]
fn a_clock_that_is_set_back_by_a_year_harms_no_job() {
    set_by(-YEAR_MS);
}

/// While somebody watches, a wait is as long as was asked for, and a time that was named is one of the clock.
#[test]
fn a_delay_is_as_long_as_asked_for_while_a_supervisor_watches() {
    let bench = bench!();
    let clock = Clock::of(&bench);
    let supervisor = clock.supervise();
    let long = clock.queued(&["--delay", "1h"], "touch ran");
    let named = clock.queued(&["--at", "2100-01-01T00:00:00Z"], "true");
    until("both are known", || {
        long.state() == "queued" && supervisor.told().contains(named.id())
    });
    clock.set(YEAR_MS);
    clock.poke(&[&long, &named]);
    // One that is seen after them has been looked at after them.
    let after = clock.queued(&[], "true");
    assert_eq!(after.wait(), 0);
    assert!(!bench.file("ran").exists());
    for job in [&long, &named] {
        assert_eq!(job.state(), "queued");
    }
    clock.set(100 * YEAR_MS);
    clock.poke(&[&long, &named]);
    assert_eq!(named.wait(), 0);
    assert!(!bench.file("ran").exists());
    long.stop(0);
    supervisor.end();
    bench.audit();
}
