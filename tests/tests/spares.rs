//! Directories that are laid in for jobs to come: that they are used, that a start does without where they are
//! missing, damaged or too small, and that one that was taken by somebody who was killed harms nobody.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;

use outlive_tests::{Bench, Dice, Job, bench, rounds, until, until_some};
use rustix::process::Signal;

fn spare(bench: &Bench) -> PathBuf {
    bench.root().join("spares/0")
}

/// Run a job, and wait for the directory that its worker lays in.
#[track_caller]
fn lay_in(bench: &Bench) -> u64 {
    bench.run(["run", "--wait", "--", "true"]).expect(0);
    until_some("a directory is laid in", || {
        let metadata = spare(bench).metadata().ok()?;
        // Its worker has let go of everything.
        bench.census().is_empty().then(|| metadata.ino())
    })
}

/// The job ran, and is as any other.
#[track_caller]
fn expect_whole(job: &Job) {
    assert_eq!(job.wait(), 0);
    job.expect_states(&["queued", "running", "done"]);
    for entry in fs::read_dir(job.dir()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode, 0o600, "{}", entry.path().display());
    }
    assert_eq!(job.dir().metadata().unwrap().mode() & 0o7777, 0o700);
}

#[test]
fn a_start_takes_the_directory_that_was_laid_in() {
    let bench = bench!();
    let laid_in = lay_in(&bench);
    let job = bench.sh("echo out");
    assert_eq!(job.dir().metadata().unwrap().ino(), laid_in);
    expect_whole(&job);
    assert_eq!(job.log_text(), "out\n");
    // The next start does without, or takes what this one's worker has laid in.
    let other = bench.sh("exit 0");
    assert_ne!(other.dir().metadata().unwrap().ino(), laid_in);
    expect_whole(&other);
    bench.audit();
}

#[test]
fn a_record_in_a_spare_is_read_by_any_reader_of_json() {
    let bench = bench!();
    lay_in(&bench);
    let job = bench.sh("exit 0");
    let bytes = fs::read(job.file("job.json")).unwrap();
    assert_eq!(bytes.len(), 8192);
    assert_eq!(bytes.last(), Some(&b'\n'));
    let descriptor: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(descriptor["id"], job.id());
    expect_whole(&job);
    bench.audit();
}

#[test]
fn a_descriptor_that_is_too_long_for_a_spare_is_written_whole() {
    let bench = bench!();
    let laid_in = lay_in(&bench);
    let long = format!("LONG={}", "x".repeat(50_000));
    let job = bench.sh_with(&["--env", &long], "printf %s \"$LONG\" | wc -c");
    assert_eq!(job.dir().metadata().unwrap().ino(), laid_in);
    expect_whole(&job);
    assert_eq!(job.log_text().trim(), "50000");
    bench.audit();
}

#[test]
fn output_that_is_split_leaves_no_empty_log() {
    let bench = bench!();
    let laid_in = lay_in(&bench);
    let job = bench.sh_with(&["--split-output"], "echo out");
    expect_whole(&job);
    assert!(!job.file("log").exists());
    assert_eq!(spare(&bench).metadata().unwrap().ino(), laid_in);
    bench.audit();
}

#[test]
fn a_store_that_is_older_than_spares_gets_them() {
    let bench = bench!();
    bench.run(["list"]).expect(0);
    fs::remove_dir(bench.root().join("spares")).unwrap();
    bench.run(["doctor"]).expect(0);
    lay_in(&bench);
    let mode = spare(&bench).parent().unwrap().metadata().unwrap().mode();
    assert_eq!(mode & 0o7777, 0o700);
    bench.audit();
}

/// Something that a hand can do to a spare.
type Damage = fn(&Bench);

#[test]
fn a_spare_that_somebody_has_damaged_is_not_used() {
    const TARGET: &str = "untouched";
    let damages: [(&str, Damage); 8] = [
        ("a strange file", |bench| {
            fs::write(spare(bench).join("notes"), "x").unwrap();
        }),
        ("a status", |bench| {
            let status = r#"{"state":"done","updated_at_ms":1}"#;
            fs::write(spare(bench).join("status.json"), status).unwrap();
        }),
        ("a descriptor that is a link", |bench| {
            fs::remove_file(spare(bench).join("job.json")).unwrap();
            fs::write(bench.file("target"), TARGET).unwrap();
            symlink(bench.file("target"), spare(bench).join("job.json")).unwrap();
        }),
        ("a descriptor that is a directory", |bench| {
            fs::remove_file(spare(bench).join("job.json")).unwrap();
            fs::create_dir(spare(bench).join("job.json")).unwrap();
        }),
        ("no descriptor", |bench| {
            fs::remove_file(spare(bench).join("job.json")).unwrap();
        }),
        ("a lock that is a link", |bench| {
            fs::remove_file(spare(bench).join("lock")).unwrap();
            symlink("/dev/null", spare(bench).join("lock")).unwrap();
        }),
        ("no lock", |bench| {
            fs::remove_file(spare(bench).join("lock")).unwrap();
        }),
        ("a link in its place", |bench| {
            fs::remove_dir_all(spare(bench)).unwrap();
            symlink(bench.work(), spare(bench)).unwrap();
        }),
    ];
    for (what, damage) in damages {
        println!("{what}");
        let bench = bench!();
        // What is not used is left behind like what a crash leaves.
        bench.crashes();
        lay_in(&bench);
        damage(&bench);
        let job = bench.sh("echo out");
        expect_whole(&job);
        assert_eq!(job.log_text(), "out\n");
        assert!(!job.file("notes").exists());
        if bench.file("target").exists() {
            assert_eq!(fs::read_to_string(bench.file("target")).unwrap(), TARGET);
        }
        until("all workers are gone", || bench.census().is_empty());
        bench.run(["clean"]).expect(0);
        for left in fs::read_dir(bench.root().join("staging")).unwrap() {
            // R3: what cannot be opened counts as held.
            assert_eq!(what, "a lock that is a link");
            fs::remove_dir_all(left.unwrap().path()).unwrap();
        }
        expect_whole(&bench.sh("exit 0"));
        bench.audit();
    }
}

