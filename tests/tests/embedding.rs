//! Programs that have a supervisor of their own: the examples, and what they rely on.

use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use outlive::supervisor::{Config, Supervisor};
use outlive::worker::Launcher;
use outlive::{Error, JobSpec};
use outlive_tests::{Bench, bench, until};

fn program(bench: &Bench, path: &str) -> Command {
    let mut command = bench.program(path);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn orchestrator(bench: &Bench) -> Command {
    program(bench, env!("CARGO_BIN_EXE_outlive-orchestrator-under-test"))
}

fn service(bench: &Bench, restarts: &str) -> Command {
    let mut command = program(bench, env!("CARGO_BIN_EXE_outlive-service-under-test"));
    command.arg(restarts);
    command
}

fn text(output: &Output) -> String {
    let words = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&words).into_owned()
}

/// Kill it, and see that it is gone.
fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_build_runs_its_steps_after_one_another() {
    let bench = bench!();
    let built = orchestrator(&bench).output().unwrap();
    let said = text(&built);
    assert!(built.status.success(), "{said}");
    for step in ["parse", "compile", "document", "package"] {
        assert!(said.contains(&format!("{step}: done")), "{said}");
    }
    // By the histories: none began before those had ended that it comes after.
    let jobs = bench.list();
    let stamp = |step: &str, which: &str| {
        let job = jobs.iter().find(|job| job["name"] == step).unwrap();
        job[which].as_u64().unwrap()
    };
    for (first, then) in [
        ("parse", "compile"),
        ("parse", "document"),
        ("compile", "package"),
        ("document", "package"),
    ] {
        assert!(
            stamp(first, "ended_at_ms") <= stamp(then, "started_at_ms"),
            "{jobs:?}"
        );
    }
    bench.audit();
}

#[test]
fn a_build_that_is_killed_goes_on_where_it_was() {
    let bench = bench!();
    let first = orchestrator(&bench).spawn().unwrap();
    // Read from the record: to ask the command line may take longer than a step.
    until("its first step has begun", || {
        bench.jobs().iter().any(|job| job.recorded() != "queued")
    });
    kill(first);
    let second = orchestrator(&bench).output().unwrap();
    assert!(second.status.success(), "{}", text(&second));
    // Every step was run to its end once or twice, and never two of one name at a time: the store is as it must be.
    bench.audit();
}

#[test]
fn a_service_restarts_its_children_and_takes_over_those_that_run() {
    let bench = bench!();
    let first = service(&bench, "1000").spawn().unwrap();
    let restarted = || {
        let jobs = bench.list();
        let of = |name: &str| jobs.iter().filter(|job| job["name"] == name).count();
        of("clock") > 1 && of("greeter") > 1
    };
    until("both were started again", restarted);
    kill(first);
    let second = service(&bench, "1").output().unwrap();
    assert!(second.status.success(), "{}", text(&second));
    bench.audit();
}

#[test]
fn a_host_has_a_supervisor_and_waits_without_threads() {
    let bench = bench!();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = bench.store();
        let config = Config {
            launcher: Launcher::outlive_at(bench.binary()),
            idle_exit: None,
        };
        let mut supervisor = Supervisor::start(store.clone(), config.clone()).unwrap();
        supervisor.ready().await;
        match Supervisor::start(store.clone(), config) {
            Err(Error::Supervised { pid }) => assert_eq!(pid, Some(std::process::id())),
            other => panic!("{other:?}"),
        }
        let (job, _) = store.queue(bench.spec(&["sh", "-c", "exit 3"])).unwrap();
        let (other, _) = store.queue(bench.spec(&["sleep", "600"])).unwrap();
        let view = job.wait_async(None).await.unwrap();
        assert_eq!(outlive::store::exit_code(view.state, &view.status), 3);
        let mut events = job.events_async();
        let mut states = Vec::new();
        while let Some(line) = events.next().await.unwrap() {
            states.push(line);
        }
        assert_eq!(states.len(), 3, "{states:?}");
        let late = other.wait_async(Some(Duration::from_millis(50))).await;
        assert!(matches!(late, Err(Error::TimedOut(_))), "{late:?}");
        let status = supervisor.status().await.unwrap();
        assert!(status.ready);
        other.stop(None).unwrap();
        supervisor.shutdown();
        supervisor.ended().await.expect("it was told to");
        drop(supervisor);
        assert!(!store.is_supervised().unwrap());
        let spec: JobSpec = bench.spec(&["true"]);
        store.queue(spec).unwrap().0.stop(None).unwrap();
    });
    bench.audit();
}
