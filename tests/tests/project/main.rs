//! Projects through the binary: what a project file starts and in which order, what is said where that cannot be, and what a stop
//! takes with it.

use std::fs;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::PathBuf;

use outlive_tests::{Bench, Job, Process, Ran, bench, rounds, until};
use serde_json::Value;

/// A project of a bench.
struct Project<'b> {
    bench: &'b Bench,
    root: PathBuf,
}

impl<'b> Project<'b> {
    fn new(bench: &'b Bench, file: &str) -> Project<'b> {
        let root = bench.dir().join("project");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("outlive.toml"), file).unwrap();
        Project { bench, root }
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let mut verb = self.bench.verb(arguments);
        verb.current_dir(&self.root);
        self.bench.end(verb)
    }

    /// What a start came to: each task with its outcome, and why.
    fn start(&self, tasks: &[&str], code: i32) -> Vec<(String, String, String)> {
        let started = self
            .run(&[&["start", "--json"], tasks].concat())
            .expect(code)
            .json();
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let outcomes = started.as_array().unwrap().iter();
        outcomes
            .map(|one| (word(&one["task"]), word(&one["outcome"]), word(&one["why"])))
            .collect()
    }

    /// The tasks whose jobs are under way.
    fn running(&self) -> Vec<String> {
        let jobs = self.bench.list();
        let mut running: Vec<String> = jobs
            .iter()
            .filter(|job| job["state"] == "running")
            .map(|job| job["task"].as_str().unwrap().to_owned())
            .collect();
        running.sort();
        running
    }

    /// The newest job of a task.
    fn job(&self, task: &str) -> Job<'b> {
        let jobs = self.bench.list();
        let job = jobs
            .iter()
            .rev()
            .find(|job| job["task"] == task)
            .expect("it has a job");
        self.bench.job(job["id"].as_str().unwrap())
    }
}

#[test]
fn tasks_are_started_in_order_each_once_what_it_needs_is_ready() {
    let bench = bench!();
    let project = Project::new(
        &bench,
        r#"
        [task.db]
        command = "sleep 0.2; touch ready; exec sleep 600"
        ready = { file = "ready" }
        [task.web]
        command = ["sh", "-c", "test -e ready && echo found; pwd; echo $PORT; exec sleep 600"]
        needs = ["db"]
        ready = { log = "8080" }
        env = { PORT = "8080" }
        "#,
    );
    let printed = project.run(&["start", "web"]).expect(0).text();
    let tasks: Vec<&str> = printed
        .lines()
        .map(|line| line.split('\t').next().unwrap())
        .collect();
    assert_eq!(tasks, ["db", "web"]);
    let web = project.job("web");
    assert_eq!(web.shown()["name"], "web");
    assert_eq!(
        printed.lines().nth(1),
        Some(format!("web\t{}", web.id()).as_str())
    );
    let root = project.root.canonicalize().unwrap();
    assert_eq!(web.log_text(), format!("found\n{}\n8080\n", root.display()));
    // What runs is joined, from anywhere in the project.
    fs::create_dir(project.root.join("below")).unwrap();
    let mut again = bench.verb(["start"]);
    again.current_dir(project.root.join("below"));
    let again = bench.end(again).expect(0);
    assert!(again.text().contains(web.id()), "{}", again.text());
    assert!(
        again.errors().contains("web runs already"),
        "{}",
        again.errors()
    );
    assert_eq!(bench.jobs().len(), 2);
    project.run(&["stop"]).expect(0);
    assert!(project.running().is_empty());
    // What needs something ends before that does.
    let ended = |task| project.job(task).shown()["ended_at_ms"].as_u64().unwrap();
    assert!(ended("web") <= ended("db"));
    bench.audit();
}

