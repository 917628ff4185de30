//! Pools on the command line, and what a supervisor that runs makes of their changes.

use std::fs;

use outlive_tests::{Bench, Job, bench, until};
use serde_json::{Value, json};

/// How `pool list --json` shows a pool.
#[track_caller]
fn pool(bench: &Bench, name: &str) -> Value {
    let pools = bench.run(["pool", "list", "--json"]).expect(0).json();
    let mut all = pools.as_array().unwrap().iter();
    all.find(|pool| pool["name"] == name)
        .cloned()
        .unwrap_or_else(|| panic!("{name} is not among {pools}"))
}

fn standing(name: &str, slots: u32, taken: u32, waiting: u32) -> Value {
    json!({
        "name": name, "slots": slots, "taken": taken, "waiting": waiting,
        "paused": false, "configured": false, "declared": true,
    })
}

/// A script that begins, and goes on until a file is there.
fn until_told(file: &str) -> String {
    format!("echo begun; while [ ! -e {file} ]; do sleep 0.01; done")
}

fn begun(job: &Job<'_>) -> bool {
    fs::read_to_string(job.file("log")).is_ok_and(|log| log.contains("begun"))
}

#[test]
fn of_many_who_make_a_pool_at_once_one_does() {
    let bench = bench!();
    for round in 0..5 {
        let name = format!("p{round}");
        let makers: Vec<_> = (1..=8)
            .map(|slots| {
                let verb = bench.verb(["pool", "add", &name, "--slots", &slots.to_string()]);
                (slots, bench.background(verb))
            })
            .collect();
        let made: Vec<u32> = makers
            .into_iter()
            .filter_map(|(slots, maker)| {
                let ran = maker.end();
                assert!(matches!(ran.code(), 0 | 6), "{}", ran.errors());
                (ran.code() == 0).then_some(slots)
            })
            .collect();
        assert_eq!(made.len(), 1, "{made:?}");
        assert_eq!(pool(&bench, &name), standing(&name, made[0], 0, 0));
    }
    bench.audit();
}

#[test]
fn a_pool_is_made_changed_paused_and_removed() {
    let bench = bench!();
    let default = pool(&bench, "default");
    assert_eq!(default["configured"], true);
    assert!(default["slots"].as_u64().unwrap() > 0);
    bench.run(["pool", "add", "web", "--slots", "3"]).expect(0);
    assert_eq!(pool(&bench, "web"), standing("web", 3, 0, 0));
    let twice = bench.run(["pool", "add", "web", "--slots", "4"]).expect(6);
    assert!(
        twice.errors().contains("pool set web"),
        "{}",
        twice.errors()
    );
    bench
        .run(["pool", "add", "default", "--slots", "4"])
        .expect(6);
    bench.run(["pool", "set", "web", "--slots", "5"]).expect(0);
    bench.run(["pool", "pause", "web"]).expect(0);
    let paused = pool(&bench, "web");
    assert_eq!(
        (&paused["slots"], &paused["paused"]),
        (&json!(5), &json!(true))
    );
    bench.run(["pool", "resume", "web"]).expect(0);
    bench.run(["pool", "resume", "web"]).expect(0);
    assert_eq!(pool(&bench, "web"), standing("web", 5, 0, 0));
    let text = bench.run(["pool", "list"]).expect(0).text();
    assert!(text.contains("web") && text.contains("open"), "{text}");
    bench.run(["pool", "remove", "web"]).expect(0);
    for verb in [
        &["pool", "remove", "web"][..],
        &["pool", "set", "web", "--slots", "1"],
        &["pool", "pause", "web"],
        &["queue", "--pool", "web", "--", "true"],
    ] {
        let ran = bench.run(verb).expect(3);
        assert!(ran.errors().contains("no pool 'web'"), "{}", ran.errors());
    }
    bench.audit();
}

#[test]
fn what_makes_no_sense_is_refused() {
    let bench = bench!();
    for arguments in [
        &["pool"][..],
        &["pool", "add", "x"],
        &["pool", "add", "x", "--slots", "0"],
        &["pool", "set", "default", "--slots", "0"],
        &["pool", "add", "x", "--slots", "-1"],
        &["pool", "add", "a/b", "--slots", "1"],
        &["pool", "add", "..", "--slots", "1"],
        &["pool", "add", "", "--slots", "1"],
        &["pool", "frobnicate"],
    ] {
        let ran = bench.run(arguments);
        // Help is printed where no verb is given.
        assert_eq!(ran.code(), 2, "{ran:?}");
    }
    bench.audit();
}

#[test]
fn a_configured_pool_only_loses_what_somebody_made_of_it() {
    let bench = bench!();
    bench.run(["list"]).expect(0);
    fs::write(bench.root().join("config.toml"), "[pool.web]\nslots = 3\n").unwrap();
    let as_configured = pool(&bench, "web");
    assert_eq!(as_configured["slots"], 3);
    assert_eq!(as_configured["configured"], true);
    bench.run(["pool", "remove", "web"]).expect(6);
    bench.run(["pool", "set", "web", "--slots", "7"]).expect(0);
    bench.run(["pool", "pause", "web"]).expect(0);
    assert_eq!(pool(&bench, "web")["slots"], 7);
    let removed = bench.run(["pool", "remove", "web"]).expect(0);
    assert!(removed.errors().contains("slots 3"), "{}", removed.errors());
    assert_eq!(pool(&bench, "web"), as_configured);
    bench.audit();
}

