//! What is held, or comes in between: nothing of that is touched, and nothing is lost.

use std::fs;

use outlive_tests::{Dice, UNSYNCED, bench, copy_program, program_at, rounds, until};

use crate::site::{Template, set_mode};
use crate::snapshot::{Entry, keeps, take};

#[test]
fn what_somebody_holds_is_not_touched() {
    let template = Template::new(bench!());
    let site = template.site(bench!());
    let running = site.bench.job(&site.running);
    let pid = running.pid();
    let whole = fs::read(running.file("job.json")).unwrap();
    fs::write(running.file("job.json"), "{").unwrap();
    let broken = take(&site.bench.root());
    let (code, report) = site.doctor(&["--fix"]);
    assert_eq!(code, 1, "{report}");
    assert_eq!(report["mended"].as_array().unwrap().len(), 0, "{report}");
    let finding = &report["findings"][0];
    assert_eq!(finding["kind"], "descriptor", "{report}");
    assert_eq!(finding["mendable"], true);
    let advice = finding["advice"].as_str().unwrap();
    assert!(advice.contains("somebody holds"), "{advice}");
    let mut after = take(&site.bench.root());
    // Where it would have been set aside.
    after.retain(|path, _| !path.starts_with("broken"));
    assert_eq!(after, broken);
    fs::write(running.file("job.json"), whole).unwrap();
    assert_eq!((running.state().as_str(), running.pid()), ("running", pid));

    // A session keeps the slot that somebody works in, whatever its record says.
    let mut exec = site.bench.verb(["pool", "exec", &site.token, "--"]);
    exec.args(["sh", "-c", "echo > ../up; exec sleep 600"]);
    let inside = site.bench.background(exec);
    let up = site.path("pools/w/slots/1/up");
    until("it works in the slot", || up.exists());
    let slot = "pools/w/slots/1/slot.json";
    let record = site.read(slot);
    site.write(slot, "rubbish");
    let (code, report) = site.doctor(&["--fix"]);
    assert_eq!(code, 1, "{report}");
    assert_eq!(site.read(slot), b"rubbish");
    inside.kill();
    let (code, report) = site.doctor(&["--fix"]);
    assert_eq!(code, 0, "{report}");
    assert_ne!(site.read(slot), record, "it is written anew");
    site.bench.run(["pool", "close", &site.token]).expect(0);
    fs::remove_file(up).unwrap();
    for id in [&site.running, &site.paused, &site.queued] {
        site.bench.job(id).stop(0);
    }
    site.bench.audit();
    template.audit();
}

#[test]
fn a_supervisor_goes_on_beside_the_doctor() {
    let bench = bench!();
    bench.configure("[pool.default]\nslots = 1\n");
    let first = bench.queued(&["--no-supervisor"], "exit 0");
    fs::write(first.file("job.json"), "{").unwrap();
    let supervisor = bench.supervise_ready();
    bench.run(["doctor"]).expect(1);
    bench.run(["doctor", "--fix"]).expect(0);
    assert!(!first.dir().exists());
    let next = bench.queued(&["--no-supervisor"], "exit 3");
    assert_eq!(next.wait(), 3);
    supervisor.end();
    bench.audit();
}

#[test]
fn a_supervisor_without_its_lock_gets_no_other_beside_it() {
    let bench = bench!();
    // The address of a socket has no room for the path of the second.
    for root in [bench.root(), bench.dir().join("d".repeat(120))] {
        let verb = |arguments: &[&str]| {
            let mut verb = bench.verb(arguments);
            verb.env("OUTLIVE_ROOT", &root);
            verb
        };
        let supervisor = bench.supervise_ready_by(verb(&["supervise", "--log-level", "debug"]));
        let lock = root.join("supervisor.lock");
        fs::remove_file(&lock).unwrap();
        fs::create_dir(&lock).unwrap();
        let ran = bench.end(verb(&["doctor", "--fix"])).expect(1);
        assert!(ran.text().contains("outlive supervisor stop"), "{ran:?}");
        assert!(lock.is_dir());
        supervisor.end();
        bench.end(verb(&["doctor", "--fix"])).expect(0);
        assert!(lock.is_file());
    }
    bench.audit();
}

#[test]
fn the_socket_of_a_dead_supervisor_is_found_at_the_end_of_a_long_path() {
    let bench = bench!();
    let root = bench.dir().join("d".repeat(120));
    let verb = |arguments: &[&str]| {
        let mut verb = bench.verb(arguments);
        verb.env("OUTLIVE_ROOT", &root);
        verb
    };
    let supervise = verb(&["supervise", "--log-level", "debug"]);
    bench.supervise_ready_by(supervise).kill();
    bench.crashes();
    let socket = root.join("supervisor.sock");
    assert!(socket.exists());
    let found = bench.end(verb(&["doctor"])).expect(0);
    assert!(found.text().contains("is gone"), "{found:?}");
    bench.end(verb(&["doctor", "--fix"])).expect(0);
    assert!(!socket.exists());
    bench.audit();
}

