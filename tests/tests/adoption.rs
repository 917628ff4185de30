//! A supervisor can be killed at any moment: each job of the queue runs once, and no more than there are slots run at once
//! (R20). What is concluded is read from the files alone, and from marks that the jobs leave outside of the store.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use outlive_tests::{Bench, Dice, Job, MARKING, Marks, bench, is_terminal, rounds, until};
use rustix::process::Signal;

/// Two slots, and a supervisor that stays.
const TWO_SLOTS: &str = "[pool.default]\nslots = 2\n";

/// How long a storm may take. It takes a second for each twenty jobs or so.
const STORM_LIMIT: Duration = Duration::from_secs(300);

/// What a job of a storm exits with.
fn code_of(nth: usize) -> i32 {
    [0, 0, 0, 3, 0, 42, 0][nth % 7]
}

/// How long it sleeps.
fn nap_of(nth: usize) -> &'static str {
    ["0", "0", "0.02", "0", "0.05"][nth % 5]
}

/// Queue the `nth` job of a storm, through the library.
fn queue_nth(bench: &Bench, nth: usize, resumes: bool) {
    let (name, code) = (format!("job{nth}"), code_of(nth).to_string());
    let mut spec = bench.spec(&["sh", "-c", MARKING, &name, nap_of(nth), &code]);
    if resumes {
        spec.on_interrupt = outlive::state_machine::record::OnInterrupt::Resume;
    }
    bench.store().queue(spec).expect("a job can be queued");
}

/// What is killed in a storm.
struct Storm {
    jobs: usize,
    supervisors: usize,
    workers: usize,
}

impl Storm {
    fn rage(&self, bench: &Bench) {
        bench.crashes();
        bench.configure(TWO_SLOTS);
        let mut dice = Dice::new();
        let mut queued = 0;
        let (mut supervisors, mut workers) = (self.supervisors, self.workers);
        let deadline = Instant::now() + STORM_LIMIT;
        let mut running = None;
        loop {
            // The first half waits from the beginning; the rest comes while everything is being killed.
            let share = if queued == 0 {
                self.jobs / 2
            } else {
                self.jobs / 40 + 1
            };
            let last = self.jobs.min(queued + share);
            for nth in queued..last {
                queue_nth(bench, nth, self.workers > 0);
            }
            queued = queued.max(last);
            let alive = running
                .as_mut()
                .is_some_and(outlive_tests::Supervisor::runs);
            if !alive {
                running = Some(bench.supervise());
            }
            if queued == self.jobs && ended(bench) == self.jobs {
                break;
            }
            assert!(Instant::now() < deadline, "{:?}", open(bench));
            if supervisors + workers == 0 {
                std::thread::sleep(Duration::from_millis(20));
                continue;
            }
            dice.moment(400_000);
            if workers > 0 && dice.chance(60) {
                workers -= usize::from(kill_a_worker(bench, &mut dice));
            } else if supervisors > 0 {
                supervisors -= 1;
                strike(bench, &mut dice, &mut running);
            }
        }
        running.expect("one was started").end();
    }
}

/// Kill a spawner, or a supervisor with or without its spawner, stopped for a while first or not.
fn strike(bench: &Bench, dice: &mut Dice, running: &mut Option<outlive_tests::Supervisor>) {
    let Some(supervisor) = running.take() else {
        return;
    };
    let (stops, kills_spawner) = (dice.chance(30), dice.chance(50));
    if stops {
        supervisor.signal(Signal::STOP);
        dice.moment(200_000);
    }
    if kills_spawner {
        for spawner in bench.spawners() {
            spawner.kill();
        }
        dice.moment(20_000);
    }
    if kills_spawner && dice.chance(50) {
        // It goes on with another.
        supervisor.signal(Signal::CONT);
        *running = Some(supervisor);
        return;
    }
    supervisor.kill();
}

