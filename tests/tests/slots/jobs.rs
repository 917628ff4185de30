//! Jobs that work in slots: they have one as long as anything of them lives, and wait for one or do not run.

use std::fs;
use std::process::Command;

use outlive_tests::{Job, Ran, Supervisor, bench, rounds, until};

use crate::site::Site;

/// A verb that makes a job in the pool, given in this directory of the work.
fn verb(site: &Site, options: &[&str], script: &str) -> Command {
    let mut command = site.bench.verb(options);
    command.args(["--pool", "web", "--", "sh", "-c", script]);
    command
}

#[track_caller]
fn run(site: &Site, options: &[&str], script: &str) -> Ran {
    site.bench
        .end(verb(site, &[&["run"], options].concat(), script))
}

#[track_caller]
fn queue<'b>(site: &'b Site, script: &str) -> Job<'b> {
    let ran = site.bench.end(verb(site, &["queue"], script)).expect(0);
    site.bench.job(&ran.text())
}

#[test]
fn a_job_runs_in_an_idle_slot_or_is_not_made() {
    let site = Site::new(bench!(), 1, &[]);
    let ran = run(
        &site,
        &["--follow"],
        "pwd; git status --short; echo $OUTLIVE_SLOT",
    )
    .expect(0);
    let slot = site.bench.root().join("pools/web/slots/1");
    let place = slot.join("worktree");
    assert_eq!(
        ran.text(),
        format!("{}\n{}", place.display(), slot.display())
    );
    let jobs = site.bench.list();
    assert_eq!(
        (&jobs[0]["pool"], &jobs[0]["slot"]),
        (&"web".into(), &1.into())
    );
    let one = site.open();
    assert_eq!(one.slot, 1);
    run(&site, &[], "true").expect(7);
    assert_eq!(site.bench.jobs().len(), 1);
    site.close(&one).expect(0);
    run(&site, &["--wait"], "exit 5").expect(5);
    until("it is given back", || site.slot(1)["returned"] == true);
    let mut in_no_place = site.bench.verb(["run", "--pool", "default", "--"]);
    in_no_place.arg("true");
    site.bench.end(in_no_place).expect(2);
    site.bench.audit();
}

#[test]
fn a_job_runs_where_its_submitter_stood() {
    let site = Site::new(bench!(), 1, &[]);
    fs::create_dir(site.repository().join("below")).unwrap();
    fs::write(site.repository().join("below/file"), "").unwrap();
    site.commit("two");
    let mut there = verb(&site, &["run", "--follow"], "pwd");
    there.current_dir(site.repository().join("below"));
    let place = site.bench.root().join("pools/web/slots/1/worktree/below");
    assert_eq!(
        site.bench.end(there).expect(0).text(),
        place.display().to_string()
    );
    site.bench.audit();
}

#[test]
fn who_waits_for_a_queued_job_finds_its_slot_idle() {
    let site = Site::new(bench!(), 1, &[]);
    let batch = site.bench.file("batch");
    fs::write(&batch, "{\"argv\": [\"true\"], \"pool\": \"web\"}\n").unwrap();
    for _ in 0..rounds(20) {
        let queued = verb(&site, &["queue", "--wait"], "exit 3");
        site.bench.end(queued).expect(3);
        let session = site.open();
        site.close(&session).expect(0);
        let mut queued = site.bench.verb(["queue", "--wait", "--from"]);
        queued.arg(&batch);
        site.bench.end(queued).expect(0);
        let session = site.open();
        site.close(&session).expect(0);
    }
    site.bench.run(["supervisor", "stop"]).expect(0);
    site.bench.audit();
}

#[test]
fn a_slot_is_the_jobs_as_long_as_anything_of_it_lives() {
    let site = Site::new(bench!(), 1, &[]);
    let marker = site.bench.file("marker");
    // One that leaves the session and the directory, and outlives its worker.
    let script = format!(
        "(cd /; setsid sh -c 'touch {}; exec sleep 600') & wait",
        marker.display()
    );
    let ran = run(&site, &[], &script).expect(0);
    let job = site.bench.job(&ran.text());
    until("it runs", || marker.exists());
    assert_eq!(site.slot(1)["holder"], job.id());
    let said = site.pool(&["open", "web"]).expect(7).errors();
    assert!(said.contains(job.id()), "{said}");
    site.bench.crashes();
    for worker in site.bench.workers() {
        worker.kill();
    }
    until("its worker is gone", || site.bench.workers().is_empty());
    site.pool(&["open", "web"]).expect(7);
    site.bench.stop_all();
    until("nothing of it is left", || site.bench.census().is_empty());
    let one = site.open();
    site.close(&one).expect(0);
    site.bench.audit();
}

#[test]
fn what_a_job_leaves_is_kept() {
    // S02 of jobs.
    let site = Site::new(bench!(), 1, &[]);
    run(&site, &["--wait"], "echo mine > left").expect(0);
    until("it is seen to", || site.state(1) == "broken");
    let why = site.slot(1)["broken"].as_str().unwrap().to_owned();
    assert!(why.contains("left"), "{why}");
    run(&site, &[], "true").expect(8);
    let left = site.bench.root().join("pools/web/slots/1/worktree/left");
    assert_eq!(fs::read_to_string(left).unwrap(), "mine\n");
    site.pool(&["repair", "web/1"]).expect(8);
    let said = site
        .pool(&["repair", "web/1", "--force"])
        .expect(0)
        .errors();
    assert!(said.contains("discarded"), "{said}");
    run(&site, &["--wait"], "true").expect(0);
    site.bench.audit();
}

