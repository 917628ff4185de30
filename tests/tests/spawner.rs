//! The spawner: forks workers for a program with threads. What it answers, whom it refuses, what it leaves behind and what
//! lives on without it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use outlive::spawner::{Answer, Spawner};
use outlive::state_machine::control::Request;
use outlive::state_machine::id::JobId;
use outlive::state_machine::record::PauseMode;
use outlive::worker::Launcher;
use outlive_tests::{
    Bench, DEADLINE, Job, Process, bench, copy_program, rounds, state_of, until, until_some,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

fn launcher(bench: &Bench) -> Launcher {
    Launcher::outlive_at(bench.binary())
}

/// A spawner for the jobs of a bench.
fn spawner(bench: &Bench) -> Spawner {
    Spawner::start(&bench.store(), &launcher(bench), None).unwrap()
}

fn id(job: &Job) -> JobId {
    JobId::parse(job.id()).unwrap()
}

/// The next answer but for [`Answer::Vacated`], which may be left out.
#[track_caller]
fn next(spawner: &Spawner) -> Answer {
    loop {
        match any_next(spawner) {
            Answer::Vacated { .. } => {}
            answer => return answer,
        }
    }
}

/// The next answer.
#[track_caller]
fn any_next(spawner: &Spawner) -> Answer {
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Some(answer) = spawner.receive().unwrap() {
            return answer;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "no answer in {DEADLINE:?}");
        let fd = spawner.as_fd();
        let left = Timespec::try_from(left).unwrap();
        poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&left)).unwrap();
    }
}

/// Ask for a job, and hear that its command runs.
#[track_caller]
fn run(spawner: &Spawner, job: &Job, slot: u32) {
    spawner.ask(&id(job), Some(slot)).unwrap();
    let forked = next(spawner);
    assert!(
        matches!(&forked, Answer::Forked { job: of, pid } if *of == id(job) && *pid > 0),
        "{forked:?}"
    );
    let running = true;
    let job = id(job);
    assert_eq!(next(spawner), Answer::Started { job, running });
}

/// Hear that the worker of a job is gone.
#[track_caller]
fn hear_left(spawner: &Spawner, job: &Job, code: i32) {
    let job = id(job);
    assert_eq!(next(spawner), Answer::Left { job, code });
}

/// Ask for a job, and hear that it is refused.
#[track_caller]
fn refused(spawner: &Spawner, job: &JobId, word: &str) {
    spawner.ask(job, Some(1)).unwrap();
    match next(spawner) {
        Answer::Refused { job: of, why, .. } => {
            assert_eq!(of, *job);
            assert!(why.contains(word), "'{word}' is not in: {why}");
        }
        other => panic!("{job}: {other:?}"),
    }
}

/// The process of a spawner.
fn process(spawner: &Spawner) -> Process {
    Process::find(spawner.pid() as i32).unwrap()
}

