//! Reading `/proc`: what it says about one process, and who the children of one are.
//!
//! Whatever is read here is true of a moment that has passed. Nothing here signals or waits.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;

use nix::libc::SIGKILL;
use rustix::process::Pid;

/// PF_EXITING, among the flags in `stat`.
const EXITING: u32 = 0x4;
/// PF_KTHREAD, among the flags in `stat`.
const KERNEL_THREAD: u32 = 0x0020_0000;

/// One process as its `stat` described it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    /// Its number, which is somebody else's once it was reaped.
    pub(crate) pid: Pid,
    /// Its short name, at most 15 bytes, chosen by itself.
    pub(crate) comm: OsString,
    /// State of its first thread: `R`, `S`, `D`, `T`, `t`, `Z`, …
    pub(crate) state: u8,
    /// Its parent now; none for what the kernel started.
    pub(crate) parent: Option<Pid>,
    /// How many threads it has, dead first thread included.
    pub(crate) threads: u32,
    /// Whether it is a thread of the kernel and no program.
    pub(crate) kernel: bool,
    /// Whether its first thread is on its way out.
    pub(crate) exiting: bool,
    /// When it started, in clock ticks since boot. With the pid it names a process of this boot (F36).
    pub(crate) start: u64,
}

impl Process {
    /// Reads `/proc/PID/stat`; none when there is no such process any more.
    pub(crate) fn read(pid: Pid) -> Option<Process> {
        // Two kilobytes hold the longest name and 52 numbers, and `stat` comes in one piece.
        let mut buffer = [0; 2048];
        let length = File::open(format!("/proc/{pid}/stat"))
            .ok()?
            .read(&mut buffer)
            .ok()?;
        Process::parse(buffer.get(..length)?)
    }

    /// Reads one line of `stat`. The name may hold anything, `)` included, so that the fields are
    /// counted from the last one (F37).
    fn parse(line: &[u8]) -> Option<Process> {
        let open = line.iter().position(|&byte| byte == b'(')?;
        let close = line.iter().rposition(|&byte| byte == b')')?;
        let pid = std::str::from_utf8(line.get(..open)?)
            .ok()?
            .trim()
            .parse()
            .ok()?;
        let comm = OsStr::from_bytes(line.get(open + 1..close)?).to_owned();
        let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
        // The first after the name is field 3 of proc(5).
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3).copied();
        let flags: u32 = field(9)?.parse().ok()?;
        Some(Process {
            pid: positive(pid)?,
            comm,
            state: field(3)?.bytes().next()?,
            parent: positive(field(4)?.parse().ok()?),
            kernel: flags & KERNEL_THREAD != 0,
            exiting: flags & EXITING != 0,
            threads: field(20)?.parse().ok()?,
            start: field(22)?.parse().ok()?,
        })
    }

    /// Whether nothing of it can run again: a zombie, or on its way out. A first thread that ended
    /// while others go on shows as a zombie too, and is not dead.
    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x') && self.threads <= 1
    }

    /// Whether `signal` ends it at once: it neither catches, ignores nor blocks it. No when that cannot be read.
    pub(crate) fn dies_of(&self, signal: i32) -> bool {
        let status = self.status();
        ["SigCgt:", "SigIgn:", "SigBlk:", "ShdPnd:"]
            .into_iter()
            .all(|mask| is_in(&status, mask, signal) == Some(false))
    }

    /// Whether it was killed and has not noticed, or is on its way out.
    pub(crate) fn is_being_killed(&self) -> bool {
        let status = self.status();
        self.exiting
            || ["SigPnd:", "ShdPnd:"]
                .into_iter()
                .any(|mask| is_in(&status, mask, SIGKILL) == Some(true))
    }

    /// `/proc/PID/status`; nothing when that cannot be read.
    fn status(&self) -> String {
        std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default()
    }

    /// Whether this is the process that `other` describes, and not a later one with its number.
    pub(crate) fn is_same(&self, other: &Process) -> bool {
        self.pid == other.pid && self.start == other.start
    }
}

/// Whether a signal is in a mask of a `status`; none where there is no such mask.
fn is_in(status: &str, mask: &str, signal: i32) -> Option<bool> {
    let mask = status.lines().find_map(|line| line.strip_prefix(mask))?;
    let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
    Some(mask >> (signal - 1) & 1 == 1)
}

