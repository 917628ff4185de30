use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use super::super::testing::{Bench, alone, end_everything, until};
use super::super::tree::{become_subreaper, children, descendants};
use super::*;

/// Processes that are killed and reaped whatever becomes of the test.
struct Started(Vec<Child>);

impl Drop for Started {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn sleeper(dir: &Path) -> Command {
    let mut command = Command::new("sh");
    command
        .env(DIRECTORY_VARIABLE, dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn pids(job: &Job<'_>) -> Vec<i32> {
    let mut pids: Vec<i32> = find(job)
        .unwrap()
        .iter()
        .map(|it| it.pid.as_raw_pid())
        .collect();
    pids.sort_unstable();
    pids
}

fn ids(started: &Started) -> Vec<i32> {
    let mut ids: Vec<i32> = started.0.iter().map(|it| it.id().cast_signed()).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn the_directory_in_the_environment_is_a_mark() {
    let bench = Bench::new();
    let job = Job {
        dir: bench.dir.path(),
        tree: None,
    };
    assert_eq!(count(&job).unwrap(), 0);
    let mut mine = Started(Vec::new());
    for _ in 0..3 {
        mine.0.push(
            sleeper(job.dir)
                .args(["-c", "exec sleep 600"])
                .spawn()
                .unwrap(),
        );
    }
    // A job whose directory only begins like this one's, and one that has none.
    let mut strangers = Started(Vec::new());
    let longer = job.dir.join("x");
    strangers.0.push(
        sleeper(&longer)
            .args(["-c", "exec sleep 600"])
            .spawn()
            .unwrap(),
    );
    strangers
        .0
        .push(Command::new("sleep").arg("600").spawn().unwrap());
    until("all are found", || pids(&job) == ids(&mine));
    until("by name", || {
        find(&job).unwrap().iter().all(|it| it.comm == "sleep")
    });

    assert_eq!(
        end(&job, Duration::from_secs(10)).unwrap(),
        Ended { forced: false }
    );
    assert_eq!(count(&job).unwrap(), 0);
    for stranger in &mut strangers.0 {
        assert!(stranger.try_wait().unwrap().is_none());
    }
}

#[test]
fn the_deaf_are_forced_and_the_stopped_are_woken() {
    let bench = Bench::new();
    let job = Job {
        dir: bench.dir.path(),
        tree: None,
    };
    let deaf = "trap '' TERM; echo > deaf; while :; do sleep 0.1; done";
    let mut mine = Started(Vec::new());
    let mut command = sleeper(job.dir);
    mine.0.push(
        command
            .args(["-c", deaf])
            .current_dir(job.dir)
            .process_group(0)
            .spawn()
            .unwrap(),
    );
    until("it is deaf", || job.dir.join("deaf").exists());
    assert_eq!(
        end(&job, Duration::from_millis(100)).unwrap(),
        Ended { forced: true }
    );
    assert_eq!(count(&job).unwrap(), 0);

    let handler = "trap 'echo > heard; exit' TERM; echo > up; kill -STOP $$; sleep 600";
    mine.0.push(
        sleeper(job.dir)
            .args(["-c", handler])
            .current_dir(job.dir)
            .spawn()
            .unwrap(),
    );
    let pid = Pid::from_child(mine.0.last().unwrap());
    until("it has stopped", || {
        Process::read(pid).is_some_and(|it| it.state == b'T')
    });
    assert_eq!(
        end(&job, Duration::from_secs(10)).unwrap(),
        Ended { forced: false }
    );
    assert!(job.dir.join("heard").exists());
}

#[test]
fn the_locked_tree_is_a_mark_and_a_probe_is_not() {
    alone(|| {
        become_subreaper().unwrap();
        let mut bench = Bench::new();
        bench.env.push(("OTHER".into(), "1".into()));
        // It holds the lock; its environment says nothing of the job.
        let leader = bench.shell("sleep 600 & exec sleep 600");
        until("both are there", || descendants().unwrap().len() == 2);
        let tree = bench.open_tree();
        let mut probe = Command::new("sleep")
            .arg("600")
            .stdin(Stdio::from(bench.open_tree()))
            .spawn()
            .unwrap();
        let blind = Job {
            dir: bench.dir.path(),
            tree: None,
        };
        let job = Job {
            tree: Some(tree.as_fd()),
            ..blind
        };
        assert_eq!(count(&blind).unwrap(), 0);
        until("both are found", || count(&job).unwrap() == 2);
        assert!(!pids(&job).contains(&probe.id().cast_signed()));
        assert_eq!(
            end(&job, Duration::from_secs(10)).unwrap(),
            Ended { forced: false }
        );
        assert!(leader.peek().unwrap().is_some());
        assert!(children().unwrap().contains(&Pid::from_child(&probe)));
        tree.try_lock().unwrap();
        probe.kill().unwrap();
        probe.wait().unwrap();
        end_everything();
    });
}

#[test]
fn chains_are_ended() {
    let bench = Bench::new();
    let job = Job {
        dir: bench.dir.path(),
        tree: None,
    };
    for _ in 0..10 {
        // With an end, should this test not be there to put one to it.
        let hop = "N=$((N+1)); [ $N -lt 1000 ] || exit
                   export N; sleep 0.005; setsid sh -c \"$HOP\" & exit";
        let mut command = sleeper(job.dir);
        command.env("HOP", hop).args(["-c", hop]);

        let _started = Started(vec![command.spawn().unwrap()]);
        until("it runs", || count(&job).unwrap() > 0);
        end(&job, Duration::from_millis(30)).unwrap();
        assert_eq!(count(&job).unwrap(), 0);
    }
}

#[test]
fn the_caller_is_spared() {
    let bench = Bench::new();
    let job = Job {
        dir: bench.dir.path(),
        tree: None,
    };
    // This test again, as a client that was started inside the job it ends.
    if std::env::var_os(DIRECTORY_VARIABLE).is_some() {
        let dir = std::env::var_os(DIRECTORY_VARIABLE).unwrap();
        let job = Job {
            dir: Path::new(&dir),
            tree: None,
        };
        until("its sister is there", || count(&job).unwrap() == 1);
        end(&job, Duration::from_secs(10)).unwrap();
        assert_eq!(count(&job).unwrap(), 0);
        return;
    }
    let mut sister = Started(vec![
        sleeper(job.dir)
            .args(["-c", "exec sleep 600"])
            .spawn()
            .unwrap(),
    ]);
    let client = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process::leftovers::tests::the_caller_is_spared"])
        .env(DIRECTORY_VARIABLE, job.dir)
        .output()
        .unwrap();
    assert!(client.status.success(), "{client:?}");
    assert!(sister.0[0].wait().unwrap().code().is_none());
}
