//! `top` in a real terminal: what it shows and when, what keys do, and that the terminal is as it was, however it ends.

use std::fs;

use outlive_tests::{Bench, Job, Process, Terminal, bench, until, until_some};
use rustix::process::Signal;

/// The process of `top`.
fn top_of(bench: &Bench) -> Process {
    until_some("top runs", || {
        let is_it =
            |process: &Process| process.title.ends_with(" top") || process.title.contains(" top ");
        bench
            .census()
            .into_iter()
            .find(|process| is_it(process) && process.title.contains("outlive-under-test"))
    })
}

/// The line of a job.
fn line<'a>(screen: &'a str, job: &Job) -> Option<&'a str> {
    screen.lines().find(|line| line.starts_with(job.id()))
}

/// Start it, and wait until it shows what it begins with.
fn start(terminal: &Terminal, arguments: &str) {
    terminal.run(&format!("top {arguments}"));
    terminal.until("top is there", |screen| {
        screen.contains("outlive top: ") && screen.contains("quit")
    });
}

#[test]
fn jobs_come_change_print_and_end_before_ones_eyes() {
    let bench = bench!();
    bench.run(["list"]).expect(0);
    let Some(terminal) = Terminal::open(&bench, 110, 24) else {
        return bench.audit();
    };
    start(&terminal, "");
    terminal.until("nothing", |screen| screen.contains("no job"));
    let go = bench.file("go");
    let job = bench.sh("echo one; while ! test -e go; do sleep 0.02; done; printf '\\033[31mtwo\\033[0m\\n'; exit 3");
    terminal.until("it runs and has printed", |screen| {
        line(screen, &job).is_some_and(|line| line.contains(" running "))
            && screen.contains("\none\n")
    });
    fs::write(go, "").unwrap();
    terminal.until("it has ended and printed more", |screen| {
        line(screen, &job).is_some_and(|line| line.contains(" exited 3 ("))
            && screen.contains("\none\ntwo\n")
    });
    bench.run(["clean", "--all"]).expect(0);
    terminal.until("it is gone", |screen| screen.contains("no job"));
    terminal.press(&["q"]);
    terminal.until_intact();
    drop(terminal);
    bench.audit();
}

#[test]
fn keys_pause_resume_stop_and_restart() {
    let bench = bench!();
    let other = bench.sh("sleep 600");
    let job = bench.sh_with(&["--name", "web"], "sleep 600");
    let Some(terminal) = Terminal::open(&bench, 110, 24) else {
        bench.stop_all();
        return bench.audit();
    };
    start(&terminal, "");
    let is = |job: &Job, what: &str| {
        let word = format!(" {what} ");
        terminal.until(what, |screen| {
            line(screen, job).is_some_and(|line| line.contains(&word))
        });
    };
    is(&job, "running");
    terminal.press(&["Down", "p"]);
    is(&job, "paused");
    assert_eq!(job.state(), "paused");
    terminal.press(&["r"]);
    is(&job, "running");
    // Asked first, and not meant.
    terminal.press(&["s"]);
    terminal.until("it asks", |screen| {
        screen.contains(&format!("stop {}? y: yes", job.id()))
    });
    terminal.press(&["n"]);
    terminal.until("it asks no more", |screen| !screen.contains("y: yes"));
    terminal.press(&["s", "y"]);
    is(&job, "cancelled");
    terminal.until("it says so", |screen| {
        screen.contains(&format!("stop {}: done", job.id()))
    });
    assert_eq!(other.state(), "running");
    // What cannot be done is said.
    terminal.press(&["p"]);
    terminal.until("it says why not", |screen| screen.contains("has ended"));
    terminal.press(&["R"]);
    terminal.until("it runs again", |screen| {
        screen.contains(&format!("{} is run again as", job.id()))
    });
    let again = until_some("there is another one", || {
        bench
            .list()
            .into_iter()
            .find(|shown| shown["previous"] == job.id())
    });
    let again = bench.job(again["id"].as_str().unwrap());
    is(&again, "running");
    terminal.press(&["q"]);
    terminal.until_intact();
    drop(terminal);
    bench.stop_all();
    bench.audit();
}

