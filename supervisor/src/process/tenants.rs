//! Who works in a slot: every process that works inside its directory, and every one that was started for somebody who had the
//! slot, wherever it is by now. And ending all of them, for somebody who wants the slot back whatever is in it.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::libc::{SIGCONT, SIGKILL, SIGTERM};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::inside::census;
use super::proc::{self, Process};
use crate::sys;

/// The variable that holds the slot's directory in the environment of everything that is started for its holder.
pub(crate) const SLOT_VARIABLE: &str = "OUTLIVE_SLOT";

/// How long [`Tenancy::end`] goes on after the grace is over before it names those that do not die.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// The sleep between two looks at the processes.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Looks that must find nobody, in a row, before the slot counts as empty.
const QUIET_LOOKS: u32 = 2;

/// How many are named.
const NAMED: usize = 4;

/// What the tenants of a slot are known by.
#[derive(Debug, Clone)]
pub(crate) struct Tenancy {
    mark: Vec<u8>,
    places: Vec<PathBuf>,
    lock: Option<PathBuf>,
}

/// Somebody who works in a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tenant {
    pid: Pid,
    start: u64,
    command: OsString,
    /// How it is inside; none where only its environment says so.
    inside: Option<String>,
    /// Whether it has nothing of the slot but its lock file open, as whoever merely looks has for a moment.
    only_lock: bool,
    /// Whether it is a parent of this process, or a parent of one.
    pub(crate) is_ancestor: bool,
}

/// As a message names it: `1234 (vim) has /slot/notes open`.
impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.inside {
            Some(how) => f.write_str(how),
            None => write!(
                f,
                "{} ({}) was started in it",
                self.pid,
                self.command.display()
            ),
        }
    }
}

/// Tenants as a message names them.
pub(crate) fn named(tenants: &[Tenant]) -> String {
    let mut names: Vec<String> = tenants
        .iter()
        .take(NAMED)
        .map(|tenant| format!("process {tenant}"))
        .collect();
    if tenants.len() > NAMED {
        names.push(format!("{} more", tenants.len() - NAMED));
    }
    names.join(", ")
}

impl Tenancy {
    /// Of the slot in this directory, whose holder works in `place`.
    pub(crate) fn of(slot: &Path, place: &Path) -> Tenancy {
        Tenancy {
            mark: proc::marker(SLOT_VARIABLE, slot.as_os_str()),
            places: vec![place.to_owned()],
            lock: None,
        }
    }

    /// The same, with those who have this lock file open for longer than a moment.
    pub(crate) fn with_lock(mut self, lock: PathBuf) -> Tenancy {
        self.lock = Some(lock);
        self
    }

    /// Everybody but this process, as far as it may look into them.
    pub(crate) fn tenants(&self) -> Vec<Tenant> {
        let places: Vec<&Path> = self
            .places
            .iter()
            .chain(&self.lock)
            .map(PathBuf::as_path)
            .collect();
        let mut tenants: Vec<Tenant> = census(&places)
            .inside
            .into_iter()
            .map(|one| Tenant {
                pid: one.pid,
                start: one.start,
                only_lock: self.lock.as_ref() == Some(&one.path),
                inside: Some(one.to_string()),
                is_ancestor: one.is_ancestor,
                command: one.command,
            })
            .collect();
        for process in self.marked() {
            match tenants.iter_mut().find(|known| known.is(&process)) {
                Some(known) => known.only_lock = false,
                None => tenants.push(Tenant {
                    pid: process.pid,
                    start: process.start,
                    inside: None,
                    only_lock: false,
                    is_ancestor: is_ancestor(process.pid),
                    command: process.comm,
                }),
            }
        }
        tenants
    }

    fn marked(&self) -> Vec<Process> {
        let me = proc::own_pid();
        proc::all()
            .into_iter()
            .filter(|&pid| pid != me)
            .filter(|&pid| proc::has_in_environment(pid, &self.mark) == Some(true))
            .filter_map(Process::read)
            .filter(|process| !process.is_dead() && !process.kernel)
            .collect()
    }