/// Kill the worker of some job that marks. Says whether one was found.
fn kill_a_worker(bench: &Bench, dice: &mut Dice) -> bool {
    let workers = bench.workers();
    if workers.is_empty() {
        return false;
    }
    let worker = dice.pick(&workers);
    for job in bench.jobs() {
        if job.worker().is_some_and(|found| found.pid == worker.pid) {
            Marks::announce_kill(bench, &label(&job));
            worker.kill();
            return true;
        }
    }
    false
}

/// The name that a job of a storm marks with.
fn label(job: &Job) -> String {
    descriptor(job)["kind"]["command"]["argv"][3]
        .as_str()
        .expect("a name is text")
        .to_owned()
}

fn descriptor(job: &Job) -> serde_json::Value {
    let bytes = std::fs::read(job.file("job.json")).expect("a job has a descriptor");
    serde_json::from_slice(&bytes).expect("a descriptor is JSON")
}

fn ended(bench: &Bench) -> usize {
    let jobs = bench.jobs();
    jobs.iter()
        .filter(|job| is_terminal(&job.recorded()))
        .count()
}

fn open(bench: &Bench) -> Vec<(String, String)> {
    let jobs = bench.jobs();
    let open = jobs.iter().filter(|job| !is_terminal(&job.recorded()));
    open.map(|job| (job.id().to_owned(), job.recorded()))
        .collect()
}

/// See that every job ran as it should: once, with its exit status, in a slot that there is, and never too many at once.
fn check(bench: &Bench, jobs: usize, slots: u64, killed: bool) {
    // The history is written after the record.
    until("all workers are gone", || bench.census().is_empty());
    let marks = Marks::of(bench);
    assert!(marks.most_at_once <= slots as usize, "{marks:?}");
    assert!(marks.open.is_empty(), "{:?}", marks.open);
    let all: BTreeMap<String, Job> = bench
        .jobs()
        .into_iter()
        .map(|job| (label(&job), job))
        .collect();
    assert_eq!(all.len(), jobs);
    for nth in 0..jobs {
        let name = format!("job{nth}");
        let job = &all[&name];
        let status = job.status().expect("it has run");
        assert_eq!(status["exit"]["code"], code_of(nth), "{status}");
        let state = if code_of(nth) == 0 { "done" } else { "failed" };
        assert_eq!(status["state"], state);
        let slot = status["slot"].as_u64();
        assert!(
            slot.is_some_and(|slot| (1..=slots).contains(&slot)),
            "{status}"
        );
        let interrupted = job
            .states()
            .iter()
            .filter(|state| *state == "interrupted")
            .count();
        if killed {
            let begun = marks.begun.get(&name).copied().unwrap_or(0);
            assert!(
                (1..=1 + interrupted as u32).contains(&begun),
                "{name}: {:?}",
                job.states()
            );
        } else {
            assert_eq!(
                marks.begun.get(&name),
                Some(&1),
                "{name}: {:?}",
                job.states()
            );
            assert_eq!(marks.ended.get(&name), Some(&1), "{name}");
            assert_eq!(job.states(), ["queued", "running", state], "{name}");
        }
    }
}

/// What crashes left in staging and trash is collected by the next start.
fn collected(bench: &Bench) {
    bench.supervise_ready().end();
    for aside in ["staging", "trash"] {
        let left = std::fs::read_dir(bench.root().join(aside))
            .into_iter()
            .flatten();
        assert_eq!(left.count(), 0, "{aside} is collected at a start");
    }
}

#[test]
fn a_storm_of_kills_runs_every_job_once() {
    let bench = bench!();
    let jobs = rounds(120);
    let storm = Storm {
        jobs,
        supervisors: 8,
        workers: 0,
    };
    storm.rage(&bench);
    check(&bench, jobs, 2, false);
    collected(&bench);
    bench.audit();
}

#[test]
#[ignore = "a minute or more: run by hand"]
fn a_thousand_jobs_and_twenty_kills() {
    let bench = bench!();
    let storm = Storm {
        jobs: 1000,
        supervisors: 20,
        workers: 0,
    };
    storm.rage(&bench);
    check(&bench, 1000, 2, false);
    collected(&bench);
    bench.audit();
}