/// The processes whose parent is `parent`.
fn children(parent: u32) -> Vec<String> {
    fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"))
        .unwrap()
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_job_that_waits_is_run_in_its_slot() {
    let bench = bench!();
    let spawner = spawner(&bench);
    let job = bench.queue(&["sh", "-c", "while [ ! -e go ]; do sleep 0.02; done; exit 7"]);
    run(&spawner, &job, 3);
    assert_eq!(job.status().unwrap()["slot"], 3);
    assert_eq!(job.shown()["slot"], 3);
    let worker = job.worker().unwrap();
    assert!(worker.title.contains(job.id()), "{worker:?}");
    assert_eq!(children(spawner.pid()), [worker.pid.to_string()]);
    assert_eq!(spawner.receive().unwrap(), None);
    fs::write(bench.file("go"), "").unwrap();
    hear_left(&spawner, &job, 0);
    assert_eq!(job.wait(), 7);
    job.expect_states(&["queued", "running", "failed"]);
    assert_eq!(job.status().unwrap()["slot"], 3, "it ended there");
    until("no worker is left", || children(spawner.pid()).is_empty());
    // Without a slot none is recorded.
    let job = bench.queue(&["true"]);
    spawner.ask(&id(&job), None).unwrap();
    while !matches!(next(&spawner), Answer::Left { .. }) {}
    assert!(job.status().unwrap()["slot"].is_null());
    let spares = fs::read_dir(bench.root().join("spares")).unwrap().count();
    assert_eq!(spares, 0, "a spare is for those who wait for it");
    drop(spawner);
    bench.audit();
}

#[test]
fn a_thousand_are_run_two_at_a_time() {
    let bench = bench!();
    let spawner = spawner(&bench);
    let count = rounds(1000);
    let store = bench.store();
    let jobs: Vec<JobId> = (0..count)
        .map(|number| {
            let code = (number % 3).to_string();
            let spec = bench.spec(&["sh", "-c", "exit $0", &code]);
            store.create(spec).unwrap().id().clone()
        })
        .collect();
    let mut heard: BTreeMap<JobId, Vec<&str>> = BTreeMap::new();
    let (mut waiting, mut under_way) = (jobs.iter(), 0);
    while heard.len() < count || under_way > 0 {
        while under_way < 2
            && let Some(job) = waiting.next()
        {
            spawner.ask(job, Some(1)).unwrap();
            under_way += 1;
        }
        let (job, word) = match any_next(&spawner) {
            Answer::Vacated { job } => (job, "vacated"),
            Answer::Forked { job, .. } => (job, "forked"),
            Answer::Started { job, running: true } => (job, "started"),
            Answer::Left { job, code: 0 } => {
                under_way -= 1;
                (job, "left")
            }
            other => panic!("{other:?}"),
        };
        heard.entry(job).or_default().push(word);
    }
    let mut vacated = 0;
    for (number, job) in jobs.iter().enumerate() {
        // That a slot is idle is a hint: told once at most, before the end, and now and then not at all.
        let (hints, words): (Vec<&str>, Vec<&str>) =
            heard[job].iter().partition(|word| **word == "vacated");
        assert_eq!(words, ["forked", "started", "left"], "{job}");
        assert_eq!(heard[job].last(), Some(&"left"), "{job}");
        assert!(hints.len() <= 1, "{job}");
        vacated += hints.len();
        let status = bench.job(job.as_str()).status().unwrap();
        assert_eq!(status["exit"]["code"], number % 3, "{status}");
    }
    assert!(vacated > count / 2, "{vacated} of {count} were told of");
    assert_eq!(spawner.receive().unwrap(), None);
    until("no worker is left", || children(spawner.pid()).is_empty());
    drop(spawner);
    bench.audit();
}

/// A process for each costs more than a short job. Where they do not follow each other soon enough, each has its own all the same.
#[test]
fn a_worker_goes_on_to_another_job_and_has_nothing_of_the_first() {
    let bench = bench!();
    let spawner = spawner(&bench);
    let mut workers = BTreeMap::new();
    for round in 0..50 {
        let code = round % 5;
        let job = bench.queue(&["sh", "-c", "echo $0; exit $0", &code.to_string()]);
        spawner.ask(&id(&job), Some(1)).unwrap();
        let Answer::Forked { pid, .. } = next(&spawner) else {
            panic!("{}: nobody has taken it", job.id())
        };
        let running = true;
        let started = Answer::Started {
            job: id(&job),
            running,
        };
        assert_eq!(next(&spawner), started);
        hear_left(&spawner, &job, 0);
        *workers.entry(pid).or_insert(0) += 1;
        assert_eq!(job.status().unwrap()["exit"]["code"], code);
        // From the file: while somebody is started to read it, the worker may give up waiting for the next job.
        let log = fs::read_to_string(job.file("log")).unwrap();
        assert_eq!(log, format!("{code}\n"));
        if round % 10 == 9 {
            // Whoever means the worker of a job that is over ends nobody's.
            for pid in children(spawner.pid()) {
                if let Some(worker) = Process::find(pid.parse().unwrap()) {
                    worker.signal(Signal::TERM);
                }
            }
            until("no worker is left", || children(spawner.pid()).is_empty());
        }
    }
    let most = workers.values().max();
    assert!(most > Some(&1), "each had a worker of its own: {workers:?}");
    drop(spawner);
    bench.audit();
}

/// What is in the directory of a job.
fn content(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect()
}

#[test]
fn what_does_not_wait_is_refused_and_left_as_it_is() {
    let bench = bench!();
    let spawner = spawner(&bench);
    let refused = |job: &Job, word: &str| {
        let before = content(&job.dir());
        refused(&spawner, &id(job), word);
        assert_eq!(content(&job.dir()), before, "{}", job.id());
    };
    let running = bench.sh("sleep 600");
    refused(&running, "has a worker already");
    let frozen = bench.sh("sleep 600");
    bench.run(["pause", frozen.id()]).expect(0);
    // The record is first, then the history, then the request is let go.
    frozen.until_states(|states| states.last().is_some_and(|state| state == "paused"));
    until("it is answered", || !frozen.file("control.taken").exists());
    refused(&frozen, "is paused");
    let paused = bench.queue(&["true"]);
    bench.run(["pause", paused.id()]).expect(0);
    assert_eq!(paused.recorded(), "paused");
    refused(&paused, "is paused");
    let done = bench.sh("true");
    done.wait();
    until("its worker is gone", || done.worker().is_none());
    refused(&done, "done");
    let cancelled = bench.queue(&["true"]);
    cancelled.stop(0);
    refused(&cancelled, "cancelled");
    let damaged = bench.queue(&["true"]);
    fs::write(damaged.file("status.json"), "{\"state\":\"exploded\"}").unwrap();
    refused(&damaged, "status.json");
    let described = bench.queue(&["true"]);
    let good = fs::read(described.file("job.json")).unwrap();
    fs::write(described.file("job.json"), "{").unwrap();
    refused(&described, "job.json");
    let gone = bench.queue(&["true"]);
    fs::remove_dir_all(gone.dir()).unwrap();
    refused(&gone, "gone");
    // Its own are no exception.
    let own = bench.queue(&["sleep", "600"]);
    run(&spawner, &own, 1);
    refused(&own, "has a worker already");
    own.stop(0);
    hear_left(&spawner, &own, 0);
    refused(&own, "cancelled");
    // Those who were refused are on their way out.
    until("no zombie is left", || children(spawner.pid()).is_empty());
    fs::remove_file(damaged.file("status.json")).unwrap();
    fs::write(described.file("job.json"), good).unwrap();
    drop(spawner);
    bench.stop_all();
    bench.audit();
}

#[test]
fn what_was_cancelled_in_between_is_not_run() {
    let bench = bench!();
    let spawner = spawner(&bench);
    let job = bench.queue(&["touch", "ran"]);
    // As by hand: nobody has settled it yet.
    fs::write(job.file("control"), "cancel\n").unwrap();
    spawner.ask(&id(&job), Some(1)).unwrap();
    assert!(matches!(next(&spawner), Answer::Forked { .. }));
    let (of, running) = (id(&job), false);
    assert_eq!(next(&spawner), Answer::Started { job: of, running });
    hear_left(&spawner, &job, 0);
    assert_eq!(job.recorded(), "cancelled");
    job.expect_states(&["queued", "cancelled"]);
    assert!(!bench.file("ran").exists());
    drop(spawner);
    bench.audit();
}

#[test]
fn a_command_that_cannot_be_started_is_said_not_to_run() {
    let bench = bench!();
    let spawner = spawner(&bench);
    let job = bench.queue(&["/no/such/program"]);
    spawner.ask(&id(&job), Some(2)).unwrap();
    assert!(matches!(next(&spawner), Answer::Forked { .. }));
    let (of, running) = (id(&job), false);
    assert_eq!(next(&spawner), Answer::Started { job: of, running });
    hear_left(&spawner, &job, 0);
    assert_eq!(job.wait(), 127);
    assert_eq!(job.status().unwrap()["slot"], 2);
    drop(spawner);
    bench.audit();
}

#[test]
fn what_waits_again_shows_no_slot() {
    let bench = bench!();
    let spawner = spawner(&bench);
    // Interrupted: at once for readers, and recorded by the next holder.
    let lost = bench.queue(&["sleep", "600"]);
    run(&spawner, &lost, 4);
    lost.kill_worker();
    hear_left(&spawner, &lost, 128 + 9);
    assert_eq!(lost.state(), "interrupted");
    assert!(lost.shown()["slot"].is_null());
    run(&spawner, &lost, 5);
    assert_eq!(lost.shown()["slot"], 5);
    // What stands frozen keeps its slot.
    bench.run(["pause", lost.id()]).expect(0);
    lost.until_recorded("paused");
    assert_eq!(lost.shown()["slot"], 5);
    bench.run(["resume", lost.id()]).expect(0);
    lost.stop(0);
    hear_left(&spawner, &lost, 0);
    // Paused by ending it.
    let mut spec = bench.spec(&["sleep", "600"]);
    spec.pause = PauseMode::Stop;
    let made = bench.store().create(spec).unwrap();
    let job = bench.job(made.id().as_str());
    run(&spawner, &job, 6);
    made.request(Request::Pause).unwrap();
    hear_left(&spawner, &job, 0);
    assert_eq!(job.recorded(), "paused");
    assert!(job.status().unwrap()["slot"].is_null());
    // Queued again.
    made.request(Request::Resume).unwrap();
    assert_eq!(job.recorded(), "queued");
    run(&spawner, &job, 7);
    assert_eq!(job.status().unwrap()["slot"], 7);
    job.stop(0);
    hear_left(&spawner, &job, 0);
    drop(spawner);
    bench.audit();
}

/// The next supervisor may have seen the job wait and given its slot to another.
#[test]
fn a_worker_whose_supervisor_is_gone_before_it_has_the_job_gives_it_back() {
    let bench = bench!();
    let spawner = spawner(&bench);
    let job = bench.queue(&["touch", "ran"]);
    // Somebody has the job for a moment, as a client that settles a request.
    let lock = fs::OpenOptions::new()
        .write(true)
        .open(job.file("lock"))
        .unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    spawner.ask(&id(&job), Some(1)).unwrap();
    let children = format!("/proc/{0}/task/{0}/children", spawner.pid());
    let children = || fs::read_to_string(&children).unwrap_or_default();
    until("a worker waits for it", || !children().is_empty());
    let worker = children();
    drop(spawner);
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::Unlock).unwrap();
    drop(lock);
    let worker = format!("/proc/{}", worker.trim());
    until("the worker is gone", || !fs::exists(&worker).unwrap());
    assert_eq!(job.state(), "queued");
    assert!(!bench.file("ran").exists());
    bench.audit();
}

