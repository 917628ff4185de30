//! What is odd and happens all the same: paths that are no text, sources that are gone, nobody's name, and somebody who holds up all
//! who look for a slot.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, SystemTime};

use outlive_tests::bench;
use rustix::fs::{FlockOperation, flock};
use serde_json::json;

use crate::site::Site;

#[test]
fn paths_that_are_no_text_are_told_as_they_are() {
    let site = Site::new(bench!(), 1, &[]);
    let odd = site.bench.dir().join(OsStr::from_bytes(b"odd \xff\n"));
    site.git(&["clone", "-q", ".", "../plain"]);
    fs::rename(site.bench.dir().join("plain"), &odd).unwrap();
    let mut add = site.verb(&["add", "odd", "--slots", "1", "--source"]);
    add.arg(&odd);
    site.bench.end(add).expect(0);
    let pools = site.pool(&["status", "--json"]).expect(0).json();
    let hex: String = odd
        .as_os_str()
        .as_bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(pools[0]["source"], json!({"hex": hex}));
    // A store below such a path as well: what is printed is there to be used.
    let root = odd.join("root");
    let mut add = site.verb(&["add", "web", "--slots", "1", "--source"]);
    add.arg(site.repository()).env("OUTLIVE_ROOT", &root);
    site.bench.end(add).expect(0);
    let mut open = site.verb(&["open", "web"]);
    open.env("OUTLIVE_ROOT", &root);
    let output = open.output().unwrap();
    let (token, path) = output.stdout.split_at(
        output
            .stdout
            .iter()
            .position(|&byte| byte == b'\t')
            .unwrap(),
    );
    let path = path[1..].strip_suffix(b"\n").unwrap();
    assert!(fs::metadata(OsStr::from_bytes(path)).unwrap().is_dir());
    let mut close = site.verb(&["close", OsStr::from_bytes(token).to_str().unwrap()]);
    close.env("OUTLIVE_ROOT", &root);
    site.bench.end(close).expect(0);
    site.bench.audit();
}

#[test]
fn whoever_lets_nobody_else_look_for_a_slot_is_named_and_not_waited_for() {
    // S04.
    let site = Site::new(bench!(), 1, &["--maintain", "true"]);
    let one = site.open();
    site.close(&one).expect(0);
    let lock = site.bench.root().join("pools/web/placement.lock");
    let lock = File::open(lock).unwrap();
    flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    let me = format!("process {} (", std::process::id());
    let said = site.pool(&["open", "web"]).expect(6).errors();
    assert!(said.contains(&me), "{said}");
    let slots = site.maintained(0, &[]);
    let by = slots[0]["result"]["unavailable"]["by"].as_str().unwrap();
    assert!(by.contains(&me), "{by}");
    site.pool(&["status", "web"]).expect(0);
    // Given back by name: a child of another test may have the description too for a moment.
    flock(&lock, FlockOperation::Unlock).unwrap();
    site.open();
    site.bench.audit();
}

#[test]
fn a_source_that_is_gone_for_good_keeps_nobody_from_leaving() {
    let site = Site::new(bench!(), 3, &[]);
    let [one, two] = [site.open(), site.open()];
    site.close(&two).expect(0);
    fs::rename(site.repository(), site.bench.dir().join("aside")).unwrap();
    let said = site.close(&one).expect(1).errors();
    assert!(said.contains("is not there"), "{said}");
    let said = site.force(&one).expect(8).errors();
    assert!(said.contains("its slot is broken"), "{said}");
    assert!(one.path.exists(), "it may come back");
    site.pool(&["remove", "web"]).expect(8);
    fs::rename(site.bench.dir().join("aside"), site.repository()).unwrap();
    site.pool(&["repair", "web/1"]).expect(0);
    fs::write(one.path.join("mine"), "").unwrap();
    fs::remove_dir_all(site.repository()).unwrap();
    let said = site.pool(&["remove", "web", "--force"]).expect(0).errors();
    for slot in ["web/1: whatever was in it", "web/2: whatever was in it"] {
        assert!(said.contains(slot), "{said}");
    }
    assert!(!one.path.exists());
    site.pool(&["status", "web"]).expect(3);
    site.bench.audit();
}

