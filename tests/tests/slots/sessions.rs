//! Sessions: who has a slot, for how long, and who is told what.

use std::fs;

use outlive_tests::{Background, bench, rounds, until};

use crate::site::{Site, session};

#[test]
fn a_session_belongs_to_no_process_and_its_slot_to_nobody_else() {
    // S01, S09, S40, S42.
    let site = Site::new(bench!(), 3, &[]);
    let openers: Vec<Background> = (0..6)
        .map(|_| site.bench.background(site.verb(&["open", "web", "--json"])))
        .collect();
    let ran: Vec<_> = openers.into_iter().map(Background::end).collect();
    let (got, refused): (Vec<_>, Vec<_>) = ran.into_iter().partition(|ran| ran.code() == 0);
    let mut slots: Vec<u64> = got.iter().map(|ran| session(&ran.json()).slot).collect();
    slots.sort_unstable();
    assert_eq!(slots, [1, 2, 3]);
    for ran in refused {
        let said = ran.expect(7).errors();
        assert!(said.contains("no slot of the pool web is idle"), "{said}");
    }
    let said = site.pool(&["open", "web"]).expect(7).errors();
    for ran in &got {
        let token = session(&ran.json()).token;
        let has = format!("session {token} since 2");
        assert!(said.contains(&has), "who has each, and since when: {said}");
    }
    for ran in &got {
        site.close(&session(&ran.json())).expect(0);
    }
    site.bench.audit();
}

#[test]
fn what_runs_in_a_session_holds_its_slot_and_passes_everything_through() {
    let site = Site::new(bench!(), 1, &[]);
    let one = site.open_with(&["--note", "mine"]);
    let ran = site.exec(&one, &["sh", "-c", "cat; pwd; echo no >&2; exit 7"]);
    let ran = outlive_tests::Ran::run_with_input(ran, b"in\n", outlive_tests::DEADLINE).expect(7);
    assert_eq!(ran.text(), format!("in\n{}", one.path.display()));
    assert_eq!(ran.errors(), "no\n");
    let told = site.slot(1);
    assert_eq!(told["holder"], one.token.as_str());
    assert_eq!(told["note"], "mine");
    let nowhere = site.exec(&one, &["/there/is/no/such/program"]);
    site.bench.end(nowhere).expect(127);
    let file = site.bench.file("entered");
    let mut long = site.exec(&one, &["sh", "-c", "touch \"$0\"; exec sleep 600"]);
    long.arg(&file);
    let mut long = site.bench.background(long);
    until("it runs", || file.exists());
    let said = site.close(&one).expect(6).errors();
    assert!(said.contains("sleep"), "who works there is named: {said}");
    let said = site.force(&one).expect(0).errors();
    assert!(said.contains("ended process"), "{said}");
    until("it has ended", || !long.runs());
    assert_eq!(site.state(1), "idle");
    site.bench.audit();
}

#[test]
fn an_older_session_cannot_close_a_newer_one() {
    // S05.
    let site = Site::new(bench!(), 1, &[]);
    let old = site.open();
    site.force(&old).expect(0);
    let new = site.open();
    assert_eq!(old.slot, new.slot);
    fs::write(new.path.join("mine"), "").unwrap();
    site.force(&old).expect(3);
    site.bench.end(site.exec(&old, &["true"])).expect(3);
    assert!(new.path.join("mine").exists());
    assert_eq!(site.slot(1)["holder"], new.token.as_str());
    site.force(&new).expect(0);
    site.bench.audit();
}

#[test]
fn an_expired_session_is_closed_by_whoever_wants_its_slot_and_only_if_nothing_is_lost() {
    let site = Site::new(bench!(), 1, &[]);
    let one = site.open_with(&["--expires", "1ms"]);
    let two = site.open();
    assert_eq!(two.slot, 1);
    site.bench.end(site.exec(&one, &["true"])).expect(3);
    site.pool(&["renew", &two.token, "--expires", "1ms"])
        .expect(0);
    fs::write(two.path.join("work"), "").unwrap();
    site.pool(&["open", "web"]).expect(7);
    assert!(two.path.join("work").exists());
    site.pool(&["renew", &two.token, "--never"]).expect(0);
    assert_eq!(site.slot(1)["expires"], serde_json::Value::Null);
    fs::remove_file(two.path.join("work")).unwrap();
    site.pool(&["open", "web"]).expect(7);
    site.close(&two).expect(0);
    site.bench.audit();
}

