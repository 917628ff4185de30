//! Names: one job at a time per name, numbers for tasks, and what a word on the command line means.

use std::io::{BufRead, BufReader};

use outlive_tests::{bench, is_terminal, until};

#[test]
fn twenty_starts_of_one_name_make_one_job() {
    let bench = bench!();
    for round in 0..5 {
        let name = format!("k{round}");
        let starts: Vec<_> = (0..20)
            .map(|_| bench.background(bench.verb(["run", "--name", &name, "--", "sleep", "600"])))
            .collect();
        let ran: Vec<_> = starts
            .into_iter()
            .map(outlive_tests::Background::end)
            .collect();
        let mut ids: Vec<String> = ran.iter().map(outlive_tests::Ran::text).collect();
        for ran in &ran {
            assert_eq!(ran.code(), 0, "{ran:?}");
        }
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 1, "everybody is told of the same job: {ids:?}");
        assert_eq!(
            ran.iter().filter(|ran| ran.stderr.is_empty()).count(),
            1,
            "one of them made it"
        );
        bench.job(&ids[0]).stop(0);
    }
    assert_eq!(bench.jobs().len(), 5);
    bench.audit();
}

/// B35. Who came second was told of a failure, and could not tell it from a real one.
#[test]
fn twenty_starts_that_are_to_fail_when_it_runs_are_told_the_winner() {
    let bench = bench!();
    let starts: Vec<_> = (0..20)
        .map(|_| {
            bench.background(bench.verb([
                "run",
                "--name",
                "web",
                "--if-running",
                "fail",
                "--",
                "sleep",
                "600",
            ]))
        })
        .collect();
    let ran: Vec<_> = starts
        .into_iter()
        .map(outlive_tests::Background::end)
        .collect();
    assert_eq!(
        ran.iter().filter(|ran| ran.code() == 0).count(),
        1,
        "{ran:?}"
    );
    assert_eq!(
        ran.iter().filter(|ran| ran.code() == 6).count(),
        19,
        "{ran:?}"
    );
    let id = bench.jobs()[0].id().to_owned();
    for ran in &ran {
        assert_eq!(ran.text(), id);
    }
    bench.job("web".replace("web", &id).as_str()).stop(0);
    bench.audit();
}

#[test]
fn a_start_joins_fails_or_replaces() {
    let bench = bench!();
    let start = |if_running: &[&str], script: &str| {
        bench.run(
            [
                &["run", "--name", "web"],
                if_running,
                &["--", "sh", "-c", script],
            ]
            .concat(),
        )
    };
    let first = start(&[], "exec sleep 600").expect(0).text();
    let joined = start(&[], "exec sleep 601").expect(0);
    assert_eq!(joined.text(), first);
    assert!(joined.errors().contains("running already"), "{joined:?}");
    let failed = start(&["--if-running", "fail"], "exec sleep 601").expect(6);
    assert_eq!(failed.text(), first);
    assert!(failed.errors().contains(&first), "{failed:?}");
    let second = start(&["--if-running", "replace"], "exec sleep 602")
        .expect(0)
        .text();
    assert_ne!(second, first);
    assert_eq!(bench.job(&first).recorded(), "cancelled");
    assert_eq!(bench.job(&second).recorded(), "running");
    // Once it has ended the name is free.
    bench.run(["stop", "web"]).expect(0);
    let third = start(&["--if-running", "fail"], "exit 4").expect(0).text();
    assert_eq!(bench.job(&third).wait(), 4);
    // The wait of one that joins is the wait for the job that runs.
    let fourth = start(&[], "while [ ! -e go ]; do sleep 0.02; done; exit 5")
        .expect(0)
        .text();
    let mut joiner = bench.background(bench.verb(["run", "--wait", "--name", "web", "--", "true"]));
    // It has joined once it has said whom.
    let mut joined = String::new();
    let stdout = joiner.child.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut joined).unwrap();
    assert_eq!(joined.trim(), fourth);
    std::fs::write(bench.file("go"), "").unwrap();
    joiner.end().expect(5);
    bench.audit();
}

#[test]
fn an_interrupted_job_keeps_its_name() {
    let bench = bench!();
    let job = bench.start(["--name", "web", "--", "sleep", "600"]);
    job.kill_worker();
    let again = bench
        .run(["run", "--name", "web", "--", "sleep", "601"])
        .expect(6);
    assert!(again.errors().contains("interrupted"), "{again:?}");
    let replaced = bench
        .run([
            "run",
            "--name",
            "web",
            "--if-running",
            "replace",
            "--",
            "true",
        ])
        .expect(0);
    assert_eq!(bench.job(&replaced.text()).wait(), 0);
    assert_eq!(job.recorded(), "cancelled");
    bench.audit();
}