/// `l0` … `l2` of one that all need; one in the middle never gets ready, one fails.
const DIAMOND: &str = r#"
    [task.base]
    command = "exec sleep 600"
    [task.good]
    command = "exec sleep 600"
    needs = ["base"]
    [task.slow]
    command = "exec sleep 600"
    needs = ["base"]
    ready = { file = "never", timeout = "300ms" }
    [task.bad]
    command = "echo no such luck >&2; exit 9"
    needs = ["base"]
    ready = { delay = "10s" }
    [task.left]
    command = "exec sleep 600"
    needs = ["good"]
    [task.right]
    command = "exec sleep 600"
    needs = ["good"]
    [task.leaf]
    command = "exec sleep 600"
    needs = ["left", "right"]
    [task.after-slow]
    command = "exec sleep 600"
    needs = ["good", "slow"]
    [task.after-bad]
    command = "exec sleep 600"
    needs = ["bad", "good"]
    [task.top]
    command = "exec sleep 600"
    needs = ["leaf", "after-slow", "after-bad"]
"#;

#[test]
fn of_a_diamond_the_right_ones_run_and_the_others_say_why_not() {
    let bench = bench!();
    let project = Project::new(&bench, DIAMOND);
    let outcomes = project.start(&[], 1);
    let of = |task: &str| {
        let found = outcomes.iter().find(|(name, ..)| name == task);
        let (_, outcome, why) = found.expect("every task comes to something");
        format!("{outcome}: {why}")
    };
    for task in ["base", "good", "left", "right", "leaf"] {
        assert_eq!(of(task), "ready: ");
    }
    assert!(
        of("slow").starts_with("failed: it is not ready after 300ms"),
        "{}",
        of("slow")
    );
    assert_eq!(of("bad"), "failed: exited with 9");
    assert_eq!(
        of("after-slow"),
        "skipped: it needs slow, which is not ready"
    );
    assert_eq!(of("after-bad"), "skipped: it needs bad, which is not ready");
    assert!(
        of("top").starts_with("skipped: it needs after-"),
        "{}",
        of("top")
    );
    assert_eq!(
        project.running(),
        ["base", "good", "leaf", "left", "right", "slow"]
    );
    let said = project.run(&["start", "bad"]).expect(1).errors();
    let log = format!(
        "outlive: bad: exited with 9; see: outlive log {}",
        project.job("bad").id()
    );
    assert!(said.contains(&log), "{said}");
    // One leaf goes, with what nobody else needs.
    project.run(&["stop", "leaf"]).expect(0);
    assert_eq!(project.running(), ["base", "slow"]);
    project.run(&["start", "left", "right"]).expect(0);
    project.run(&["stop", "left"]).expect(0);
    assert_eq!(project.running(), ["base", "good", "right", "slow"]);
    project.run(&["stop", "--only", "good"]).expect(0);
    assert_eq!(project.running(), ["base", "right", "slow"]);
    let said = project.run(&["stop", "leaf", "--only"]).expect(6).errors();
    assert!(said.contains("no job of leaf is under way"), "{said}");
    project.run(&["stop"]).expect(0);
    assert!(project.running().is_empty());
    bench.audit();
}

