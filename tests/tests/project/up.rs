//! A project that is started and shown.

use std::fs;

use outlive_tests::{bench, until};

use crate::Project;

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
