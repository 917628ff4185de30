//! The store itself: who may use one, who may read what is in it, and what becomes of records that cannot be read.

use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use outlive_tests::{Bench, bench, until};

/// A user that nobody is.
const STRANGER: u32 = 54_321;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Every verb refuses the store, with these words, and changes nothing.
#[track_caller]
fn refused(bench: &Bench, words: &[&str]) {
    let before = everything(&bench.root());
    for verb in [
        &["run", "--", "true"][..],
        &["list"],
        &["status", "x"],
        &["stop", "--all"],
        &["wait", "x"],
        &["log", "x"],
    ] {
        let ran = bench.run(verb).expect(6);
        for word in words {
            assert!(ran.errors().contains(word), "{ran:?}");
        }
        assert!(
            ran.errors().contains(bench.root().to_str().unwrap()),
            "{ran:?}"
        );
        assert!(ran.stdout.is_empty());
    }
    assert_eq!(everything(&bench.root()), before);
}

/// Every path below a directory with its mode and content.
fn everything(dir: &Path) -> Vec<(std::path::PathBuf, u32, Vec<u8>)> {
    let mode = fs::metadata(dir).unwrap().mode();
    let mut found = vec![(dir.to_owned(), mode, Vec::new())];
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        let metadata = entry.metadata().unwrap();
        if metadata.is_dir() {
            found.extend(everything(&path));
            continue;
        }
        let content = if metadata.is_file() {
            fs::read(&path).unwrap()
        } else {
            Vec::new()
        };
        found.push((path.clone(), metadata.mode(), content));
    }
    found.sort();
    found
}

#[test]
fn a_store_of_somebody_else_is_refused() {
    let bench = bench!();
    if !is_root() {
        println!("skipped: only root can give a directory away");
        bench.audit();
        return;
    }
    bench.run(["list"]).expect(0);
    chown(bench.root(), Some(STRANGER), None).unwrap();
    refused(&bench, &["belongs to user 54321"]);
    chown(bench.root(), Some(0), None).unwrap();
    bench.run(["list"]).expect(0);
    bench.audit();
}

#[test]
fn a_store_that_others_may_write_to_is_refused() {
    let bench = bench!();
    bench.run(["list"]).expect(0);
    for mode in [0o770, 0o707, 0o777, 0o1777] {
        fs::set_permissions(bench.root(), Permissions::from_mode(mode)).unwrap();
        refused(&bench, &["others may write to it"]);
    }
    fs::set_permissions(bench.root(), Permissions::from_mode(0o700)).unwrap();
    bench.run(["list"]).expect(0);
    bench.audit();
}

/// B43. What a newer version had written was written over by an older one.
#[test]
fn a_store_of_another_format_is_refused_and_left() {
    let bench = bench!();
    let job = bench.sh("exit 0");
    assert_eq!(job.wait(), 0);
    job.expect_states(&["queued", "running", "done"]);
    until("the worker is gone", || bench.census().is_empty());
    let good = fs::read(bench.root().join("format")).unwrap();
    for format in ["outlive 2\n", "", "\0\0\0", "something else\n"] {
        fs::write(bench.root().join("format"), format).unwrap();
        refused(&bench, &["format"]);
    }
    fs::write(bench.root().join("format"), good).unwrap();
    assert_eq!(job.state(), "done");
    bench.audit();
}

#[test]
fn a_directory_with_other_things_in_it_is_no_store() {
    let bench = bench!();
    fs::create_dir(bench.root()).unwrap();
    fs::set_permissions(bench.root(), Permissions::from_mode(0o755)).unwrap();
    fs::write(bench.root().join("thesis.tex"), "years of work").unwrap();
    refused(&bench, &["thesis.tex"]);
    fs::remove_file(bench.root().join("thesis.tex")).unwrap();
    fs::remove_dir(bench.root()).unwrap();
    fs::write(bench.root(), "a file").unwrap();
    let ran = bench.run(["list"]);
    assert!(matches!(ran.code(), 1 | 6), "{ran:?}");
    assert_eq!(fs::read(bench.root()).unwrap(), b"a file");
    bench.audit();
}

#[test]
fn without_a_place_for_a_store_that_is_said() {
    let bench = bench!();
    let mut verb = bench.verb(["list"]);
    verb.env_remove("OUTLIVE_ROOT")
        .env_remove("XDG_STATE_HOME")
        .env_remove("HOME");
    let ran = bench.end(verb).expect(6);
    assert!(ran.errors().contains("OUTLIVE_ROOT"), "{ran:?}");
    let mut verb = bench.verb(["run", "--wait", "--", "true"]);
    verb.env_remove("OUTLIVE_ROOT")
        .env("XDG_STATE_HOME", bench.file("state"));
    bench.end(verb).expect(0);
    assert!(bench.file("state/outlive/format").exists());
    let mut verb = bench.verb(["run", "--wait", "--", "true"]);
    verb.env_remove("OUTLIVE_ROOT")
        .env_remove("XDG_STATE_HOME")
        .env("HOME", bench.file("home"));
    bench.end(verb).expect(0);
    assert!(bench.file("home/.local/state/outlive/format").exists());
    bench.audit();
}