#[test]
fn workers_outlive_a_killed_spawner() {
    let bench = bench!();
    let first = spawner(&bench);
    let job = bench.queue(&["sh", "-c", "while [ ! -e go ]; do sleep 0.02; done; exit 9"]);
    run(&first, &job, 1);
    process(&first).kill();
    assert_eq!(next(&first), Answer::Gone);
    assert_eq!(first.receive().unwrap(), Some(Answer::Gone));
    let error = first.ask(&id(&job), None).unwrap_err();
    assert_ne!(error.kind(), ErrorKind::WouldBlock);
    assert_eq!(job.state(), "running");
    // The next one has nothing to do with it.
    let second = spawner(&bench);
    refused(&second, &id(&job), "has a worker already");
    fs::write(bench.file("go"), "").unwrap();
    assert_eq!(job.wait(), 9);
    job.expect_states(&["queued", "running", "failed"]);
    let other = bench.queue(&["true"]);
    run(&second, &other, 1);
    hear_left(&second, &other, 0);
    let pid = first.pid() as i32;
    drop((first, second));
    until("nobody is left unreaped", || state_of(pid).is_none());
    bench.audit();
}

#[test]
fn it_ends_with_its_handle_and_by_no_signal_of_a_terminal() {
    let bench = bench!();
    let one = spawner(&bench);
    let job = bench.queue(&["sleep", "600"]);
    run(&one, &job, 1);
    let process = process(&one);
    assert!(process.title.starts_with("outlive spawner"), "{process:?}");
    for signal in [
        Signal::TERM,
        Signal::INT,
        Signal::HUP,
        Signal::QUIT,
        Signal::PIPE,
    ] {
        process.signal(signal);
    }
    refused(&one, &id(&job), "has a worker already");
    // Stopped, it cannot end; let go on, it does.
    process.signal(Signal::STOP);
    until("it is stopped", || state_of(process.pid) == Some('T'));
    drop(one);
    assert!(process.lives());
    process.signal(Signal::CONT);
    until("it is gone, and reaped", || state_of(process.pid).is_none());
    assert_eq!(job.state(), "running");
    job.stop(0);
    bench.audit();
}

