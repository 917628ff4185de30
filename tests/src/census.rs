//! Which processes belong to a bench: those that carry its marker in their environment, and those that hold a file of
//! its directory open (a worker wipes its environment, a job may have a clean one).

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A process of a bench.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// Its command line, for messages.
    pub title: String,
    /// When it started, in ticks since boot: with the number, its identity.
    start: u64,
}

/// Whether this process, and so whatever it starts, ignores a signal: as one does that `nohup` or a shell's `&` started.
///
/// # Panics
///
/// When `/proc` does not tell.
pub fn is_ignored(signal: Signal) -> bool {
    is_in("SigIgn:", "self", signal)
}

/// Whether a process has blocked a signal, to hear of it in another way.
///
/// # Panics
///
/// When `/proc` does not tell, as where there is no such process.
pub fn is_blocked(pid: u32, signal: Signal) -> bool {
    is_in("SigBlk:", &pid.to_string(), signal)
}

fn is_in(mask: &str, process: &str, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it can be read");
    let bits = status.lines().find_map(|line| line.strip_prefix(mask));
    let bits = u64::from_str_radix(bits.expect("it is there").trim(), 16).expect("it is a mask");
    bits & (1 << (signal.as_raw() - 1)) != 0
}

/// The state letter of a process, as `/proc/PID/stat` has it. `None` when there is no such process.
pub fn state_of(pid: i32) -> Option<char> {
    fields(pid)?.first()?.chars().next()
}

/// The fields of `/proc/PID/stat` after the last `)`: a name may hold anything.
fn fields(pid: i32) -> Option<Vec<String>> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = String::from_utf8_lossy(&stat[end + 1..]).into_owned();
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

fn start_of(pid: i32) -> Option<u64> {
    // Field 22 of the whole line is the 20th after the name.
    fields(pid)?.get(19)?.parse().ok()
}

/// Every process that carries `marker` or has something below `dir` open, zombies left out.
pub(crate) fn census(marker: &str, dir: &Path) -> Vec<Process> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc is there").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        if is_this_program(pid) || !belongs(pid, marker, dir) {
            continue;
        }
        let (Some(start), Some(state)) = (start_of(pid), state_of(pid)) else {
            continue;
        };
        if state != 'Z' && state != 'X' {
            found.push(Process {
                pid,
                title: title(pid),
                start,
            });
        }
    }
    found
}

/// Whether it is this test program, or a child of it that has not executed anything yet: such a one has copies of every
/// descriptor of the program, those of other tests among them, and is nobody's for that moment.
fn is_this_program(pid: i32) -> bool {
    let program = |pid: &str| fs::read_link(format!("/proc/{pid}/exe")).ok();
    program(&pid.to_string()).is_some_and(|path| Some(path) == program("self"))
}

/// The command line; the name, in brackets as `ps` has it, of a process that is on its way out and has no memory left.
fn title(pid: i32) -> String {
    let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let line = read("cmdline");
    let text = if line.is_empty() {
        format!("[{}]", String::from_utf8_lossy(&read("comm")).trim_end())
    } else {
        String::from_utf8_lossy(&line).replace('\0', " ")
    };
    text.trim_end().chars().take(200).collect()
}

fn belongs(pid: i32, marker: &str, dir: &Path) -> bool {
    let holds = |bytes: &[u8], word: &[u8]| bytes.windows(word.len()).any(|part| part == word);
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    holds(&environ, marker.as_bytes())
        || holds(&environ, dir.as_os_str().as_bytes())
        || opens_below(pid, dir)
}

fn opens_below(pid: i32, dir: &Path) -> bool {
    fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .any(|target| target.starts_with(dir))
}

/// The processes that have `file` open.
pub(crate) fn openers(file: &Path) -> Vec<i32> {
    fs::read_dir("/proc")
        .expect("/proc is there")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&pid| {
            fs::read_dir(format!("/proc/{pid}/fd"))
                .into_iter()
                .flatten()
                .flatten()
                .any(|entry| fs::read_link(entry.path()).is_ok_and(|target| target == file))
        })
        .collect()
}

impl Process {
    /// Send it a signal, if it is still the process that was found.
    pub fn signal(&self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return;
        };
        // The descriptor pins the process; what it pins is then compared with what was found.
        if let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty())
            && start_of(self.pid) == Some(self.start)
        {
            // One that has ended meanwhile is as good as killed.
            let _ = pidfd_send_signal(&pidfd, signal);
        }
    }

    /// The process of this number, if there is one.
    pub fn find(pid: i32) -> Option<Process> {
        Some(Process {
            pid,
            title: title(pid),
            start: start_of(pid)?,
        })
    }

    /// Whether it is a worker, be it one that is ending: that has lost its memory, and its command line with it, before it
    /// closes its files.
    pub fn is_worker(&self) -> bool {
        self.title
            .trim_start_matches('[')
            .starts_with("outlive worker")
    }

    /// Whether it is a supervisor.
    pub fn is_supervisor(&self) -> bool {
        self.title.contains("outlive supervise") || self.title.contains("under-test supervise")
    }

    /// Kill it.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Whether it sleeps, and no signal waits for it.
    pub fn is_at_rest(&self) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let value = |name| {
            let mut lines = status.lines();
            lines
                .find_map(|line| line.strip_prefix(name))
                .map(str::trim)
        };
        let none =
            |pending: Option<&str>| pending.is_some_and(|bits| bits.bytes().all(|bit| bit == b'0'));
        value("State:").is_some_and(|state| state.starts_with('S'))
            && none(value("SigPnd:"))
            && none(value("ShdPnd:"))
    }

    /// Whether it is still there, and more than a zombie.
    pub fn lives(&self) -> bool {
        start_of(self.pid) == Some(self.start)
            && !matches!(state_of(self.pid), None | Some('Z' | 'X'))
    }
}
