//! What is started, in which order, and what is not.

use std::fs;

use outlive_tests::{bench, rounds};

use crate::Project;

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
        of("slow").starts_with("failed: it is not ready after 300ms: there is no "),
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