#[test]
fn names_are_by_project() {
    let bench = bench!();
    let outside = bench.start(["--name", "web", "--", "sleep", "600"]);
    let project = bench.file("project");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.join("outlive.toml"), "").unwrap();
    let mut verb = bench.verb(["run", "--name", "web", "--", "sleep", "600"]);
    verb.current_dir(&project);
    let inside = bench.end(verb).expect(0).text();
    assert_ne!(inside, outside.id());
    // Both are still going, so the bare name could be either.
    bench.run(["status", "web"]).expect(4);
    bench.stop_all();
    bench.audit();
}

#[test]
fn jobs_of_a_task_are_numbered() {
    let bench = bench!();
    let name = |task: &str| {
        let job = bench.start(["--task", task, "--", "sleep", "600"]);
        (
            job.shown()["name"].as_str().unwrap().to_owned(),
            job.shown()["task"].as_str().unwrap().to_owned(),
        )
    };
    assert_eq!(name("build"), ("build-1".into(), "build".into()));
    assert_eq!(name("build"), ("build-2".into(), "build".into()));
    assert_eq!(name("test"), ("test-1".into(), "test".into()));
    // No two tasks share the name of a job, whatever they are called.
    let mut odd: Vec<String> = ["a b", "a-b", "a_b", "a.b", "a/b", "a\u{e9}b"]
        .into_iter()
        .map(|task| name(task).0)
        .collect();
    odd.sort();
    odd.dedup();
    assert_eq!(odd.len(), 6, "{odd:?}");
    bench.run(["stop", "build-1"]).expect(0);
    assert_eq!(
        bench.run(["status", "--json", "build-2"]).expect(0).json()["state"],
        "running"
    );
    bench.stop_all();
    bench.audit();
}