#[test]
fn a_storm_that_kills_workers_too_resumes_what_it_interrupted() {
    let bench = bench!();
    let jobs = rounds(80);
    let storm = Storm {
        jobs,
        supervisors: 4,
        workers: 6,
    };
    storm.rage(&bench);
    check(&bench, jobs, 2, true);
    collected(&bench);
    bench.audit();
}

/// Queue a script of the shell; nobody is started for it.
fn queue<'a>(bench: &'a Bench, options: &[&str], script: &str) -> Job<'a> {
    let verb = ["queue", "--no-supervisor"];
    let command = ["--", "sh", "-c", script];
    let arguments = [&verb[..], options, &command[..]].concat();
    bench.job(&bench.run(arguments).expect(0).text())
}

/// A job that appends a line as it begins, and ends when it is let go.
const HELD: &str = "echo x >> begun; while [ ! -e go ]; do sleep 0.02; done; exit 7";

fn begun(bench: &Bench) -> usize {
    let text = std::fs::read_to_string(bench.file("begun")).unwrap_or_default();
    text.lines().count()
}

fn let_go(bench: &Bench) {
    std::fs::write(bench.file("go"), "").unwrap();
}

#[test]
fn what_ended_while_there_was_no_supervisor_is_known() {
    let bench = bench!();
    bench.configure(TWO_SLOTS);
    let ended = queue(&bench, &[], HELD);
    let next = queue(
        &bench,
        &["--after", &format!("{}:failure", ended.id())],
        "exit 3",
    );
    let supervisor = bench.supervise_ready();
    ended.until_recorded("running");
    supervisor.kill();
    let_go(&bench);
    ended.until_ended();
    assert_eq!(next.recorded(), "queued");
    let supervisor = bench.supervise_ready();
    assert_eq!(next.wait(), 3);
    assert_eq!(ended.shown()["exit"]["code"], 7);
    supervisor.end();
    assert_eq!(begun(&bench), 1);
    bench.audit();
}

#[test]
fn a_job_that_runs_is_started_by_no_other_supervisor_again() {
    let bench = bench!();
    bench.configure("[pool.default]\nslots = 1\n");
    let job = queue(&bench, &["--on-interrupt", "resume"], HELD);
    let behind = queue(&bench, &["--priority", "9"], "echo y >> begun; exit 3");
    bench.supervise_ready().kill();
    for _ in 0..10 {
        bench.supervise_ready().kill();
    }
    // Each of them may have been killed before it came to that.
    until("one of them runs", || {
        begun(&bench) > 0 || {
            bench.supervise_ready().kill();
            false
        }
    });
    let supervisor = bench.supervise_ready();
    let_go(&bench);
    assert_eq!(job.wait(), 7);
    assert_eq!(behind.wait(), 3);
    supervisor.end();
    assert_eq!(begun(&bench), 2);
    bench.audit();
}

#[test]
fn a_job_is_stopped_past_a_supervisor_that_did_not_start_it_and_its_slot_is_given_on() {
    let bench = bench!();
    bench.configure("[pool.default]\nslots = 1\n");
    let job = queue(&bench, &[], "setsid sleep 600 & exec sleep 600");
    let supervisor = bench.supervise_ready();
    job.until_recorded("running");
    supervisor.kill();
    let supervisor = bench.supervise_ready();
    let next = queue(&bench, &[], "exit 3");
    job.stop(0);
    assert_eq!(job.recorded(), "cancelled");
    let left = bench
        .census()
        .into_iter()
        .filter(|process| process.title.contains("sleep 600"));
    assert_eq!(left.count(), 0);
    assert_eq!(next.wait(), 3);
    supervisor.end();
    bench.audit();
}