/// As a message names it: `1234 (name, uninterruptible)`.
impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            b'R' => "running",
            b'S' => "sleeping",
            b'D' => "uninterruptible",
            b'T' => "stopped",
            b't' => "traced",
            b'Z' | b'X' | b'x' => "zombie",
            _ => "state unknown",
        };
        write!(f, "{} ({}, {state})", self.pid, self.comm.display())
    }
}

/// A pid, where the number is one.
fn positive(number: i32) -> Option<Pid> {
    if number > 0 {
        Pid::from_raw(number)
    } else {
        None
    }
}

/// The states of all threads of `pid`; empty when it is gone.
pub(crate) fn thread_states(pid: Pid) -> Vec<u8> {
    let threads = numbers_in(&format!("/proc/{pid}/task"));
    let state = |thread: &Pid| {
        let mut buffer = [0; 2048];
        let path = format!("/proc/{pid}/task/{thread}/stat");
        let length = File::open(path).ok()?.read(&mut buffer).ok()?;
        Process::parse(buffer.get(..length)?).map(|process| process.state)
    };
    threads.iter().filter_map(state).collect()
}

/// Every process there is, as far as this one may see, newest number first: what forks while the
/// list is walked has a higher number than its parent, so that the young ones are met while fresh.
pub(crate) fn all() -> Vec<Pid> {
    let mut pids = numbers_in("/proc");
    pids.sort_unstable_by_key(|pid| std::cmp::Reverse(pid.as_raw_pid()));
    pids
}

/// The entries of a directory of `/proc` that are numbers; empty when it is gone.
fn numbers_in(directory: &str) -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let number = |name: OsString| positive(name.to_str()?.parse().ok()?);
    entries
        .flatten()
        .filter_map(|entry| number(entry.file_name()))
        .collect()
}

/// Whether the environment that `pid` was started with holds exactly the entry `marker`.
///
/// None when it cannot be told now: the process is gone or dead, or is in the middle of `execve`, when
/// it has left one environment and not entered the next. One that is not ours to look into does not.
pub(crate) fn has_in_environment(pid: Pid, marker: &[u8]) -> Option<bool> {
    let mut text = Vec::new();
    let read =
        File::open(format!("/proc/{pid}/environ")).and_then(|mut file| file.read_to_end(&mut text));
    match read {
        Ok(0) => None,
        Ok(_) => Some(
            text.split(|&byte| byte == 0)
                .any(|variable| variable == marker),
        ),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Some(false),
        Err(_) => None,
    }
}

/// The list of this thread's own children, kept open so that reading it again costs one call.
///
/// The kernel walks the list while it changes: a child may be left out when a sibling ends at that
/// moment. So no single reading proves that there is no other child; only ECHILD from `wait` does.
pub(crate) struct OwnChildren {
    list: Option<File>,
    text: Vec<u8>,
}

impl OwnChildren {
    /// Opens the list. Where the kernel keeps none, every reading scans `/proc` instead.
    pub(crate) fn open() -> OwnChildren {
        OwnChildren {
            list: File::open("/proc/thread-self/children").ok(),
            text: Vec::new(),
        }
    }

    /// The children as of now, oldest first; zombies included.
    pub(crate) fn read(&mut self) -> io::Result<Vec<Pid>> {
        let Some(list) = &self.list else {
            return Ok(scan_for_parent(own_pid()));
        };
        read_list(list, &mut self.text)?;
        Ok(parse_list(&self.text))
    }
}

/// The children of all threads of `pid`; empty when it is gone.
pub(crate) fn children_of(pid: Pid) -> Vec<Pid> {
    let mut children = Vec::new();
    let mut text = Vec::new();
    for thread in numbers_in(&format!("/proc/{pid}/task")) {
        match File::open(format!("/proc/{pid}/task/{thread}/children")) {
            Ok(list) if read_list(&list, &mut text).is_ok() => children.extend(parse_list(&text)),
            Ok(_) => {}
            // Either the thread has just ended, or the kernel keeps no such lists at all.
            Err(_) if lists_exist() => {}
            Err(_) => return scan_for_parent(pid),
        }
    }
    children
}

/// Whether this kernel keeps lists of children (CONFIG_PROC_CHILDREN).
fn lists_exist() -> bool {
    std::fs::exists("/proc/thread-self/children").unwrap_or(false)
}

/// Every process whose parent is `parent`, the slow way.
fn scan_for_parent(parent: Pid) -> Vec<Pid> {
    let is_child = |pid: &Pid| Process::read(*pid).is_some_and(|it| it.parent == Some(parent));
    all().into_iter().filter(is_child).collect()
}