#[test]
fn another_repository_is_not_removed_because_the_source_is_gone() {
    let site = Site::new(bench!(), 1, &[]);
    let one = site.open();
    site.close(&one).expect(0);
    fs::remove_dir_all(&one.path).unwrap();
    fs::create_dir(&one.path).unwrap();
    site.git_in(&one.path, &["init", "-q"]);
    fs::write(one.path.join("theirs"), "").unwrap();
    fs::remove_dir_all(site.repository()).unwrap();
    site.pool(&["remove", "web", "--force"]).expect(8);
    assert!(one.path.join("theirs").exists());
    // What stands there is told of all the same.
    let said = site.bench.run(["doctor"]).expect(1).text();
    assert!(said.contains("a repository of its own"), "{said}");
    site.bench.run(["doctor", "--fix"]).expect(0);
    assert_eq!(site.state(1), "broken");
    assert!(one.path.join("theirs").exists());
    site.bench.audit();
}

#[test]
fn a_slot_that_was_never_made_goes_without_force() {
    let site = Site::new(bench!(), 2, &[]);
    let aside = site.bench.dir().join("aside");
    fs::rename(site.repository(), &aside).unwrap();
    site.pool(&["open", "web"]).expect(1);
    fs::rename(&aside, site.repository()).unwrap();
    site.pool(&["set", "web", "--slots", "1"]).expect(0);
    site.pool(&["maintain", "web"]).expect(0);
    let slots = fs::read_dir(site.bench.root().join("pools/web/slots")).unwrap();
    assert_eq!(slots.count(), 1);
    site.pool(&["remove", "web"]).expect(0);
    site.bench.audit();
}

#[test]
fn patches_that_are_being_applied_are_given_up_also_by_who_has_no_name() {
    let site = Site::new(bench!(), 1, &[]);
    site.git(&["checkout", "-q", "-b", "other"]);
    fs::write(site.repository().join("tracked"), "other\n").unwrap();
    site.commit("other");
    site.git(&["checkout", "-q", "main"]);
    fs::write(site.repository().join("tracked"), "main\n").unwrap();
    site.commit("main");
    let one = site.open();
    let apply = "git format-patch -1 other --stdout | git -c user.name=n -c user.email=e@e am";
    let ran = site.bench.end(site.exec(&one, &["sh", "-c", apply]));
    assert_ne!(ran.code(), 0, "it does not apply");
    site.close(&one).expect(8);
    let said = site.force(&one).expect(0).errors();
    assert!(said.contains("am is under way"), "{said}");
    assert_eq!(site.state(1), "idle");
    site.bench.audit();
}

#[test]
fn git_that_cannot_reset_a_slot_keeps_nobody_from_leaving_it() {
    // S35: by a filter that fails, as one does that is not installed any more.
    let site = Site::new(bench!(), 1, &[]);
    let one = site.open();
    fs::write(
        site.repository().join(".gitattributes"),
        "*.big filter=big\n",
    )
    .unwrap();
    fs::write(site.repository().join("a.big"), "a\n").unwrap();
    site.commit("big");
    site.git(&["config", "filter.big.smudge", "exit 1"]);
    site.git(&["config", "filter.big.required", "true"]);
    let said = site.close(&one).expect(1).errors();
    assert!(said.contains("filter"), "{said}");
    let said = site.force(&one).expect(8).errors();
    assert!(said.contains("its slot is broken"), "{said}");
    site.pool(&["open", "web"]).expect(8);
    site.git(&["config", "--remove-section", "filter.big"]);
    site.pool(&["repair", "web/1"]).expect(0);
    let one = site.open();
    assert!(one.path.join("a.big").exists());
    site.close(&one).expect(0);
    site.bench.audit();
}

