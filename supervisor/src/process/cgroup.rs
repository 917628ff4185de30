//! Limits that hold for all processes of a command together: a control group of its own (cgroups(7), version 2).
//!
//! A group is made where this user may make one. Processes are in leaves only, so that is hardly ever the group that this process is
//! in, but one above it. Nothing is recorded here and nothing here is the truth: what a killed worker leaves is an empty directory, which
//! the next one to make a group removes, and which no boot survives.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::process::Pid;
use state_machine::record::Limits;

use super::proc::own_pid;

#[cfg(test)]
mod tests;

/// What the groups of commands are called: this, the id of the job, and the number of its worker.
const PREFIX: &str = "outlive-";
/// Where the processes of a group are, so that a command that starts jobs with limits can make groups within its own.
const LEAF: &str = "command";
/// What a share of a processor is counted over, in µs.
const PERIOD: u64 = 100_000;

/// The control group of one command. It is removed with this, unless processes are left in it.
pub(crate) struct Group {
    dir: PathBuf,
}

impl Group {
    /// Make a group with these limits for the processes of a job.
    ///
    /// # Errors
    /// For people: why there is none.
    pub(crate) fn new(job: &str, limits: &Limits) -> Result<Group, String> {
        let parent = place_for_group(limits)?;
        remove_abandoned(&parent);
        make(&parent, job, limits).map_err(|error| {
            format!(
                "no control group can be made in {}: {error}",
                parent.display()
            )
        })
    }

    /// Put a process into it. What it starts from then on is in it, too.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn enter(&self, pid: Pid) -> io::Result<()> {
        write(&self.dir.join(LEAF), "cgroup.procs", &pid.to_string())
    }

    /// Whether the kernel has killed it, as there was no memory left within its limit.
    pub(crate) fn was_out_of_memory(&self) -> bool {
        let events = fs::read_to_string(self.dir.join("memory.events")).unwrap_or_default();
        let kills = events
            .lines()
            .find_map(|line| line.strip_prefix("oom_kill "));
        kills.is_some_and(|count| count.trim() != "0")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        remove(&self.dir);
    }
}

/// Where a group with these limits can be made by this process.
///
/// # Errors
/// For people: why nowhere.
pub(crate) fn place_for_group(limits: &Limits) -> Result<PathBuf, String> {
    let (mounted, own) = own_group().ok_or("control groups of version 2 are not mounted")?;
    let wanted = controllers(limits);
    let above = own.ancestors().take_while(|dir| dir.starts_with(&mounted));
    let mut may = above.filter(|dir| is_ours(dir)).peekable();
    if may.peek().is_none() {
        return Err("no control group is delegated to this user".into());
    }
    may.find(|dir| can_limit(dir, &wanted))
        .map(Path::to_path_buf)
        .ok_or_else(|| {
            format!(
                "no control group of this user can limit {}",
                wanted.join(" and ")
            )
        })
}

/// What is not held of these limits where this process starts a command with them, and why; for people.
pub(crate) fn what_is_not_held(limits: &Limits) -> Option<String> {
    if *limits == Limits::default() {
        return None;
    }
    let why = place_for_group(limits).err()?;
    Some(without_group(limits, &why))
}

/// What is not held of these limits where there is no group, for this reason; for people.
pub(crate) fn without_group(limits: &Limits, why: &str) -> String {
    let cpu = limits.cpu_percent.map(|_| "the limit of cpu is not held");
    let memory = limits
        .memory_bytes
        .map(|_| "the limit of memory is held for each process alone");
    let unheld: Vec<&str> = cpu.into_iter().chain(memory).collect();
    format!("{}: {why}", unheld.join(", "))
}

/// What of the kernel these limits need.
fn controllers(limits: &Limits) -> Vec<&'static str> {
    let cpu = limits.cpu_percent.map(|_| "cpu");
    let memory = limits.memory_bytes.map(|_| "memory");
    cpu.into_iter().chain(memory).collect()
}

/// Where the groups are mounted, and the group that this process is in.
fn own_group() -> Option<(PathBuf, PathBuf)> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    locate(&mounts, &own)
}

