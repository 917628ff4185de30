//! Who is told of a task.

use std::fs;

use outlive_tests::{bench, until};
use serde_json::Value;

use crate::Project;

#[test]
fn a_hook_that_fails_is_said_and_the_task_is_ready_all_the_same() {
    let bench = bench!();
    let project = Project::new(
        &bench,
        r#"
        [task.web]
        command = "sleep 600"
        hooks = { ready = "exit 7" }
        "#,
    );
    let started = project.run(&["start"]).expect(0);
    assert!(
        started.errors().contains("it exited with 7"),
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