#[test]
fn what_is_done_after_a_close_that_failed_is_work_as_any_other() {
    let site = Site::new(bench!(), 1, &[]);
    let one = site.open();
    fs::write(
        site.repository().join(".gitattributes"),
        "*.big filter=big\n",
    )
    .unwrap();
    fs::write(site.repository().join("a.big"), "a\n").unwrap();
    site.commit("big");
    site.git(&["config", "filter.big.smudge", "exit 1"]);
    site.git(&["config", "filter.big.required", "true"]);
    site.close(&one).expect(1);
    fs::write(one.path.join("work"), "precious").unwrap();
    site.git(&["config", "--remove-section", "filter.big"]);
    let said = site.close(&one).expect(8).errors();
    assert!(said.contains("work"), "{said}");
    // Nor is it taken by whoever wants the slot of one that has expired.
    site.pool(&["renew", &one.token, "--expires", "1ms"])
        .expect(0);
    site.pool(&["open", "web"]).expect(7);
    site.pool(&["maintain", "web"]).expect(0);
    assert_eq!(
        fs::read_to_string(one.path.join("work")).unwrap(),
        "precious"
    );
    let said = site.force(&one).expect(0).errors();
    assert!(said.contains("work"), "{said}");
    site.bench.audit();
}

#[test]
fn what_somebody_else_has_is_left_alone_however_old_it_looks() {
    // S19, S45: two claims, the newer closed first; and a pool that cleans up all it can beside one that is in use.
    let command = "git gc -q --prune=now; git worktree prune; git clean -fdxq";
    let site = Site::new(bench!(), 3, &["--maintain", command]);
    let mut add = site.verb(&["add", "beside", "--slots", "1", "--source"]);
    add.arg(site.repository());
    site.bench.end(add).expect(0);
    let beside = site.pool(&["open", "beside", "--json"]).expect(0).json();
    let beside = crate::site::session(&beside);
    fs::write(beside.path.join("work"), "mine").unwrap();
    let [old, new, idle] = [site.open(), site.open(), site.open()];
    let year_ago = SystemTime::now() - Duration::from_secs(365 * 24 * 60 * 60);
    for dir in [
        &old.path,
        old.path.parent().unwrap(),
        &new.path,
        &beside.path,
    ] {
        File::open(dir).unwrap().set_modified(year_ago).unwrap();
    }
    fs::write(old.path.join("work"), "mine").unwrap();
    site.close(&new).expect(0);
    site.close(&idle).expect(0);
    site.pool(&["set", "web", "--slots", "1"]).expect(0);
    let report = site.pool(&["maintain", "web", "--json"]).expect(0).json();
    let visited = &report["identities"][0]["outcome"]["visited"];
    assert_eq!(visited["shed"], json!([3, 2]), "{report}");
    for session in [&old, &beside] {
        assert_eq!(
            fs::read_to_string(session.path.join("work")).unwrap(),
            "mine"
        );
        let status = site.git_in(&session.path, &["status", "--short"]);
        assert_eq!(status, "?? work");
        site.force(session).expect(0);
    }
    site.maintained(0, &[]);
    site.bench.audit();
}

#[test]
fn what_a_pool_was_set_to_is_taken_back() {
    let options = [
        "--maintain",
        "true",
        "--every",
        "1h",
        "--reset",
        "exit 1",
        "--prepare",
        "touch cache",
    ];
    let site = Site::new(bench!(), 1, &options);
    let one = site.open();
    assert!(one.path.join("cache").exists());
    site.close(&one).expect(8);
    assert_eq!(site.state(1), "broken", "its reset fails");
    // Who says how slots are prepared does not say that they are no worktrees any more.
    site.pool(&["set", "web", "--no-reset", "--prepare", "touch cache; true"])
        .expect(0);
    site.pool(&["repair", "web/1"]).expect(0);
    site.pool(&["set", "web", "--no-every"]).expect(0);
    site.maintained(0, &[]);
    site.pool(&["set", "web", "--no-maintain", "--no-prepare"])
        .expect(0);
    let none = site.pool(&["maintain", "web", "--json"]).expect(0).json();
    assert_eq!(none["identities"][0]["outcome"], "no-maintain-command");
    site.pool(&["set", "web", "--no-maintain"]).expect(0);
    site.pool(&["set", "web", "--no-maintain", "--every", "1h"])
        .expect(2);
    let one = site.open();
    assert!(one.path.join(".git").is_file());
    site.close(&one).expect(0);
    // What is configured, too.
    let source = site.repository().display().to_string();
    site.bench.configure(&format!(
        "[pool.set]\nslots = 1\nsource = \"{source}\"\nreset = [\"false\"]\nmaintain = {{ command = [\"false\"] }}\n"
    ));
    site.pool(&["set", "set", "--no-reset", "--no-maintain"])
        .expect(0);
    let opened = site.pool(&["open", "set", "--json"]).expect(0).json();
    site.pool(&["close", opened["token"].as_str().unwrap()])
        .expect(0);
    site.pool(&["maintain", "set"]).expect(0);
    let mut bare = site.bench.verb(["pool", "add", "bare", "--slots", "1"]);
    bare.args(["--prepare", "true"]);
    site.bench.end(bare).expect(0);
    site.pool(&["set", "bare", "--no-prepare"]).expect(2);
    site.bench.audit();
}

