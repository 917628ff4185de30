//! Maintenance: which slots, what is reported, what is recorded, and what is left of its commands.

use std::fs;
use std::time::{Duration, Instant};

use outlive_tests::{bench, until};
use serde_json::{Value, json};

use crate::site::Site;

/// Make slots 1 to `count`, all idle.
fn made(site: &Site, count: u64) {
    let sessions: Vec<_> = (0..count).map(|_| site.open()).collect();
    for session in sessions {
        site.close(&session).expect(0);
    }
}

fn artifact(result: &Value) -> String {
    let path = result["ran"]["artifact"].as_str().unwrap();
    fs::read_to_string(path).unwrap()
}

#[test]
fn every_slot_is_reported_as_documented() {
    let site = Site::new(
        bench!(),
        5,
        &["--maintain", "echo warm; echo on >&2; touch cache"],
    );
    let report = |options: &[&str]| {
        let ran = site.pool(&[&["maintain", "web", "--json"], options].concat());
        ran.expect(0).json()
    };
    assert_eq!(
        report(&[]),
        json!({"identities": [{"identity": "web", "outcome": "no-slots"}]})
    );
    made(&site, 3);
    let broken = site.slot(2)["path"].as_str().unwrap().to_owned();
    let entry = site.git_in(broken.as_ref(), &["rev-parse", "--absolute-git-dir"]);
    fs::remove_file(format!("{entry}/HEAD")).unwrap();
    let used = site.open();
    assert_eq!(used.slot, 1);
    let slots = site.maintained(0, &[]);
    let in_use = json!({"in-use": {"by": format!("session {}", used.token)}});
    assert_eq!(slots[0], json!({"slot": 1, "result": in_use}));
    assert!(slots[1]["result"]["broken"]["why"].is_string(), "{slots:?}");
    let ran = &slots[2]["result"];
    assert_eq!(ran["ran"]["outcome"], "succeeded", "{ran}");
    assert!(ran["ran"]["duration_ms"].is_u64(), "{ran}");
    assert_eq!(artifact(ran), "warm\non\n");
    let slots = site.maintained(0, &["--older-than", "1h"]);
    let stamp = site.slot(3)["last_maintained"].clone();
    assert!(stamp.is_string());
    assert_eq!(
        slots[2]["result"],
        json!({"not-due": {"last_maintained": stamp}})
    );
    site.close(&used).expect(0);
    site.bench.audit();
}

#[test]
fn a_command_that_fails_or_cannot_be_started_says_so() {
    // S24: a pool without a command, and one with.
    let site = Site::new(bench!(), 1, &[]);
    made(&site, 1);
    let none = site.pool(&["maintain", "--json"]).expect(0).json();
    assert_eq!(none["identities"][0]["outcome"], "no-maintain-command");
    // What is shed is said all the same.
    site.pool(&["set", "web", "--slots", "3"]).expect(0);
    made(&site, 3);
    site.pool(&["set", "web", "--slots", "1"]).expect(0);
    let shed = site.pool(&["maintain", "--json"]).expect(0).json();
    assert_eq!(
        shed["identities"][0]["outcome"],
        json!({"visited": {"shed": [3, 2], "slots": []}})
    );
    site.pool(&["set", "web", "--maintain", "echo no; exit 3"])
        .expect(0);
    let slots = site.maintained(1, &[]);
    assert_eq!(
        slots[0]["result"]["ran"]["outcome"],
        json!({"failed": {"exit": 3}})
    );
    assert_eq!(artifact(&slots[0]["result"]), "no\n");
    let after = site.slot(1);
    assert_eq!(after["last_outcome"], json!({"failed": {"exit": 3}}));
    assert_eq!(
        (&after["state"], &after["last_succeeded"]),
        (&json!("idle"), &Value::Null)
    );
    // An attempt is one, whatever came of it.
    let slots = site.maintained(0, &["--older-than", "1h"]);
    assert!(slots[0]["result"]["not-due"].is_object(), "{slots:?}");
    let repository = site.repository();
    site.bench.configure(&format!(
        "[pool.raw]\nslots = 1\nsource = \"{}\"\nmaintain = {{ command = [\"/no/such/program\"] }}\n",
        repository.display()
    ));
    let opened = site.pool(&["open", "raw", "--json"]).expect(0).json();
    site.pool(&["close", opened["token"].as_str().unwrap()])
        .expect(0);
    let report = site.pool(&["maintain", "raw", "--json"]).expect(1).json();
    let ran = &report["identities"][0]["outcome"]["visited"]["slots"][0]["result"];
    assert_eq!(ran["ran"]["outcome"], json!({"failed": {"exit": null}}));
    assert!(
        artifact(ran).contains("/no/such/program"),
        "{}",
        artifact(ran)
    );
    site.bench.audit();
}

