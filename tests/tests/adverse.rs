//! What a supervisor does where something is wrong: it stays, or ends cleanly, says what happened with path and reason, and
//! no job is harmed.

use std::fs;
use std::path::Path;

use outlive_tests::{Bench, Job, bench, until};
use rustix::process::Signal;
use serde_json::Value;

const TWO_SLOTS: &str = "[pool.default]\nslots = 2\n";

/// Queue a script of the shell; nobody is started for it.
fn queue<'a>(bench: &'a Bench, options: &[&str], script: &str) -> Job<'a> {
    let verb = ["queue", "--no-supervisor"];
    let command = ["--", "sh", "-c", script];
    let arguments = [&verb[..], options, &command[..]].concat();
    bench.job(&bench.run(arguments).expect(0).text())
}

fn slots_running(bench: &Bench) -> usize {
    let jobs = bench.jobs();
    jobs.iter()
        .filter(|job| job.recorded() == "running")
        .count()
}

#[test]
fn told_to_end_it_exits_with_0_and_its_jobs_run_on() {
    let bench = bench!();
    bench.configure(TWO_SLOTS);
    let job = queue(
        &bench,
        &[],
        "while [ ! -e go ]; do sleep 0.02; done; exit 7",
    );
    for signal in [Signal::TERM, Signal::INT] {
        let mut supervisor = bench.supervise_ready();
        job.until_recorded("running");
        supervisor.signal(signal);
        supervisor.until_ended();
        assert!(
            supervisor.told().contains("told to end"),
            "{}",
            supervisor.told()
        );
        assert_eq!(job.shown()["alive"], true);
    }
    fs::write(bench.file("go"), "").unwrap();
    assert_eq!(job.wait(), 7);
    job.expect_states(&["queued", "running", "failed"]);
    bench.audit();
}

#[test]
fn a_configuration_that_is_broken_changes_nothing_and_a_good_one_does() {
    let bench = bench!();
    bench.configure("[pool.default]\nslots = 1\n");
    let jobs: Vec<Job> = (0..4)
        .map(|_| queue(&bench, &[], "while [ ! -e go ]; do sleep 0.02; done"))
        .collect();
    let mut supervisor = bench.supervise_ready();
    jobs[0].until_recorded("running");
    let config = bench.root().join("config.toml");
    fs::write(&config, "[pool.default]\nslots = many\n").unwrap();
    supervisor.signal(Signal::HUP);
    supervisor.until_told("config.toml");
    assert_eq!(slots_running(&bench), 1);
    fs::write(&config, "[pool.default]\nslots = 3\n").unwrap();
    supervisor.signal(Signal::HUP);
    until("three run", || slots_running(&bench) == 3);
    assert_eq!(jobs[3].recorded(), "queued");
    fs::write(bench.file("go"), "").unwrap();
    for job in &jobs {
        assert_eq!(job.wait(), 0);
    }
    supervisor.end();
    bench.audit();
}

#[test]
fn one_that_cannot_be_read_hides_no_other_and_is_named() {
    let bench = bench!();
    bench.configure(TWO_SLOTS);
    let broken: Vec<Job> = (0..4).map(|_| queue(&bench, &[], "exit 0")).collect();
    fs::write(broken[0].file("job.json"), "{\"id\":").unwrap();
    fs::write(broken[1].file("status.json"), "\u{0}\u{0}\u{0}").unwrap();
    // Root may read everything, but nobody reads a directory.
    fs::create_dir(broken[2].file("status.json")).unwrap();
    fs::remove_file(broken[3].file("job.json")).unwrap();
    fs::create_dir(broken[3].file("job.json")).unwrap();
    let strange = bench.root().join("jobs/.strange");
    fs::create_dir(&strange).unwrap();
    let good: Vec<Job> = (0..3).map(|_| queue(&bench, &[], "exit 3")).collect();
    let mut supervisor = bench.supervise_ready();
    for job in &good {
        job.until_ended();
        assert_eq!(job.shown()["exit"]["code"], 3);
    }
    for job in &broken {
        supervisor.until_told(job.id());
    }
    supervisor.until_told(".strange");
    // One that is mended is run.
    fs::remove_dir(broken[2].file("status.json")).unwrap();
    fs::remove_file(broken[1].file("status.json")).unwrap();
    for job in &broken[1..3] {
        job.until_ended();
        assert_eq!(job.recorded(), "done");
    }
    supervisor.end();
    for job in [&broken[0], &broken[3]] {
        assert!(!job.file("log").exists(), "it never ran");
        fs::remove_dir_all(job.dir()).unwrap();
    }
    fs::remove_dir(strange).unwrap();
    bench.crashes();
    bench.audit();
}

