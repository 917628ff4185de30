//! Many at once: none hangs, none is lost.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outlive_tests::{bench, rounds};

/// How long a shell may take that runs many jobs one after the other, beside others.
const MANY: Duration = Duration::from_secs(300);

#[test]
fn eight_shells_run_and_wait_side_by_side() {
    let bench = bench!();
    let share = rounds(200) / 8;
    let script = format!("for i in $(seq {share}); do \"$0\" run --wait -- true || exit 1; done");
    let shells: Vec<_> = (0..8)
        .map(|_| {
            let mut shell = bench.program("sh");
            shell.args(["-c", &script]).arg(bench.binary());
            bench.background(shell)
        })
        .collect();
    let mut ids = Vec::new();
    for shell in shells {
        let ran = shell.end_within(MANY).expect(0);
        ids.extend(ran.text().lines().map(str::to_owned));
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), share * 8);
    let listed = bench.list();
    assert_eq!(listed.len(), share * 8);
    assert!(
        listed
            .iter()
            .all(|job| job["state"] == "done" && job["exit"]["code"] == 0)
    );
    bench.audit();
}

#[test]
fn whoever_waits_is_told() {
    let bench = bench!();
    let job = bench.sh("while [ ! -e go ]; do sleep 0.02; done; exit 9");
    let waiters: Vec<_> = (0..40)
        .map(|_| bench.background(bench.verb(["wait", job.id()])))
        .collect();
    std::fs::write(bench.file("go"), "").unwrap();
    for waiter in waiters {
        waiter.end().expect(9);
    }
    bench.audit();
}

#[test]
fn everybody_asks_everything_of_one_job() {
    let bench = bench!();
    let job = bench.sh_with(&["--grace", "1s"], "while :; do sleep 0.02; done");
    let asked = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for verb in ["pause", "resume", "pause", "resume", "status", "list"] {
            let (bench, job, asked) = (&bench, &job, &asked);
            scope.spawn(move || {
                for _ in 0..10 {
                    let arguments: &[&str] = if verb == "list" {
                        &[verb]
                    } else {
                        &[verb, job.id()]
                    };
                    let ran = bench.run(arguments);
                    assert!(matches!(ran.code(), 0 | 6), "{ran:?}");
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(asked.load(Ordering::Relaxed), 60);
    let ran = bench.run(["stop", job.id()]);
    assert!(matches!(ran.code(), 0 | 1), "{ran:?}");
    assert_eq!(job.recorded(), "cancelled");
    bench.audit();
}

#[test]
fn a_sweep_never_takes_what_is_not_at_rest() {
    let bench = bench!();
    bench.run(["list"]).expect(0);
    let store = bench.store();
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let all = outlive::state_machine::retention::Retention::default();
                store.sweep(all, |_| true).unwrap();
                store.collect().unwrap();
                std::thread::yield_now();
            }
        });
        let shells: Vec<_> = (0..4)
            .map(|_| {
                let mut shell = bench.program("sh");
                // The job may be swept as soon as it has ended; what it has done stands outside of the store.
                let script = "for i in $(seq 12); do \"$0\" run -- sh -c \"echo x >> $1\"; done";
                shell
                    .args(["-c", script])
                    .arg(bench.binary())
                    .arg(bench.file("done"));
                bench.background(shell)
            })
            .collect();
        for shell in shells {
            let ran = shell.end_within(MANY);
            assert_eq!(ran.text().lines().count(), 48 / 4, "{ran:?}");
        }
        outlive_tests::until("every command has run", || {
            std::fs::read_to_string(bench.file("done"))
                .unwrap_or_default()
                .lines()
                .count()
                == 48
        });
        over.store(true, Ordering::Relaxed);
    });
    bench.audit();
}

#[test]
fn whoever_waits_for_a_job_that_is_swept_as_it_ends_is_told_how_it_ended() {
    let bench = bench!();
    bench.run(["list"]).expect(0);
    let mut sweeper = bench.program("sh");
    sweeper
        .arg("-c")
        .arg("until [ -e over ]; do \"$0\" clean --keep 0 > swept 2>&1; done")
        .arg(bench.binary());
    let sweeper = bench.background(sweeper);
    for _ in 0..rounds(50) {
        bench
            .run(["run", "--wait", "--", "sh", "-c", "exit 7"])
            .expect(7);
    }
    std::fs::write(bench.file("over"), "").unwrap();
    sweeper.end().expect(0);
    bench.audit();
}