#[test]
fn a_timeout_ends_everything_that_the_command_started() {
    // S23.
    let script = "trap '' TERM; setsid sleep 600 & (sleep 600 & sleep 600); wait";
    let site = Site::new(bench!(), 1, &["--maintain", script, "--timeout", "100ms"]);
    made(&site, 1);
    let before = site.bench.census().len();
    let slots = site.maintained(1, &[]);
    assert_eq!(slots[0]["result"]["ran"]["outcome"], "timed-out");
    assert_eq!(
        site.bench.census().len(),
        before,
        "{:?}",
        site.bench.census()
    );
    assert_eq!(site.state(1), "idle");
    site.bench.audit();
}

#[test]
fn what_a_command_leaves_running_is_ended_and_noted() {
    // S16, S21.
    let site = Site::new(bench!(), 1, &["--maintain", "sleep 600 & echo done"]);
    made(&site, 1);
    let slots = site.maintained(0, &[]);
    assert_eq!(slots[0]["result"]["ran"]["outcome"], "succeeded");
    let log = artifact(&slots[0]["result"]);
    assert!(
        log.starts_with("done\n") && log.contains("left running"),
        "{log}"
    );
    assert!(site.bench.census().is_empty());
    site.bench.audit();
}

#[test]
fn nobody_waits_for_maintenance_and_a_second_run_leaves_it_to_the_first() {
    // S48, and "open answers at once while all are maintained".
    let site = Site::new(bench!(), 1, &["--maintain", "touch began; exec sleep 600"]);
    made(&site, 1);
    let path = site.slot(1)["path"].as_str().unwrap().to_owned();
    let maintainer = site.bench.background(site.verb(&["maintain", "web"]));
    until("it runs", || fs::exists(format!("{path}/began")).unwrap());
    let pid = maintainer.child.id();
    let asked = Instant::now();
    let said = site.pool(&["open", "web"]).expect(7).errors();
    assert!(asked.elapsed() < Duration::from_secs(10));
    assert!(said.contains("maintenance"), "{said}");
    assert_eq!(site.state(1), "maintaining");
    let second = site.pool(&["maintain", "web", "--json"]).expect(0).json();
    let claimed = json!({"claimed": {"by_pid": pid}});
    assert_eq!(second["identities"][0]["outcome"], claimed);
    // It is killed: the slot is had by whoever comes next, and the attempt is on record.
    maintainer.kill();
    until("nothing of it is left", || site.bench.census().is_empty());
    let slot = site.slot(1);
    assert_eq!(
        (&slot["state"], &slot["last_outcome"]),
        (&json!("idle"), &json!("interrupted"))
    );
    let said = site.pool(&["open", "web"]).expect(8).errors();
    assert!(
        said.contains("began"),
        "what it left is looked at first: {said}"
    );
    site.pool(&["repair", "web/1", "--force"]).expect(0);
    let one = site.open();
    assert_eq!(site.slot(1)["last_outcome"], "interrupted");
    site.close(&one).expect(0);
    site.bench.crashes();
    site.bench.audit();
}

#[test]
fn a_recycled_pid_is_nobody() {
    // S12: locks say who holds a slot, and no number does.
    let site = Site::new(bench!(), 1, &[]);
    made(&site, 1);
    let slot = site.bench.root().join("pools/web/slots/1/slot.json");
    let mut record: Value = serde_json::from_slice(&fs::read(&slot).unwrap()).unwrap();
    record["state"] = json!("maintaining");
    record["returned"] = json!(false);
    record["attempt_started"] = json!("2026-11-18T11:06:40Z");
    record["claim"] = json!({
        "token": "web-x", "holder": "maintenance", "pid": 1, "started": 1, "boot_id": "b",
        "since": "2026-11-18T11:06:40Z",
    });
    fs::write(&slot, record.to_string()).unwrap();
    let seen = site.slot(1);
    assert_eq!(
        (&seen["state"], &seen["last_outcome"]),
        (&json!("idle"), &json!("interrupted"))
    );
    let one = site.open();
    site.close(&one).expect(0);
    site.bench.audit();
}

#[test]
fn a_lock_of_a_dead_git_maintenance_does_not_make_the_next_one_do_nothing() {
    // S51.
    let site = Site::new(
        bench!(),
        1,
        &["--maintain", "git maintenance run --task=gc"],
    );
    made(&site, 1);
    let lock = site.repository().join(".git/objects/maintenance.lock");
    fs::write(&lock, "").unwrap();
    site.maintained(0, &[]);
    assert!(!lock.exists());
    site.bench.audit();
}
