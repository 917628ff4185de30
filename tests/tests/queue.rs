//! The queue: who is started when, who starts whoever starts it, and what becomes of jobs that wait.

use std::fs;
use std::process::Stdio;

use outlive_tests::{Background, Bench, Dice, Job, bench, rounds, until};
use serde_json::json;

/// A pool of its own for a test, with so many slots, that admits nobody yet.
fn paused_pool(bench: &Bench, slots: &str) {
    bench.run(["pool", "add", "p", "--slots", slots]).expect(0);
    bench.run(["pool", "pause", "p"]).expect(0);
}

fn open_pool(bench: &Bench) {
    bench.run(["pool", "resume", "p"]).expect(0);
}

/// The words that jobs have written, in order.
fn written(bench: &Bench) -> String {
    let text = fs::read_to_string(bench.file("order")).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn write(word: &str) -> String {
    format!("echo {word} >> order")
}

/// A supervisor that ends as soon as it has nothing to do.
fn supervise(bench: &Bench) {
    let mut supervisor = bench.verb(["supervise", "--idle-exit", "1ms"]);
    supervisor.stdout(Stdio::null());
    bench.end(supervisor).expect(0);
}

#[test]
fn a_queued_job_runs_on_a_machine_where_nothing_runs_and_the_supervisor_leaves() {
    let bench = bench!();
    bench.run(["list"]).expect(0);
    fs::write(
        bench.root().join("config.toml"),
        "[supervisor]\nidle_exit = \"10ms\"\n",
    )
    .unwrap();
    let job = bench.queued(&[], "echo here; exit 4");
    assert_eq!(job.wait(), 4);
    job.expect_states(&["queued", "running", "failed"]);
    assert_eq!(job.log_text(), "here\n");
    let shown = job.shown();
    assert_eq!(
        (&shown["pool"], &shown["slot"]),
        (&"default".into(), &1.into())
    );
    until("the supervisor has left", || bench.supervisors().is_empty());
    let again = bench.run(["queue", "--wait", "--", "sh", "-c", "exit 5"]);
    assert_eq!(again.code(), 5);
    bench.audit();
}

#[test]
fn a_queued_job_is_followed_from_its_start_to_its_end() {
    let bench = bench!();
    paused_pool(&bench, "1");
    let script = "echo out; echo more; exit 7";
    let arguments = ["queue", "--pool", "p", "--follow", "--", "sh", "-c", script];
    let follower = bench.background(bench.verb(arguments));
    until("it is queued", || bench.jobs().len() == 1);
    open_pool(&bench);
    let ran = follower.end();
    assert_eq!(ran.code(), 7);
    // Standard output is the job's, and its id is told beside it.
    assert_eq!(ran.text(), "out\nmore");
    assert_eq!(ran.errors().trim(), bench.jobs()[0].id());
    let many = ["queue", "--follow", "--from", "-"];
    bench.run(many).expect(2);
    bench.audit();
}

#[test]
fn a_job_that_comes_after_hundreds_starts_when_the_last_of_them_has_ended() {
    let bench = bench!();
    paused_pool(&bench, "2");
    let mut lines: Vec<_> = (0..400)
        .map(|number| json!({"argv": ["true"], "label": number.to_string()}))
        .collect();
    let after: Vec<String> = (0..400).map(|number| number.to_string()).collect();
    lines.push(json!({"argv": ["sh", "-c", "echo last >> order"], "after": after}));
    let jobs = bench.queued_from(&["--pool", "p"], &lines);
    open_pool(&bench);
    let last = jobs.last().expect("it was made");
    // One after the other, as all of them may take longer than one wait.
    for job in &jobs {
        job.until_ended();
    }
    assert_eq!(last.wait(), 0);
    let started = |job: &Job| job.status().expect("it ran")["started_at_ms"].as_u64();
    let ended = |job: &Job| job.status().expect("it ran")["ended_at_ms"].as_u64();
    let others = &jobs[..400];
    assert!(others.iter().all(|job| ended(job) <= started(last)));
    assert_eq!(written(&bench), "last");
    bench.audit();
}

#[test]
fn the_highest_priority_goes_first_and_the_oldest_within() {
    let bench = bench!();
    paused_pool(&bench, "1");
    let jobs: Vec<Job> = [("a", "0"), ("b", "-3"), ("c", "7"), ("d", "0"), ("e", "7")]
        .map(|(word, priority)| {
            bench.queued(&["--pool", "p", "--priority", priority], &write(word))
        })
        .into();
    open_pool(&bench);
    for job in &jobs {
        assert_eq!(job.wait(), 0);
    }
    assert_eq!(written(&bench), "c e a d b");
    bench.audit();
}

#[test]
fn a_job_of_several_slots_is_waited_for_and_starves_nobody_and_is_starved_by_nobody() {
    let bench = bench!();
    paused_pool(&bench, "2");
    let first = bench.queued(
        &["--pool", "p"],
        "echo first >> order; while [ ! -e go ]; do sleep 0.01; done",
    );
    let wide = bench.queued(&["--pool", "p", "--slots", "2"], &write("wide"));
    let small: Vec<Job> = ["x", "y", "z"]
        .map(|word| bench.queued(&["--pool", "p"], &write(word)))
        .into();
    open_pool(&bench);
    until("the first one runs", || written(&bench) == "first");
    // Another pool has started and ended a job meanwhile: nobody has slipped past the wide one.
    assert_eq!(bench.queued(&[], "exit 0").wait(), 0);
    assert_eq!(written(&bench), "first");
    fs::write(bench.file("go"), "").unwrap();
    for job in small.iter().chain([&first, &wide]) {
        assert_eq!(job.wait(), 0);
    }
    assert!(
        written(&bench).starts_with("first wide"),
        "{}",
        written(&bench)
    );
    let too_wide = bench.run(["queue", "--pool", "p", "--slots", "3", "--", "true"]);
    assert!(too_wide.errors().contains("pool set p"), "{too_wide:?}");
    assert_eq!(too_wide.code(), 6);
    bench.audit();
}

#[test]
fn a_job_waits_for_its_time() {
    let bench = bench!();
    let delayed = bench.queued(&["--delay", "300ms"], "exit 0");
    let long_ago = bench.queued(&["--at", "2001-02-03T04:05Z"], "exit 0");
    let far = bench.queued(&["--at", "2999-01-01T00:00Z"], "exit 0");
    assert_eq!(long_ago.wait(), 0);
    assert_eq!(delayed.wait(), 0);
    let shown = delayed.shown();
    let stamp = |name: &str| shown[name].as_u64().unwrap();
    assert!(
        stamp("started_at_ms") >= stamp("created_at_ms") + 300,
        "{shown}"
    );
    assert_eq!(far.recorded(), "queued");
    let listed = bench.run(["list"]).expect(0).text();
    assert!(
        listed.contains("queued (waits until 2999-01-01"),
        "{listed}"
    );
    far.stop(0);
    far.expect_states(&["queued", "cancelled"]);
    for wrong in [
        &["--at", "soon"][..],
        &["--at", "1920-01-01T00:00Z"],
        &["--delay", "-5s"],
        &["--delay", "1s", "--at", "18:30"],
    ] {
        let arguments = [&["queue"], wrong, &["--", "true"]].concat();
        bench.run(arguments).expect(2);
    }
    bench.audit();
}

#[test]
fn a_job_comes_after_others_and_how_they_end_decides() {
    let bench = bench!();
    let well = bench.queued(&[], "exit 0");
    let badly = bench.queued(&[], "exit 3");
    let cancelled = bench.queued(&["--delay", "1h"], "exit 0");
    cancelled.stop(0);
    assert_eq!((well.wait(), badly.wait()), (0, 3));
    let after = |job: &Job, when: &str| format!("{}{when}", job.id());
    for (on, when, code) in [
        (&well, "", 0),
        (&well, ":success", 0),
        (&well, ":end", 0),
        (&well, ":failure", 1),
        (&badly, "", 1),
        (&badly, ":failure", 0),
        (&badly, ":end", 0),
        (&cancelled, "", 1),
        (&cancelled, ":failure", 1),
        (&cancelled, ":end", 0),
    ] {
        let job = bench.queued(&["--after", &after(on, when)], "exit 0");
        assert_eq!(job.wait(), code, "{} {when}", on.id());
        if code == 1 {
            let shown = job.shown();
            assert_eq!(
                (&shown["state"], &shown["failure"]),
                (&"failed".into(), &"dependency".into())
            );
            let why = shown["message"].as_str().unwrap();
            assert!(why.starts_with(on.id()), "{why}");
            job.expect_states(&["queued", "failed"]);
        }
    }
    bench.audit();
}

#[test]
fn a_chain_runs_in_its_order_and_fails_from_where_it_breaks() {
    let bench = bench!();
    paused_pool(&bench, "4");
    let mut chain: Vec<Job> = Vec::new();
    for n in 0..6 {
        let script = format!("{}; exit {}", write(&n.to_string()), u8::from(n == 3) * 9);
        let last = chain
            .last()
            .map_or(String::new(), |job| job.id().to_owned());
        let mut options = vec!["--pool", "p"];
        if !last.is_empty() {
            options.extend(["--after", &last]);
        }
        chain.push(bench.queued(&options, &script));
    }
    let last = chain[5].id().to_owned();
    let mender = bench.queued(
        &["--pool", "p", "--after", &format!("{last}:failure")],
        &write("mend"),
    );
    let listed = bench.run(["list"]).expect(0).text();
    let waits = format!("queued (waits for {last} to fail)");
    assert!(listed.contains(&waits), "{listed}");
    open_pool(&bench);
    let codes: Vec<i32> = chain.iter().map(Job::wait).collect();
    assert_eq!(codes, [0, 0, 0, 9, 1, 1]);
    assert_eq!(mender.wait(), 0);
    assert_eq!(written(&bench), "0 1 2 3 mend");
    // What never started is run again by a restart, which waits for nobody.
    let again = bench.job(&bench.run(["restart", chain[4].id()]).expect(0).text());
    assert_eq!(again.wait(), 0);
    assert_eq!(written(&bench), "0 1 2 3 mend 4");
    bench.audit();
}

#[test]
fn jobs_that_are_not_there_cannot_be_waited_for() {
    let bench = bench!();
    let long = "x".repeat(300);
    let many: Vec<String> = (1..20_000).map(|n| n.to_string()).collect();
    let many = many.join(",");
    for query in ["", "..", "a/b", "nobody", &long, &many] {
        let ran = bench.run(["queue", "--after", query, "--", "true"]);
        assert_eq!(ran.code(), 3, "{ran:?}");
    }
    assert!(bench.jobs().is_empty());
    bench.audit();
}

/// B25: two first commands each started a manager.
#[test]
fn thirty_clients_at_once_leave_exactly_one_supervisor() {
    let bench = bench!();
    for _ in 0..rounds(2) {
        let clients: Vec<Background> = (0..30)
            .map(|n| {
                bench.background(bench.verb(["queue", "--", "sh", "-c", &write(&n.to_string())]))
            })
            .collect();
        let ids: Vec<String> = clients
            .into_iter()
            .map(|client| client.end().expect(0).text())
            .collect();
        // Those that found one there already end at once, and may still be at it.
        until("one supervisor is left", || bench.supervisors().len() == 1);
        for id in &ids {
            assert_eq!(bench.job(id).wait(), 0);
        }
        let mut words: Vec<u32> = written(&bench)
            .split(' ')
            .map(|word| word.parse().unwrap())
            .collect();
        words.sort_unstable();
        assert_eq!(words, (0..30).collect::<Vec<_>>());
        bench.end_supervisor();
        fs::remove_file(bench.file("order")).unwrap();
    }
    bench.audit();
}

#[test]
fn without_a_supervisor_a_job_stays_queued_and_that_is_said() {
    let bench = bench!();
    let queued = bench
        .run(["queue", "--no-supervisor", "--", "true"])
        .expect(0);
    assert!(
        queued.errors().contains("outlive supervise"),
        "{}",
        queued.errors()
    );
    let job = bench.job(&queued.text());
    assert!(bench.supervisors().is_empty());
    assert_eq!(job.state(), "queued");
    let listed = bench.run(["list"]).expect(0).text();
    assert!(
        listed.contains("queued (there is no supervisor)"),
        "{listed}"
    );
    supervise(&bench);
    assert_eq!(job.recorded(), "done");
    bench.audit();
}

/// Whoever queues a job just as the supervisor leaves relied on it, or starts another.
#[test]
fn no_job_is_left_lying_by_a_supervisor_that_leaves() {
    let bench = bench!();
    bench.run(["list"]).expect(0);
    fs::write(
        bench.root().join("config.toml"),
        "[supervisor]\nidle_exit = \"1ms\"\n",
    )
    .unwrap();
    let mut dice = Dice::new();
    for _ in 0..rounds(40) {
        let job = bench.queued(&[], "exit 0");
        assert_eq!(job.wait(), 0);
        dice.moment(8_000);
    }
    bench.audit();
}

#[test]
fn a_killed_supervisor_costs_no_job_anything() {
    let bench = bench!();
    paused_pool(&bench, "2");
    let jobs: Vec<Job> = (0..12)
        .map(|n| {
            let script = format!("{}; sleep 0.05; exit {n}", write(&n.to_string()));
            bench.queued(&["--pool", "p"], &script)
        })
        .collect();
    open_pool(&bench);
    for killed_at in [2, 5, 8] {
        until("some have run", || {
            written(&bench).split(' ').count() > killed_at
        });
        bench.kill_supervisor();
        // Anybody who needs one starts the next.
        bench.queued(&["--pool", "p"], "exit 0");
    }
    for (n, job) in jobs.iter().enumerate() {
        assert_eq!(job.wait(), n as i32);
    }
    let mut words: Vec<u32> = written(&bench)
        .split(' ')
        .map(|word| word.parse().unwrap())
        .collect();
    words.sort_unstable();
    assert_eq!(words, (0..12).collect::<Vec<_>>(), "each has run once");
    until("everything has ended", || {
        bench.jobs().iter().all(|job| job.recorded() != "queued")
    });
    bench.audit();
}

#[test]
fn a_queued_job_is_paused_resumed_and_stopped() {
    let bench = bench!();
    paused_pool(&bench, "1");
    let [rests, goes, ends] =
        ["rests", "goes", "ends"].map(|word| bench.queued(&["--pool", "p"], &write(word)));
    for _ in 0..2 {
        bench.run(["pause", rests.id()]).expect(0);
        assert_eq!(rests.recorded(), "paused");
    }
    bench.run(["resume", goes.id()]).expect(0);
    ends.stop(0);
    ends.expect_states(&["queued", "cancelled"]);
    bench.run(["stop", ends.id()]).expect(6);
    open_pool(&bench);
    assert_eq!(goes.wait(), 0);
    assert_eq!(rests.recorded(), "paused");
    bench.run(["resume", rests.id()]).expect(0);
    assert_eq!(rests.wait(), 0);
    assert_eq!(written(&bench), "goes rests");
    rests.expect_states(&["queued", "paused", "queued", "running", "done"]);
    bench.run(["resume", rests.id()]).expect(6);
    bench.audit();
}

#[test]
fn an_interrupted_job_of_a_pool_is_queued_again_and_gets_no_slot_that_is_not_there() {
    let bench = bench!();
    bench.run(["pool", "add", "p", "--slots", "1"]).expect(0);
    let wait = "echo begun; while [ ! -e go ]; do sleep 0.01; done";
    let lost = bench.queued(&["--pool", "p"], wait);
    lost.until_printed("begun");
    lost.kill_worker();
    until("it is interrupted", || lost.state() == "interrupted");
    let next = bench.queued(&["--pool", "p"], wait);
    next.until_printed("begun");
    bench.run(["resume", lost.id()]).expect(0);
    assert_eq!(lost.state(), "queued");
    fs::write(bench.file("go"), "").unwrap();
    assert_eq!((next.wait(), lost.wait()), (0, 0));
    lost.until_states(|states| states.ends_with(&["running".into(), "done".into()]));
    let again = bench.job(&bench.run(["restart", lost.id()]).expect(0).text());
    assert_eq!(again.shown()["pool"], "p");
    assert_eq!(again.wait(), 0);
    bench.audit();
}

#[test]
fn a_job_that_is_to_be_resumed_is_run_again_by_the_supervisor() {
    let bench = bench!();
    let job = bench.queued(
        &["--on-interrupt", "resume"],
        "echo run >> order; while [ ! -e go ]; do sleep 0.01; done",
    );
    until("it runs", || written(&bench) == "run");
    job.kill_worker();
    until("it runs again", || written(&bench) == "run run");
    fs::write(bench.file("go"), "").unwrap();
    assert_eq!(job.wait(), 0);
    bench.audit();
}

#[test]
fn of_one_name_one_job_is_queued() {
    let bench = bench!();
    paused_pool(&bench, "1");
    let named = |what: &[&str]| {
        let options = ["queue", "--pool", "p", "--name", "web"];
        bench.run([&options, what, &["--", "true"]].concat())
    };
    let first = named(&[]).expect(0).text();
    let joined = named(&[]).expect(0);
    assert_eq!(joined.text(), first);
    assert!(
        joined.errors().contains("queued already"),
        "{}",
        joined.errors()
    );
    assert_eq!(named(&["--if-running", "fail"]).expect(6).text(), first);
    let second = named(&["--if-running", "replace"]).expect(0).text();
    assert_ne!(second, first);
    assert_eq!(bench.job(&first).recorded(), "cancelled");
    bench
        .run(["queue", "--if-running", "fail", "--", "true"])
        .expect(2);
    open_pool(&bench);
    assert_eq!(bench.job(&second).wait(), 0);
    bench.audit();
}

/// A supervisor that was started there would end with the job, and with it the jobs of everybody that it had started.
#[test]
fn inside_a_job_no_supervisor_is_started() {
    let bench = bench!();
    let binary = bench.binary().display().to_string();
    let outer = bench.sh(&format!(
        "'{binary}' queue -- sh -c 'exit 4' > inner 2> told"
    ));
    assert_eq!(outer.wait(), 0);
    assert!(bench.supervisors().is_empty());
    let told = fs::read_to_string(bench.file("told")).unwrap();
    assert!(told.contains("inside a job"), "{told}");
    let id = fs::read_to_string(bench.file("inner")).unwrap();
    let inner = bench.job(id.trim());
    assert_eq!(inner.state(), "queued");
    // Whoever comes from outside has it run.
    assert_eq!(bench.queued(&[], "true").wait(), 0);
    assert_eq!(inner.wait(), 4);
    bench.audit();
}