#[test]
fn a_job_that_comes_after_one_that_cannot_be_read_waits_and_goes_on_when_that_is_mended() {
    let bench = bench!();
    bench.configure(TWO_SLOTS);
    let first = queue(&bench, &[], "exit 0");
    let next = queue(&bench, &["--after", first.id()], "exit 3");
    let aside = first.file("aside");
    fs::rename(first.file("job.json"), &aside).unwrap();
    fs::write(first.file("job.json"), "{").unwrap();
    let mut supervisor = bench.supervise_ready();
    supervisor.until_told(first.id());
    assert_eq!(next.recorded(), "queued");
    fs::rename(&aside, first.file("job.json")).unwrap();
    assert_eq!(next.wait(), 3);
    assert_eq!(first.recorded(), "done");
    supervisor.end();
    bench.audit();
}

#[test]
fn a_pool_that_cannot_be_read_admits_nobody_and_keeps_no_other_from_it() {
    let bench = bench!();
    bench.configure("[pool.default]\nslots = 1\n[pool.web]\nslots = 1\n");
    let web = queue(&bench, &["--pool", "web"], "exit 0");
    let other = queue(&bench, &[], "exit 0");
    let pool = bench.root().join("pools/web");
    fs::create_dir_all(&pool).unwrap();
    fs::write(pool.join("pool.json"), "slots").unwrap();
    let mut supervisor = bench.supervise_ready();
    other.until_ended();
    supervisor.until_told("pools/web/pool.json");
    assert_eq!(web.recorded(), "queued");
    let mended = pool.join("mended");
    fs::write(&mended, "{}").unwrap();
    fs::rename(&mended, pool.join("pool.json")).unwrap();
    web.until_ended();
    supervisor.end();
    // Made by hand, with the modes that the mask gives.
    bench.run(["doctor", "--fix"]).expect(0);
    bench.audit();
}

#[test]
fn on_a_full_disk_it_stays_and_everything_goes_on_once_there_is_space() {
    let bench = bench!();
    let Some(disk) = bench.mount("4m") else {
        return bench.audit();
    };
    bench.configure(TWO_SLOTS);
    let running: Vec<Job> = (0..2)
        .map(|_| {
            queue(
                &bench,
                &[],
                "while [ ! -e go ]; do sleep 0.02; done; exit 7",
            )
        })
        .collect();
    let waiting: Vec<Job> = (0..4).map(|_| queue(&bench, &[], "exit 3")).collect();
    let never = queue(
        &bench,
        &["--after", &format!("{}:success", running[0].id())],
        "exit 0",
    );
    let mut supervisor = bench.supervise_ready();
    for job in &running {
        job.until_recorded("running");
    }
    let pids: Vec<i32> = running.iter().map(Job::pid).collect();
    disk.fill("ballast");
    fs::write(bench.file("go"), "").unwrap();
    for pid in pids {
        until("the command has ended", || {
            !matches!(outlive_tests::state_of(pid), Some('S' | 'R' | 'D'))
        });
    }
    assert!(supervisor.runs());
    assert_eq!(bench.list().len(), 7);
    fs::remove_file(bench.root().join("ballast")).unwrap();
    for job in running.iter().chain(&waiting) {
        job.until_ended();
    }
    for job in &running {
        assert_eq!(job.shown()["exit"]["code"], 7);
    }
    for job in &waiting {
        assert_eq!(job.shown()["exit"]["code"], 3);
    }
    never.until_ended();
    assert_eq!(never.recorded(), "failed");
    supervisor.end();
    bench.crashes();
    bench.audit();
}