#[test]
fn one_sees_what_one_asks_for() {
    let bench = bench!();
    let root = bench.file("project");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("outlive.toml"), "").unwrap();
    let mut verb = bench.verb(["run", "--name", "inside", "--", "sleep", "600"]);
    verb.current_dir(&root);
    let inside = bench.job(&bench.end(verb).expect(0).text());
    let outside = bench.sh_with(&["--name", "outside"], "sleep 600");
    let waits = bench.queued(&["--no-supervisor"], "true");
    let Some(terminal) = Terminal::open(&bench, 120, 24) else {
        bench.stop_all();
        return bench.audit();
    };
    terminal.type_line(&format!("cd '{}'", root.display()));
    start(&terminal, "");
    let only = |jobs: [(&Job, bool); 3]| {
        terminal.until("these jobs", |screen| {
            jobs.iter()
                .all(|(job, is_there)| line(screen, job).is_some() == *is_there)
        });
    };
    only([(&inside, true), (&outside, false), (&waits, false)]);
    terminal.press(&["a"]);
    only([(&inside, true), (&outside, true), (&waits, true)]);
    let screen = terminal.screen();
    assert!(
        screen.contains("queued (there is no supervisor)"),
        "{screen}"
    );
    assert!(screen.contains("1 waiting"), "{screen}");
    terminal.press(&["/", "OUT", "Enter"]);
    only([(&inside, false), (&outside, true), (&waits, false)]);
    terminal.press(&["Escape"]);
    only([(&inside, true), (&outside, true), (&waits, true)]);
    terminal.press(&["a"]);
    only([(&inside, true), (&outside, false), (&waits, false)]);
    // However large it is.
    for (columns, rows) in [(40, 8), (20, 3), (200, 50), (110, 24)] {
        terminal.resize(columns, rows);
        terminal.until("it fits", |screen| {
            let title = screen.lines().next().unwrap_or_default();
            title.starts_with("outlive top: ") && title.ends_with('…') == (columns < 60)
        });
    }
    only([(&inside, true), (&outside, false), (&waits, false)]);
    terminal.press(&["C-c"]);
    terminal.until_intact();
    drop(terminal);
    bench.stop_all();
    bench.audit();
}

#[test]
fn slots_are_shown_as_they_are_taken() {
    let bench = bench!();
    bench
        .run(["pool", "add", "web", "--slots", "2", "--prepare", "true"])
        .expect(0);
    let Some(terminal) = Terminal::open(&bench, 110, 24) else {
        return bench.audit();
    };
    start(&terminal, "");
    terminal.press(&["Tab"]);
    terminal.until("the pool", |screen| {
        screen.contains("web 0/2") && screen.contains("── slots")
    });
    let opened = bench
        .run(["pool", "open", "web", "--json"])
        .expect(0)
        .json();
    let token = opened["token"].as_str().unwrap();
    terminal.until("it is taken", |screen| {
        screen.contains("web 1/2") && screen.contains(&format!("claimed  {token}"))
    });
    bench.run(["pool", "close", token]).expect(0);
    terminal.until("it is given back", |screen| {
        screen.contains("web 0/2") && !screen.contains(token)
    });
    bench.run(["pool", "pause", "web"]).expect(0);
    terminal.until("it is paused", |screen| screen.contains("web 0/2, paused"));
    terminal.press(&["q"]);
    terminal.until_intact();
    drop(terminal);
    bench.audit();
}

#[test]
fn the_terminal_is_as_it_was_however_top_ends() {
    let bench = bench!();
    bench.run(["list"]).expect(0);
    let Some(terminal) = Terminal::open(&bench, 90, 20) else {
        return bench.audit();
    };
    let signals = [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT];
    for signal in signals {
        start(&terminal, "");
        assert_eq!(terminal.is("#{alternate_on} #{cursor_flag}"), "1 0");
        let top = top_of(&bench);
        top.signal(signal);
        until("it has ended", || !top.lives());
        terminal.until_intact();
    }
    for signal in [Signal::TERM, Signal::HUP] {
        let file = bench.file("code");
        start(&terminal, "; echo $? > code");
        top_of(&bench).signal(signal);
        let code = until_some("it has ended", || {
            let text = fs::read_to_string(&file).ok();
            text.filter(|text| text.ends_with('\n'))
        });
        assert_eq!(code.trim(), (128 + signal.as_raw()).to_string());
        fs::remove_file(&file).unwrap();
        terminal.until_intact();
    }
    // A fault of its own: it is told where it can be read.
    terminal.type_line("export OUTLIVE_TEST_PANIC_AT=panic RUST_BACKTRACE=0");
    start(&terminal, "");
    fs::write(bench.file("panic"), "").unwrap();
    let job = bench.sh("exit 0");
    terminal.until("it says what happened", |screen| {
        screen.contains("it was time to panic") && !screen.contains("outlive top: ")
    });
    terminal.until_intact();
    terminal.type_line("unset OUTLIVE_TEST_PANIC_AT");
    job.wait();
    // Stopped and let go on again.
    start(&terminal, "");
    terminal.press(&["C-z"]);
    terminal.until_intact();
    terminal.type_line("clear; fg");
    terminal.until("it is there again", |screen| {
        screen.contains("outlive top: ") && screen.contains("quit")
    });
    terminal.press(&["q"]);
    terminal.until_intact();
    // The terminal itself is gone.
    start(&terminal, "");
    let top = top_of(&bench);
    drop(terminal);
    until("it has ended", || !top.lives());
    bench.audit();
}

