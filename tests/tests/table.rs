//! The table of `list`: what is in it, how it fits into a terminal, and which jobs it has.

use std::fs;

use outlive_tests::{Terminal, bench};
use serde_json::Value;

/// The ids that a list with these options has.
fn listed(bench: &outlive_tests::Bench, options: &[&str]) -> Vec<String> {
    let words = [&["list", "--json"], options].concat();
    let Value::Array(jobs) = bench.run(words).expect(0).json() else {
        panic!("a list is an array");
    };
    let id = |job: &Value| job["id"].as_str().expect("it has one").to_owned();
    jobs.iter().map(id).collect()
}

#[test]
fn a_list_has_what_was_asked_for_and_no_more() {
    let bench = bench!();
    bench.run(["pool", "add", "web", "--slots", "1"]).expect(0);
    let failed = bench.sh_with(&["--name", "build_1"], "exit 3");
    assert_eq!(failed.wait(), 3);
    let done = bench.sh_with(&["--name", "build_22", "--task", "all"], "exit 0");
    assert_eq!(done.wait(), 0);
    let runs = bench.sh_with(&["--name", "serve"], "sleep 600");
    let waits = bench.queued(&["--no-supervisor", "--pool", "web"], "true");
    let [failed_id, done_id, runs_id, waits_id] =
        [&failed, &done, &runs, &waits].map(|job| job.id().to_owned());

    let cases: [(&[&str], &[&String]); 15] = [
        (&[], &[&failed_id, &done_id, &runs_id, &waits_id]),
        (&["--state", "failed"], &[&failed_id]),
        (&["--state", "failed", "queued"], &[&failed_id, &waits_id]),
        (&["--state", "failed,queued"], &[&failed_id, &waits_id]),
        (
            &["--state", "failed", "--state", "done"],
            &[&failed_id, &done_id],
        ),
        (&["--state", "active"], &[&runs_id, &waits_id]),
        (&["--state", "ended"], &[&failed_id, &done_id]),
        (&["--state", "paused"], &[]),
        (&["--name", "serve"], &[&runs_id]),
        (&["--name", "build_*"], &[&failed_id, &done_id]),
        (&["--name", "build_?"], &[&failed_id]),
        (&["--name", "build"], &[]),
        (&["--task", "all"], &[&done_id]),
        (&["--pool", "web"], &[&waits_id]),
        (
            &["--name", "*", "--state", "ended", "--task", "all"],
            &[&done_id],
        ),
    ];
    for (options, expected) in cases {
        assert_eq!(
            listed(&bench, options).iter().collect::<Vec<_>>(),
            expected,
            "{options:?}"
        );
        let words = [&["list"], options].concat();
        let table = bench.run(words).expect(0).text();
        let first = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
        let ids: Vec<String> = table.lines().skip(1).map(first).collect();
        assert_eq!(ids.iter().collect::<Vec<_>>(), expected, "{table}");
    }

    let wrong = bench.run(["list", "--state", "runing"]).expect(2);
    let said = wrong.errors();
    assert_eq!(said.lines().count(), 1, "{said}");
    for word in [
        "'runing'",
        "queued",
        "interrupted",
        "active",
        "ended",
        "similar",
        "'running'",
    ] {
        assert!(said.contains(word), "{word}: {said}");
    }

    let head = |table: &str| -> Vec<String> {
        let first = table.lines().next().unwrap_or_default();
        first.split_whitespace().map(str::to_owned).collect()
    };
    let table = bench.run(["list"]).expect(0).text();
    let whole = ["ID", "NAME", "TASK", "STATE", "STARTED", "COMMAND"];
    assert_eq!(head(&table), whole);
    assert!(table.contains("  exited 3 ("), "{table}");
    let table = bench.run(["list", "--pool", "web"]).expect(0).text();
    assert_eq!(head(&table), ["ID", "STATE", "COMMAND"]);
    runs.stop(0);
    waits.stop(0);
    bench.audit();
}

#[test]
fn a_project_that_is_gone_is_marked() {
    let bench = bench!();
    let root = bench.file("project");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("outlive.toml"), "").unwrap();
    let mut verb = bench.verb(["run", "--wait", "--", "true"]);
    verb.current_dir(&root);
    bench.end(verb).expect(0);
    bench.sh("exit 0").wait();
    let path = root.display().to_string();
    let listed = bench.run(["list", "--all"]).expect(0).text();
    assert!(listed.contains(&format!("\n{path}:\n")), "{listed}");
    assert!(listed.starts_with("outside of any project:\n"), "{listed}");
    fs::remove_dir_all(&root).unwrap();
    let listed = bench.run(["list", "--all"]).expect(0).text();
    assert!(
        listed.contains(&format!("\n{path} [root missing]:\n")),
        "{listed}"
    );
    bench.audit();
}

