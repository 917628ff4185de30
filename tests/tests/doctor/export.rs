//! `outlive doctor --export`: all about a job, and no secret.

use std::fs;
use std::os::unix::fs::MetadataExt;

use outlive_tests::bench;
use serde_json::Value;

#[test]
fn an_export_holds_all_about_a_job_and_no_secret() {
    let bench = bench!();
    let script = "echo the secret is $MY_TOKEN; echo fetched https://me:hunter2@host/x; echo 'Authorization: Bearer abc123'";
    let mut run = bench.verb([
        "run",
        "--",
        "sh",
        "-c",
        script,
        "sh",
        "--password",
        "pass-word-1",
    ]);
    run.env("MY_TOKEN", "correct horse")
        .env("HARMLESS", "battery-staple");
    let id = bench.end(run).expect(0).text();
    let job = bench.job(id.trim());
    job.wait();
    // The history is written after the record.
    job.until_states(|states| states.len() == 3);
    let ran = bench.run(["doctor", "--export", job.id()]).expect(0);
    let path = bench.file(&format!("outlive-{}.json", job.id()));
    assert_eq!(bench.work().join(ran.text().trim()), path);
    assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o600);
    let text = fs::read_to_string(&path).unwrap();
    for secret in [
        "correct horse",
        "battery-staple",
        "hunter2",
        "abc123",
        "pass-word-1",
    ] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    let export: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(export["job"], job.id());
    assert_eq!(export["status"]["state"], "done");
    assert_eq!(export["history"].as_array().unwrap().len(), 3);
    let env = &export["descriptor"]["kind"]["command"]["env"];
    assert_eq!(env["HARMLESS"], "[redacted]");
    assert_eq!(export["descriptor"]["kind"]["command"]["argv"][0], "sh");
    let tail = export["logs"]["log"]["tail"].as_str().unwrap();
    assert!(tail.contains("the secret is [redacted]"), "{tail}");
    assert!(tail.contains("https://[redacted]@host/x"), "{tail}");
    assert!(export["machine"]["kernel"].is_string());
    assert!(export["findings"].as_array().unwrap().is_empty());
    assert!(export["outlive"].is_string());
    for place in ["the environment", "job.json", "log"] {
        assert!(
            ran.errors().contains(&format!("redacted {place}: ")),
            "{ran:?}"
        );
    }

    // An id is made from the command, and so is the name of the file.
    let other = bench.start(["--", "echo", "--token", "swordfish9"]);
    other.wait();
    assert!(other.id().contains("swordfish9"));
    let hidden = bench.run(["doctor", "--export", other.id()]).expect(0);
    assert!(
        !format!("{}{}", hidden.text(), hidden.errors()).contains("swordfish9"),
        "{hidden:?}"
    );
    let shown = fs::read_to_string(bench.file(hidden.text().trim())).unwrap();
    assert!(!shown.contains("swordfish9"), "{shown}");

    // What is there is never written over.
    let again = bench.run(["doctor", "--export", job.id()]).expect(6);
    assert!(again.errors().contains("--output"), "{again:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    let other = bench.file("report.json");
    bench
        .run([
            "doctor",
            "--export",
            job.id(),
            "--output",
            other.to_str().unwrap(),
        ])
        .expect(0);
    assert!(other.exists());
    bench.run(["doctor", "--export", "nosuchjob"]).expect(3);
    bench
        .run(["doctor", "--fix", "--export", job.id()])
        .expect(2);
    bench.audit();
}

#[test]
fn a_job_that_cannot_be_read_can_be_exported_and_shows_nothing_of_its_environment() {
    let bench = bench!();
    let job = bench.sh("echo hello");
    job.wait();
    let whole = fs::read(job.file("job.json")).unwrap();
    let mut cut = whole.clone();
    cut.truncate(whole.trim_ascii_end().len() - 1);
    fs::write(job.file("job.json"), &cut).unwrap();
    let ran = bench
        .run(["doctor", "--export", job.id(), "--output", "-"])
        .expect(0);
    let export: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert!(export["descriptor"]["unreadable"].is_string(), "{export}");
    assert_eq!(export["findings"][0]["kind"], "descriptor");
    assert_eq!(export["status"]["state"], "done");
    assert!(!ran.text().contains("OUTLIVE_TEST_BENCH"));
    fs::write(job.file("job.json"), &whole).unwrap();
    bench.audit();
}

#[test]
fn an_export_for_which_there_is_no_room_leaves_nothing() {
    let bench = bench!();
    let job = bench.sh("echo hello");
    job.wait();
    // No file may be longer than this.
    let limited = bench.verb_after(
        "trap '' XFSZ; ulimit -f 1",
        ["doctor", "--export", job.id()],
    );
    bench.end(limited).expect(1);
    let path = bench.file(&format!("outlive-{}.json", job.id()));
    assert!(!path.exists());
    bench.run(["doctor", "--export", job.id()]).expect(0);
    assert!(path.exists());
    bench.audit();
}

#[test]
fn an_export_hides_what_a_script_or_a_log_without_lines_gives_away() {
    let bench = bench!();
    let script = "echo curl -u me:hunter2 http://host; echo $RAILS_KEY; echo in $PWD; head -c 70000 /dev/zero | tr '\\0' x";
    let mut run = bench.verb(["run", "--name", "quiet", "--", "sh", "-c", script]);
    run.env("RAILS_KEY", "correct horse")
        .env("PWD", bench.work());
    let id = bench.end(run).expect(0).text();
    let job = bench.job(id.trim());
    job.wait();
    let export = |job: &str| {
        let ran = bench
            .run(["doctor", "--export", job, "--output", "-"])
            .expect(0);
        let export: Value = serde_json::from_slice(&ran.stdout).unwrap();
        (ran.text(), export)
    };
    let (text, document) = export(job.id());
    assert!(!text.contains("hunter2"), "{text}");
    assert_eq!(
        document["dir"],
        job.file("").to_str().unwrap().trim_end_matches('/')
    );
    assert_ne!(
        document["descriptor"]["kind"]["command"]["cwd"],
        "[redacted]"
    );
    // What the end of a log begins with may be half of a secret.
    let tail = document["logs"]["log"]["tail"].as_str().unwrap();
    assert!(
        tail.len() < 64 << 10 && tail.bytes().all(|byte| byte == b'x'),
        "{}",
        tail.len()
    );
    let other = bench.sh_with(
        &["--name", "other", "--env", "RAILS_KEY=correct horse"],
        script.split("; head").next().unwrap(),
    );
    other.wait();
    let (text, document) = export(other.id());
    assert!(
        !text.contains("hunter2") && !text.contains("correct horse"),
        "{text}"
    );
    let tail = document["logs"]["log"]["tail"].as_str().unwrap();
    assert!(
        tail.contains(&format!("in {}", bench.work().display())),
        "{tail}"
    );
    bench.audit();
}