#[test]
fn what_goes_with_a_pool_by_force_is_said_slot_by_slot() {
    let site = Site::new(bench!(), 3, &[]);
    let sessions: Vec<_> = (0..3).map(|_| site.open()).collect();
    for session in &sessions {
        site.close(session).expect(0);
    }
    fs::write(sessions[0].path.join("mine"), "").unwrap();
    fs::remove_file(sessions[1].path.join(".git")).unwrap();
    let said = site.pool(&["remove", "web"]).expect(8).errors();
    assert!(said.contains("(mine)"), "{said}");
    let said = site.pool(&["remove", "web", "--force"]).expect(0).errors();
    assert!(
        said.contains("discarded: web/1: 1 file is neither tracked nor ignored (mine)"),
        "{said}"
    );
    assert!(
        said.contains("discarded: web/2: whatever was in it"),
        "{said}"
    );
    assert!(!said.contains("web/3"), "{said}");
    assert_eq!(site.git(&["worktree", "list"]).lines().count(), 1);
    site.bench.audit();
}

#[test]
fn a_record_that_names_another_slot_is_that_of_none() {
    // B47.
    let site = Site::new(bench!(), 2, &["--maintain", "true"]);
    let [one, two] = [site.open(), site.open()];
    site.close(&two).expect(0);
    let slots = site.bench.root().join("pools/web/slots");
    let [first, second] = ["1/slot.json", "2/slot.json"].map(|name| slots.join(name));
    let whole = fs::read_to_string(&second).unwrap();
    let other = whole.replace("\"number\":2", "\"number\":1");
    assert_ne!(other, whole);
    fs::write(&second, &other).unwrap();
    let before = fs::read(&first).unwrap();
    let why = "it is that of slot 1";
    let said = site.pool(&["open", "web"]).expect(7).errors();
    assert!(said.contains(why), "{said}");
    let told = site.slot(2);
    assert_eq!(told["state"], "broken");
    assert!(told["broken"].as_str().unwrap().contains(why), "{told}");
    let maintained = site.maintained(0, &[]);
    let found = maintained[1]["result"]["broken"]["why"].as_str().unwrap();
    assert!(found.contains(why), "{found}");
    assert_eq!(fs::read(&first).unwrap(), before, "that of slot 1");
    assert_eq!(fs::read_to_string(&second).unwrap(), other, "R21");
    fs::write(&second, whole).unwrap();
    let two = site.open();
    assert_eq!(two.slot, 2);
    // So it is with the record of one that somebody has.
    let whole = fs::read_to_string(&second).unwrap();
    let other = whole.replace("\"number\":2", "\"number\":1");
    fs::write(&second, other).unwrap();
    let said = site
        .bench
        .end(site.exec(&two, &["true"]))
        .expect(1)
        .errors();
    let named = said.contains("2/slot.json") && said.contains(why);
    assert!(named, "{said}");
    fs::write(&second, whole).unwrap();
    for session in [one, two] {
        site.close(&session).expect(0);
    }
    site.bench.audit();
}
