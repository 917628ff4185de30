//! Limits that hold for all processes of a command together: a control group of its own (cgroups(7), version 2).
//!
//! | file | what it is for |
//! |---|---|
//! | `place` | where a group can be made, and which limits it can hold there |
//! | `leave` | moving workers and supervisors out of the groups that they were started in |
//!
//! A group is made where this user may make one. Processes are in leaves only, so that is hardly ever the group that this process is
//! in, but one above it. Nothing is recorded here and nothing here is the truth: what a killed worker leaves is an empty directory, which
//! the next one to make a group removes, and which no boot survives.
//!
//! ```text
//! outlive-JOB-PID                the limits; PID is the worker's
//! ├── command                    the command, and what it starts; the kernel ends that whole
//! ├── outlive-worker-PID         the worker of a job that the command has started
//! └── outlive-JOB-PID            the limits of that job, if it has any
//! outlive-supervisor-PID         a supervisor that was started in the command of a job
//! ```

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::process::Pid;
use state_machine::record::Limits;

use super::proc::own_pid;
use place::Place;

mod leave;
mod place;

#[cfg(test)]
mod tests;

pub(crate) use leave::{leave_command, leave_jobs};
pub(crate) use place::{Unheld, place_for_group, what_is_not_held};

/// What everything is called that is made here: this, what it is for, and the number of a process without which it is not needed.
const PREFIX: &str = "outlive-";
/// Where the processes of a group are, so that a command that starts jobs with limits can make groups within its own.
const LEAF: &str = "command";
/// What a share of a processor is counted over, in µs.
const PERIOD: u64 = 100_000;
/// What of the kernel a command can be limited by.
const CONTROLLERS: [&str; 2] = ["memory", "cpu"];

/// The control group of one command. It is removed with this, unless processes are left in it.
pub(crate) struct Group {
    dir: PathBuf,
    /// What the kernel had counted before this command: a group that something was left in is used again.
    before: Shortage,
}

/// Hold the limits of a command, whose process this is, by a group: as far as there can be one. Says also what it does not hold.
pub(crate) fn hold_limits(job: &str, limits: &Limits, pid: Pid) -> (Option<Group>, Option<Unheld>) {
    if *limits == Limits::default() {
        return (None, None);
    }
    let held = place_for_group(limits).and_then(|place| {
        let group = Group::around(pid, job, &place)?;
        Ok((group, place.lacks(limits)))
    });
    match held {
        Ok((group, unheld)) => (Some(group), unheld),
        Err(why) => (None, Some(Unheld::all(limits, why))),
    }
}

impl Group {
    /// Make a group there, and put a process into it. What that starts from then on is in it, too.
    ///
    /// # Errors
    /// For people: why there is none.
    fn around(pid: Pid, job: &str, place: &Place) -> Result<Group, String> {
        remove_abandoned(&place.dir);
        let group = make(place, job).map_err(|error| {
            let dir = place.dir.display();
            format!("no control group can be made in {dir}: {error}")
        })?;
        let entered = write(&group.leaf(), "cgroup.procs", &pid.to_string());
        entered.map_err(|error| format!("its control group is not entered: {error}"))?;
        Ok(group)
    }

    /// Whether the kernel has killed the command, as there was no memory left within its limit.
    pub(crate) fn was_out_of_memory(&self) -> bool {
        let now = Shortage::of(&self.dir);
        now.hits > self.before.hits && now.kills > self.before.kills
    }

    fn leaf(&self) -> PathBuf {
        self.dir.join(LEAF)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        remove(&self.dir);
    }
}

/// What the kernel has counted of a group that had too little memory.
///
/// Neither number tells anything alone: processes are also killed because the machine or a group further out has no memory, and the limit
/// is also hit by jobs within.
#[derive(Default)]
struct Shortage {
    /// How often there was no memory left within the limit of this very group.
    hits: u64,
    /// How many of the command's own processes were killed for want of memory, wherever that was.
    kills: u64,
}

impl Shortage {
    fn of(group: &Path) -> Shortage {
        Shortage {
            hits: count(group, "oom"),
            kills: count(&group.join(LEAF), "oom_kill"),
        }
    }
}

/// How often this has happened in this group, and not in one within it; 0 where the kernel does not tell these apart (before 5.2).
fn count(dir: &Path, event: &str) -> u64 {
    let counted = words(dir, "memory.events.local");
    let mut from_it = counted.iter().skip_while(|word| *word != event);
    from_it
        .nth(1)
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

fn make(place: &Place, job: &str) -> io::Result<Group> {
    let limits = &place.limits;
    let wanted = place::controllers(limits);
    enable(&place.dir, &wanted)?;
    let dir = place.dir.join(format!("{PREFIX}{job}-{}", own_pid()));
    make_dir(&dir)?;
    let mut group = Group {
        dir,
        before: Shortage::default(),
    };
    // The leaf needs that of memory; and what is used within a group cannot be taken from it by whoever manages what is around it.
    enable(&group.dir, &wanted)?;
    make_dir(&group.leaf())?;
    group.before = Shortage::of(&group.dir);
    if let Some(bytes) = limits.memory_bytes {
        write(&group.dir, "memory.max", &bytes.to_string())?;
        // Half a task is no task: its end is seen, and what is to be done about it is done. Jobs that it has started are tasks of
        // their own.
        write(&group.leaf(), "memory.oom.group", "1")?;
    }
    if let Some(percent) = limits.cpu_percent {
        let quota = u64::from(percent) * PERIOD / 100;
        write(&group.dir, "cpu.max", &format!("{quota} {PERIOD}"))?;
    }
    Ok(group)
}

/// Let the groups in this one have the controllers that are wanted; and the others if they can, so that a job within one can have
/// limits of any kind.
fn enable(dir: &Path, wanted: &[&str]) -> io::Result<()> {
    let enabled = words(dir, "cgroup.subtree_control");
    let is_missing = |name: &&str| !enabled.iter().any(|it| it == name);
    for name in CONTROLLERS.into_iter().filter(is_missing) {
        let written = write(dir, "cgroup.subtree_control", &format!("+{name}"));
        if wanted.contains(&name) {
            written?;
        }
    }
    Ok(())
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

/// The words of a file of a group; none where it cannot be read.
fn words(dir: &Path, file: &str) -> Vec<String> {
    let text = fs::read_to_string(dir.join(file)).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// The process without which a directory is not needed, if it was made here.
fn process_of(name: &str) -> Option<Pid> {
    let (_, pid) = name.strip_prefix(PREFIX)?.rsplit_once('-')?;
    Pid::from_raw(pid.parse().ok()?)
}

/// Remove what was made for processes that are gone. One that has processes left stays.
fn remove_abandoned(parent: &Path) {
    for (dir, name) in directories(parent) {
        if process_of(&name).is_some_and(|pid| super::proc::Process::read(pid).is_none()) {
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
