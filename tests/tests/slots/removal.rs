//! Slots that are one too many, and pools that go.

use std::fs;

use outlive_tests::{bench, rounds};

use crate::site::Site;

#[test]
fn surplus_slots_are_shed_highest_first_and_only_if_nothing_is_lost() {
    // S07, S24, S30.
    let site = Site::new(bench!(), 4, &["--maintain", "true"]);
    let sessions: Vec<_> = (0..4).map(|_| site.open()).collect();
    for session in &sessions[1..] {
        site.close(session).expect(0);
    }
    site.pool(&["set", "web", "--slots", "2"]).expect(0);
    let report = site.pool(&["maintain", "web", "--json"]).expect(0).json();
    let visited = &report["identities"][0]["outcome"]["visited"];
    assert_eq!(visited["shed"], serde_json::json!([4, 3]));
    assert!(sessions[0].path.exists());
    let registered = site.git(&["worktree", "list", "--porcelain"]);
    assert!(!registered.contains("slots/4/"), "{registered}");
    assert!(registered.contains("slots/2/"), "{registered}");
    site.close(&sessions[0]).expect(0);
    let trash = fs::read_dir(site.bench.root().join("trash")).unwrap();
    assert_eq!(trash.count(), 0);
    site.bench.audit();
}

#[test]
fn a_pool_goes_with_its_slots_and_stays_with_what_is_in_them() {
    let site = Site::new(bench!(), 3, &[]);
    let [one, two] = [site.open(), site.open()];
    fs::write(two.path.join("work"), "").unwrap();
    let said = site.pool(&["remove", "web"]).expect(8).errors();
    assert!(
        said.contains("web/1 stays") && said.contains("web/2 stays"),
        "{said}"
    );
    site.close(&one).expect(0);
    site.force(&two).expect(0);
    site.pool(&["remove", "web"]).expect(0);
    site.pool(&["status", "web"]).expect(3);
    assert_eq!(site.git(&["worktree", "list"]).lines().count(), 1);
    site.bench.audit();
}

#[test]
fn removing_a_slot_forgets_no_other_that_is_only_away() {
    // S13.
    let site = Site::new(bench!(), 3, &[]);
    let sessions: Vec<_> = (0..3).map(|_| site.open()).collect();
    let aside = site.bench.file("aside");
    site.close(&sessions[2]).expect(0);
    fs::rename(&sessions[1].path, &aside).unwrap();
    site.pool(&["set", "web", "--slots", "2"]).expect(0);
    site.pool(&["maintain", "web"]).expect(0);
    assert!(!sessions[2].path.exists());
    fs::rename(&aside, &sessions[1].path).unwrap();
    assert_eq!(site.git_in(&sessions[1].path, &["status", "--short"]), "");
    for session in &sessions[..2] {
        site.close(session).expect(0);
    }
    site.bench.audit();
}

#[test]
fn what_is_claimed_is_never_shed() {
    // S29.
    let site = Site::new(bench!(), 1, &["--maintain", "true"]);
    let shedder = |stop: &std::sync::atomic::AtomicBool| {
        let mut runs = 0;
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            let slots = ["1", "3"][runs % 2];
            site.pool(&["set", "web", "--slots", slots]).expect(0);
            site.pool(&["maintain", "web"]).expect(0);
            runs += 1;
        }
    };
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| shedder(&stop));
        for _ in 0..rounds(10) {
            let opened = site.pool(&["open", "web", "--json"]);
            if opened.code() == 0 {
                let one = crate::site::session(&opened.json());
                assert!(one.path.join("tracked").exists());
                site.close(&one).expect(0);
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    site.bench.audit();
}
