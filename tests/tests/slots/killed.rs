//! Whoever opens, closes or maintains may be killed at any moment, and so may whoever runs his commands: the slot is had by the
//! next one, nothing works in it but for its holder, and what was tried is on record.

use std::fs;

use outlive_tests::{DIE_AFTER, Process, bench, is_ignored, until};
use rustix::process::Signal;
use serde_json::json;

use crate::site::Site;

/// What a maintenance command starts: a child in its session, and one in another.
const TREE: &str = "setsid sleep 600 & sleep 600 & echo on > cache; wait";

/// A pool of so many idle slots with this maintenance command.
fn maintained_by(command: &str, slots: u32) -> Site {
    let site = Site::new(bench!(), slots, &["--maintain", command]);
    let sessions: Vec<_> = (0..slots).map(|_| site.open()).collect();
    for session in sessions {
        site.close(&session).expect(0);
    }
    site
}

/// The processes whose command line has this in it.
fn called(site: &Site, word: &str) -> Vec<Process> {
    let mut found = site.bench.census();
    found.retain(|process| process.title.contains(word));
    found
}

fn until_the_tree_stands(site: &Site) {
    until("the command runs", || {
        called(site, "sleep 600")
            .iter()
            .filter(|process| process.title.starts_with("sleep"))
            .count()
            == 2
    });
}

fn is_interrupted(site: &Site, number: u64) -> bool {
    site.slot(number)["last_outcome"] == "interrupted"
}

#[test]
fn whoever_maintains_and_is_told_to_end_ends_the_command_first_and_records_that() {
    // S49.
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        if is_ignored(signal) {
            println!(
                "left out: {signal:?} is ignored here, and so by whatever is started from here"
            );
            continue;
        }
        let site = maintained_by(TREE, 2);
        let maintainer = site
            .bench
            .background(site.verb(&["maintain", "web", "--json"]));
        until_the_tree_stands(&site);
        let pid = i32::try_from(maintainer.child.id()).unwrap();
        Process::find(pid).unwrap().signal(signal);
        let ran = maintainer.end().expect(128 + signal.as_raw());
        // Nothing is left the moment that it has ended.
        assert!(site.bench.census().is_empty(), "{:?}", site.bench.census());
        let report = ran.json();
        let slots = report["identities"][0]["outcome"]["visited"]["slots"]
            .as_array()
            .unwrap();
        assert_eq!(slots.len(), 1, "no other was begun: {report}");
        assert_eq!(slots[0]["result"]["ran"]["outcome"], "interrupted");
        assert!(is_interrupted(&site, 1));
        assert_eq!(site.slot(1)["returned"], true);
        assert!(site.slot(2)["last_maintained"].is_null());
        let one = site.open();
        assert_eq!(one.slot, 1);
        site.close(&one).expect(0);
        site.bench.audit();
    }
}

#[test]
fn what_a_lost_minder_was_minding_is_ended_before_the_slot_is_given_back() {
    let site = maintained_by(TREE, 1);
    site.bench.crashes();
    let maintainer = site
        .bench
        .background(site.verb(&["maintain", "web", "--json"]));
    until_the_tree_stands(&site);
    for minder in called(&site, "outlive minder") {
        minder.kill();
    }
    let report = maintainer.end().expect(1).json();
    assert!(site.bench.census().is_empty(), "{:?}", site.bench.census());
    let slot = &report["identities"][0]["outcome"]["visited"]["slots"][0];
    assert_eq!(slot["result"]["ran"]["outcome"], "interrupted", "{report}");
    assert!(is_interrupted(&site, 1));
    let one = site.open();
    site.close(&one).expect(0);
    site.bench.audit();
}

#[test]
fn what_a_killed_maintenance_has_left_is_ended_by_whoever_wants_the_slot() {
    for wants in [&["open", "web"][..], &["maintain", "web"]] {
        let site = maintained_by(TREE, 1);
        site.bench.crashes();
        let maintainer = site.bench.background(site.verb(&["maintain", "web"]));
        until_the_tree_stands(&site);
        // Both in one go: neither can see to what the other leaves.
        let minders = called(&site, "outlive minder");
        let pid = i32::try_from(maintainer.child.id()).unwrap();
        Process::find(pid).unwrap().signal(Signal::STOP);
        for minder in minders {
            minder.kill();
        }
        maintainer.kill();
        until("only what it left lives", || {
            let left = site.bench.census();
            left.len() == 2 && left.iter().all(|one| one.title.starts_with("sleep"))
        });
        assert_eq!(site.state(1), "maintaining", "they have its lock");
        site.pool(&["set", "web", "--maintain", "true"]).expect(0);
        site.pool(wants).expect(0);
        assert!(site.bench.census().is_empty(), "{:?}", site.bench.census());
        if wants[0] == "open" {
            assert!(is_interrupted(&site, 1));
        } else {
            assert_eq!(site.slot(1)["last_outcome"], "succeeded");
        }
        site.bench.audit();
    }
}

