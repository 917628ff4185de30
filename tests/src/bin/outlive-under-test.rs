//! The `outlive` command as the tests run it: the very same entry, built by this package so that `cargo test` always
//! has a fresh one.
//!
//! It keeps tapes where there is a directory for them: in that of `OUTLIVE_TAPE` (in none where that is empty), or in
//! `tape` beside the store. That it needs no variable is for the tests that look at a job's environment. Where
//! `OUTLIVE_TEST_DIE_AFTER` is a number, it is killed when it has asked so much of the disk; where
//! `OUTLIVE_TEST_PANIC_AT` names a file, it panics at the next thing that it asks once that is there; where `OUTLIVE_CLOCK` names a
//! file, that file sets its wall clock; and where `OUTLIVE_TEST_UNSYNCED` names a file, its directory cannot be synced once that is gone.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use outlive_tests::{DIE_AFTER, TAPES, UNSYNCED};

/// How much may still be asked of the disk.
static LEFT: AtomicU32 = AtomicU32::new(0);

/// The file that says that it is time to panic.
static PANIC_AT: OnceLock<PathBuf> = OnceLock::new();

/// The file whose removal cannot be synced.
static UNSYNCED_FILE: OnceLock<PathBuf> = OnceLock::new();

fn main() -> ExitCode {
    outlive::worker_if_asked();
    let tapes = std::env::var_os("OUTLIVE_TAPE").unwrap_or_else(|| TAPES.into());
    if !tapes.is_empty() {
        outlive::disk::record_in(tapes.into());
    }
    let order = std::env::var(DIE_AFTER).ok();
    if let Some(number) = order.and_then(|number| number.parse().ok()) {
        LEFT.store(number, Ordering::Relaxed);
        outlive::disk::listen(die_in_time);
    }
    if let Some(file) = std::env::var_os("OUTLIVE_TEST_PANIC_AT")
        && PANIC_AT.set(file.into()).is_ok()
    {
        outlive::disk::listen(panic_in_time);
    }
    if let Some(file) = std::env::var_os(UNSYNCED)
        && UNSYNCED_FILE.set(file.into()).is_ok()
    {
        outlive::disk::listen(lead_away_in_time);
    }
    if let Some(file) = std::env::var_os("OUTLIVE_CLOCK") {
        outlive::clock::set_by_file(file.into());
    }
    outlive::cli::main()
}

fn die_in_time() {
    if LEFT.fetch_sub(1, Ordering::Relaxed) <= 1 {
        let me = rustix::process::getpid();
        let _ = rustix::process::kill_process(me, rustix::process::Signal::KILL);
        // It is on its way; nothing more may happen on the disk.
        loop {
            std::thread::park();
        }
    }
}

fn panic_in_time() {
    if PANIC_AT.get().is_some_and(|file| file.exists()) {
        panic!("it was time to panic");
    }
}

/// Have a link stand in the place of the directory: all can be reached through it, and it cannot be synced.
fn lead_away_in_time() {
    let gone = UNSYNCED_FILE.get().filter(|file| !file.exists());
    if let Some(dir) = gone.and_then(|file| file.parent())
        && !dir.is_symlink()
    {
        let away = dir.with_extension("away");
        std::fs::rename(dir, &away).expect("it can be moved");
        std::os::unix::fs::symlink(&away, dir).expect("its place is free");
    }
}
