//! What is run again: as asked, always, or when its sources change.

use std::fs;

use outlive_tests::{Process, bench, rounds, until};

use crate::Project;

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
fn a_task_means_its_newest_job_wherever_a_job_can_be_named() {
    let bench = bench!();
    let project = Project::new(&bench, "[task.one-shot]\ncommand = \"echo $N\"\n");
    for number in ["1", "2"] {
        let mut start = bench.verb(["start"]);
        start.current_dir(&project.root).env("N", number);
        bench.end(start);
        project.job("one-shot").until_ended();
    }
    assert_eq!(project.run(&["log", "one-shot"]).expect(0).text(), "2");
    let newest = project.job("one-shot");
    let shown = project.run(&["status", "one-shot", "--json"]).expect(0);
    assert_eq!(shown.json()["id"], newest.id());
    assert_eq!(project.run(&["wait", "one-shot"]).code(), 0);
    // Elsewhere nobody knows the task.
    bench.run(["log", "one-shot"]).expect(3);
    bench.audit();
}