#[test]
fn readiness_is_seen_in_every_way_that_a_file_can_name() {
    let bench = bench!();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        use std::io::{Read, Write};
        // One connection that says nothing, one that asks and is told to wait, and one that is answered.
        for answer in ["", "503 Busy", "204 No Content"] {
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

#[test]
fn a_file_that_is_wrong_starts_nothing_and_hides_nothing_that_runs() {
    let bench = bench!();
    let project = Project::new(&bench, "[task.web]\ncommand = \"exec sleep 600\"\n");
    assert_eq!(project.run(&["check"]).expect(0).text(), "web");
    project.run(&["start"]).expect(0);
    let file = project.root.join("outlive.toml");
    fs::write(
        &file,
        "[task.web]\ncommand = \"true\"\n[task.api]\ncomand = \"true\"\n",
    )
    .unwrap();
    for arguments in [&["check"][..], &["start"], &["start", "web"], &["up"]] {
        let said = project.run(arguments).expect(2).errors();
        assert!(
            said.contains(
                "outlive.toml: line 4, column 1: there is no 'comand' here; 'command' was meant?"
            ),
            "{said}"
        );
    }
    assert_eq!(bench.jobs().len(), 1);
    let named = bench
        .run(["check", file.to_str().unwrap()])
        .expect(2)
        .errors();
    assert!(named.contains("line 4"), "{named}");
    // What runs is stopped even so.
    let said = project.run(&["stop", "web"]).expect(0).errors();
    assert!(said.contains("only jobs are looked for"), "{said}");
    assert!(project.running().is_empty());
    fs::write(&file, "[task.web]\ncommand = \"true\"\n").unwrap();
    let said = project.run(&["start", "wbe"]).expect(3).errors();
    assert!(
        said.contains("there is no task 'wbe'") && said.contains("'web' was meant?"),
        "{said}"
    );
    let outside = bench.run(["start"]).expect(2).errors();
    assert!(outside.contains("not inside a project"), "{outside}");
    bench.audit();
}

#[test]
fn a_task_that_is_restarted_runs_what_the_file_says_now() {
    let bench = bench!();
    let project = Project::new(
        &bench,
        "[task.web]\ncommand = \"echo old; exec sleep 600\"\n",
    );
    project.run(&["start"]).expect(0);
    let old = project.job("web");
    old.until_printed("old");
    let file = project.root.join("outlive.toml");
    fs::write(
        &file,
        "[task.web]\ncommand = \"echo new; exec sleep 600\"\n",
    )
    .unwrap();
    let id = project.run(&["restart", "web"]).expect(0).text();
    let new = bench.job(&id);
    new.until_printed("new");
    assert_eq!(
        (old.state().as_str(), new.state().as_str()),
        ("cancelled", "running")
    );
    // By its job, too.
    let id = project.run(&["restart", new.id()]).expect(0).text();
    bench.job(&id).until_printed("new");
    // One whose task is gone is run again as it was.
    fs::write(&file, "[task.api]\ncommand = \"true\"\n").unwrap();
    let ran = project.run(&["restart", "web"]).expect(0);
    assert!(
        ran.errors().contains("is run again as it was"),
        "{}",
        ran.errors()
    );
    bench.job(&ran.text()).until_printed("new");
    project.run(&["stop"]).expect(0);
    bench.audit();
}

#[test]
fn a_job_that_only_bears_the_name_of_a_task_is_not_taken_for_it() {
    let bench = bench!();
    let file = "[task.db]\ncommand = \"exec sleep 600\"\n[task.web]\ncommand = \"true\"\nneeds = [\"db\"]\n";
    let project = Project::new(&bench, file);
    let id = project
        .run(&["run", "--name", "db", "--", "sleep", "600"])
        .expect(0)
        .text();
    let outcomes = project.start(&[], 1);
    let why = format!("its name is that of {id}, which is no job of this task; stop that first");
    let expected = [
        ("db".into(), "failed".into(), why),
        (
            "web".into(),
            "skipped".into(),
            "it needs db, which is not ready".into(),
        ),
    ];
    assert_eq!(outcomes, expected);
    project.run(&["stop", &id]).expect(0);
    project.run(&["start"]).expect(0);
    project.run(&["stop"]).expect(0);
    bench.audit();
}

#[test]
fn a_task_has_the_mask_of_whoever_starts_or_restarts_it() {
    let bench = bench!();
    let file = "[task.web]\ncommand = \"umask; exec sleep 600\"\nready = { log = \"\\n\" }\n";
    let project = Project::new(&bench, file);
    let outlive = bench.binary().display().to_string();
    for verb in ["start", "restart"] {
        let mut shell = bench.program("sh");
        shell.args(["-c", &format!("umask 027; exec {outlive} {verb} web")]);
        shell.current_dir(&project.root);
        bench.end(shell).expect(0);
        assert_eq!(project.job("web").log_text(), "0027\n", "{verb}");
    }
    project.run(&["stop"]).expect(0);
    bench.audit();
}

#[test]
fn any_number_of_starters_start_a_task_once() {
    let bench = bench!();
    let project = Project::new(
        &bench,
        "[task.db]\ncommand = \"exec sleep 600\"\n[task.web]\ncommand = \"exec sleep 600\"\nneeds = [\"db\"]\n",
    );
    for _ in 0..rounds(3) {
        let starters: Vec<_> = (0..8)
            .map(|_| {
                let mut verb = bench.verb(["start"]);
                verb.current_dir(&project.root);
                bench.background(verb)
            })
            .collect();
        for starter in starters {
            starter.end().expect(0);
        }
        assert_eq!(project.running(), ["db", "web"]);
        project.run(&["stop"]).expect(0);
    }
    // Nobody has ever taken one for a job that has lost its starter.
    for job in bench.jobs() {
        job.expect_states(&["queued", "running", "cancelled"]);
    }
    bench.audit();
}

#[test]
fn up_shows_what_each_task_prints_until_all_have_ended() {
    let bench = bench!();
    let project = Project::new(
        &bench,
        "[task.a]\ncommand = \"echo one; printf 'no end'\"\n[task.long]\ncommand = \"echo two\"\nneeds = [\"a\"]\n",
    );
    let ran = project.run(&["up"]).expect(0);
    let mut lines: Vec<String> = ran.text().lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["a    | no end", "a    | one", "long | two"]);
    fs::write(
        project.root.join("outlive.toml"),
        "[task.bad]\ncommand = \"sleep 0.1; exit 4\"\n",
    )
    .unwrap();
    let said = project.run(&["up"]).expect(1).errors();
    assert!(said.contains("exited 4"), "{said}");
    bench.audit();
}

#[test]
fn up_that_is_interrupted_leaves_the_tasks_or_stops_them_as_asked() {
    let bench = bench!();
    let project = Project::new(
        &bench,
        "[task.web]\ncommand = \"echo here; exec sleep 600\"\n",
    );
    for (arguments, left) in [(&["up"][..], 1), (&["up", "--stop"], 0)] {
        let mut verb = bench.verb(arguments);
        verb.current_dir(&project.root);
        let up = bench.background(verb);
        until("it runs", || project.running() == ["web"]);
        project.job("web").until_printed("here");
        interrupt(up.pid());
        up.end().expect(128 + 15);
        assert_eq!(project.running().len(), left);
    }
    bench.audit();
}

fn interrupt(pid: u32) {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(pid.unwrap(), rustix::process::Signal::TERM).unwrap();
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
fn a_hook_that_fails_is_said_and_the_task_is_ready_all_the_same() {
    let bench = bench!();
    let project = Project::new(
        &bench,
        r#"
        [task.web]
        command = "sleep 600"
        hooks = { ready = "exit 7" }
        limits = { cpu = "50%" }
        "#,
    );
    let started = project.run(&["start"]).expect(0);
    assert!(
        started.errors().contains("it exited with 7"),
        "{}",
        started.errors()
    );
    assert!(
        started.errors().contains("limits.cpu is not held"),
        "{}",
        started.errors()
    );
    project.run(&["stop"]).expect(0);
    bench.audit();
}

#[test]
fn of_a_failure_one_hook_is_told_and_of_every_end_another() {
    let bench = bench!();
    let project = Project::new(
        &bench,
        r#"
        [task.good]
        command = "true"
        hooks = { failed = "cat > good.failed", ended = "cat > good.ended" }
        [task.bad]
        command = "exit 3"
        hooks = { failed = "cat > bad.failed", ended = "test -s bad.failed && cat > bad.ended" }
        "#,
    );
    project.run(&["start"]);
    let told = |name: &str| fs::read(project.root.join(name)).unwrap_or_default();
    until("both have ended and it was told", || {
        ["good.ended", "bad.ended"]
            .iter()
            .all(|name| told(name).ends_with(b"\n"))
    });
    let job: Value = serde_json::from_slice(&told("bad.failed")).unwrap();
    assert_eq!(
        (&job["task"], &job["exit"]["code"]),
        (&"bad".into(), &3.into())
    );
    assert!(!project.root.join("good.failed").exists());
    bench.audit();
}

#[test]
fn what_is_always_run_again_is_so_until_its_attempts_are_over() {
    let bench = bench!();
    let project = Project::new(
        &bench,
        r#"
        [task.a]
        command = "echo ran"
        restart = "always"
        retry = { attempts = 3, backoff = "10ms" }
        [task.b]
        command = "echo ran; exec sleep 600"
        restart = "always"
        retry = { backoff = "10ms" }
        "#,
    );
    project.run(&["start"]);
    let [a, b] = ["a", "b"].map(|task| project.job(task));
    a.until_ended();
    assert_eq!(a.state(), "done");
    assert_eq!(a.log_text(), "ran\n".repeat(3));
    // Whatever ends it, but for a stop.
    for attempt in 2..5 {
        let command = b.shown()["pid"].as_u64().unwrap();
        Process::find(command as i32).unwrap().kill();
        until("it runs again", || {
            let shown = b.shown();
            shown["attempt"] == attempt && shown["pid"].as_u64().is_some_and(|pid| pid != command)
        });
    }
    project.run(&["stop", "b"]).expect(0);
    assert_eq!(b.state(), "cancelled");
    bench.audit();
}

#[test]
fn what_a_task_is_made_of_runs_it_anew_when_it_changes() {
    for _ in 0..rounds(3) {
        let bench = bench!();
        let project = Project::new(
            &bench,
            r#"
            [task.web]
            command = "cat src/deep/page; exec sleep 600"
            watch = ["src/**"]
            [task.other]
            command = "sleep 600"
            "#,
        );
        let page = project.root.join("src/deep/page");
        let write = |text: &str| {
            fs::create_dir_all(page.parent().unwrap()).unwrap();
            fs::write(&page, text).unwrap();
        };
        write("one\n");
        project.run(&["start"]).expect(0);
        let web = project.job("web");
        until("it has begun", || web.log_text() == "one\n");
        fs::write(project.root.join("elsewhere"), "x").unwrap();
        write("two\n");
        until("it was run anew", || web.log_text() == "one\ntwo\n");
        // Of one that is paused a change waits.
        bench.run(["pause", web.id()]).expect(0);
        fs::remove_dir_all(project.root.join("src")).unwrap();
        write("three\n");
        assert_eq!(web.state(), "paused");
        bench.run(["resume", web.id()]).expect(0);
        until("it was run anew", || web.log_text() == "one\ntwo\nthree\n");
        let reasons = web.retries();
        let reasons: Vec<&str> = reasons
            .iter()
            .filter_map(|event| event["reason"].as_str())
            .collect();
        assert_eq!(reasons.len(), 2, "{reasons:?}");
        assert_eq!(reasons[0], "src/deep/page has changed");
        assert_eq!(project.job("other").shown()["attempt"], 1);
        project.run(&["stop"]).expect(0);
        bench.audit();
    }
}

#[test]
fn a_process_that_takes_more_memory_than_it_may_gets_none() {
    let bench = bench!();
    let project = Project::new(
        &bench,
        r#"
        [task.small]
        command = "ulimit -d; head -c 200m /dev/zero | tail -c 200m | wc -c"
        limits = { memory = "64M" }
        "#,
    );
    project.run(&["start"]);
    let job = project.job("small");
    job.until_ended();
    let log = job.log_text();
    assert!(log.starts_with("65536\n"), "{log}");
    assert!(!log.ends_with("\n209715200\n"), "{log}");
    bench.audit();
}