#[test]
fn who_asks_for_too_much_is_told_to_wait() {
    let bench = bench!();
    let spawner = spawner(&bench);
    let process = process(&spawner);
    process.signal(Signal::STOP);
    until("it is stopped", || state_of(process.pid) == Some('T'));
    let absent = |number: u32| JobId::parse(&format!("{}-absent", number + 1)).unwrap();
    let mut asked = 0;
    let error = loop {
        match spawner.ask(&absent(asked), None) {
            Ok(()) => asked += 1,
            Err(error) => break error,
        }
        assert!(asked < 100_000);
    };
    assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
    process.signal(Signal::CONT);
    let mut unheard: Vec<JobId> = (0..asked).map(absent).collect();
    while !unheard.is_empty() {
        match next(&spawner) {
            Answer::Refused { job, .. } => unheard.retain(|one| *one != job),
            other => panic!("{other:?}"),
        }
    }
    assert!(asked > 50, "{asked}");
    drop(spawner);
    bench.audit();
}

#[test]
fn many_threads_ask_at_once() {
    let bench = bench!();
    let spawner = spawner(&bench);
    let jobs: Vec<JobId> = (0..40).map(|_| id(&bench.queue(&["true"]))).collect();
    std::thread::scope(|scope| {
        for share in jobs.chunks(10) {
            let spawner = &spawner;
            scope.spawn(move || {
                for job in share {
                    until("it takes it", || spawner.ask(job, Some(1)).is_ok());
                }
            });
        }
        let mut left = 0;
        while left < jobs.len() {
            match next(&spawner) {
                Answer::Left { code: 0, .. } => left += 1,
                Answer::Forked { .. } | Answer::Started { running: true, .. } => {}
                other => panic!("{other:?}"),
            }
        }
    });
    drop(spawner);
    bench.audit();
}

