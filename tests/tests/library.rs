//! The store as an embedding program uses it.

use std::sync::Barrier;
use std::time::Duration;

use outlive::state_machine::control::Request;
use outlive::state_machine::id::Name;
use outlive::state_machine::job::State;
use outlive::state_machine::record::{Exit, What};
use outlive::state_machine::retention::Retention;
use outlive::store::Requested;
use outlive::worker::Launcher;
use outlive::{Error, Store};
use outlive_tests::{Bench, DEADLINE, bench, rounds, until};

fn launcher(bench: &Bench) -> Launcher {
    Launcher::program(bench.binary(), &["worker"])
}

#[test]
fn a_job_is_started_waited_for_and_told_about() {
    let bench = bench!();
    let (job, new) = bench
        .store()
        .start(
            bench.spec(&["sh", "-c", "echo out; exit 7"]),
            &launcher(&bench),
        )
        .unwrap();
    assert!(new);
    let view = job.wait(Some(DEADLINE)).unwrap();
    assert_eq!(view.state, State::Failed);
    assert_eq!(view.status.exit, Some(Exit::Code(7)));
    assert_eq!(std::fs::read(job.dir().join("log")).unwrap(), b"out\n");
    // Its worker may have it for a moment longer.
    until("nobody has it", || !job.look().unwrap().held);
    let report = serde_json::to_value(job.report(&job.look().unwrap())).unwrap();
    assert_eq!(report, bench.job(job.id().as_str()).shown());
    bench.audit();
}

