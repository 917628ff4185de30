//! Care for work: what is landed nowhere is never lost without a word, and a slot that is not as it must be is nobody's until
//! somebody has seen to it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use outlive_tests::bench;

use crate::site::{Session, Site};

/// Ways to have work in a slot.
const WORK: [(&str, &[&str]); 4] = [
    ("a changed file", &["sh", "-c", "echo two > tracked"]),
    ("a new file", &["sh", "-c", "echo new > new"]),
    (
        "a staged file",
        &["sh", "-c", "echo new > new; git add new"],
    ),
    (
        "a commit",
        &[
            "sh",
            "-c",
            "git -c user.name=n -c user.email=e@e commit -q --allow-empty -m mine",
        ],
    ),
];

#[track_caller]
fn do_in(site: &Site, session: &Session, command: &[&str]) {
    site.bench.end(site.exec(session, command)).expect(0);
}

#[test]
fn a_session_with_work_is_closed_by_force_only_and_what_went_is_said() {
    // S02, S07.
    let site = Site::new(bench!(), 1, &[]);
    for (what, command) in WORK {
        let one = site.open();
        do_in(&site, &one, command);
        let said = site.close(&one).expect(8).errors();
        assert!(said.contains("landed nowhere"), "{what}: {said}");
        assert_eq!(site.slot(1)["holder"], one.token.as_str(), "{what}");
        let said = site.force(&one).expect(0).errors();
        assert!(said.contains("discarded: "), "{what}: {said}");
        assert_eq!(site.state(1), "idle", "{what}");
    }
    let fresh = site.open();
    assert_eq!(site.git_in(&fresh.path, &["status", "--short"]), "");
    site.close(&fresh).expect(0);
    site.bench.audit();
}

#[test]
fn what_a_branch_has_is_no_loss_and_caches_stay() {
    let site = Site::new(bench!(), 1, &[]);
    let one = site.open();
    let land = "git checkout -q -b topic && echo x > x && git add x \
                && git -c user.name=n -c user.email=e@e commit -q -m x; touch cache";
    do_in(&site, &one, &["sh", "-c", land]);
    site.close(&one).expect(0);
    let two = site.open();
    assert!(
        !two.path.join("x").exists(),
        "it is at what its source is at"
    );
    assert!(
        two.path.join("cache").exists(),
        "what git ignores stays warm"
    );
    assert_eq!(site.git(&["log", "--format=%s", "-1", "topic"]), "x");
    site.close(&two).expect(0);
    site.bench.audit();
}

#[test]
fn a_slot_is_as_new_as_its_source() {
    // S39.
    let site = Site::new(bench!(), 1, &[]);
    let one = site.open();
    site.close(&one).expect(0);
    fs::write(site.repository().join("later"), "").unwrap();
    site.commit("two");
    let two = site.open();
    assert!(two.path.join("later").exists());
    // A directory where a file is due, and one that nobody may write to.
    fs::remove_file(two.path.join("tracked")).unwrap();
    fs::create_dir(two.path.join("tracked")).unwrap();
    fs::write(two.path.join("tracked/inner"), "").unwrap();
    fs::set_permissions(two.path.join("tracked"), fs::Permissions::from_mode(0o500)).unwrap();
    site.force(&two).expect(0);
    let three = site.open();
    assert_eq!(
        fs::read_to_string(three.path.join("tracked")).unwrap(),
        "one\n"
    );
    assert_eq!(site.git_in(&three.path, &["status", "--short"]), "");
    site.close(&three).expect(0);
    site.bench.audit();
}

#[test]
fn a_slot_that_does_not_work_is_called_broken_once_and_others_are_used() {
    // S08, S31, S35.
    let site = Site::new(bench!(), 2, &[]);
    let one = site.open();
    site.close(&one).expect(0);
    let entry = site.git_in(&one.path, &["rev-parse", "--absolute-git-dir"]);
    fs::remove_file(format!("{entry}/HEAD")).unwrap();
    let two = site.open();
    assert_eq!(two.slot, 2);
    let broken = site.slot(1);
    assert_eq!(broken["state"], "broken");
    assert!(
        broken["broken"].as_str().unwrap().contains("HEAD"),
        "{broken}"
    );
    site.pool(&["open", "web"]).expect(7);
    site.pool(&["repair", "web/1", "--force"]).expect(0);
    site.pool(&["repair", "web/1"]).expect(6);
    let again = site.open();
    assert_eq!(again.slot, 1);
    for session in [two, again] {
        site.close(&session).expect(0);
    }
    site.bench.audit();
}

