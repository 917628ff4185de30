//! What a task may use. Where this user may make control groups they hold it for all of its processes together, and where not the
//! memory of each process alone is held, and that is said.

use std::fs;
use std::path::PathBuf;

use outlive_tests::{Job, bench, until};
use serde_json::{Value, json};

use crate::Project;

/// The control group that the command of a job is in, if it has one.
fn group_of(job: &Job<'_>) -> Option<PathBuf> {
    let groups = fs::read_to_string(format!("/proc/{}/cgroup", job.pid())).unwrap();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let is_its_own = own.contains(&format!("/outlive-{}-", job.id()));
    let below = PathBuf::from(own.strip_prefix('/')?);
    let mounts = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    let mut found = mounts.iter().map(|mount| PathBuf::from(mount).join(&below));
    is_its_own.then(|| found.find(|dir| dir.join("cgroup.procs").exists()))?
}

#[test]
fn a_process_that_takes_more_memory_than_it_may_gets_none() {
    let bench = bench!();
    let project = Project::new(
        &bench,
        r#"
        [task.small]
        command = "head -c 200m /dev/zero | tail -c 200m | wc -c"
        limits = { memory = "64M" }
        "#,
    );
    project.run(&["start"]);
    let job = project.job("small");
    job.until_ended();
    let log = job.log_text();
    assert!(!log.ends_with("209715200\n"), "{log}");
    bench.audit();
}

#[test]
fn limits_are_held_by_a_control_group_or_it_is_said_that_they_are_not() {
    let bench = bench!();
    let project = Project::new(
        &bench,
        r#"
        [task.small]
        command = "ulimit -d; exec sleep 600"
        limits = { memory = "64M", cpu = "50%" }
        "#,
    );
    let said = project.run(&["start"]).expect(0).errors();
    let job = project.job("small");
    job.until_printed("\n");
    let group = group_of(&job);
    let mut notes = job.events();
    notes.retain(|event| event["event"] == "status");
    let notes: Vec<&str> = notes
        .iter()
        .filter_map(|event| event["text"].as_str())
        .collect();
    match &group {
        Some(leaf) => {
            let of = |file: &str| fs::read_to_string(leaf.parent().unwrap().join(file)).unwrap();
            assert_eq!(of("memory.max"), "67108864\n");
            assert_eq!(of("cpu.max"), "50000 100000\n");
            assert_eq!(said, "");
            assert!(notes.is_empty(), "{notes:?}");
        }
        None => {
            let unheld = "the limit of cpu is not held, the limit of memory is held for each process alone: ";
            assert!(said.contains(unheld), "{said}");
            assert!(
                notes.iter().any(|note| note.starts_with(unheld)),
                "{notes:?}"
            );
            assert_eq!(job.log_text(), "65536\n");
        }
    }
    project.run(&["stop"]).expect(0);
    until("its group is gone", || {
        let leaf = group.as_ref();
        leaf.is_none_or(|leaf| !leaf.parent().unwrap().exists())
    });
    bench.audit();
}

#[test]
fn what_is_not_held_is_noted_once_however_often_a_job_is_tried() {
    let bench = bench!();
    let flags = [
        "--memory",
        "64M",
        "--cpu",
        "50%",
        "--retry",
        "3",
        "--backoff",
        "1ms",
    ];
    let ran = bench.run([&["run"], &flags[..], &["--", "false"]].concat());
    let ran = ran.expect(0);
    let job = bench.job(ran.text().trim());
    job.until_ended();
    let events = job.events();
    let count = |kind: &str| events.iter().filter(|it| it["event"] == kind).count();
    assert_eq!(count("retry"), 3);
    let is_held = !ran.errors().contains("limit of");
    assert_eq!(count("status"), usize::from(!is_held), "{events:?}");
    bench.audit();
}

#[test]
fn any_job_can_have_limits_and_a_line_of_many_too() {
    let bench = bench!();
    let ran = bench
        .run([
            "run", "--memory", "64M", "--cpu", "150%", "--", "sleep", "600",
        ])
        .expect(0);
    let job = bench.job(ran.text().trim());
    let is_held = group_of(&job).is_some();
    assert_eq!(
        ran.errors().contains("is not held"),
        !is_held,
        "{}",
        ran.errors()
    );
    job.stop(0);
    let limits = |job: &Job<'_>| {
        let descriptor = fs::read(job.file("job.json")).unwrap();
        let descriptor: Value = serde_json::from_slice(&descriptor).unwrap();
        descriptor["limits"].clone()
    };
    let both = json!({ "memory_bytes": 67_108_864, "cpu_percent": 150 });
    assert_eq!(limits(&job), both);
    let lines = bench.file("lines");
    fs::write(&lines, r#"{"argv":["true"],"memory":"64M"}"#).unwrap();
    let lines = lines.to_str().unwrap();
    let queue = [
        "queue",
        "--from",
        lines,
        "--memory",
        "1G",
        "--cpu",
        "150%",
        "--no-supervisor",
    ];
    let queued = bench.job(bench.run(queue).expect(0).text().trim());
    assert_eq!(limits(&queued), both);
    for (flag, value) in [
        ("--memory", "0"),
        ("--memory", "much"),
        ("--cpu", "50"),
        ("--cpu", "0%"),
    ] {
        bench.run(["run", flag, value, "--", "true"]).expect(2);
    }
    queued.stop(0);
    bench.audit();
}