#[test]
fn few_descriptors_are_enough_for_many_workers() {
    let bench = bench!();
    let spawner = Spawner::start(&bench.store(), &launcher(&bench), Some(64)).unwrap();
    let jobs: Vec<Job> = (0..100).map(|_| bench.queue(&["sleep", "600"])).collect();
    for job in &jobs {
        until("it takes it", || spawner.ask(&id(job), Some(1)).is_ok());
    }
    let mut started = 0;
    while started < jobs.len() {
        match next(&spawner) {
            Answer::Forked { .. } => {}
            Answer::Started { running: true, .. } => started += 1,
            other => panic!("{other:?}"),
        }
    }
    drop(spawner);
    bench.stop_all();
    bench.audit();
}

/// What a command finds at its start: its descriptors, signals, limits and the rest.
const LOOK: &str = "ls /proc/$$/fd; grep -E '^(Sig[PBIC]|Umask|NoNewPrivs|Seccomp:)' /proc/self/status; ulimit -n; ulimit -Hn; nice; \
    cat /proc/$$/oom_score_adj; pwd; env | sort | grep -v ^OUTLIVE_JOB; touch ready; while [ ! -e go ]; do sleep 0.02; done";

/// The same of its worker.
fn look_at(worker: &Process) -> Vec<String> {
    let pid = worker.pid;
    let mut seen: Vec<String> = fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .map(|target| {
            let name = target.file_name().unwrap_or_default().to_string_lossy();
            match target
                .parent()
                .is_some_and(|parent| parent.ends_with("jobs"))
            {
                true => "the directory of the job".to_owned(),
                false => name.split('[').next().unwrap_or_default().to_owned(),
            }
        })
        .collect();
    seen.sort();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let told = ["SigPnd", "SigBlk", "SigCgt", "Umask", "Threads"];
    let lines = status
        .lines()
        .filter(|line| told.iter().any(|it| line.starts_with(it)));
    seen.extend(lines.map(str::to_owned));
    // Two signals are the C library's own, and come ignored or not, as the way has it in which a program was executed.
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = u64::from_str_radix(ignored.unwrap().trim(), 16).unwrap();
    seen.push(format!("ignored {:x}", ignored & !0x1_8000_0000));
    seen.push(
        fs::read_link(format!("/proc/{pid}/cwd"))
            .unwrap()
            .display()
            .to_string(),
    );
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    seen.extend(limits.lines().map(str::to_owned));
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .collect();
    assert_eq!(fields[3], pid.to_string(), "it leads a session of its own");
    seen.push(format!("nice {}", fields[16]));
    seen
}