#[test]
fn a_pool_with_jobs_in_it_stays_and_one_that_only_jobs_name_is_listed() {
    let bench = bench!();
    bench.run(["pool", "add", "web", "--slots", "1"]).expect(0);
    let queued = bench.queued(&["--pool", "web", "--no-supervisor"], "exit 0");
    assert_eq!(pool(&bench, "web"), standing("web", 1, 0, 1));
    let refused = bench.run(["pool", "remove", "web"]).expect(6);
    assert!(
        refused.errors().contains(queued.id()),
        "{}",
        refused.errors()
    );
    fs::remove_file(bench.root().join("pools/web/pool.json")).unwrap();
    let named = pool(&bench, "web");
    assert_eq!(
        (&named["declared"], &named["waiting"]),
        (&json!(false), &json!(1))
    );
    let shown = bench.run(["status", queued.id()]).expect(0).text();
    assert!(shown.contains("there is no pool web"), "{shown}");
    // It waits for as long as it takes, and runs once the pool is there again.
    bench.run(["pool", "add", "web", "--slots", "1"]).expect(0);
    let mut supervisor = bench.verb(["supervise", "--idle-exit", "1ms"]);
    supervisor.stdout(std::process::Stdio::null());
    bench.end(supervisor).expect(0);
    assert_eq!(queued.recorded(), "done");
    bench.run(["pool", "remove", "web"]).expect(0);
    bench.audit();
}

#[test]
fn slots_can_be_changed_while_jobs_run() {
    let bench = bench!();
    bench.run(["pool", "add", "p", "--slots", "1"]).expect(0);
    let jobs: Vec<Job> = (0..4)
        .map(|n| bench.queued(&["--pool", "p"], &until_told(&format!("go{n}"))))
        .collect();
    let running = || {
        jobs.iter()
            .filter(|job| job.recorded() == "running")
            .count()
    };
    until("one runs", || running() == 1 && begun(&jobs[0]));
    assert_eq!(pool(&bench, "p"), standing("p", 1, 1, 3));
    bench.run(["pool", "set", "p", "--slots", "3"]).expect(0);
    until("three run", || running() == 3);
    assert_eq!(pool(&bench, "p"), standing("p", 3, 3, 1));
    bench.run(["pool", "set", "p", "--slots", "1"]).expect(0);
    assert_eq!(pool(&bench, "p"), standing("p", 1, 3, 1));
    // Nobody is pushed out, and nobody comes in before there is room again.
    for n in [0, 1] {
        fs::write(bench.file(&format!("go{n}")), "").unwrap();
        jobs[n].until_ended();
        assert_eq!(jobs[3].recorded(), "queued");
    }
    fs::write(bench.file("go2"), "").unwrap();
    until("the last one runs", || begun(&jobs[3]));
    fs::write(bench.file("go3"), "").unwrap();
    for job in &jobs {
        assert_eq!(job.wait(), 0);
    }
    bench.audit();
}

#[test]
fn a_paused_pool_admits_nobody_and_those_inside_run_on() {
    let bench = bench!();
    bench.run(["pool", "add", "p", "--slots", "2"]).expect(0);
    let first = bench.queued(&["--pool", "p"], &until_told("go"));
    until("it runs", || begun(&first));
    bench.run(["pool", "pause", "p"]).expect(0);
    let second = bench.queued(&["--pool", "p"], "exit 0");
    let elsewhere = bench.queued(&[], "exit 0");
    assert_eq!(elsewhere.wait(), 0);
    let listed = bench.run(["list"]).expect(0).text();
    assert!(listed.contains("queued (the pool p is paused)"), "{listed}");
    fs::write(bench.file("go"), "").unwrap();
    assert_eq!(first.wait(), 0);
    // A slot is idle, and has been for as long as another pool needed for a whole job.
    assert_eq!(bench.queued(&[], "exit 0").wait(), 0);
    assert_eq!(second.recorded(), "queued");
    bench.run(["pool", "resume", "p"]).expect(0);
    assert_eq!(second.wait(), 0);
    bench.audit();
}

#[test]
fn a_pool_that_cannot_be_read_is_named_and_left() {
    let bench = bench!();
    bench.run(["pool", "add", "p", "--slots", "2"]).expect(0);
    let file = bench.root().join("pools/p/pool.json");
    fs::write(&file, "{\"slots\":").unwrap();
    for verb in [
        &["pool", "list"][..],
        &["pool", "set", "p", "--slots", "3"],
        &["pool", "remove", "p"],
        &["queue", "--pool", "p", "--", "true"],
    ] {
        let ran = bench.run(verb).expect(1);
        assert!(ran.errors().contains("pool.json"), "{}", ran.errors());
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\"slots\":");
    fs::remove_file(file).unwrap();
    bench.audit();
}

#[test]
fn of_a_pool_that_is_not_there_the_nearest_is_said() {
    let bench = bench!();
    bench.run(["pool", "add", "gpu", "--slots", "1"]).expect(0);
    for verb in [
        &["queue", "--pool", "gqu", "--", "true"][..],
        &["pool", "remove", "gqu"],
        &["pool", "set", "gqu", "--slots", "2"],
    ] {
        let said = bench.run(verb.iter().copied()).expect(3).errors();
        assert!(said.contains("'gpu' was meant?"), "{said}");
    }
    let said = bench.run(["pool", "pause", "somewhere"]).expect(3).errors();
    assert!(!said.contains("was meant"), "{said}");
    bench.audit();
}