#[test]
fn what_is_in_a_store_is_for_its_owner_alone_whatever_the_mask() {
    let bench = bench!();
    for mask in ["000", "022", "777"] {
        for options in [
            &[][..],
            &["--split-output"],
            &["--log-max", "100K", "--log-keep", "2"],
            &["--name", "web"],
        ] {
            let arguments = [
                &["run", "--wait", "--on-end", "cat >/dev/null"],
                options,
                &["--", "sh", "-c", "yes | head -c 300K; echo err >&2"],
            ]
            .concat();
            bench
                .end(bench.verb_after(&format!("umask {mask}"), arguments))
                .expect(0);
        }
        let running = bench.verb_after(&format!("umask {mask}"), ["run", "--", "sleep", "600"]);
        let running = bench.job(&bench.end(running).expect(0).text());
        bench
            .end(bench.verb_after(&format!("umask {mask}"), ["pause", running.id()]))
            .expect(0);
        bench
            .end(bench.verb_after(&format!("umask {mask}"), ["stop", running.id()]))
            .expect(0);
    }
    // A worker that has recorded the end of its job lays in a spare.
    until("all workers are gone", || bench.census().is_empty());
    assert_eq!(fs::metadata(bench.root()).unwrap().mode() & 0o7777, 0o700);
    for (path, mode, _) in everything(&bench.root()) {
        let expected = if path.is_dir() { 0o40700 } else { 0o100600 };
        assert_eq!(mode, expected, "{}", path.display());
    }
    bench.audit();
}

#[test]
fn what_is_set_for_a_command_is_shown_nowhere() {
    let bench = bench!();
    let secret = "s3cret-value";
    let setting = format!("TOKEN={secret}");
    let mut verb = bench.verb([
        "run",
        "--env",
        &setting,
        "-e",
        "OTHER",
        "--name",
        "web",
        "--",
        "sh",
        "-c",
        "echo ready; exec sleep 600",
    ]);
    verb.env("OTHER", secret).env("INHERITED", secret);
    let job = bench.job(&bench.end(verb).expect(0).text());
    job.until_printed("ready");
    for verb in [
        &["list"][..],
        &["list", "--json"],
        &["status", "web"],
        &["status", "--json", "web"],
        &["log", "web"],
        &["events", "web"],
    ] {
        let ran = bench.run(verb);
        let said = format!("{}{}", ran.text(), ran.errors());
        assert!(!said.contains(secret), "{verb:?}: {said}");
    }
    let worker = job.worker().unwrap();
    for file in ["cmdline", "environ", "comm"] {
        let bytes = fs::read(format!("/proc/{}/{file}", worker.pid)).unwrap();
        let holds = bytes
            .windows(secret.len())
            .any(|part| part == secret.as_bytes());
        assert!(
            !holds || file == "environ",
            "{file} of the worker: {:?}",
            String::from_utf8_lossy(&bytes)
        );
    }
    job.stop(0);
    let stopped = bench.run(["wait", "--json", "web"]).expect(143);
    assert!(!stopped.text().contains(secret));
    until("the worker is gone", || bench.census().is_empty());
    for (path, _, content) in everything(&bench.root()) {
        let holds = content
            .windows(secret.len())
            .any(|part| part == secret.as_bytes());
        assert!(!holds || path.ends_with("job.json"), "{}", path.display());
    }
    bench.audit();
}

