//! Many jobs queued at once from a file.

use std::fs;

use outlive_tests::{Bench, Job, Ran, bench, until};
use serde_json::{Value, json};

/// Give these bytes to `queue --from -`.
#[track_caller]
fn from_stdin(bench: &Bench, options: &[&str], text: &[u8]) -> Ran {
    let mut command = bench.verb(["queue", "--from", "-"]);
    command.args(options);
    Ran::run_with_input(command, text, std::time::Duration::from_secs(40))
}

fn written(bench: &Bench) -> String {
    let text = fs::read_to_string(bench.file("order")).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn writes(word: &str) -> Value {
    json!({"argv": ["sh", "-c", format!("echo {word} >> order")]})
}

/// A job that writes a word, and more about it.
fn line(word: &str, more: Value) -> Value {
    let mut line = writes(word);
    let object = line.as_object_mut().unwrap();
    object.extend(more.as_object().unwrap().clone());
    line
}

#[test]
fn jobs_are_made_as_the_lines_say_and_go_in_their_order() {
    let bench = bench!();
    bench.run(["pool", "add", "p", "--slots", "1"]).expect(0);
    let mut lines: Vec<Value> = (0..12).map(|n| writes(&n.to_string())).collect();
    lines[11]["priority"] = 5.into();
    let jobs = bench.queued_from(&["--pool", "p"], &lines);
    assert_eq!(jobs.len(), 12);
    for job in &jobs {
        assert_eq!(job.wait(), 0);
    }
    assert_eq!(written(&bench), "11 0 1 2 3 4 5 6 7 8 9 10");
    let listed: Vec<Value> = bench.list().iter().map(|job| job["id"].clone()).collect();
    let ids: Vec<&str> = jobs.iter().map(Job::id).collect();
    assert_eq!(listed, ids, "a list has them as the file has");
    bench.audit();
}

#[test]
fn a_line_outweighs_the_flags() {
    let bench = bench!();
    fs::create_dir(bench.file("sub")).unwrap();
    fs::write(bench.file("input"), "read\n").unwrap();
    let lines = [
        json!({"argv": ["sh", "-c", "pwd; cat; echo $A$B; exit 3"], "cwd": "sub", "stdin": "input",
            "env": {"B": "2"}, "success_codes": "3", "task": "t", "timeout": 60, "retry": 0}),
        json!({"command": ["sh", "-c", "echo $A$B; exit 3"], "clean_env": true, "env": {"PATH": std::env::var("PATH").unwrap()},
            "name": "named", "on_end": "cat > end.json", "log_max": "100K", "log_keep": 2}),
    ];
    let jobs = bench.queued_from(&["--env", "A=1", "--env", "B=1"], &lines);
    assert_eq!((jobs[0].wait(), jobs[1].wait()), (0, 3));
    let sub = bench.file("sub");
    assert_eq!(jobs[0].log_text(), format!("{}\nread\n12\n", sub.display()));
    assert_eq!(jobs[1].log_text(), "\n");
    assert_eq!(jobs[0].shown()["name"], "t-1");
    assert_eq!(jobs[1].shown()["name"], "named");
    until("its end was told", || bench.file("end.json").exists());
    bench.audit();
}

#[test]
fn lines_come_after_one_another_and_after_jobs_that_are_there() {
    let bench = bench!();
    let there = bench.queued(&["--name", "there"], "exit 1");
    let lines = [
        line("last", json!({"after": ["middle", "first:end"]})),
        line(
            "middle",
            json!({"label": "middle", "after": ["first", "there:failure"]}),
        ),
        line(
            "first",
            json!({"label": "first", "name": "with_a_name", "after": [format!("{}:end", there.id())]}),
        ),
        line(
            "never",
            json!({"label": "never", "after": ["middle:failure"]}),
        ),
        line("nor", json!({"after": ["never"]})),
        line(
            "colon",
            json!({"label": "odd:end", "after": ["last_but_one"]}),
        ),
        line(
            "but_one",
            json!({"label": "last_but_one", "after": ["never:end"]}),
        ),
        line("final", json!({"after": ["odd:end"]})),
    ];
    let jobs = bench.queued_from(&[], &lines);
    let codes: Vec<i32> = jobs.iter().map(Job::wait).collect();
    assert_eq!(codes, [0, 0, 0, 1, 1, 0, 0, 0]);
    let order = written(&bench);
    let place = |word: &str| order.split(' ').position(|written| written == word);
    for (before, after) in [
        ("first", "middle"),
        ("middle", "last"),
        ("but_one", "colon"),
        ("colon", "final"),
    ] {
        assert!(place(before) < place(after), "{order}");
    }
    assert_eq!((place("never"), place("nor")), (None, None));
    bench.audit();
}

#[test]
fn nothing_is_made_where_anything_is_wrong() {
    let bench = bench!();
    bench.run(["pool", "add", "p", "--slots", "2"]).expect(0);
    let good = r#"{"argv":["true"]}"#;
    let cases: &[(&str, i32, &[&str])] = &[
        ("no json", 2, &["line 2", "no JSON"]),
        (r#"{"argv":["true"]"#, 2, &["line 2", "no JSON"]),
        (r#"["true"]"#, 2, &["line 2"]),
        (
            r#"{"argv":["true"],"priorty":1}"#,
            2,
            &["line 2", "priorty"],
        ),
        (r#"{"argv":[]}"#, 2, &["line 2"]),
        (r#"{"name":"x"}"#, 2, &["line 2", "argv"]),
        (r#"{"argv":["true"],"slots":0}"#, 2, &["line 2", "slots"]),
        (
            r#"{"argv":["true"],"slots":3,"pool":"p"}"#,
            6,
            &["line 2", "pool set p"],
        ),
        (r#"{"argv":["true"],"pool":"q"}"#, 3, &["line 2", "'q'"]),
        (r#"{"argv":["true"],"pool":"../x"}"#, 2, &["line 2"]),
        (
            r#"{"argv":["true"],"after":["nobody"]}"#,
            3,
            &["line 2", "'nobody'"],
        ),
        (
            r#"{"argv":["true"],"label":"a","after":["a"]}"#,
            2,
            &["line 2", "itself"],
        ),
        (r#"{"argv":["true"],"at":"soon"}"#, 2, &["line 2", "soon"]),
        (r#"{"argv":["true"],"name":"a-b"}"#, 2, &["line 2", "a-b"]),
    ];
    for (line, code, words) in cases {
        let text = format!("{good}\n{line}\n{good}\n");
        let ran = from_stdin(&bench, &[], text.as_bytes()).expect(*code);
        for word in *words {
            assert!(ran.errors().contains(word), "{line}: {}", ran.errors());
        }
        assert_eq!(ran.text(), "", "{line}");
    }
    let twice = r#"{"argv":["true"],"label":"a"}"#;
    let ran = from_stdin(&bench, &[], format!("\n{twice}\n{twice}\n").as_bytes()).expect(2);
    assert!(ran.errors().contains("line 3") && ran.errors().contains("line 2"));
    let twice = r#"{"argv":["true"],"name":"a"}"#;
    let ran = from_stdin(&bench, &[], format!("{twice}\n{twice}\n").as_bytes()).expect(2);
    assert!(ran.errors().contains("line 2") && ran.errors().contains("line 1"));
    assert!(bench.jobs().is_empty());
    assert!(bench.supervisors().is_empty());
    bench.audit();
}

#[test]
fn jobs_that_wait_for_one_another_are_named_as_a_chain() {
    let bench = bench!();
    let text = r#"{"argv":["true"],"label":"before","after":["a"]}
{"argv":["true"],"label":"a","after":["b:end"]}
{"argv":["true"],"label":"b","after":["c"]}
{"argv":["true"],"label":"c","after":["a:failure"]}
"#;
    let ran = from_stdin(&bench, &[], text.as_bytes()).expect(2);
    assert!(
        ran.errors().contains("line 2: ") && ran.errors().contains("'a', 'b', 'c', 'a'"),
        "{}",
        ran.errors()
    );
    assert!(bench.jobs().is_empty());
    bench.audit();
}

#[test]
fn an_empty_file_is_nothing_to_do_and_one_that_is_not_there_is_said() {
    let bench = bench!();
    assert_eq!(from_stdin(&bench, &[], b"").expect(0).text(), "");
    assert_eq!(
        from_stdin(&bench, &["--json"], b"\n  \n\n")
            .expect(0)
            .text(),
        ""
    );
    let ran = bench.run(["queue", "--from", "nowhere"]).expect(1);
    assert!(ran.errors().contains("nowhere"), "{}", ran.errors());
    bench.run(["queue", "--from", "."]).expect(1);
    bench.run(["queue", "--from", "x", "--", "true"]).expect(2);
    bench.run(["queue", "--from", "x", "--name", "n"]).expect(2);
    bench.run(["queue"]).expect(2);
    assert!(bench.supervisors().is_empty());
    bench.audit();
}

#[test]
fn a_line_without_an_end_is_refused_before_it_fills_the_memory() {
    let bench = bench!();
    let ran = from_stdin(&bench, &[], &vec![b'x'; 9 << 20]).expect(2);
    assert!(
        ran.errors().contains("line 1: it is longer"),
        "{}",
        ran.errors()
    );
    bench.audit();
}

#[test]
fn the_jobs_are_shown_as_json_one_a_line_and_waited_for() {
    let bench = bench!();
    let text =
        "{\"argv\":[\"true\"]}\n{\"argv\":[\"sh\",\"-c\",\"exit 7\"]}\n{\"argv\":[\"false\"]}\n";
    let ran = from_stdin(&bench, &["--json", "--wait"], text.as_bytes()).expect(7);
    let shown: Vec<Value> = ran
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(shown.len(), 3);
    assert_eq!(shown[1]["command"], json!(["sh", "-c", "exit 7"]));
    bench.audit();
}

#[test]
fn a_name_that_is_under_way_is_joined_refused_or_replaced() {
    let bench = bench!();
    let first = bench.queued(&["--name", "web", "--delay", "1h"], "exit 0");
    let text = "{\"argv\":[\"true\"],\"label\":\"a\"}\n{\"argv\":[\"true\"],\"name\":\"web\",\"after\":[\"a\"]}\n";
    let joined = from_stdin(&bench, &[], text.as_bytes()).expect(0);
    assert_eq!(joined.text().lines().nth(1), Some(first.id()));
    let before = bench.jobs().len();
    let refused = from_stdin(&bench, &["--if-running", "fail"], text.as_bytes()).expect(6);
    assert!(refused.errors().contains("line 2"), "{}", refused.errors());
    assert_eq!(bench.jobs().len(), before);
    let replaced = from_stdin(&bench, &["--if-running", "replace"], text.as_bytes()).expect(0);
    let second = bench.job(replaced.text().lines().nth(1).unwrap());
    assert_eq!(first.recorded(), "cancelled");
    assert_eq!(second.wait(), 0);
    until("all have ended", || {
        bench.jobs().iter().all(|job| job.recorded() != "queued")
    });
    bench.audit();
}

#[test]
fn what_cannot_be_made_to_its_end_is_taken_back() {
    let bench = bench!();
    let lost = bench.start(["--name", "web", "--", "sleep", "600"]);
    lost.kill_worker();
    until("it is interrupted", || lost.state() == "interrupted");
    let text = "{\"argv\":[\"true\"]}\n".repeat(300) + "{\"argv\":[\"true\"],\"name\":\"web\"}\n";
    let refused = from_stdin(&bench, &[], text.as_bytes()).expect(6);
    assert!(
        refused.errors().contains("line 301: "),
        "{}",
        refused.errors()
    );
    assert_eq!(bench.jobs().len(), 1);
    lost.stop(0);
    bench.audit();
}

#[test]
fn more_jobs_than_can_be_held_at_once_are_refused_together() {
    let bench = bench!();
    let text = "{\"argv\":[\"true\"]}\n".repeat(300);
    fs::write(bench.file("many"), text).unwrap();
    let command = bench.verb_after("ulimit -n 128", ["queue", "--from", "many"]);
    let ran = bench.end(command).expect(6);
    assert!(ran.errors().contains("ulimit"), "{}", ran.errors());
    assert!(bench.jobs().is_empty());
    bench.audit();
}

#[test]
fn what_a_full_disk_cuts_short_runs_in_no_part() {
    let bench = bench!();
    if bench.mount("3M").is_none() {
        return bench.audit();
    }
    bench.crashes();
    let text = "{\"argv\":[\"sh\",\"-c\",\"echo ran >> order\"]}\n".repeat(2_000);
    fs::write(bench.file("many"), text).unwrap();
    let ran = bench.run(["queue", "--from", "many"]).expect(1);
    assert!(ran.errors().contains("space"), "{}", ran.errors());
    assert_eq!(ran.text(), "");
    assert!(bench.jobs().is_empty());
    assert_eq!(written(&bench), "");
    assert!(bench.supervisors().is_empty());
    bench
        .run(["queue", "--wait", "--", "sh", "-c", "echo ran >> order"])
        .expect(0);
    bench.audit();
}

#[test]
fn two_thousand_jobs_are_no_burden() {
    are_no_burden(2_000);
}

#[test]
#[ignore = "takes more than a minute in a debug build"]
fn ten_thousand_jobs_are_no_burden() {
    are_no_burden(10_000);
}

#[track_caller]
fn are_no_burden(many: usize) {
    let bench = bench!();
    // Where that is allowed, on a file system that syncs nothing: it is not the disk's speed that is tried.
    bench.mount("800m");
    bench.run(["pool", "add", "p", "--slots", "1"]).expect(0);
    bench.run(["pool", "pause", "p"]).expect(0);
    let lines = "{\"argv\":[\"true\"]}\n".repeat(many);
    fs::write(bench.file("many"), lines).unwrap();
    // Tapes of so much would take longer than all the rest.
    let mut queue = bench.verb(["queue", "--pool", "p", "--from", "many"]);
    queue.env("OUTLIVE_TAPE", "");
    let ran = bench.end(queue).expect(0);
    let ids: Vec<String> = ran.text().lines().map(str::to_owned).collect();
    assert_eq!(ids.len(), many);
    let pools = bench.run(["pool", "list", "--json"]).expect(0).json();
    let waiting: Vec<&Value> = pools
        .as_array()
        .unwrap()
        .iter()
        .map(|pool| &pool["waiting"])
        .collect();
    assert_eq!(waiting, [&json!(0), &json!(many)]);
    // Another pool is served meanwhile, and the first of them when they may go.
    assert_eq!(bench.queued(&[], "exit 0").wait(), 0);
    bench.run(["pool", "resume", "p"]).expect(0);
    for id in &ids[..20] {
        assert_eq!(bench.job(id).wait(), 0);
    }
    bench.run(["pool", "pause", "p"]).expect(0);
    let done = || {
        ids.iter()
            .filter(|id| bench.job(id).recorded() == "done")
            .count()
    };
    until("nobody runs", || {
        bench.run(["pool", "list", "--json"]).expect(0).json()[1]["taken"] == 0
    });
    let ended = done();
    assert!(
        ids[..ended]
            .iter()
            .all(|id| bench.job(id).recorded() == "done"),
        "oldest first"
    );
    bench.audit();
}