#[test]
fn what_another_has_put_in_a_slots_place_is_refused() {
    // S14.
    let site = Site::new(bench!(), 1, &["--maintain", "true"]);
    let one = site.open();
    site.close(&one).expect(0);
    let aside = site.bench.file("aside");
    fs::rename(&one.path, &aside).unwrap();
    std::os::unix::fs::symlink(site.repository(), &one.path).unwrap();
    site.maintained(0, &[]);
    assert_eq!(site.state(1), "broken");
    site.pool(&["open", "web"]).expect(8);
    // Force is no help as long as that stands there: it is said so with it and without.
    for options in [&["repair", "web/1"][..], &["repair", "web/1", "--force"]] {
        let said = site.pool(options).expect(8).errors();
        assert!(said.contains("it was left as it is; once that"), "{said}");
    }
    let said = site.pool(&["remove", "web"]).expect(8).errors();
    assert!(!said.contains("discard it with --force"), "{said}");
    assert!(site.repository().join("tracked").exists());
    assert!(one.path.is_symlink());
    fs::remove_file(&one.path).unwrap();
    let said = site.pool(&["repair", "web/1"]).expect(8).errors();
    assert!(said.contains("; make it anew with: "), "{said}");
    fs::rename(&aside, &one.path).unwrap();
    site.pool(&["repair", "web/1"]).expect(0);
    let two = site.open();
    site.close(&two).expect(0);
    site.bench.audit();
}

#[test]
fn a_lock_that_a_dead_git_has_left_is_in_nobodys_way() {
    // S22.
    let site = Site::new(bench!(), 1, &["--maintain", "git status"]);
    let one = site.open();
    site.close(&one).expect(0);
    let entry = site.git_in(&one.path, &["rev-parse", "--absolute-git-dir"]);
    fs::write(format!("{entry}/index.lock"), "").unwrap();
    site.maintained(0, &[]);
    fs::write(format!("{entry}/index.lock"), "").unwrap();
    let two = site.open();
    site.close(&two).expect(0);
    site.bench.audit();
}

#[test]
fn a_slot_that_cannot_be_made_leaves_nothing_and_the_next_one_is() {
    // S37.
    let site = Site::new(bench!(), 2, &[]);
    let aside = site.bench.file("aside");
    fs::rename(site.repository(), &aside).unwrap();
    site.pool(&["open", "web"]).expect(1);
    fs::rename(&aside, site.repository()).unwrap();
    let one = site.open();
    assert_eq!(one.slot, 1);
    site.close(&one).expect(0);
    site.bench.audit();
}

#[test]
fn a_slot_whose_holder_died_and_whose_directory_is_away_is_kept() {
    // S52: a commit that only its registration leads to may come back with it.
    let site = Site::new(bench!(), 1, &[]);
    let one = site.open_with(&["--expires", "1ms"]);
    let aside = site.bench.file("aside");
    fs::rename(&one.path, &aside).unwrap();
    site.pool(&["open", "web"]).expect(7);
    fs::remove_file(
        site.bench
            .root()
            .join("sessions")
            .join(format!("{}.json", one.token)),
    )
    .unwrap();
    site.pool(&["open", "web"]).expect(8);
    assert_eq!(site.state(1), "broken");
    fs::rename(&aside, &one.path).unwrap();
    site.pool(&["repair", "web/1"]).expect(0);
    let two = site.open();
    site.close(&two).expect(0);
    site.bench.audit();
}

#[test]
fn nothing_is_reset_or_shed_under_somebodys_feet() {
    // S27, in a slot that was given back.
    let site = Site::new(bench!(), 2, &["--maintain", "true"]);
    let [one, two] = [site.open(), site.open()];
    for session in [&one, &two] {
        site.close(session).expect(0);
    }
    let mut stands = site.bench.program("sleep");
    stands.arg("600").current_dir(&two.path);
    let stands = site.bench.background(stands);
    site.pool(&["set", "web", "--slots", "1"]).expect(0);
    site.pool(&["maintain", "web"]).expect(0);
    assert!(two.path.join("tracked").exists());
    assert!(!one.path.exists(), "another one goes in its place");
    stands.kill();
    let three = site.open();
    assert_eq!(three.slot, two.slot);
    site.close(&three).expect(0);
    site.bench.audit();
}

#[test]
fn what_an_older_store_has_left_registered_is_named_and_made_anew_by_force() {
    let site = Site::new(bench!(), 2, &[]);
    let one = site.open();
    site.close(&one).expect(0);
    fs::remove_dir_all(one.path.parent().unwrap()).unwrap();
    let two = site.open();
    assert_eq!(two.slot, 2);
    assert_eq!(site.state(1), "broken");
    site.pool(&["repair", "web/1"]).expect(8);
    site.pool(&["repair", "web/1", "--force"]).expect(0);
    let again = site.open();
    assert_eq!(again.slot, 1);
    for session in [two, again] {
        site.close(&session).expect(0);
    }
    site.bench.audit();
}