#[test]
fn after_a_kill_everything_is_listed_and_the_slots_are_as_they_were() {
    let bench = bench!();
    bench.configure(TWO_SLOTS);
    for _ in 0..5 {
        queue(&bench, &[], HELD);
    }
    let supervisor = bench.supervise_ready();
    let running = || {
        let listed = bench.list();
        assert_eq!(listed.len(), 5);
        listed
            .iter()
            .filter(|job| job["state"] == "running")
            .count()
    };
    until("two run", || running() == 2);
    supervisor.kill();
    assert_eq!(running(), 2);
    let supervisor = bench.supervise_ready();
    bench
        .run(["wait", "--timeout", "300ms", bench.jobs()[4].id()])
        .expect(5);
    assert_eq!(running(), 2);
    let_go(&bench);
    for job in bench.jobs() {
        assert_eq!(job.wait(), 7);
    }
    supervisor.end();
    assert_eq!(begun(&bench), 5);
    bench.audit();
}

#[test]
fn a_machine_that_went_down_leaves_interrupted_jobs_and_those_that_want_it_go_on() {
    let bench = bench!();
    bench.configure(TWO_SLOTS);
    let script = "echo x >> begun; setsid sleep 600 & exec sleep 600";
    let stays = queue(&bench, &[], script);
    let goes_on = queue(&bench, &["--on-interrupt", "resume"], script);
    let waits = queue(&bench, &[], "exit 3");
    let supervisor = bench.supervise_ready();
    until("both run", || begun(&bench) == 2);
    bench.crashes();
    supervisor.kill();
    until("nothing of the bench runs", || {
        let left = bench.census();
        left.iter().for_each(outlive_tests::Process::kill);
        left.is_empty()
    });
    for job in [&stays, &goes_on] {
        assert_eq!(job.state(), "interrupted");
    }
    assert_eq!(waits.state(), "queued");
    let supervisor = bench.supervise_ready();
    until("the one that wants it runs again", || begun(&bench) == 3);
    goes_on.until_recorded("running");
    assert_eq!(waits.wait(), 3);
    assert_eq!(stays.state(), "interrupted");
    goes_on.stop(0);
    stays.stop(0);
    supervisor.end();
    assert_eq!(begun(&bench), 3);
    goes_on.expect_states(&["queued", "running", "interrupted", "running", "cancelled"]);
    stays.expect_states(&["queued", "running", "interrupted", "cancelled"]);
    bench.audit();
}

#[test]
fn a_job_that_kills_its_own_worker_is_run_again_ever_more_slowly() {
    let bench = bench!();
    bench.crashes();
    bench.configure(TWO_SLOTS);
    // Its parent is its worker.
    let job = queue(
        &bench,
        &["--on-interrupt", "resume"],
        "echo x >> begun; kill -9 $PPID; sleep 600",
    );
    let unpooled = bench.start([
        "--on-interrupt",
        "resume",
        "--",
        "sh",
        "-c",
        // Not before whoever started it was told that it runs.
        "echo y >> alone; until [ -e told ]; do sleep 0.01; done; kill -9 $PPID; sleep 600",
    ]);
    std::fs::write(bench.file("told"), "").unwrap();
    let other = queue(&bench, &[], "exit 3");
    let mut supervisor = bench.supervise_ready();
    assert_eq!(other.wait(), 3);
    let alone = || {
        let text = std::fs::read_to_string(bench.file("alone")).unwrap_or_default();
        text.lines().count()
    };
    // At once, after 1 s, after 2 s, 4 s and 8 s.
    until("both are run again", || begun(&bench) >= 3 && alone() >= 3);
    supervisor.until_told("delay=4s");
    let (with_pool, without) = (begun(&bench), alone());
    assert!(with_pool <= 7 && without <= 7, "{with_pool} and {without}");
    for job in [&job, &unpooled] {
        let stopped = bench.run(["stop", job.id()]);
        assert!(matches!(stopped.code(), 0 | 1), "{stopped:?}");
        assert_eq!(job.recorded(), "cancelled");
    }
    supervisor.end();
    bench.audit();
}