/// A loss of power can bring a spare back that was taken, beside the job that it had become: it has that job's
/// descriptor, and may be the same directory.
#[test]
fn a_spare_that_is_a_job_already_is_nobodys_to_take() {
    let bench = bench!();
    let job = bench.sh("exit 3");
    assert_eq!(job.wait(), 3);
    let laid_in = lay_in(&bench);
    fs::copy(job.file("job.json"), spare(&bench).join("job.json")).unwrap();
    let other = bench.sh("exit 0");
    assert_ne!(other.dir().metadata().unwrap().ino(), laid_in);
    assert_eq!(other.wait(), 0);
    until("the worker is gone", || bench.census().is_empty());
    // While there is such a job it is left alone; then it is collected.
    assert_eq!(spare(&bench).metadata().unwrap().ino(), laid_in);
    bench.run(["clean", job.id()]).expect(0);
    bench.run(["clean", "--all", "--keep", "9"]).expect(0);
    let there = spare(&bench).metadata().map(|metadata| metadata.ino()).ok();
    assert_ne!(there, Some(laid_in));
    bench.audit();
}

#[test]
fn files_of_a_spare_that_others_could_read_are_closed() {
    let bench = bench!();
    let laid_in = lay_in(&bench);
    let open = fs::Permissions::from_mode(0o644);
    fs::set_permissions(spare(&bench).join("job.json"), open).unwrap();
    bench.run(["doctor"]).expect(1);
    let job = bench.sh("exit 0");
    assert_eq!(job.dir().metadata().unwrap().ino(), laid_in);
    expect_whole(&job);
    bench.audit();
}

#[test]
fn starts_that_are_killed_at_any_moment_leave_whole_jobs_and_nothing_else() {
    let bench = bench!();
    bench.crashes();
    let mut dice = Dice::new();
    for _ in 0..rounds(40) {
        lay_in(&bench);
        let script = ["run", "--", "sh", "-c", "echo $OUTLIVE_JOB >> ran"];
        let starter = bench.background(bench.verb(script));
        dice.moment(3_000);
        starter.kill();
        for job in bench.jobs() {
            let bytes = fs::read(job.file("job.json")).unwrap();
            let descriptor: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
            assert_eq!(descriptor["id"], job.id());
        }
    }
    let ran = fs::read_to_string(bench.file("ran")).unwrap_or_default();
    for id in ran.lines() {
        assert!(
            bench.job(id).dir().exists(),
            "{id} ran, and nobody can see it"
        );
    }
    until("what they left is collected", || {
        bench.run(["clean", "--keep", "999"]).expect(0);
        fs::read_dir(bench.root().join("staging")).unwrap().count() == 0
    });
    bench.audit();
}

#[test]
fn many_who_start_at_once_never_share_a_directory() {
    let bench = bench!();
    lay_in(&bench);
    let (shells, each) = (8, rounds(6));
    std::thread::scope(|scope| {
        for _ in 0..shells {
            scope.spawn(|| {
                for _ in 0..each {
                    // All of one name: where two start in one ms, the second takes another id.
                    let script = "echo $OUTLIVE_JOB; echo $OUTLIVE_JOB_DIR";
                    bench
                        .run(["run", "--wait", "--", "sh", "-c", script])
                        .expect(0);
                }
            });
        }
    });
    assert_eq!(bench.jobs().len(), shells * each + 1);
    for job in bench.jobs() {
        job.expect_states(&["queued", "running", "done"]);
        let log = job.log_text();
        let told: Vec<&str> = log.lines().collect();
        assert!(told.is_empty() || told == [job.id(), job.dir().to_str().unwrap()]);
    }
    until("all workers are gone", || bench.census().is_empty());
    let laid_in = fs::read_dir(bench.root().join("spares")).unwrap().count();
    assert!((1..=4).contains(&laid_in), "{laid_in}");
    bench.audit();
}

#[test]
fn a_start_whose_worker_is_killed_at_any_moment_comes_to_an_end() {
    let bench = bench!();
    bench.crashes();
    let mut dice = Dice::new();
    for nth in 0..rounds(40) {
        let starter = bench.background(bench.verb(["run", "--wait", "--", "true"]));
        dice.moment(3_000);
        let signal = [Signal::KILL, Signal::TERM][nth % 2];
        for process in bench.census() {
            if process.is_worker() {
                process.signal(signal);
            }
        }
        // It ran, or was interrupted, or why it did not run is said. A child that has not become its command yet is called
        // a worker as well: then it is the command that was killed.
        let ran = starter.end();
        let known = matches!(ran.code(), 0 | 75 | 137 | 143);
        assert!(known || !ran.errors().is_empty(), "{ran:?}");
    }
    until("all workers are gone", || bench.census().is_empty());
    for job in bench.list() {
        assert_ne!(job["state"], "running", "{job}");
    }
    bench.run(["clean", "--keep", "999"]).expect(0);
    bench.audit();
}