#[test]
fn a_doctor_that_is_killed_has_lost_nothing() {
    let template = Template::new(bench!());
    let dice = Dice::new();
    for round in 0..rounds(12) {
        let mut dice = dice.nth(round as u64);
        let site = template.site(bench!());
        site.write(&site.of(&site.done, "status.json"), "rubbish");
        let mut lines = site.lines(&site.failed);
        lines.push(lines[2].replace("failed", "done"));
        site.write_lines(&site.failed, &lines);
        site.write(&site.pointer("name-web"), "rubbish too");
        site.write("pools/w/pool.json", "and more");
        site.write("pools/w/slots/1/slot.json", "still more");
        site.write("pools/w/slots/2/slot.json", "and still more");
        site.remove(&site.of(&site.limited, "lock"));
        let broken = take(&site.bench.root());
        let doctor = site.bench.background(site.bench.verb(["doctor", "--fix"]));
        dice.moment(200_000);
        doctor.kill();
        site.bench.crashes();
        let (code, report) = site.doctor(&["--fix"]);
        assert_eq!(code, 0, "{report}");
        let (code, report) = site.doctor(&[]);
        assert_eq!(code, 0, "{report}");
        let fixed = take(&site.bench.root());
        for (path, entry) in &broken {
            let is_lock = matches!(entry, Entry::File(_, bytes) if bytes.is_empty());
            assert!(is_lock || keeps(&fixed, path, entry), "{path} is lost");
        }
        let states = site.bench.job(&site.failed).states();
        assert_eq!(states, ["queued", "running", "failed"]);
        // What the pool was made of is only in what was set aside.
        let set = ["pool", "set", "w", "--prepare", "echo > made"];
        site.bench.run(set).expect(0);
        site.bench.run(["pool", "close", &site.token]).expect(0);
        for id in [&site.running, &site.paused, &site.queued] {
            site.bench.job(id).stop(0);
        }
        site.bench.audit();
    }
    template.audit();
}

/// The end of a session that is not known to be on disk is not told as done, and what the session said is kept.
#[test]
fn a_void_session_whose_end_cannot_be_synced_is_kept_and_told_of() {
    let template = Template::new(bench!());
    let site = template.site(bench!());
    let void = "sessions/w-17.json";
    site.copy(&format!("sessions/{}.json", site.token), void);
    site.edit(void, |session| session["token"] = "w-17".into());
    let said = site.read(void);
    let mut fix = site.bench.verb(["doctor", "--fix", "--json"]);
    fix.env(UNSYNCED, site.path(void));
    let report = site.bench.end(fix).expect(0).json();
    assert!(!site.path(void).exists());
    assert_eq!(report["mended"], serde_json::json!([]), "{report}");
    let findings = report["findings"].as_array().unwrap();
    let told = |kind: &str| findings.iter().find(|finding| finding["kind"] == kind);
    let finding = told("session-void").unwrap();
    assert_eq!(finding["mendable"], false, "{report}");
    let advice = finding["advice"].as_str().unwrap();
    assert!(advice.contains("sync"), "{advice}");
    assert!(told("set-aside").is_some(), "{report}");
    let runs: Vec<_> = fs::read_dir(site.path("broken"))
        .unwrap()
        .map(|run| run.unwrap().path())
        .collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert_eq!(fs::read(runs[0].join(void)).unwrap(), said);

    site.remove("sessions");
    site.rename("sessions.away", "sessions");
    let (code, report) = site.doctor(&["--fix"]);
    assert_eq!(code, 0, "{report}");
    site.bench.run(["pool", "close", &site.token]).expect(0);
    for id in [&site.running, &site.paused, &site.queued] {
        site.bench.job(id).stop(0);
    }
    site.bench.audit();
    template.audit();
}

#[test]
fn a_part_that_is_no_directory_hides_no_other() {
    let template = Template::new(bench!());
    let site = template.site(bench!());
    site.rename("pools", "../pools");
    site.write("pools", "no directory");
    site.write(&site.of(&site.done, "status.json"), "rubbish");
    let (code, report) = site.doctor(&[]);
    assert_eq!(code, 1);
    let findings = report["findings"].as_array().unwrap();
    let kinds: Vec<&str> = findings
        .iter()
        .map(|finding| finding["kind"].as_str().unwrap())
        .collect();
    for kind in ["not-directory", "status"] {
        assert!(kinds.contains(&kind), "{report}");
    }
    let (code, report) = site.doctor(&["--fix"]);
    assert_eq!(code, 0, "{report}");
    for id in [&site.running, &site.paused, &site.queued] {
        site.bench.job(id).stop(0);
    }
    site.bench.audit();
    template.audit();
}

/// Root can look at everything, so somebody else is asked.
#[test]
fn a_part_that_its_owner_cannot_look_at_is_opened_to_him() {
    const NOBODY: u32 = 65534;
    let bench = bench!();
    let job = bench.sh("exit 0");
    job.wait();
    bench.run(["doctor"]).expect(0);
    until("the worker is gone", || bench.census().is_empty());
    let is_root = rustix::process::geteuid().is_root();
    let binary = bench.dir().join("outlive");
    copy_program(bench.binary(), &binary);
    let own = |user: u32| {
        let mut chown = bench.program("chown");
        chown.args(["-R", &user.to_string()]).arg(bench.dir());
        bench.end(chown).expect(0);
    };
    let doctor = |options: &[&str]| {
        let mut verb = if is_root {
            let mut verb = bench.program("setpriv");
            verb.args(["--reuid", &NOBODY.to_string(), "--clear-groups"]);
            verb.arg(&binary);
            verb
        } else {
            bench.program(&binary)
        };
        verb.args(["doctor", "--json"]).args(options);
        bench.end(verb)
    };
    if !is_root || program_at("setpriv").is_some() {
        if is_root {
            own(NOBODY);
        }
        for part in ["keys", "staging"] {
            set_mode(&bench.root().join(part), 0);
        }
        set_mode(&job.dir(), 0);
        let found = doctor(&[]).expect(1).text();
        assert_eq!(found.matches("\"unreadable\"").count(), 3, "{found}");
        doctor(&["--fix"]).expect(0);
        doctor(&[]).expect(0);
        if is_root {
            own(0);
        }
    }
    bench.audit();
}
