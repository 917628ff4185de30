//! The least that a job costs on this disk: its files and its command, and nobody who looks after either.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What a record is as long as, in bytes.
const RECORD: [u8; 200] = [b'x'; 200];

/// With every file and directory synced.
pub(crate) fn synced(dir: &Path, jobs: usize) -> Option<Duration> {
    Some(floor(dir, jobs, true))
}

/// With nothing synced.
pub(crate) fn unsynced(dir: &Path, jobs: usize) -> Option<Duration> {
    Some(floor(dir, jobs, false))
}

/// What a job costs where nobody looks after it: a directory, a description, a log, a lock, the command, and how it ended.
fn floor(dir: &Path, jobs: usize, synced: bool) -> Duration {
    let began = Instant::now();
    std::thread::scope(|scope| {
        for lane in 0..2 {
            scope.spawn(move || {
                for job in (lane..jobs).step_by(2) {
                    let home = dir.join(job.to_string());
                    bare_job(dir, &home, synced).expect("the file system lets us");
                }
            });
        }
    });
    began.elapsed()
}

fn bare_job(parent: &Path, home: &Path, synced: bool) -> std::io::Result<()> {
    let sync_dir = |dir: &Path| {
        if synced {
            File::open(dir)?.sync_all()
        } else {
            Ok(())
        }
    };
    fs::create_dir(home)?;
    record(&home.join("spec"), synced)?;
    let log = File::create(home.join("log"))?;
    let lock = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(home.join("lock"))?;
    lock.lock()?;
    sync_dir(home)?;
    sync_dir(parent)?;
    let ran = Command::new("true")
        .stdin(Stdio::null())
        .stderr(log.try_clone()?)
        .stdout(log)
        .status()?;
    assert!(ran.success());
    record(&home.join("result.new"), synced)?;
    fs::rename(home.join("result.new"), home.join("result"))?;
    sync_dir(home)
}

fn record(path: &Path, synced: bool) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(&RECORD)?;
    if synced { file.sync_all() } else { Ok(()) }
}