#[test]
fn a_worker_and_its_command_are_as_clean_as_after_run() {
    let bench = bench!();
    let (ready, go) = (bench.file("ready"), bench.file("go"));
    let see = |job: &Job| {
        until("its command has looked", || ready.exists());
        let worker = until_some("it has a worker", || job.worker());
        // It still has to record that the command runs.
        until("its worker waits", || worker.is_at_rest());
        let seen = look_at(&worker);
        fs::write(&go, "").unwrap();
        assert_eq!(job.wait(), 0);
        until("its worker is gone", || !worker.lives());
        fs::remove_file(&ready).unwrap();
        fs::remove_file(&go).unwrap();
        (seen, job.log_text())
    };
    let run_by_hand = bench.start(["--", "sh", "-c", LOOK]);
    let by_hand = see(&run_by_hand);
    // A descriptor that a host passes on to everybody, and a limit that it has raised.
    let leaked = fs::File::open("/dev/zero").unwrap();
    rustix::io::fcntl_setfd(&leaked, rustix::io::FdFlags::empty()).unwrap();
    let spawner = spawner(&bench);
    drop(leaked);
    let mut own: Vec<String> = fs::read_dir(format!("/proc/{}/fd", spawner.pid()))
        .unwrap()
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .map(|target| {
            target
                .to_string_lossy()
                .split(':')
                .next()
                .unwrap_or_default()
                .to_owned()
        })
        .collect();
    own.sort();
    let null = "/dev/null";
    // One socket leads to its supervisor, and two are the ends at which workers say that a slot is idle.
    let sockets = ["socket"; 3];
    assert_eq!(
        own,
        [&[null, null, null, "anon_inode"][..], &sockets].concat()
    );
    let mut spec = bench.spec(&["sh", "-c", LOOK]);
    let descriptor: serde_json::Value =
        serde_json::from_slice(&fs::read(run_by_hand.file("job.json")).unwrap()).unwrap();
    let command = &descriptor["kind"]["command"];
    spec.umask = serde_json::from_value(command["umask"].clone()).unwrap();
    spec.env = serde_json::from_value(command["env"].clone()).unwrap();
    let [first, second] = [(); 2].map(|()| bench.store().create(spec.clone()).unwrap());
    let look_again = |job: &Job| {
        run(&spawner, job, 1);
        let mut by_spawner = see(job);
        // Where it says that its slot is idle.
        let slot_notice = by_spawner.0.iter().position(|seen| seen == "socket:");
        by_spawner.0.remove(slot_notice.expect("it has one"));
        assert_eq!(by_spawner.0, by_hand.0);
        assert_eq!(by_spawner.1, by_hand.1);
    };
    look_again(&bench.job(first.id().as_str()));
    // So is one that has had a job before, unless it was too slow for that.
    let short = bench.queue(&["sh", "-c", "echo; exit 3"]);
    hear_left(&spawner, &bench.job(first.id().as_str()), 0);
    run(&spawner, &short, 1);
    hear_left(&spawner, &short, 0);
    look_again(&bench.job(second.id().as_str()));
    drop(spawner);
    bench.audit();
}

