//! Writing down what is asked of the disk and what it answers, for checkers: a replay of the protocols must ask for the
//! same ("Tapes" in `docs/ARCHITECTURE.md`). Nothing is written unless a program has called [`record_in`], and the
//! shipped one never does.
//!
//! Every thread of every process has a tape of its own, so that its lines stand in the order in which it asked. A file is
//! open only while a line is written: no descriptor has to outlive a fork, or a worker's closing of everything.

use std::cell::RefCell;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use state_machine::tape::Line;

/// How long a tape may become, in bytes: what a stress test asks in its first thousands of rounds is what it asks in the
/// later ones.
const LIMIT: usize = 1 << 20;

/// Whether tapes are kept. A flag of its own, so that a program in which nobody sets it does not even hold the code.
static KEPT: AtomicBool = AtomicBool::new(false);
static DIR: OnceLock<PathBuf> = OnceLock::new();
/// What is called for each line.
static LISTENER: OnceLock<fn()> = OnceLock::new();

thread_local! {
    static TAPE: RefCell<Option<Tape>> = const { RefCell::new(None) };
}

/// From now on write down what this process, and those that it forks, ask of the disk of any store: in new files in `dir`,
/// which is relative to the root of the store. Where there is no such directory, nothing is written. Only the first call
/// counts.
///
/// For checkers: it takes time, and the tapes hold every argument and environment of the jobs.
pub fn record_in(dir: PathBuf) {
    if DIR.set(dir).is_ok() {
        KEPT.store(true, Ordering::Relaxed);
    }
}

/// Call this each time when a line of a tape is on disk: what the line tells of has happened, and what comes next has not. For
/// checkers that kill a process between any two of its effects. Only the first call counts.
pub fn listen(listener: fn()) {
    let _ = LISTENER.set(listener);
}

/// Whether tapes are kept.
#[inline]
pub(super) fn is_kept() -> bool {
    KEPT.load(Ordering::Relaxed)
}

/// Write a line of what was asked of the disk under `root`.
#[cold]
pub(super) fn write(root: &Path, line: impl FnOnce() -> Line) {
    let Some(dir) = DIR.get() else { return };
    let dir = root.join(dir);
    // A thread that is ending may have no tape any more.
    let _ = TAPE.try_with(|tape| {
        let mut tape = tape.borrow_mut();
        let here = tape.take().filter(|tape| tape.is_of(&dir));
        tape.insert(here.unwrap_or_else(|| Tape::begin(dir)))
            .write(line);
    });
    if let Some(listener) = LISTENER.get() {
        listener();
    }
}

/// The tape of one thread.
struct Tape {
    /// The process that began it: a child has the variables of its parent, and needs a tape of its own.
    pid: u32,
    dir: PathBuf,
    /// `None` once a line could not be written: a tape may end early, but it never lacks a line.
    file: Option<PathBuf>,
    /// How much may still be written, in bytes.
    left: usize,
}

impl Tape {
    /// Begin a new file.
    fn begin(dir: PathBuf) -> Tape {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let pid = std::process::id();
        let file = loop {
            // The number of an earlier process may have come round.
            let nth = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = dir.join(format!("{pid}-{nth}.jsonl"));
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(0o600);
            match options.open(&path) {
                Ok(_) => break Some(path),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(_) => break None,
            }
        };
        Tape {
            pid,
            dir,
            file,
            left: LIMIT,
        }
    }

    fn is_of(&self, dir: &Path) -> bool {
        self.pid == std::process::id() && self.dir == dir
    }

    fn write(&mut self, line: impl FnOnce() -> Line) {
        let Some(file) = &self.file else { return };
        let line = line().encode();
        if line.len() <= self.left && append(file, &line) {
            self.left -= line.len();
        } else {
            self.file = None;
        }
    }
}

/// Append a line in one write; whether all of it was taken.
fn append(file: &Path, line: &[u8]) -> bool {
    let Ok(mut file) = OpenOptions::new().append(true).open(file) else {
        return false;
    };
    loop {
        match file.write(line) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            written => return written.is_ok_and(|written| written == line.len()),
        }
    }
}