#[test]
fn hundreds_of_jobs_that_leave_a_child_leave_no_zombie() {
    let bench = bench!();
    bench.configure("[pool.default]\nslots = 4\n");
    let jobs = rounds(100);
    for _ in 0..jobs {
        let spec = bench.spec(&["sh", "-c", "sleep .05 & exit 0"]);
        bench.store().queue(spec).unwrap();
    }
    let supervisor = bench.supervise_ready();
    let limit = Instant::now() + STORM_LIMIT;
    while ended(&bench) < jobs {
        assert!(Instant::now() < limit, "{:?}", open(&bench));
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut parents: Vec<i32> = bench.spawners().iter().map(|spawner| spawner.pid).collect();
    parents.extend(supervisor.process().map(|process| process.pid));
    assert_eq!(parents.len(), 2);
    until(
        "no child of them is left, dead or alive, but the spawner",
        || parents.iter().map(|pid| children_of(*pid)).sum::<usize>() == 1,
    );
    supervisor.end();
    bench.audit();
}

fn children_of(pid: i32) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    tasks
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .map(|children| children.split_whitespace().count())
        .sum()
}

#[test]
fn thirty_clients_at_once_start_one_supervisor() {
    let bench = bench!();
    bench.configure(&format!("{TWO_SLOTS}[supervisor]\nidle_exit = \"1h\"\n"));
    let clients: Vec<_> = (0..30)
        .map(|_| bench.background(bench.verb(["queue", "--", "sh", "-c", "exit 3"])))
        .collect();
    let ids: Vec<String> = clients
        .into_iter()
        .map(|client| client.end().expect(0).text())
        .collect();
    for id in &ids {
        assert_eq!(bench.job(id).wait(), 3);
    }
    until("one supervisor is left", || bench.supervisors().len() == 1);
    assert_eq!(bench.spawners().len(), 1);
    bench.end_supervisor();
    bench.audit();
}

#[test]
fn what_ended_is_kept_as_it_is_configured_and_nothing_that_others_come_after() {
    let bench = bench!();
    let project = bench.file("site");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.join("outlive.toml"), "").unwrap();
    let kept = project.canonicalize().unwrap();
    bench.configure(&format!(
        "{TWO_SLOTS}[retention]\nkeep = 2\n[project.\"{}\".retention]\nkeep = 3\n",
        kept.display()
    ));
    let first = queue(&bench, &[], "exit 0");
    let after = format!("{}:success", first.id());
    // It has to wait so long that a sweep comes before it starts.
    let dependant = queue(&bench, &["--after", &after, "--delay", "1h"], "exit 3");
    let own: Vec<Job> = (0..5).map(|_| queue(&bench, &[], "exit 0")).collect();
    let theirs: Vec<String> = (0..5)
        .map(|_| {
            let mut queue = bench.verb(["queue", "--no-supervisor", "--", "true"]);
            queue.current_dir(&project);
            bench.end(queue).expect(0).text()
        })
        .collect();
    let supervisor = bench.supervise_ready();
    let left = |ids: &[String]| ids.iter().filter(|id| bench.job(id).dir().exists()).count();
    let own: Vec<String> = own.iter().map(|job| job.id().to_owned()).collect();
    until("the sweep has come", || {
        left(&own) <= 2 && left(&theirs) <= 3
    });
    assert_eq!((left(&own), left(&theirs)), (2, 3));
    assert!(first.dir().exists(), "somebody waits to see how it ended");
    assert_eq!(dependant.state(), "queued");
    // So it is after a restart.
    supervisor.end();
    let supervisor = bench.supervise_ready();
    bench
        .run(["wait", "--timeout", "1s", dependant.id()])
        .expect(5);
    assert!(first.dir().exists());
    dependant.stop(0);
    until("nobody waits any more", || {
        !first.dir().exists() || !dependant.dir().exists()
    });
    supervisor.end();
    bench.audit();
}

#[test]
fn what_is_older_than_configured_goes() {
    let bench = bench!();
    let jobs: Vec<Job> = (0..3).map(|_| queue(&bench, &[], "exit 0")).collect();
    bench.configure(&format!("{TWO_SLOTS}[retention]\nolder_than = \"1s\"\n"));
    let supervisor = bench.supervise_ready();
    until("all are gone", || {
        jobs.iter().all(|job| !job.dir().exists())
    });
    supervisor.end();
    bench.audit();
}
