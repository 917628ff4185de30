//! Where this process can make the group of a command, and which of its limits that can hold.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use state_machine::record::Limits;

use super::{process_of, words};

/// The control group of this process.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Own {
    /// Where the groups are mounted.
    pub(super) mounted: PathBuf,
    pub(super) dir: PathBuf,
}

/// Where a group can be made.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) dir: PathBuf,
    /// What it can hold there of the limits that were asked for.
    pub(super) limits: Limits,
}

/// What of the limits of a command no group holds.
pub(crate) struct Unheld {
    pub(crate) limits: Limits,
    why: String,
}

impl Unheld {
    pub(super) fn all(limits: &Limits, why: String) -> Unheld {
        let limits = *limits;
        Unheld { limits, why }
    }
}

/// For people.
impl fmt::Display for Unheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpu = self.limits.cpu_percent;
        let cpu = cpu.map(|_| "the limit of cpu is not held");
        let memory = self.limits.memory_bytes;
        let memory = memory.map(|_| "the limit of memory is held for each process alone");
        let unheld: Vec<&str> = cpu.into_iter().chain(memory).collect();
        write!(f, "{}: {}", unheld.join(", "), self.why)
    }
}

/// Where a group that holds these limits, or one of them, can be made by this process.
///
/// # Errors
/// For people: why nowhere.
pub(crate) fn place_for_group(limits: &Limits) -> Result<Place, String> {
    let own = Own::find().ok_or("control groups of version 2 are not mounted")?;
    own.place_for(limits)
}

/// What is not held of these limits where this process starts a command with them.
pub(crate) fn what_is_not_held(limits: &Limits) -> Option<Unheld> {
    if *limits == Limits::default() {
        return None;
    }
    match place_for_group(limits) {
        Ok(place) => place.lacks(limits),
        Err(why) => Some(Unheld::all(limits, why)),
    }
}

/// What of the kernel these limits need.
pub(super) fn controllers(limits: &Limits) -> Vec<&'static str> {
    let cpu = limits.cpu_percent.map(|_| "cpu");
    let memory = limits.memory_bytes.map(|_| "memory");
    cpu.into_iter().chain(memory).collect()
}

fn cannot_limit(limits: &Limits) -> String {
    let wanted = controllers(limits).join(" and ");
    format!("no control group of this user can limit {wanted}")
}

impl Place {
    /// What a group there does not hold of these limits.
    pub(super) fn lacks(&self, limits: &Limits) -> Option<Unheld> {
        let held = &self.limits;
        let lacking = Limits {
            memory_bytes: limits.memory_bytes.filter(|_| held.memory_bytes.is_none()),
            cpu_percent: limits.cpu_percent.filter(|_| held.cpu_percent.is_none()),
        };
        let why = cannot_limit(&lacking);
        (lacking != Limits::default()).then(|| Unheld::all(&lacking, why))
    }
}

/// What a group may hold of these limits: best all of them, and else one; without memory a task fails, and without much of a processor
/// it is late, so that memory is held first.
fn choices(limits: &Limits) -> impl Iterator<Item = Limits> {
    let memory = Limits {
        memory_bytes: limits.memory_bytes,
        ..Limits::default()
    };
    let cpu = Limits {
        cpu_percent: limits.cpu_percent,
        ..Limits::default()
    };
    let choices = [*limits, memory, cpu];
    choices.into_iter().filter(|it| *it != Limits::default())
}

impl Own {
    pub(super) fn find() -> Option<Own> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        Own::find_of(&own)
    }

    /// Of what `/proc/self/cgroup` says.
    pub(super) fn find_of(own: &str) -> Option<Own> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        Own::locate(&mounts, own)
    }

    /// Of what `/proc/self/mountinfo` and `/proc/self/cgroup` say.
    pub(super) fn locate(mounts: &str, own: &str) -> Option<Own> {
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
            is_inside.then(|| Own {
                dir: at.join(below),
                mounted: at,
            })
        })
    }

    /// This group and those that it is in, from the inside out.
    fn upwards(&self) -> impl Iterator<Item = &Path> {
        let above = self.dir.ancestors();
        above.take_while(|dir| dir.starts_with(&self.mounted))
    }

    /// The groups of the jobs that it is within, from the inside out. A leaf that a process has for itself is none of these.
    pub(super) fn jobs_around(&self) -> impl Iterator<Item = &Path> {
        let is_made_here = |dir: &&Path| {
            let name = dir.file_name().and_then(|name| name.to_str());
            name.and_then(process_of).is_some()
        };
        self.upwards().skip(1).filter(is_made_here)
    }

    /// Where a group can be made that holds these limits, or one of them. That is never outside of the job around it, whose limits hold
    /// for all that it starts.
    pub(super) fn place_for(&self, limits: &Limits) -> Result<Place, String> {
        let around = self.jobs_around().next();
        let within = |dir: &&Path| around.is_none_or(|around| dir.starts_with(around));
        let reached = self.upwards().take_while(within);
        let ours: Vec<&Path> = reached.filter(|dir| is_ours(dir)).collect();
        if ours.is_empty() {
            return Err("no control group is delegated to this user".into());
        }
        let nearest = |limits: Limits| {
            let wanted = controllers(&limits);
            let dir = ours.iter().find(|dir| can_limit(dir, &wanted))?;
            let dir = dir.to_path_buf();
            Some(Place { dir, limits })
        };
        choices(limits)
            .find_map(nearest)
            .ok_or_else(|| cannot_limit(limits))
    }
}

fn may_write(path: &Path) -> bool {
    access(path, Access::WRITE_OK).is_ok()
}

/// Whether groups can be made here, and processes moved below it: the one needs the directory, the other the list of processes.
fn is_ours(dir: &Path) -> bool {
    may_write(dir) && may_write(&dir.join("cgroup.procs"))
}

/// Whether a group in this one can have these controllers: it can already, or this process can see to that.
pub(super) fn can_limit(dir: &Path, wanted: &[&str]) -> bool {
    let has = |file: &str| {
        let words = words(dir, file);
        wanted
            .iter()
            .all(|name| words.iter().any(|word| word == name))
    };
    has("cgroup.subtree_control")
        || has("cgroup.controllers")
            && is_inner(dir)
            && may_write(&dir.join("cgroup.subtree_control"))
}

/// Whether a group may have groups with controllers in it: no processes are in it, or it is the root.
fn is_inner(dir: &Path) -> bool {
    let is_root = !dir.join("cgroup.type").exists();
    is_root || fs::read_to_string(dir.join("cgroup.procs")).is_ok_and(|pids| pids.is_empty())
}