/// How much room a list of children is read into, in bytes, and more the longer it is.
const LEAST_ROOM: usize = 256;

/// Reads a list of children whole, from its beginning.
fn read_list(list: &File, text: &mut Vec<u8>) -> io::Result<()> {
    let mut length = 0;
    loop {
        // Most trees have a child or two; the kernel writes out what fits.
        if text.len() < length + LEAST_ROOM {
            text.resize(length + 2 * (length + LEAST_ROOM), 0);
        }
        // There is room: it was made just above.
        let room = text.get_mut(length..).unwrap_or_default();
        match list.read_at(room, length as u64) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    text.truncate(length);
    Ok(())
}

/// The pids in a list of children: numbers with a space after each.
fn parse_list(text: &[u8]) -> Vec<Pid> {
    let number = |word: &[u8]| positive(std::str::from_utf8(word).ok()?.parse().ok()?);
    text.split(|&byte| byte == b' ')
        .filter_map(number)
        .collect()
}

/// This process.
pub(crate) fn own_pid() -> Pid {
    rustix::process::getpid()
}

/// `NAME=value` as one entry of an environment.
pub(crate) fn marker(name: &str, value: &OsStr) -> Vec<u8> {
    let mut entry = OsString::from(name);
    entry.push("=");
    entry.push(value);
    entry.into_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_count_from_the_last_parenthesis() {
        let line = b"77 (a) R 1 () S 42 77 77 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 3 0 987654 0 0\n";
        let process = Process::parse(line).unwrap();
        assert_eq!(process.pid.as_raw_pid(), 77);
        assert_eq!(process.comm, "a) R 1 (");
        assert_eq!(process.state, b'S');
        assert_eq!(process.parent.map(Pid::as_raw_pid), Some(42));
        assert_eq!(process.threads, 3);
        assert_eq!(process.start, 987_654);
    }

    #[test]
    fn torn_or_odd_lines_are_no_process() {
        for line in [
            &b""[..],
            b"77",
            b"77 (",
            b"77 (x)",
            b") (",
            b"0 (x) S 1",
            b"77 (x) S 1 2 3",
        ] {
            assert_eq!(Process::parse(line), None);
        }
    }

    #[test]
    fn a_first_thread_that_ended_is_not_a_dead_process() {
        let line =
            |threads: u32| format!("7 (x) Z 1 7 7 0 -1 4 1 2 3 4 5 6 7 8 20 0 {threads} 0 9 0 0");
        assert!(Process::parse(line(1).as_bytes()).unwrap().is_dead());
        assert!(!Process::parse(line(2).as_bytes()).unwrap().is_dead());
    }

    #[test]
    fn this_process_is_found_with_its_threads() {
        let me = Process::read(own_pid()).unwrap();
        assert_eq!(
            me.parent.map(Pid::as_raw_pid),
            Some(nix::unistd::getppid().as_raw())
        );
        assert!(!thread_states(own_pid()).is_empty());
        assert!(all().contains(&own_pid()));
    }

    #[test]
    fn a_marker_matches_whole_entries_only() {
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .env("OUTLIVE_PROC_TEST", "/a/b")
            .spawn()
            .unwrap();
        let pid = Pid::from_child(&child);
        let has = |value| has_in_environment(pid, &marker("OUTLIVE_PROC_TEST", OsStr::new(value)));
        // Just started, it may have left one environment and not have the next.
        crate::process::testing::until("it has one", || has("/a/b").is_some());
        let (whole, part) = (has("/a/b"), has("/a"));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((whole, part), (Some(true), Some(false)));
        assert_eq!(has("/a/b"), None);
    }

    #[test]
    fn children_are_found_the_slow_way_too() {
        crate::process::testing::alone(|| {
            let pause = || {
                nix::unistd::pause();
            };
            let two = [(); 2].map(|()| crate::process::testing::fork_off(pause));
            let mut scanned = scan_for_parent(own_pid());
            scanned.reverse();
            assert_eq!(scanned, two);
            assert_eq!(OwnChildren::open().read().unwrap(), two);
            assert_eq!(children_of(own_pid()), two);
        });
    }

    #[test]
    fn a_list_of_any_length_is_read_whole() {
        crate::process::testing::alone(|| {
            let many: Vec<Pid> = (0..1000)
                .map(|_| crate::process::testing::fork_off(|| ()))
                .collect();
            let mut list = OwnChildren::open();
            assert_eq!(list.read().unwrap(), many);
            assert_eq!(list.read().unwrap(), many);
        });
    }
}
