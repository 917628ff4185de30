//! When a task counts as ready.

use std::fs;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use outlive_tests::{Job, bench, until};
use rustix::process::Signal;

use crate::Project;

#[test]
fn readiness_is_seen_in_every_way_that_a_file_can_name() {
    let bench = bench!();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        use std::io::{Read, Write};
        // Each is asked for before its task is started, too: two connections that say nothing, two questions that are told to wait,
        // and one that is answered.
        for answer in ["", "", "503 Busy", "503 Busy", "204 No Content"] {
            let (mut stream, _) = listener.accept().unwrap();
            if !answer.is_empty() {
                let _ = stream.read(&mut [0; 1024]);
                let head =
                    format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                stream.write_all(head.as_bytes()).unwrap();
            }
        }
    });
    let project = Project::new(
        &bench,
        &format!(
            r#"
            [task.tcp]
            command = "exec sleep 600"
            ready = {{ tcp = "127.0.0.1:{port}" }}
            [task.http]
            command = "exec sleep 600"
            needs = ["tcp"]
            ready = {{ http = "http://127.0.0.1:{port}/health" }}
            [task.command]
            command = "touch called; exec sleep 600"
            ready = {{ command = "sleep 600 & test -e called && test $WHO = me" }}
            env = {{ WHO = "me" }}
            [task.log]
            command = "printf 'up and '; sleep 0.1; printf running; exec sleep 600"
            ready = {{ log = "up and running" }}
            [task.delay]
            command = "exec sleep 600"
            ready = {{ delay = "50ms" }}
            [task.one-shot]
            command = "true"
            "#
        ),
    );
    let outcomes = project.start(&[], 0);
    assert_eq!(outcomes.len(), 6);
    server.join().unwrap();
    assert_eq!(
        project.running(),
        ["command", "delay", "http", "log", "tcp"]
    );
    assert_eq!(project.job("one-shot").shown()["name"], "one_2d_shot");
    project.run(&["stop"]).expect(0);
    bench.audit();
}

#[test]
fn what_ends_before_it_is_ready_is_not_waited_for() {
    let bench = bench!();
    let project = Project::new(
        &bench,
        r#"
        [task.short]
        command = "true"
        ready = { file = "never", timeout = "1h" }
        [task.missing]
        command = ["no-such-program-anywhere"]
        [task.flaky]
        command = "test -e second || { touch second; exit 1; }; touch up; exec sleep 600"
        restart = "on-failure"
        retry = { attempts = 3, backoff = "1ms" }
        ready = { file = "up" }
        "#,
    );
    let outcomes = project.start(&[], 1);
    let why = |task: &str| {
        outcomes
            .iter()
            .find(|(name, ..)| name == task)
            .unwrap()
            .2
            .clone()
    };
    assert_eq!(why("short"), "it ended before it was ready");
    assert!(
        why("missing").contains("no-such-program-anywhere"),
        "{}",
        why("missing")
    );
    assert_eq!(why("flaky"), "");
    assert_eq!(project.job("flaky").retries().len(), 1);
    // Paused and interrupted jobs are nobody's to join.
    let flaky = project.job("flaky");
    bench.run(["pause", flaky.id()]).expect(0);
    assert!(project.start(&["flaky"], 1)[0].2.contains("outlive resume"));
    bench.run(["resume", flaky.id()]).expect(0);
    project.run(&["stop"]).expect(0);
    bench.audit();
}

/// Tell a task's worker what the task would tell it.
fn notify(job: &Job<'_>, words: &str) {
    let name = job.log_text();
    let name = name.lines().next().unwrap().strip_prefix('@').unwrap();
    let to = SocketAddr::from_abstract_name(name).unwrap();
    let sender = UnixDatagram::unbound().unwrap();
    sender.send_to_addr(words.as_bytes(), &to).unwrap();
}

#[test]
fn a_task_that_says_so_itself_is_ready_then_and_that_is_recorded() {
    let bench = bench!();
    let project = Project::new(
        &bench,
        r#"
        [task.web]
        command = "echo $NOTIFY_SOCKET; exec sleep 600"
        ready = { notify = true }
        hooks = { ready = "echo $PORT > told" }
        env = { PORT = "8080" }
        [task.after]
        command = "sleep 600"
        needs = ["web"]
        "#,
    );
    let mut starting = bench.verb(["start", "--json"]);
    starting.current_dir(&project.root);
    let starting = bench.background(starting);
    until("web runs", || project.running() == ["web"]);
    let web = project.job("web");
    until("it has said where it is told", || {
        web.log_text().ends_with('\n')
    });
    notify(&web, "STATUS=warming up\nREADY=0");
    until("what it says is shown", || {
        web.shown()["status_line"] == "warming up"
    });
    assert_eq!(project.running(), ["web"]);
    notify(&web, "READY=1\nSTATUS=serving");
    until("what needs it runs", || {
        project.running() == ["after", "web"]
    });
    starting.end().expect(0);
    assert_eq!(
        fs::read_to_string(project.root.join("told")).unwrap(),
        "8080\n"
    );
    // Who comes later finds it ready, and tells nobody again.
    fs::remove_file(project.root.join("told")).unwrap();
    assert_eq!(project.start(&["after"], 0).len(), 2);
    assert!(!project.root.join("told").exists());
    assert_eq!(web.shown()["status_line"], "serving");
    project.run(&["stop"]).expect(0);
    assert!(web.status().unwrap().get("ready_at_ms").is_none());
    bench.audit();
}

#[test]
fn what_answers_before_the_task_is_there_is_said() {
    let bench = bench!();
    let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = stranger.local_addr().unwrap();
    let project = Project::new(
        &bench,
        &format!(
            r#"
            [task.web]
            command = "exec sleep 600"
            ready = {{ tcp = "{address}" }}
            "#
        ),
    );
    let said = format!("web: something else answers at {address} already");
    let started = project.run(&["start"]).expect(0);
    assert!(started.errors().contains(&said), "{started:?}");
    // It may be the task itself by now.
    let joined = project.run(&["start"]).expect(0);
    assert!(!joined.errors().contains(&said), "{joined:?}");
    project.run(&["stop"]).expect(0);
    bench.audit();
}

#[test]
fn whoever_interrupts_a_start_is_told_that_it_runs_on() {
    let bench = bench!();
    let project = Project::new(
        &bench,
        r#"
        [task.slow]
        command = "exec sleep 600"
        ready = { file = "never" }
        "#,
    );
    let mut verb = bench.verb(["start"]);
    verb.current_dir(&project.root);
    let starting = bench.background(verb);
    until("it runs", || project.running() == ["slow"]);
    starting.signal(Signal::TERM);
    let interrupted = starting.end().expect(128 + 15);
    assert!(
        interrupted
            .errors()
            .contains("runs on; end it with: outlive stop"),
        "{interrupted:?}"
    );
    assert_eq!(project.running(), ["slow"]);
    project.run(&["stop"]).expect(0);
    bench.audit();
}