#[test]
fn several_threads_start_jobs_at_once() {
    let bench = bench!();
    let store = bench.store();
    let ids: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6)
            .map(|_| {
                scope.spawn(|| {
                    (0..5)
                        .map(|_| {
                            let (job, _) = store
                                .start(bench.spec(&["true"]), &launcher(&bench))
                                .unwrap();
                            assert_eq!(job.wait(Some(DEADLINE)).unwrap().state, State::Done);
                            job.id().to_string()
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(ids.len(), 30);
    assert_eq!(store.list().unwrap().jobs.len(), 30);
    bench.audit();
}

#[test]
fn a_start_of_what_runs_joins_it() {
    let bench = bench!();
    let named = |argv: &[&str]| {
        let mut spec = bench.spec(argv);
        spec.name = Some(Name::parse("web").unwrap());
        spec
    };
    let (first, new) = bench
        .store()
        .start(named(&["sleep", "600"]), &launcher(&bench))
        .unwrap();
    assert!(new);
    let (second, new) = bench
        .store()
        .start(named(&["true"]), &launcher(&bench))
        .unwrap();
    assert!(!new);
    assert_eq!(first.id(), second.id());
    assert_eq!(
        bench.store().create(named(&["true"])).unwrap().id(),
        first.id()
    );
    assert!(!first.stop(Some(DEADLINE)).unwrap().forced);
    let (third, new) = bench
        .store()
        .start(named(&["true"]), &launcher(&bench))
        .unwrap();
    assert!(new);
    third.wait(Some(DEADLINE)).unwrap();
    bench.audit();
}

#[test]
fn a_job_is_made_now_and_started_later() {
    let bench = bench!();
    let job = bench
        .store()
        .create(bench.spec(&["sh", "-c", "exit 3"]))
        .unwrap();
    assert_eq!(bench.job(job.id().as_str()).recorded(), "queued");
    // Another process sees it.
    assert_eq!(bench.list().len(), 1);
    job.start(&launcher(&bench)).unwrap();
    assert_eq!(
        job.wait(Some(DEADLINE)).unwrap().status.exit,
        Some(Exit::Code(3))
    );
    assert!(
        job.start(&launcher(&bench)).is_err(),
        "what has ended is not started"
    );
    bench.audit();
}

#[test]
fn requests_are_honoured_and_answered() {
    let bench = bench!();
    let (job, _) = bench
        .store()
        .start(bench.spec(&["sleep", "600"]), &launcher(&bench))
        .unwrap();
    assert!(
        job.start(&launcher(&bench)).is_err(),
        "it has a worker already"
    );
    assert_eq!(job.request(Request::Pause).unwrap(), Requested::Accepted);
    job.wait_until(Some(DEADLINE), |view| view.state == State::Paused)
        .unwrap();
    job.request(Request::Resume).unwrap();
    job.wait_until(Some(DEADLINE), |view| view.state == State::Running)
        .unwrap();
    assert!(matches!(
        job.wait(Some(Duration::from_millis(20))),
        Err(Error::TimedOut(_))
    ));
    job.request(Request::Cancel).unwrap();
    assert_eq!(job.wait(Some(DEADLINE)).unwrap().state, State::Cancelled);
    assert!(matches!(
        job.request(Request::Pause),
        Err(Error::Ended {
            state: State::Cancelled,
            ..
        })
    ));
    let stopped = job.stop(Some(DEADLINE)).unwrap();
    assert!(stopped.already && !stopped.forced);
    let states: Vec<State> = job
        .events()
        .unwrap()
        .iter()
        .filter_map(|line| match line.what {
            What::State { state } => Some(state),
            _ => None,
        })
        .collect();
    assert_eq!(
        states,
        [
            State::Queued,
            State::Running,
            State::Paused,
            State::Running,
            State::Cancelled
        ]
    );
    bench.audit();
}

#[test]
fn requests_to_what_nobody_holds_take_effect_at_once() {
    let bench = bench!();
    let job = bench.store().create(bench.spec(&["true"])).unwrap();
    job.request(Request::Pause).unwrap();
    assert_eq!(job.look().unwrap().state, State::Paused);
    job.request(Request::Cancel).unwrap();
    assert_eq!(job.look().unwrap().state, State::Cancelled);
    bench.audit();
}

#[test]
fn a_sweep_takes_what_has_ended_and_nothing_else() {
    let bench = bench!();
    let store = bench.store();
    let ended: Vec<_> = (0..5)
        .map(|_| {
            store
                .start(bench.spec(&["true"]), &launcher(&bench))
                .unwrap()
                .0
        })
        .collect();
    for job in &ended {
        job.wait(Some(DEADLINE)).unwrap();
    }
    until("the workers are gone", || bench.census().is_empty());
    let (running, _) = store
        .start(bench.spec(&["sleep", "600"]), &launcher(&bench))
        .unwrap();
    let queued = store.create(bench.spec(&["true"])).unwrap();
    let keep_two = Retention {
        keep: Some(2),
        older_than_ms: None,
    };
    assert_eq!(store.sweep(keep_two, |_| true).unwrap().forgotten.len(), 3);
    assert!(matches!(ended[0].look(), Err(Error::Gone(_))));
    assert!(matches!(
        ended[0].request(Request::Cancel),
        Err(Error::Gone(_))
    ));
    assert!(!ended[0].dir().exists());
    let old = Retention {
        keep: None,
        older_than_ms: Some(3_600_000),
    };
    assert!(store.sweep(old, |_| true).unwrap().forgotten.is_empty());
    let swept = store
        .forget(&[running.id().clone(), queued.id().clone()])
        .unwrap();
    assert!(swept.forgotten.is_empty());
    assert_eq!(swept.kept.len(), 2);
    assert_eq!(
        store
            .sweep(Retention::default(), |_| true)
            .unwrap()
            .forgotten
            .len(),
        2
    );
    assert_eq!(store.list().unwrap().jobs.len(), 2);
    running.stop(Some(DEADLINE)).unwrap();
    queued.stop(Some(DEADLINE)).unwrap();
    bench.audit();
}

#[test]
fn of_two_who_forget_a_job_at_once_one_does_and_neither_keeps_it() {
    let bench = bench!();
    let store = bench.store();
    let ended = (0..rounds(100)).map(|_| {
        let job = store.create(bench.spec(&["true"])).unwrap();
        job.request(Request::Cancel).unwrap();
        job.id().clone()
    });
    let both_are_here = Barrier::new(2);
    for id in ended {
        let forget = || {
            both_are_here.wait();
            store.forget(std::slice::from_ref(&id)).unwrap()
        };
        let (one, other) = std::thread::scope(|scope| {
            let other = scope.spawn(forget);
            (forget(), other.join().unwrap())
        });
        assert!(
            one.kept.is_empty() && other.kept.is_empty(),
            "{one:?} {other:?}"
        );
        assert_eq!(one.forgotten.len() + other.forgotten.len(), 1);
    }
    bench.audit();
}

#[test]
fn a_wait_for_what_is_forgotten_meanwhile_ends() {
    let bench = bench!();
    let store = bench.store();
    let (job, _) = store
        .start(bench.spec(&["sleep", "600"]), &launcher(&bench))
        .unwrap();
    let waiter = bench.background(bench.verb(["wait", job.id().as_str()]));
    let follower = bench.background(bench.verb(["log", "-f", job.id().as_str()]));
    job.stop(Some(DEADLINE)).unwrap();
    until("it is forgotten", || {
        store.forget(&[job.id().clone()]).unwrap().forgotten.len() == 1 || !job.dir().exists()
    });
    let ran = waiter.end();
    assert!(matches!(ran.code(), 3 | 143), "{ran:?}");
    follower.end();
    bench.run(["wait", job.id().as_str()]).expect(3);
    bench.audit();
}

#[test]
fn a_launcher_that_is_not_there_leaves_a_job_that_says_so() {
    let bench = bench!();
    let missing = Launcher::program("/no/such/launcher", &["worker"]);
    let Err(error) = bench.store().start(bench.spec(&["true"]), &missing) else {
        panic!("nothing can have started");
    };
    assert!(error.to_string().contains("/no/such/launcher"), "{error}");
    let jobs = bench.jobs();
    assert_eq!(jobs.len(), 1);
    let shown = jobs[0].shown();
    assert_eq!(shown["state"], "failed");
    let message = shown["message"].as_str().unwrap();
    assert!(message.contains("/no/such/launcher"), "{message}");
    bench.audit();
}

/// A launcher hands the lock of a new job on as its standard input. Whoever opens the file has no lock.
#[test]
fn the_file_of_a_lock_is_not_taken_for_the_lock() {
    let bench = bench!();
    let steal = |job: &outlive_tests::Job<'_>| {
        let mut command = bench.verb(["worker"]);
        command.arg(job.dir());
        command.stdin(std::fs::File::open(job.file("lock")).unwrap());
        command.stdout(std::process::Stdio::null());
        command.status().unwrap()
    };
    let job = bench.sh("exec sleep 600");
    assert!(!steal(&job).success());
    assert_eq!(bench.workers().len(), 1);
    job.stop(0);
    until("its worker is gone", || bench.workers().is_empty());
    let before = job.status();
    assert!(!steal(&job).success());
    assert_eq!(job.status(), before);
    assert!(bench.workers().is_empty());
    bench.audit();
}

#[test]
fn the_launchers_verb_refuses_what_is_no_job() {
    let bench = bench!();
    bench.run(["list"]).expect(0);
    std::fs::create_dir(bench.file("plain")).unwrap();
    let missing = bench.file("no/such/dir");
    let plain = bench.file("plain");
    for dir in ["..", "", missing.to_str().unwrap(), plain.to_str().unwrap()] {
        let ran = bench.run(["worker", dir]);
        assert!(matches!(ran.code(), 1..=6), "{dir}: {ran:?}");
    }
    let left: Vec<_> = std::fs::read_dir(bench.work())
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(left, ["plain"], "no store was made there");
    assert!(!bench.dir().join("format").exists());
    bench.audit();
}

#[test]
fn a_store_is_opened_by_many() {
    let bench = bench!();
    let root = bench.root();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| Store::open(&root).unwrap().list().unwrap());
        }
    });
    bench.audit();
}
