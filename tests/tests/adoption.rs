//! A supervisor can be killed at any moment: each job of the queue runs once, and no more than there are slots run at once
//! (R20). What is concluded is read from the files alone, and from marks that the jobs leave outside of the store.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use outlive_tests::{Bench, Dice, Job, MARKING, Marks, bench, is_terminal, rounds};
use rustix::process::Signal;

/// Two slots, and a supervisor that stays.
const TWO_SLOTS: &str = "[pool.default]\nslots = 2\n";

/// How long a storm may take. It takes a second for each twenty jobs or so.
const STORM_LIMIT: Duration = Duration::from_secs(60);

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
                strike(bench, &mut dice, running.take());
            }
        }
        running.expect("one was started").end();
    }
}

/// Kill a supervisor, with or without its spawner, or stop it for a while first.
fn strike(bench: &Bench, dice: &mut Dice, supervisor: Option<outlive_tests::Supervisor>) {
    let Some(supervisor) = supervisor else {
        return;
    };
    if dice.chance(30) {
        supervisor.signal(Signal::STOP);
        dice.moment(200_000);
    }
    if dice.chance(30) {
        for spawner in bench.spawners() {
            spawner.kill();
        }
        dice.moment(20_000);
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