#[test]
fn a_terminal_has_colours_and_gets_lines_that_fit() {
    let bench = bench!();
    let long = "b".repeat(150);
    bench.start(["--wait", "--", "true", &long]);
    let failed =
        bench.sh("exit 3; echo '日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語'");
    failed.wait();
    let table = bench.run(["list"]).expect(0).text();
    assert!(table.contains(&long) && !table.contains('\x1b'), "{table}");

    let Some(terminal) = Terminal::open(&bench, 90, 20) else {
        return bench.audit();
    };
    terminal.run("list");
    let screen = terminal.until("the list", |screen| {
        screen.contains(failed.id()) && screen.contains('…')
    });
    let jobs: Vec<&str> = screen
        .lines()
        .filter(|line| line.contains("exited"))
        .collect();
    assert_eq!(jobs.len(), 2, "{screen}");
    assert!(jobs.iter().all(|line| line.ends_with('…')), "{screen}");
    assert!(
        terminal.coloured_screen().contains("\x1b[31mexited 3 ("),
        "{:?}",
        terminal.coloured_screen()
    );
    terminal.until_intact();
    terminal.type_line("export NO_COLOR=1; clear");
    // The list that is waited for below is the next one.
    terminal.until("it is clear", |screen| !screen.contains(failed.id()));
    terminal.run("list");
    terminal.until("the list", |screen| screen.contains(failed.id()));
    assert!(!terminal.coloured_screen().contains("\x1b[31m"));
    drop(terminal);
    bench.audit();
}

#[test]
fn a_watched_list_is_shown_again_whenever_it_changes() {
    let bench = bench!();
    bench.run(["list"]).expect(0);
    let mut watched = bench.background(bench.verb(["list", "--watch", "--state", "active"]));
    let stdout = watched.child.stdout.take().expect("it is captured");
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(stdout));
    let mut next = || lines.next().expect("it goes on").expect("it can be read");
    assert_eq!(next(), "ID  STATE  COMMAND");
    let job = bench.sh("sleep 600");
    let seen = |next: &mut dyn FnMut() -> String, what: &str| {
        // Each table begins with a blank line.
        loop {
            let line = next();
            if line.contains(job.id()) && line.contains(what) {
                return;
            }
        }
    };
    assert_eq!(next(), "");
    seen(&mut next, "  running  ");
    bench.run(["pause", job.id()]).expect(0);
    seen(&mut next, "  paused  ");
    job.stop(0);
    while next() != "ID  STATE  COMMAND" {}
    // Nobody reads any more: it ends without having to say something.
    drop(lines);
    watched.end().expect(0);
    bench.audit();
}

#[test]
fn a_watched_list_stays_where_it_is_on_a_terminal_and_leaves_that_intact() {
    let bench = bench!();
    bench.run(["list"]).expect(0);
    let Some(terminal) = Terminal::open(&bench, 100, 12) else {
        return bench.audit();
    };
    terminal.run("list --watch");
    terminal.until("the table", |screen| screen.contains("STATE"));
    let jobs: Vec<_> = (0..3).map(|_| bench.sh("sleep 600")).collect();
    terminal.until("all run", |screen| {
        jobs.iter().all(|job| screen.contains(job.id())) && screen.matches("running").count() == 3
    });
    for job in &jobs {
        job.stop(0);
    }
    let screen = terminal.until("all are stopped", |screen| {
        screen.matches("cancelled").count() == 3 && !screen.contains("running")
    });
    assert_eq!(screen.matches("STATE").count(), 1, "{screen}");
    // There is not enough room: the newest stay.
    terminal.resize(60, 3);
    terminal.until("the newest", |screen| {
        screen.contains("STATE") && screen.matches("cancelled").count() == 1
    });
    terminal.resize(90, 12);
    terminal.until("all", |screen| screen.matches("cancelled").count() == 3);
    // As somebody does who moves the store about.
    let (there, away) = (bench.root().join("jobs"), bench.root().join("away"));
    fs::rename(&there, &away).unwrap();
    std::os::unix::fs::symlink("jobs", &there).unwrap();
    terminal.until("it says so", |screen| {
        screen.contains("outlive: cannot list")
    });
    fs::remove_file(&there).unwrap();
    fs::rename(&away, &there).unwrap();
    terminal.until("all again", |screen| {
        screen.matches("cancelled").count() == 3 && !screen.contains("outlive: ")
    });
    terminal.press(&["C-c"]);
    terminal.until_intact();
    drop(terminal);
    bench.audit();
}