#[test]
fn a_slot_that_was_taken_away_is_an_error_and_never_another_place() {
    // S43, S52.
    let site = Site::new(bench!(), 2, &[]);
    let one = site.open();
    let aside = site.bench.file("aside");
    fs::rename(&one.path, &aside).unwrap();
    let said = site.bench.end(site.exec(&one, &["pwd"])).expect(8);
    assert!(said.text().is_empty(), "nothing ran elsewhere");
    let said = site.close(&one).expect(8).errors();
    assert!(said.contains("--force"), "{said}");
    fs::rename(&aside, &one.path).unwrap();
    let ran = site
        .bench
        .end(site.exec(&one, &["git", "status", "--short"]));
    assert_eq!(ran.expect(0).text(), "", "its index is still there");
    fs::remove_dir_all(one.path.parent().unwrap()).unwrap();
    site.bench.end(site.exec(&one, &["pwd"])).expect(8);
    site.close(&one).expect(8);
    site.force(&one).expect(0);
    site.close(&one).expect(3);
    site.bench.audit();
}

#[test]
fn another_repository_in_the_environment_is_left_alone() {
    // S15.
    let site = Site::new(
        bench!(),
        1,
        &["--maintain", "git status >/dev/null && touch cache"],
    );
    let other = site.bench.file("other");
    fs::create_dir(&other).unwrap();
    site.git_in(&other, &["init", "-q"]);
    fs::write(other.join("file"), "theirs").unwrap();
    site.git_in(&other, &["add", "-A"]);
    site.git_in(&other, &["commit", "-q", "-m", "theirs"]);
    let listing = || site.git_in(&other, &["status", "--short", "--branch"]);
    let before = listing();
    let foreign = |arguments: &[&str]| {
        let mut verb = site.verb(arguments);
        verb.env("GIT_DIR", other.join(".git"))
            .env("GIT_WORK_TREE", &other)
            .env("GIT_INDEX_FILE", other.join(".git/index"))
            .env("GIT_OBJECT_DIRECTORY", other.join(".git/objects"));
        site.bench.end(verb)
    };
    let one = session(&foreign(&["open", "web", "--json"]).expect(0).json());
    let ran = foreign(&[
        "exec",
        &one.token,
        "--",
        "git",
        "rev-parse",
        "--show-toplevel",
    ]);
    assert_eq!(ran.expect(0).text(), one.path.display().to_string());
    foreign(&["close", &one.token]).expect(0);
    foreign(&["maintain", "web"]).expect(0);
    assert_eq!(listing(), before);
    assert_eq!(fs::read_to_string(other.join("file")).unwrap(), "theirs");
    site.bench.audit();
}

#[test]
fn a_claim_stays_for_as_long_as_others_come_and_go() {
    // S10, S44.
    let site = Site::new(bench!(), 3, &[]);
    let long = site.open();
    fs::write(long.path.join("tracked"), "changed\n").unwrap();
    for _ in 0..rounds(15) {
        let other = site.open();
        assert_ne!(other.slot, long.slot);
        site.close(&other).expect(0);
    }
    let text = fs::read_to_string(long.path.join("tracked")).unwrap();
    assert_eq!(text, "changed\n");
    site.force(&long).expect(0);
    site.bench.audit();
}

#[test]
fn a_pool_without_a_place_opens_no_session() {
    let bench = bench!();
    let said = bench.run(["pool", "open", "default"]).expect(2).errors();
    assert!(said.contains("--source"), "{said}");
    bench.run(["pool", "open", "nowhere"]).expect(3);
    bench.run(["pool", "close", "no-such-session"]).expect(3);
    bench.run(["pool", "close", "../x"]).expect(2);
    bench.audit();
}

#[test]
fn a_directory_that_is_no_repository_is_prepared() {
    let bench = bench!();
    let add = ["pool", "add", "plain", "--slots", "1"];
    let own = ["--prepare", "echo ready > made", "--reset", "rm -f left"];
    bench.run([&add[..], &own].concat()).expect(0);
    let opened = session(
        &bench
            .run(["pool", "open", "plain", "--json"])
            .expect(0)
            .json(),
    );
    assert_eq!(
        fs::read_to_string(opened.path.join("made")).unwrap(),
        "ready\n"
    );
    fs::write(opened.path.join("left"), "").unwrap();
    bench.run(["pool", "close", &opened.token]).expect(0);
    assert!(!opened.path.join("left").exists());
    assert!(opened.path.join("made").exists());
    bench.audit();
}