#[test]
fn a_word_is_an_id_a_prefix_or_a_name() {
    let bench = bench!();
    let job = bench.start(["--name", "web", "--", "sleep", "600"]);
    let unnamed = bench.sh("exit 0");
    unnamed.until_ended();
    let shown = |word: &str| {
        bench.run(["status", "--json", word]).expect(0).json()["id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(shown(job.id()), job.id());
    assert_eq!(shown("web"), job.id());
    let cut = &job.id()[..job.id().find('-').unwrap()];
    if !unnamed.id().starts_with(cut) {
        assert_eq!(shown(cut), job.id());
    }
    assert_eq!(shown(&job.id()[..job.id().len() - 1]), job.id());
    // Of several of a name the one that is still going is meant.
    job.stop(0);
    let second = bench.start(["--name", "web", "--", "sleep", "600"]);
    assert_eq!(shown("web"), second.id());
    second.stop(0);
    let several = bench.run(["status", "web"]).expect(4);
    assert!(
        several.errors().contains(job.id()) && several.errors().contains(second.id()),
        "{several:?}"
    );
    // A prefix that both share.
    let ran = bench.run(["status", "1"]);
    assert!(matches!(ran.code(), 3 | 4), "{ran:?}");
    bench.audit();
}

#[test]
fn degenerate_words_are_answered_at_once() {
    let bench = bench!();
    let job = bench.sh("exec sleep 600");
    let long = "x".repeat(300);
    let dir = job.dir();
    for word in [
        "no-such-job",
        "..",
        ".",
        "",
        "a/b",
        "/",
        "../../etc/passwd",
        long.as_str(),
        "\n",
        "\u{1b}[31m",
        "*",
        dir.to_str().unwrap(),
    ] {
        for verb in [
            &["wait"][..],
            &["status"],
            &["log"],
            &["stop"],
            &["pause"],
            &["resume"],
            &["wait", "--any"],
            &["log", "-f"],
        ] {
            let ran = bench.run(verb.iter().chain([&word]));
            assert!(matches!(ran.code(), 2..=4), "{verb:?} {word:?}: {ran:?}");
            assert!(!ran.errors().contains('\u{1b}'), "{ran:?}");
            assert!(ran.stdout.is_empty());
        }
    }
    bench.run(["wait", "no-such-job"]).expect(3);
    bench.run(["wait", job.id(), "no-such-job"]).expect(3);
    assert_eq!(job.recorded(), "running");
    for name in [
        "..",
        "",
        "a/b",
        long.as_str(),
        "a b",
        ".hidden",
        "a\nb",
        "-x",
        "\u{e9}",
    ] {
        let option = format!("--name={name}");
        let ran = bench.run(["run", &option, "--", "true"]);
        assert_eq!(ran.code(), 2, "{name:?}: {ran:?}");
    }
    for task in ["", "\n", &long] {
        let option = format!("--task={task}");
        let ran = bench.run(["run", &option, "--", "true"]);
        assert!(matches!(ran.code(), 0 | 2), "{task:?}: {ran:?}");
    }
    job.stop(0);
    until("everything has ended", || {
        bench.jobs().iter().all(|job| is_terminal(&job.recorded()))
    });
    bench.audit();
}

#[test]
fn asking_twice_is_no_error() {
    let bench = bench!();
    let job = bench.sh("exec sleep 600");
    bench.run(["resume", job.id()]).expect(0);
    bench.run(["pause", job.id()]).expect(0);
    bench.run(["pause", job.id()]).expect(0);
    bench.run(["resume", job.id()]).expect(0);
    bench.run(["resume", job.id()]).expect(0);
    job.stop(0);
    bench.run(["stop", job.id()]).expect(6);
    job.expect_states(&["queued", "running", "paused", "running", "cancelled"]);
    bench.audit();
}

#[test]
fn jobs_made_in_one_moment_have_ids_of_their_own() {
    let bench = bench!();
    let starts: Vec<_> = (0..24)
        .map(|_| bench.background(bench.verb(["run", "--", "true"])))
        .collect();
    let mut ids: Vec<String> = starts
        .into_iter()
        .map(|start| start.end().expect(0).text())
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 24);
    for id in &ids {
        assert_eq!(bench.job(id).wait(), 0);
    }
    bench.audit();
}

#[test]
fn ids_are_readable_whatever_the_command() {
    let bench = bench!();
    for command in [
        "\u{1b}[31mred",
        "...",
        "\u{4f60}\u{597d}",
        "A  B--C",
        &"long".repeat(50),
    ] {
        let ran = bench
            .run(["run", "--", "sh", "-c", "true", command])
            .expect(0);
        let id = ran.text();
        let (stamp, slug) = id.split_once('-').unwrap();
        assert!(stamp.parse::<u64>().is_ok(), "{id}");
        assert!(!slug.is_empty() && slug.len() <= 43, "{id}");
        assert!(
            slug.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'),
            "{id}"
        );
        assert!(
            !slug.contains("--") && !slug.ends_with('-') && !slug.starts_with('-'),
            "{id}"
        );
        bench.job(&id).wait();
    }
    bench.audit();
}

#[test]
fn a_name_is_that_of_the_project_first() {
    let bench = bench!();
    let inside = |project: &str, arguments: &[&str]| {
        let dir = bench.file(project);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("outlive.toml"), "").unwrap();
        let mut verb = bench.verb(arguments);
        verb.current_dir(dir);
        bench.end(verb)
    };
    let start = |project: &str| {
        let ran = inside(project, &["run", "--name", "web", "--", "sleep", "600"]);
        bench.job(&ran.expect(0).text())
    };
    let (first, second) = (start("one"), start("two"));
    let outside = bench.start(["--name", "web", "--", "sleep", "600"]);
    for (project, job) in [("one", &first), ("two", &second)] {
        let shown = inside(project, &["status", "--json", "web"])
            .expect(0)
            .json();
        assert_eq!(shown["id"], job.id());
    }
    inside("one", &["stop", "web"]).expect(0);
    assert_eq!(first.recorded(), "cancelled");
    // Its own job has ended; that of somebody else is not meant instead.
    inside("one", &["stop", "web"]).expect(6);
    for other in [&second, &outside] {
        assert_eq!(other.recorded(), "running");
    }
    // What a project has no job of is looked for everywhere.
    let only = bench.start(["--name", "api", "--", "sleep", "600"]);
    inside("two", &["stop", "api"]).expect(0);
    assert_eq!(only.recorded(), "cancelled");
    bench.stop_all();
    bench.audit();
}

#[test]
fn a_name_that_several_ended_jobs_had_is_said_to_be_none_of_them() {
    let bench = bench!();
    let ids: Vec<String> = (0..2)
        .map(|_| {
            let ran = bench.run(["run", "--wait", "--name", "build", "--", "true"]);
            ran.expect(0).text()
        })
        .collect();
    for verb in ["log", "status", "wait", "restart"] {
        let ran = bench.run([verb, "build"]).expect(4);
        assert!(ran.errors().contains("name one by its id"), "{ran:?}");
        assert!(
            ids.iter().all(|id| ran.errors().contains(id.as_str())),
            "{ran:?}"
        );
        assert_eq!(ran.errors().lines().count(), 1, "{ran:?}");
    }
    bench.audit();
}
