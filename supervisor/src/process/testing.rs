//! For tests: a process with one thread, as a worker is, and waiting without sleeping blindly.

use std::any::type_name;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, set_parent_process_death_signal, waitpid};

use super::{Command, Leader, fork_command, is_empty, kill_round};
use crate::sys::{self, Forked};

const INSIDE: &str = "OUTLIVE_TEST_ALONE";

/// Runs `body`, the whole of a test, in a process of its own with one thread.
///
/// The test binary runs its tests on threads and so is no place to fork: it is executed again for
/// this one test, and there `body` runs in a fork, in which only that thread goes on.
pub(crate) fn alone<F: FnOnce()>(body: F) {
    alone_with(&[], body);
}

/// As [`alone`], with these variables in the environment.
pub(crate) fn alone_with<F: FnOnce()>(env: &[(&str, &str)], body: F) {
    // `outlive::room::tests::name::{{closure}}`
    let name = type_name::<F>().trim_end_matches("::{{closure}}");
    let name = name.split_once("::").map_or(name, |(_, rest)| rest);
    if std::env::var_os(INSIDE).is_some_and(|inside| inside == name) {
        // Whoever ends the tests ends this one.
        set_parent_process_death_signal(Some(Signal::KILL)).unwrap();
        return in_fork(body);
    }
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(INSIDE, name)
        .envs(env.iter().copied())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}\n{complaint}"
    );
}

fn in_fork(body: impl FnOnce()) {
    match sys::fork_beside_idle_main_thread().unwrap() {
        Forked::Child => {
            let _guard = sys::NeverUnwind;
            set_parent_process_death_signal(Some(Signal::KILL)).unwrap();
            let passed = catch_unwind(AssertUnwindSafe(body)).is_ok();
            // Whatever the test made, also when it failed half way.
            let cleaned = catch_unwind(end_everything).is_ok();
            sys::exit_now(if passed && cleaned { 0 } else { 1 })
        }
        Forked::Parent(pid) => {
            let (_, status) = waitpid(Some(pid), WaitOptions::empty()).unwrap().unwrap();
            assert_eq!(status.exit_status(), Some(0), "see above");
        }
    }
}

/// Kills every descendant, orphans included if this is a subreaper.
pub(crate) fn end_everything() {
    until("everything has ended", || {
        kill_round(None).unwrap();
        is_empty().unwrap()
    });
}

/// Waits for a condition, looking often; fails after half a minute.
#[track_caller]
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let give_up = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < give_up, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A directory with a locked `tree` file, and commands started in it.
pub(crate) struct Bench {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) env: Vec<(OsString, OsString)>,
}

impl Bench {
    pub(crate) fn new() -> Bench {
        let env = vec![("PATH".into(), "/usr/bin:/bin".into())];
        Bench {
            dir: tempfile::tempdir().unwrap(),
            env,
        }
    }

    /// The tree file with an exclusive lock.
    pub(crate) fn lock_tree(&self) -> File {
        let tree = self.open_tree();
        tree.try_lock().unwrap();
        tree
    }

    pub(crate) fn open_tree(&self) -> File {
        let path = self.dir.path().join("tree");
        OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .unwrap()
    }

    /// What the command wrote to its standard output.
    pub(crate) fn output(&self) -> Vec<u8> {
        std::fs::read(self.dir.path().join("out")).unwrap_or_default()
    }

    pub(crate) fn command<'a>(&'a self, argv: &'a [OsString], tree: File) -> Command<'a> {
        self.command_in(self.dir.path(), argv, tree)
    }

    pub(crate) fn command_in<'a>(
        &'a self,
        cwd: &'a Path,
        argv: &'a [OsString],
        tree: File,
    ) -> Command<'a> {
        let out = File::create(self.dir.path().join("out")).unwrap();
        let null = || -> OwnedFd { File::open("/dev/null").unwrap().into() };
        let umask = None;
        let stderr = out.try_clone().unwrap().into();
        Command {
            argv,
            env: &self.env,
            cwd,
            umask,
            stdin: null(),
            stdout: out.into(),
            stderr,
            tree: tree.into(),
            slot: None,
        }
    }

    /// Starts `sh -c SCRIPT` and lets go of the tree file.
    pub(crate) fn shell(&self, script: &str) -> Leader {
        let argv = words(&["sh", "-c", script]);
        fork_command(self.command(&argv, self.lock_tree()))
            .unwrap()
            .release()
            .unwrap()
    }
}

pub(crate) fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// Forks `body` off as a child.
pub(crate) fn fork_off(body: impl FnOnce()) -> Pid {
    match sys::fork().unwrap() {
        Forked::Child => {
            let _guard = sys::NeverUnwind;
            body();
            sys::exit_now(0)
        }
        Forked::Parent(pid) => pid,
    }
}