#[test]
fn what_cannot_be_read_is_said_and_hides_nothing() {
    let bench = bench!();
    let (good, bad) = (bench.sh("exit 0"), bench.sh("exit 0"));
    assert_eq!([good.wait(), bad.wait()], [0, 0]);
    let Some(terminal) = Terminal::open(&bench, 130, 20) else {
        return bench.audit();
    };
    start(&terminal, "");
    let status = bad.file("status.json");
    let was = fs::read(&status).unwrap();
    let new = bad.file("new");
    // With the mode of the other.
    fs::copy(&status, &new).unwrap();
    fs::write(&new, "{").unwrap();
    fs::rename(&new, &status).unwrap();
    // It has ended: nobody looks at it again but who comes anew.
    terminal.press(&["q"]);
    terminal.until_intact();
    start(&terminal, "");
    terminal.until("it says so", |screen| {
        screen.contains("status.json cannot be read") && line(screen, &good).is_some()
    });
    fs::copy(&status, &new).unwrap();
    fs::write(&new, was).unwrap();
    fs::rename(&new, &status).unwrap();
    terminal.until("it is mended", |screen| {
        !screen.contains("cannot be read") && line(screen, &bad).is_some()
    });
    // As somebody does who moves the store about.
    let (jobs, away) = (bench.root().join("jobs"), bench.root().join("away"));
    fs::rename(&jobs, &away).unwrap();
    std::os::unix::fs::symlink("jobs", &jobs).unwrap();
    terminal.until("it cannot be listed", |screen| {
        screen.contains("cannot list")
    });
    fs::remove_file(&jobs).unwrap();
    fs::rename(&away, &jobs).unwrap();
    terminal.until("it can again", |screen| {
        line(screen, &good).is_some() && !screen.contains("cannot list")
    });
    let more = bench.sh("exit 0");
    terminal.until("it goes on", |screen| line(screen, &more).is_some());
    terminal.press(&["q"]);
    terminal.until_intact();
    drop(terminal);
    bench.audit();
}

#[test]
fn without_a_terminal_it_says_what_there_is_instead() {
    let bench = bench!();
    let ran = bench.run(["top"]).expect(2);
    assert!(ran.stdout.is_empty());
    assert!(ran.errors().contains("list --watch"), "{}", ran.errors());
    assert!(!bench.root().exists());
    bench.audit();
}

#[test]
fn a_thousand_jobs_are_no_more_work_than_one() {
    let bench = bench!();
    // Where that is allowed, on a file system that syncs nothing: to stop them all would take longest.
    bench.mount("200m");
    let lines: Vec<_> = (0..1000)
        .map(|_| serde_json::json!({"argv": ["true"]}))
        .collect();
    let jobs = bench.queued_from(&["--no-supervisor"], &lines);
    let Some(terminal) = Terminal::open(&bench, 120, 30) else {
        bench.stop_all();
        return bench.audit();
    };
    start(&terminal, "");
    terminal.until("all of them", |screen| screen.contains("1000 queued"));
    terminal.press(&["G"]);
    terminal.until("the last", |screen| line(screen, &jobs[999]).is_some());
    terminal.press(&["g"]);
    terminal.until("the first", |screen| line(screen, &jobs[0]).is_some());
    bench.run(["pause", jobs[0].id()]).expect(0);
    terminal.until("it is paused", |screen| {
        screen.contains("999 queued, 1 paused")
    });
    bench.stop_all();
    terminal.until("all are stopped", |screen| {
        screen.contains("1000 cancelled")
    });
    bench.run(["clean", "--all"]).expect(0);
    terminal.until("all are gone", |screen| screen.contains("no job"));
    terminal.press(&["q"]);
    terminal.until_intact();
    drop(terminal);
    bench.audit();
}
