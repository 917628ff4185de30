//! What the machine offers a store, and what is done where it does not.

use std::path::PathBuf;

use rustix::fs::{inotify, statfs};
use serde::Serialize;
use state_machine::record::Limits;

use crate::error::{DiskError, Result};
use crate::process;
use crate::store::{Store, untrusted};

/// File systems whose locks can be trusted, by the magic number of statfs(2).
const LOCAL: [(u32, &str); 8] = [
    (0x0000_ef53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (TMPFS, "tmpfs"),
    (0x794c_7630, "overlayfs"),
    (0x2fc1_2fc1, "zfs"),
    (0xf2f5_2010, "f2fs"),
    (0xca45_1a4e, "bcachefs"),
];
const TMPFS: u32 = 0x0102_1994;

/// A task that has one limit.
const OF_MEMORY: Limits = Limits {
    memory_bytes: Some(u64::MAX),
    cpu_percent: None,
};
const OF_CPU: Limits = Limits {
    memory_bytes: None,
    cpu_percent: Some(100),
};

/// How a limit of a task is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Limiting {
    /// Where groups can be made that hold it for all processes of a task together.
    pub(crate) control_groups: Option<PathBuf>,
    /// Why nowhere.
    pub(crate) no_control_groups: Option<String>,
}

impl Limiting {
    /// Ask where a group could be made for a task with these limits.
    fn of(limits: &Limits) -> Limiting {
        let place = process::place_for_group(limits);
        Limiting {
            control_groups: place.as_ref().ok().map(|place| place.dir.clone()),
            no_control_groups: place.err(),
        }
    }

    /// The same in a sentence about limits of `what`, which are as `else_they` says where there is no group.
    fn sentence(&self, what: &str, else_they: &str) -> String {
        match &self.control_groups {
            Some(dir) => format!(
                "limits of {what} hold for all of a task together, by control groups in {}",
                dir.display()
            ),
            None => {
                let why = self.no_control_groups.as_deref().unwrap_or("?");
                format!("limits of {what} {else_they}: {why}")
            }
        }
    }
}

/// What the machine offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Machine {
    /// The release of the kernel.
    pub(crate) kernel: Option<String>,
    /// The file system that the store is on, by name or number.
    pub(crate) file_system: String,
    /// Whether its locks can be trusted (F26).
    pub(crate) trusted: bool,
    /// Whether it is lost when the machine restarts.
    pub(crate) volatile: bool,
    /// Bytes that can be written to it still.
    pub(crate) free_bytes: u64,
    /// Files that can be made on it still; 0 also where it keeps no count.
    pub(crate) free_files: u64,
    /// Whether workers are told of requests (dnotify).
    pub(crate) dnotify: bool,
    /// How many inotify instances a user may have (F52).
    pub(crate) inotify_instances: Option<u64>,
    /// How many inotify watches a user may have (F52).
    pub(crate) inotify_watches: Option<u64>,
    /// Whether one more instance can be had now.
    pub(crate) inotify_left: bool,
    /// Whether the kernel lists the children of a process (CONFIG_PROC_CHILDREN).
    pub(crate) children_listed: bool,
    /// How a limit of memory is held.
    pub(crate) memory_limit: Limiting,
    /// How one of processor time is held. Where each can be, both can be by one group: what a group may give, those around it give, too.
    pub(crate) cpu_limit: Limiting,
}

impl Machine {
    /// Ask the machine.
    pub(crate) fn of(store: &Store) -> Result<Machine> {
        let root = store.root();
        let info =
            statfs(root).map_err(|error| DiskError::new("stat the file system of", root, error))?;
        let magic = info.f_type as u32;
        let number = |path: &str| setting(path).and_then(|text| text.parse().ok());
        let distrusted = untrusted(magic);
        Ok(Machine {
            kernel: setting("/proc/sys/kernel/osrelease"),
            file_system: distrusted
                .or_else(|| name_of(magic))
                .map_or_else(|| format!("0x{magic:x}"), str::to_owned),
            trusted: distrusted.is_none(),
            volatile: magic == TMPFS,
            free_bytes: info.f_bavail.saturating_mul(info.f_bsize as u64),
            free_files: info.f_ffree,
            dnotify: setting("/proc/sys/fs/dir-notify-enable").is_some_and(|value| value != "0"),
            inotify_instances: number("/proc/sys/fs/inotify/max_user_instances"),
            inotify_watches: number("/proc/sys/fs/inotify/max_user_watches"),
            inotify_left: inotify::init(inotify::CreateFlags::CLOEXEC).is_ok(),
            children_listed: std::fs::exists("/proc/thread-self/children").unwrap_or(false),
            memory_limit: Limiting::of(&OF_MEMORY),
            cpu_limit: Limiting::of(&OF_CPU),
        })
    }

    /// The same in sentences.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let count = |number: Option<u64>| number.map_or("?".into(), |number| number.to_string());
        let told = |yes: bool, so: &str, not: &str| if yes { so } else { not }.to_owned();
        vec![
            format!("the kernel is {}", self.kernel.as_deref().unwrap_or("?")),
            format!(
                "the store is on {}, with {} MiB and {} files free; {}{}",
                self.file_system,
                self.free_bytes >> 20,
                self.free_files,
                told(
                    self.trusted,
                    "its locks are trusted",
                    "its locks cannot be trusted"
                ),
                told(self.volatile, "; it is lost when the machine restarts", ""),
            ),
            told(
                self.dnotify,
                "there is dnotify: workers hear of requests at once",
                "there is no dnotify: workers look for requests twice a second",
            ),
            format!(
                "inotify gives a user {} instances and {} watches; {}",
                count(self.inotify_instances),
                count(self.inotify_watches),
                told(
                    self.inotify_left,
                    "there are some left",
                    "none is left, so that whoever waits looks five times a second",
                ),
            ),
            told(
                self.children_listed,
                "the kernel lists the children of a process",
                "the kernel does not list the children of a process, so that stopping reads all of /proc",
            ),
            self.memory_limit
                .sentence("memory", "hold for each process alone"),
            self.cpu_limit.sentence("processor time", "do not hold"),
        ]
    }
}

fn name_of(magic: u32) -> Option<&'static str> {
    LOCAL
        .iter()
        .find(|(known, _)| *known == magic)
        .map(|(_, name)| *name)
}

fn setting(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}