#[test]
fn a_damaged_record_is_reported_and_left_and_hides_nothing() {
    let bench = bench!();
    let good = bench.sh("exit 3");
    assert_eq!(good.wait(), 3);
    let victim = bench.sh("exit 4");
    assert_eq!(victim.wait(), 4);
    until("the worker is gone", || victim.worker().is_none());
    for file in ["status.json", "job.json"] {
        let path = victim.file(file);
        // Half of what is in it, and not of the room that it may have been given.
        let whole = fs::read(&path).unwrap().trim_ascii_end().to_vec();
        let half = whole[..whole.len() / 2].to_vec();
        let unknown = String::from_utf8(whole.clone())
            .unwrap()
            .replace("\"failed\"", "\"exploded\"")
            .replace("\"command\"", "\"spell\"");
        for damage in [
            vec![0; whole.len()],
            Vec::new(),
            half,
            b"[]".to_vec(),
            b"null".to_vec(),
            b"\xff\xfe".to_vec(),
            unknown.into_bytes(),
        ] {
            fs::write(&path, &damage).unwrap();
            let listed = bench.run(["list", "--json"]).expect(1);
            let ids: Vec<String> = listed
                .json()
                .as_array()
                .unwrap()
                .iter()
                .map(|job| job["id"].as_str().unwrap().to_owned())
                .collect();
            assert_eq!(ids, [good.id()]);
            assert!(
                listed.errors().contains(path.to_str().unwrap()),
                "{listed:?}"
            );
            for verb in ["status", "wait", "stop", "pause", "resume"] {
                let ran = bench.run([verb, victim.id()]);
                // Where the record of its end can be read, that it has ended is an answer too.
                let answered =
                    file == "job.json" && ran.code() == 6 && ran.errors().contains("has ended");
                if !answered {
                    assert_eq!(ran.code(), 1, "{ran:?}");
                    assert!(ran.errors().contains("cannot be read"), "{ran:?}");
                    assert!(ran.errors().contains("left as it is"), "{ran:?}");
                }
            }
            assert_eq!(fs::read(&path).unwrap(), damage, "nothing is rewritten");
        }
        fs::write(&path, &whole).unwrap();
        bench.run(["list"]).expect(0);
    }
    assert_eq!(victim.wait(), 4);
    bench.audit();
}

#[test]
fn a_missing_descriptor_is_damage() {
    let bench = bench!();
    let job = bench.sh("exit 4");
    assert_eq!(job.wait(), 4);
    fs::rename(job.file("job.json"), bench.file("aside")).unwrap();
    let listed = bench.run(["list", "--json"]).expect(1);
    assert!(listed.errors().contains(job.id()), "{listed:?}");
    fs::rename(bench.file("aside"), job.file("job.json")).unwrap();
    bench.run(["list"]).expect(0);
    bench.audit();
}

#[test]
fn a_record_of_the_future_is_read_as_far_as_it_is_known() {
    let bench = bench!();
    let job = bench.sh("exit 4");
    assert_eq!(job.wait(), 4);
    for file in ["status.json", "job.json"] {
        let text = fs::read_to_string(job.file(file)).unwrap();
        fs::write(
            job.file(file),
            text.replacen('{', "{\"of_the_future\":[1,{}],", 1),
        )
        .unwrap();
    }
    assert_eq!(job.wait(), 4);
    assert_eq!(job.state(), "failed");
    bench.audit();
}

#[test]
fn entries_that_are_no_jobs_are_named_and_hide_nothing() {
    let bench = bench!();
    let job = bench.sh("exit 0");
    assert_eq!(job.wait(), 0);
    let jobs = bench.root().join("jobs");
    let odd: [&[u8]; 5] = [
        b"a file",
        b"no-number",
        b".hidden",
        b"bytes\xff",
        b"1-empty",
    ];
    fs::write(jobs.join("a file"), "x").unwrap();
    for name in &odd[1..] {
        fs::create_dir(jobs.join(std::ffi::OsStr::from_bytes(name))).unwrap();
    }
    std::os::unix::fs::symlink("/etc", jobs.join("2-link")).unwrap();
    let listed = bench.run(["list", "--json"]).expect(1);
    assert_eq!(listed.json().as_array().unwrap().len(), 1);
    assert!(
        listed.errors().contains("1-empty") && listed.errors().contains("a file"),
        "{listed:?}"
    );
    // They are in nobody's way.
    bench.run(["run", "--wait", "--", "true"]).expect(0);
    bench.run(["wait", job.id()]).expect(0);
    bench.run(["stop", "--all"]).expect(0);
    for verb in ["status", "stop", "wait", "log"] {
        let ran = bench.run([verb, "2-link"]);
        assert!(matches!(ran.code(), 1..=6), "{ran:?}");
    }
    for name in odd {
        let path = jobs.join(std::ffi::OsStr::from_bytes(name));
        assert!(path.exists(), "{} was left", path.display());
        if path.is_dir() {
            fs::remove_dir(path).unwrap()
        } else {
            fs::remove_file(path).unwrap()
        }
    }
    fs::remove_file(jobs.join("2-link")).unwrap();
    bench.audit();
}