#[test]
fn a_limit_that_was_raised_is_not_passed_on() {
    let bench = bench!();
    let spawner = Spawner::start(&bench.store(), &launcher(&bench), Some(321)).unwrap();
    let job = bench.queue(&["sh", "-c", "ulimit -Sn"]);
    run(&spawner, &job, 1);
    hear_left(&spawner, &job, 0);
    assert_eq!(job.log_text(), "321\n");
    drop(spawner);
    bench.audit();
}

#[test]
fn what_can_be_no_spawner_says_why() {
    let bench = bench!();
    let store = bench.store();
    let start = |launcher: &Launcher| {
        let began = Instant::now();
        let error = Spawner::start(&store, launcher, None).unwrap_err();
        assert!(began.elapsed() < Duration::from_secs(9), "{error}");
        error.to_string()
    };
    let plain = Launcher::program(bench.binary(), &["worker"]);
    assert!(start(&plain).contains("workers only"));
    assert!(start(&Launcher::outlive_at("/no/such/program")).contains("not started"));
    assert!(start(&Launcher::outlive_at("true")).contains("no spawner"));
    // This test asks nobody what it was executed as: it must not be executed over and over.
    let own = start(&Launcher::this_program());
    assert!(own.contains("worker_if_asked"), "{own}");
    fs::rename(bench.root().join("format"), bench.file("format")).unwrap();
    let unfit = start(&launcher(&bench));
    assert!(unfit.contains("is refused as a store"), "{unfit}");
    fs::rename(bench.file("format"), bench.root().join("format")).unwrap();
    // Not for people.
    let root = bench.root();
    let ran = bench.run(["spawner", root.to_str().unwrap(), "-"]);
    assert_ne!(ran.code(), 0);
    assert!(ran.errors().contains("by hand"), "{}", ran.errors());
    bench.audit();
}

#[test]
fn a_program_with_threads_is_its_own_worker_and_spawner_whatever_becomes_of_its_file() {
    let bench = bench!();
    let program = bench.file("host");
    let binary = Path::new(env!("CARGO_BIN_EXE_outlive-host-under-test"));
    copy_program(binary, &program);
    let mut host: Command = bench.program(&program);
    host.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut host = host.spawn().unwrap();
    let mut input = host.stdin.take().unwrap();
    let mut output = BufReader::new(host.stdout.take().unwrap()).lines();
    let mut tell = |line: &str| {
        writeln!(input, "{line}").unwrap();
        let mut said = || output.next().unwrap().unwrap();
        [said(), said()]
    };
    // The mark is for one execution only.
    let look = "echo [$OUTLIVE_EXEC]";
    assert_eq!(tell(&format!("now {look}")), ["[]", "done in slot None"]);
    assert_eq!(
        tell(&format!("queue {look}")),
        ["[]", "done in slot Some(1)"]
    );
    // Upgraded, to what would not do: it goes on with what it is.
    fs::remove_file(&program).unwrap();
    fs::copy("/bin/false", &program).unwrap();
    assert_eq!(tell("now echo again"), ["again", "done in slot None"]);
    assert_eq!(tell("queue echo more"), ["more", "done in slot Some(1)"]);
    fs::remove_file(&program).unwrap();
    assert_eq!(tell("now echo gone"), ["gone", "done in slot None"]);
    drop(input);
    assert!(host.wait().unwrap().success());
    bench.audit();
}