#[test]
fn what_a_session_leaves_is_never_ended_for_it() {
    let site = Site::new(bench!(), 1, &["--maintain", "true"]);
    let one = site.open();
    let left = site.exec(&one, &["sh", "-c", "setsid sleep 600 >&- 2>&- &"]);
    site.bench.end(left).expect(0);
    site.pool(&["open", "web"]).expect(7);
    site.maintained(0, &[]);
    assert_eq!(called(&site, "sleep 600").len(), 1);
    site.force(&one).expect(0);
    site.bench.audit();
}

#[test]
fn a_maintainer_that_is_killed_at_any_of_its_effects_leaves_the_slot_to_the_next_one() {
    let site = maintained_by("echo ran >> cache", 1);
    site.bench.crashes();
    let mut deaths = 0;
    let mut interrupted = 0;
    loop {
        let before = site.slot(1)["last_maintained"].clone();
        let mut maintain = site.verb(&["maintain", "web"]);
        maintain.env(DIE_AFTER, (deaths + 1).to_string());
        if site.bench.end(maintain).code() != 137 {
            break;
        }
        deaths += 1;
        // What ran its command is gone soon after it, with all that it minded.
        until("nothing of it is left", || site.bench.census().is_empty());
        let slot = site.slot(1);
        assert_eq!(slot["state"], "idle", "death {deaths}: {slot}");
        if slot["last_maintained"] != before {
            let outcome = &slot["last_outcome"];
            assert!(
                *outcome == json!("interrupted") || *outcome == json!("succeeded"),
                "death {deaths}: {slot}"
            );
            interrupted += usize::from(*outcome == json!("interrupted"));
        }
        let one = site.open();
        assert_eq!(one.slot, 1, "death {deaths}");
        site.close(&one).expect(0);
    }
    println!("killed after each of {deaths} effects, {interrupted} times with an attempt noted");
    assert!(deaths > 20 && interrupted > 2, "{deaths}, {interrupted}");
    site.bench.audit();
}

#[test]
fn whoever_opens_or_closes_and_is_killed_at_any_effect_is_in_nobodys_way() {
    let site = Site::new(bench!(), 2, &[]);
    site.bench.crashes();
    let tokens = || {
        let entries = fs::read_dir(site.bench.root().join("sessions"));
        let names = entries.into_iter().flatten().flatten();
        names
            .filter_map(|entry| {
                let name = entry.file_name().into_string().unwrap();
                Some(name.strip_suffix(".json")?.to_owned())
            })
            .collect::<Vec<_>>()
    };
    let (mut openers, mut closers) = (0, 0);
    loop {
        let mut open = site.verb(&["open", "web"]);
        open.env(DIE_AFTER, (openers + 1).to_string());
        let is_over = site.bench.end(open).code() != 137;
        until("nothing of it is left", || site.bench.census().is_empty());
        // At most the one that it has opened before it could say so.
        for token in tokens() {
            site.pool(&["close", &token]).expect(0);
        }
        let both = [site.open(), site.open()];
        for one in &both {
            site.close(one).expect(0);
        }
        if is_over {
            break;
        }
        openers += 1;
    }
    loop {
        let one = site.open();
        let mut close = site.verb(&["close", &one.token]);
        close.env(DIE_AFTER, (closers + 1).to_string());
        let is_over = site.bench.end(close).code() != 137;
        until("nothing of it is left", || site.bench.census().is_empty());
        let again = site.close(&one);
        assert!(matches!(again.code(), 0 | 3), "{again:?}");
        assert_eq!(site.state(1), "idle");
        if is_over {
            break;
        }
        closers += 1;
    }
    println!("openers killed after each of {openers} effects, closers after each of {closers}");
    assert!(openers > 10 && closers > 5, "{openers}, {closers}");
    site.bench.audit();
}