    /// Ends everybody but this process and its ancestors: SIGTERM (and SIGCONT, so that a stopped one hears it), up to
    /// `grace` for them to go, then SIGKILL until nobody is found. Says who was ended.
    ///
    /// Blocks for at most `grace` and ten seconds. The error after that names those that are left.
    pub(crate) fn end(&self, grace: Duration) -> io::Result<Vec<Tenant>> {
        let begun = Instant::now();
        let mut met: Vec<Tenant> = Vec::new();
        let mut asked: Vec<Tenant> = Vec::new();
        let mut quiet = 0;
        loop {
            let seen = self.tenants();
            let there: Vec<&Tenant> = seen
                .iter()
                .filter(|one| !one.is_ancestor)
                // Whoever merely looks is gone by the next look.
                .filter(|one| !one.only_lock || met.iter().any(|known| known.is_same(one)))
                .collect();
            let by_force = begun.elapsed() >= grace;
            for one in &there {
                let is_new = !asked.iter().any(|known| known.is_same(one));
                if let Some(pidfd) = one.hold() {
                    // Gone already, or not ours to signal: the next look tells.
                    if by_force {
                        let _ = sys::pidfd_kill(pidfd.as_fd(), SIGKILL);
                    } else if is_new {
                        let _ = sys::pidfd_kill(pidfd.as_fd(), SIGTERM);
                        let _ = sys::pidfd_kill(pidfd.as_fd(), SIGCONT);
                    }
                    if is_new {
                        asked.push((*one).clone());
                    }
                }
            }
            quiet = if seen.iter().all(|one| one.is_ancestor) {
                quiet + 1
            } else {
                0
            };
            if quiet >= QUIET_LOOKS {
                return Ok(asked);
            }
            if begun.elapsed() >= grace + KILL_LIMIT {
                return Err(io::Error::other(format!(
                    "these do not end: {}",
                    named(&seen)
                )));
            }
            met = seen;
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

impl Tenant {
    fn is(&self, process: &Process) -> bool {
        self.pid == process.pid && self.start == process.start
    }

    fn is_same(&self, other: &Tenant) -> bool {
        self.pid == other.pid && self.start == other.start
    }

    /// A descriptor of exactly this process: opened first and asked after, so that it cannot name whoever has the number
    /// now (F38).
    fn hold(&self) -> Option<OwnedFd> {
        let pidfd = pidfd_open(self.pid, PidfdFlags::empty()).ok()?;
        Process::read(self.pid)
            .is_some_and(|now| self.is(&now))
            .then_some(pidfd)
    }
}

/// Whether this is a parent of this process, or a parent of one.
fn is_ancestor(pid: Pid) -> bool {
    /// No family is deeper.
    const GENERATIONS: usize = 10_000;
    let mut next = Process::read(proc::own_pid()).and_then(|me| me.parent);
    for _ in 0..GENERATIONS {
        match next {
            Some(parent) if parent == pid => return true,
            Some(parent) => next = Process::read(parent).and_then(|it| it.parent),
            None => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command};

    use super::*;

    /// Two that work in the slot, one by its directory and one by what it was started with.
    fn sleepers(slot: &Path, place: &Path) -> [Child; 2] {
        let mut inside = Command::new("sleep");
        inside.arg("600").current_dir(place);
        let mut marked = Command::new("sleep");
        marked.arg("600").current_dir("/").env(SLOT_VARIABLE, slot);
        [inside, marked].map(|mut command| command.spawn().unwrap())
    }

    #[test]
    fn whoever_works_in_a_slot_is_found_and_ended() {
        let slot = tempfile::tempdir().unwrap();
        let place = slot.path().join("worktree");
        std::fs::create_dir(&place).unwrap();
        let tenancy = Tenancy::of(slot.path(), &place);
        let children = sleepers(slot.path(), &place);
        crate::process::testing::until("both are seen", || tenancy.tenants().len() == 2);
        let ended = tenancy.end(Duration::from_secs(60));
        let ends = children.map(|mut child| child.wait().unwrap().signal());
        assert_eq!(ended.unwrap().len(), 2);
        assert_eq!(ends, [Some(SIGTERM), Some(SIGTERM)]);
        assert!(tenancy.tenants().is_empty());
    }
}