#[test]
fn queued_jobs_wait_for_slots_and_run_in_them() {
    let site = Site::new(bench!(), 2, &[]);
    let [one, two] = [site.open(), site.open()];
    let _supervisor = site.bench.supervise_ready();
    let jobs: Vec<Job<'_>> = (0..4)
        .map(|_| queue(&site, "set -C; pwd; echo > cache && sleep 0.05 && rm cache"))
        .collect();
    site.pool(&["open", "web"]).expect(7);
    assert!(jobs.iter().all(|job| job.state() == "queued"));
    site.close(&one).expect(0);
    site.close(&two).expect(0);
    for job in &jobs {
        site.bench.run(["wait", job.id()]).expect(0);
        let log = fs::read_to_string(job.file("log")).unwrap();
        assert!(log.contains("/pools/web/slots/"), "{log}");
    }
    drop(_supervisor);
    site.bench.crashes();
    for number in 1..=2 {
        until("it is given back", || site.slot(number)["returned"] == true);
    }
    site.bench.audit();
}

#[test]
fn a_supervisor_keeps_slots_as_often_as_they_are_to_be() {
    let options = ["--maintain", "touch cache", "--every", "1s"];
    let site = Site::new(bench!(), 3, &options);
    let sessions: Vec<_> = (0..3).map(|_| site.open()).collect();
    let supervisor = site.bench.supervise_ready();
    for session in &sessions[1..] {
        site.close(session).expect(0);
    }
    until("idle slots are maintained", || {
        site.slot(2)["last_succeeded"].is_string() && site.slot(3)["last_succeeded"].is_string()
    });
    assert!(site.slot(1)["last_succeeded"].is_null());
    site.close(&sessions[0]).expect(0);
    until("so is the one that was in use", || {
        site.slot(1)["last_succeeded"].is_string()
    });
    site.pool(&["set", "web", "--slots", "2"]).expect(0);
    until("one is shed", || !sessions[2].path.exists());
    supervisor.end();
    site.bench.audit();
}

#[test]
fn whoever_waited_for_a_job_can_have_its_slot() {
    let site = Site::new(bench!(), 1, &["--reset", "sleep 0.1"]);
    for _ in 0..rounds(5) {
        let job = site.bench.job(&run(&site, &[], "true").expect(0).text());
        site.bench.run(["wait", job.id()]).expect(0);
        let one = site.open();
        site.close(&one).expect(0);
    }
    // Whoever stops a job is done with it, too.
    for _ in 0..rounds(5) {
        let job = site
            .bench
            .job(&run(&site, &[], "sleep 600").expect(0).text());
        job.stop(0);
        let one = site.open();
        site.close(&one).expect(0);
    }
    // What a job leaves behind is not waited for.
    let job = run(&site, &[], "setsid sleep 600 & sleep 0.01")
        .expect(0)
        .text();
    site.bench.run(["wait", &job]).expect(0);
    site.bench.stop_all();
    site.bench.audit();
}

#[test]
fn a_job_that_waits_for_a_slot_is_told_when_one_is_given_back() {
    let site = Site::new(bench!(), 1, &[]);
    let mut supervisor = site.bench.supervise_ready();
    let count = |supervisor: &Supervisor, what: &str| supervisor.told().matches(what).count();
    // The next look by the clock may come first, on a machine that is busy enough.
    until("somebody is told", || {
        let one = site.open();
        let before = count(&supervisor, "no slot is to be had");
        let job = queue(&site, "true");
        until("there is no slot", || {
            count(&supervisor, "no slot is to be had") > before
        });
        site.close(&one).expect(0);
        site.bench.run(["wait", job.id()]).expect(0);
        count(&supervisor, "a slot was given back") > 0
    });
    supervisor.until_told("a slot was given back");
    drop(supervisor);
    site.bench.crashes();
    site.bench.audit();
}

#[test]
fn those_that_wait_for_a_slot_keep_their_order_and_do_not_all_look_for_it() {
    // R18.
    let site = Site::new(bench!(), 1, &[]);
    let one = site.open();
    let supervisor = site.bench.supervise_ready();
    let file = site.bench.file("order");
    let jobs: Vec<Job<'_>> = (0..12)
        .map(|nth| queue(&site, &format!("echo {nth} >> {}", file.display())))
        .collect();
    let mut told = String::new();
    until("it was looked for a few times", || {
        told = supervisor.told();
        told.matches("no slot is to be had").count() >= 3
    });
    // By one after the other: at most one more may be about to look.
    let looks = told.matches("no slot is to be had").count();
    let starts = told.matches("starting").count();
    assert!(starts == looks || starts == looks + 1, "{told}");
    site.close(&one).expect(0);
    for job in &jobs {
        site.bench.run(["wait", job.id()]).expect(0);
    }
    let order: Vec<usize> = fs::read_to_string(&file)
        .unwrap()
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    assert_eq!(order, (0..12).collect::<Vec<_>>());
    drop(supervisor);
    site.bench.crashes();
    site.bench.audit();
}