#[test]
fn with_few_descriptors_it_stays_and_runs_everything() {
    let bench = bench!();
    bench.configure(TWO_SLOTS);
    let jobs: Vec<Job> = (0..60).map(|_| queue(&bench, &[], "exit 3")).collect();
    let supervisor =
        bench.supervise_by(bench.verb_after("ulimit -Hn 24; ulimit -n 24", ["supervise"]));
    for job in &jobs {
        job.until_ended();
        assert_eq!(job.recorded(), "failed");
    }
    supervisor.end();
    bench.audit();
}

#[test]
fn without_inotify_it_is_slower_and_runs_everything() {
    let bench = bench!();
    bench.configure(TWO_SLOTS);
    let jobs: Vec<Job> = (0..6).map(|_| queue(&bench, &[], "exit 3")).collect();
    const NONE: &str = "echo 0 >/proc/sys/user/max_inotify_instances && exec \"$0\" \"$@\"";
    let words = ["--user", "--map-root-user", "sh", "-c", NONE];
    let mut may = bench.program("unshare");
    may.args(words).arg("true");
    if bench.end(may).code() != 0 {
        // No user namespaces here, and the limit of the whole machine is not for a test to change.
        for job in &jobs {
            job.stop(0);
        }
        return bench.audit();
    }
    let mut command = bench.program("unshare");
    command.args(words).arg(bench.binary()).arg("supervise");
    let mut supervisor = bench.supervise_by(command);
    supervisor.until_told("cannot be watched");
    let late = queue(&bench, &[], "exit 4");
    for job in &jobs {
        job.until_ended();
    }
    late.until_ended();
    assert_eq!(late.shown()["exit"]["code"], 4);
    supervisor.end();
    bench.audit();
}

#[test]
fn an_empty_request_is_nothing_to_spin_over() {
    let bench = bench!();
    bench.configure(TWO_SLOTS);
    let job = queue(&bench, &["--delay", "1h"], "exit 3");
    fs::write(job.file("control"), "").unwrap();
    let supervisor = bench.supervise_ready();
    let other = queue(&bench, &[], "exit 3");
    other.until_ended();
    let pid = supervisor.process().unwrap().pid;
    let before = ticks(pid);
    bench
        .run(["wait", "--timeout", "1500ms", job.id()])
        .expect(5);
    let spent = ticks(pid) - before;
    assert!(spent <= 40, "{spent} ticks of 10 ms in 1.5 s");
    fs::remove_file(job.file("control")).unwrap();
    supervisor.end();
    job.stop(0);
    bench.audit();
}