#[test]
fn a_long_root_works_or_is_refused_in_one_line() {
    let bench = bench!();
    for length in [150, 250, 1_000, 3_000] {
        let mut root = bench.file("deep");
        while root.as_os_str().len() + 101 < length {
            root.push("d".repeat(100));
        }
        let mut verb = bench.verb(["run", "--wait", "--", "sh", "-c", "exit 5"]);
        verb.env("OUTLIVE_ROOT", &root);
        let ran = bench.end(verb);
        if ran.code() == 5 {
            let mut verb = bench.verb(["run", "--", "sleep", "600"]);
            verb.env("OUTLIVE_ROOT", &root);
            let id = bench.end(verb).expect(0).text();
            let mut verb = bench.verb(["stop", &id]);
            verb.env("OUTLIVE_ROOT", &root);
            bench.end(verb).expect(0);
        } else {
            assert!(matches!(ran.code(), 1 | 6), "{length}: {ran:?}");
            assert_eq!(ran.errors().lines().count(), 1, "{ran:?}");
        }
        println!("a root of {length} characters: {}", ran.code());
    }
    bench.audit();
}

#[test]
fn a_root_with_odd_characters_works() {
    let bench = bench!();
    for name in [&b"with space"[..], b"new\nline", b"bytes\xff", b"%H $x *"] {
        let root = bench.work().join(std::ffi::OsStr::from_bytes(name));
        let verb = |arguments: &[&str]| {
            let mut verb = bench.verb(arguments);
            verb.env("OUTLIVE_ROOT", &root);
            bench.end(verb)
        };
        verb(&["run", "--wait", "--", "sh", "-c", "exit 5"]).expect(5);
        verb(&["list", "--json"]).expect(0).json();
        let id = verb(&["run", "--", "sleep", "600"]).expect(0).text();
        verb(&["pause", &id]).expect(0);
        verb(&["stop", &id]).expect(0);
        verb(&["log", "-f", &id]).expect(0);
    }
    bench.audit();
}

#[test]
fn a_relative_root_is_the_same_for_everybody() {
    let bench = bench!();
    let mut verb = bench.verb(["run", "--", "sleep", "600"]);
    verb.env("OUTLIVE_ROOT", "../store");
    let job = bench.job(&bench.end(verb).expect(0).text());
    assert_eq!(job.state(), "running");
    job.stop(0);
    bench.audit();
}

#[test]
fn stamps_of_a_clock_that_was_set_back_confuse_nobody() {
    let bench = bench!();
    let job = bench.sh("exit 3");
    assert_eq!(job.wait(), 3);
    until("the worker is gone", || job.worker().is_none());
    let year = 31_536_000_000_u64;
    let shifted = |file: &str, shift: &dyn Fn(u64) -> u64| {
        let text = fs::read_to_string(job.file(file)).unwrap();
        let mut record: serde_json::Value = serde_json::from_str(&text).unwrap();
        for (name, value) in record.as_object_mut().unwrap() {
            if let Some(at) = value.as_u64().filter(|_| name.ends_with("_at_ms")) {
                *value = shift(at).into();
            }
        }
        fs::write(job.file(file), record.to_string()).unwrap();
    };
    for shift in [&(|at| at + year) as &dyn Fn(u64) -> u64, &|_| 0, &|_| {
        u64::MAX / 2
    }] {
        for file in ["status.json", "job.json"] {
            shifted(file, shift);
        }
        let listed = bench.run(["list"]).expect(0);
        assert!(
            !listed.text().contains("-1") || listed.text().contains(job.id()),
            "{listed:?}"
        );
        bench.run(["status", job.id()]).expect(0);
        assert_eq!(job.wait(), 3);
        bench.run(["events", job.id()]).expect(0);
        bench.run(["run", "--wait", "--", "true"]).expect(0);
        if job.status().unwrap()["ended_at_ms"].as_u64() != Some(0) {
            // An end that lies in the future counts as just now.
            bench.run(["clean", "--older-than", "1h"]).expect(0);
            assert!(job.dir().exists());
        }
    }
    bench.audit();
}

#[test]
fn a_directory_that_is_refused_is_left_exactly_as_it_is() {
    let bench = bench!();
    fs::create_dir(bench.root()).unwrap();
    for (mode, inside) in [
        (0o755, "thesis.tex"),
        (0o711, "jobs.txt"),
        (0o500, "formatter.rs"),
    ] {
        fs::write(bench.root().join(inside), "years of work").unwrap();
        fs::set_permissions(bench.root(), Permissions::from_mode(mode)).unwrap();
        let changed = fs::metadata(bench.root()).unwrap();
        refused(&bench, &[inside]);
        let after = fs::metadata(bench.root()).unwrap();
        assert_eq!(after.mode() & 0o7777, mode);
        assert_eq!(
            (after.ctime(), after.ctime_nsec()),
            (changed.ctime(), changed.ctime_nsec()),
            "not even touched and put back"
        );
        fs::set_permissions(bench.root(), Permissions::from_mode(0o700)).unwrap();
        fs::remove_file(bench.root().join(inside)).unwrap();
    }
    fs::remove_dir(bench.root()).unwrap();
    bench.audit();
}