/// As [`own_group`], of what `/proc/self/mountinfo` and `/proc/self/cgroup` say.
fn locate(mounts: &str, own: &str) -> Option<(PathBuf, PathBuf)> {
    let own = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        // `31 24 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw`, with any number of fields before the dash.
        let (mount, kind) = line.split_once(" - ")?;
        if kind.split(' ').next() != Some("cgroup2") {
            return None;
        }
        let mut fields = mount.split(' ').skip(3);
        let (root, at) = (fields.next()?, PathBuf::from(fields.next()?));
        let below = Path::new(own).strip_prefix(root).ok()?;
        // A group outside of what is mounted begins with "/..".
        let is_inside = below.components().all(|part| part.as_os_str() != "..");
        let own = at.join(below);
        is_inside.then_some((at, own))
    })
}

/// Whether groups can be made here, and processes moved below it: the one needs the directory, the other the list of processes.
fn is_ours(dir: &Path) -> bool {
    let may = |path: &Path| access(path, Access::WRITE_OK).is_ok();
    may(dir) && may(&dir.join("cgroup.procs"))
}

/// Whether a group in this one can have these controllers.
fn can_limit(dir: &Path, wanted: &[&str]) -> bool {
    let has = |file: &str| {
        let text = fs::read_to_string(dir.join(file)).unwrap_or_default();
        let words: Vec<&str> = text.split_whitespace().collect();
        wanted.iter().all(|name| words.contains(name))
    };
    has("cgroup.subtree_control") || has("cgroup.controllers") && is_inner(dir)
}

/// Whether a group may have groups with controllers in it: no processes are in it, or it is the root.
fn is_inner(dir: &Path) -> bool {
    let is_root = !dir.join("cgroup.type").exists();
    is_root || fs::read_to_string(dir.join("cgroup.procs")).is_ok_and(|pids| pids.is_empty())
}

fn make(parent: &Path, job: &str, limits: &Limits) -> io::Result<Group> {
    let wanted = controllers(limits);
    if !wanted.is_empty() {
        let enabled: Vec<String> = wanted.iter().map(|name| format!("+{name}")).collect();
        write(parent, "cgroup.subtree_control", &enabled.join(" "))?;
    }
    let dir = parent.join(format!("{PREFIX}{job}-{}", own_pid()));
    make_dir(&dir)?;
    let group = Group { dir };
    make_dir(&group.dir.join(LEAF))?;
    if let Some(bytes) = limits.memory_bytes {
        write(&group.dir, "memory.max", &bytes.to_string())?;
        // Half a task is no task: its end is seen, and what is to be done about it is done.
        write(&group.dir, "memory.oom.group", "1")?;
    }
    if let Some(percent) = limits.cpu_percent {
        let quota = u64::from(percent) * PERIOD / 100;
        write(&group.dir, "cpu.max", &format!("{quota} {PERIOD}"))?;
    }
    Ok(group)
}

/// A worker that runs a job again finds its own where something was left in it for a while.
fn make_dir(dir: &Path) -> io::Result<()> {
    match fs::create_dir(dir) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

fn write(dir: &Path, file: &str, text: &str) -> io::Result<()> {
    // Only what the kernel has put there is written to; nothing is made, and one write is one change.
    let mut file = fs::OpenOptions::new().write(true).open(dir.join(file))?;
    io::Write::write_all(&mut file, text.as_bytes())
}

/// Remove the groups of workers that are gone. One that has processes left stays.
fn remove_abandoned(parent: &Path) {
    for (dir, name) in directories(parent) {
        let worker = name
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.rsplit_once('-'));
        let worker = worker.and_then(|(_, pid)| Pid::from_raw(pid.parse().ok()?));
        if worker.is_some_and(|pid| super::proc::Process::read(pid).is_none()) {
            remove(&dir);
        }
    }
}

/// Remove a group with what is in it; the kernel refuses that of one with processes.
fn remove(dir: &Path) {
    for (within, _) in directories(dir) {
        remove(&within);
    }
    let _ = fs::remove_dir(dir);
}

fn directories(dir: &Path) -> impl Iterator<Item = (PathBuf, String)> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let dirs = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    dirs.filter_map(|entry| Some((entry.path(), entry.file_name().into_string().ok()?)))
}