/// The processor time that a process has used.
fn ticks(pid: i32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let rest = stat.rsplit(')').next().unwrap();
    let fields: Vec<&str> = rest.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn a_store_that_is_moved_is_left() {
    let bench = bench!();
    bench.configure(TWO_SLOTS);
    let job = queue(
        &bench,
        &[],
        "echo > up; while [ ! -e go ]; do sleep 0.02; done; exit 7",
    );
    let mut supervisor = bench.supervise_ready();
    // A start that is under way is lost with the path.
    job.until_states(|states| states.len() == 2);
    until("the command runs", || bench.file("up").exists());
    until("its worker has heard of every record of its start", || {
        job.worker().is_some_and(|worker| worker.is_at_rest())
    });
    let elsewhere = bench.dir().join("elsewhere");
    fs::rename(bench.root(), &elsewhere).unwrap();
    // Whoever queues there is heard here.
    let mut client = bench.verb(["queue", "--no-supervisor", "--", "sh", "-c", "exit 3"]);
    client.env("OUTLIVE_ROOT", &elsewhere);
    let next = bench.job(&bench.end(client).expect(0).text());
    supervisor.until_ended();
    assert!(
        supervisor.told().contains("supervisor.lock"),
        "{}",
        supervisor.told()
    );
    fs::rename(&elsewhere, bench.root()).unwrap();
    let other = bench.supervise_ready();
    fs::write(bench.file("go"), "").unwrap();
    assert_eq!(job.wait(), 7);
    assert_eq!(next.wait(), 3);
    other.end();
    bench.crashes();
    bench.audit();
}

#[test]
fn a_store_that_is_removed_is_left() {
    let bench = bench!();
    bench.configure(TWO_SLOTS);
    queue(&bench, &["--delay", "1h"], "exit 0");
    let mut supervisor = bench.supervise_ready();
    // The supervisor may make a file there meanwhile.
    until("the store is gone", || {
        let _ = fs::remove_dir_all(bench.root());
        !bench.root().exists()
    });
    supervisor.until_ended();
    bench.audit();
}

/// What a process has open.
fn open_files(pid: i32) -> Vec<String> {
    let mut open: Vec<String> = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .map(|target| kind(&target))
        .collect();
    open.sort();
    open
}

/// What a descriptor is on, without what differs from job to job.
fn kind(target: &Path) -> String {
    let text = target.to_string_lossy();
    match text.split_once(":[") {
        Some((kind, _)) => kind.to_owned(),
        None => target
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
    }
}

#[test]
fn what_it_starts_inherits_nothing_of_it() {
    let bench = bench!();
    bench.configure(TWO_SLOTS);
    let run = bench.sh("exec sleep 600");
    // A client with a pipe and a locked file open starts the supervisor.
    let mut client = bench.program("sh");
    client
        .args(["-c", "exec 7>held 8<&0; \"$0\" queue -- sleep 600"])
        .arg(bench.binary());
    let queued = bench.job(&bench.end(client).expect(0).text());
    queued.until_recorded("running");
    for pid in [run.pid(), queued.pid()] {
        until("the command runs", || {
            fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe.ends_with("sleep"))
        });
    }
    assert_eq!(open_files(queued.pid()), open_files(run.pid()));
    let held = bench.file("held");
    for process in bench.census() {
        let holds = fs::read_dir(format!("/proc/{}/fd", process.pid))
            .into_iter()
            .flatten()
            .flatten()
            .any(|entry| fs::read_link(entry.path()).is_ok_and(|target| target == held));
        assert!(!holds, "{process:?} holds a file of the client");
    }
    let limits = |pid| fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    assert_eq!(limits(queued.pid()), limits(run.pid()));
    let masks = |pid| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let lines = status
            .lines()
            .filter(|line| line.starts_with("Sig") || line.starts_with("Umask"));
        lines
            .filter(|line| !line.starts_with("SigQ"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(masks(queued.pid()), masks(run.pid()));
    bench.stop_all();
    bench.end_supervisor();
    bench.audit();
}

#[test]
fn hooks_of_queued_jobs_run_once_and_their_failure_is_recorded() {
    let bench = bench!();
    bench.configure(TWO_SLOTS);
    let good = queue(
        &bench,
        &["--on-end", "echo x >> hooked; cat > told"],
        "exit 3",
    );
    let bad = queue(&bench, &["--on-end", "exit 9"], "exit 0");
    let supervisor = bench.supervise_ready();
    for job in [&good, &bad] {
        job.until_ended();
    }
    until("the hooks have run", || {
        bench.file("hooked").exists() && good.worker().is_none() && bad.worker().is_none()
    });
    supervisor.end();
    bench.supervise_ready().end();
    assert_eq!(fs::read_to_string(bench.file("hooked")).unwrap(), "x\n");
    let told: Value = serde_json::from_slice(&fs::read(bench.file("told")).unwrap()).unwrap();
    assert_eq!(told["state"], "failed");
    let events = bad.events();
    let says = |event: &Value| {
        event["text"]
            .as_str()
            .is_some_and(|text| text.contains('9'))
    };
    assert!(events.iter().any(says), "{events:?}");
    assert_eq!(bad.recorded(), "done");
    bench.audit();
}
