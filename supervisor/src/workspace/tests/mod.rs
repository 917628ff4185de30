//! With a real git, on repositories in temporary directories. Everything runs in a process with one thread, as a minder is a fork
//! of that.

mod cut;
mod discard;
mod judge;
mod locks;
mod remove;
mod reset;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::lock::clear_maintenance_lock;
use super::remove::Removed;
use super::unfinished::Unfinished;
use super::work::Kind;
use super::*;
use crate::process::testing::alone_with;

/// No configuration but that of the repository.
const NO_HOME: [(&str, &str); 2] = [
    ("HOME", "/outlive-no-home"),
    ("XDG_CONFIG_HOME", "/outlive-no-home"),
];

/// Runs a test where git has no configuration of whoever runs the tests.
fn with_git<F: FnOnce()>(body: F) {
    alone_with(&NO_HOME, body);
}

/// A repository, and slots cut from it.
struct Bench {
    dir: tempfile::TempDir,
    minder: Minder,
    within: Duration,
}

impl Bench {
    /// A repository with two commits on `main`.
    fn new() -> Bench {
        let bench = Bench {
            dir: tempfile::tempdir().unwrap(),
            minder: Minder::fork().unwrap(),
            within: Duration::from_secs(60),
        };
        fs::create_dir(bench.path("slots")).unwrap();
        bench.init(&bench.source());
        let source = bench.source();
        bench.write("source/.gitignore", "cache/\n*.o\n");
        bench.write("source/a", "a\n");
        bench.write("source/dir/b", "b\n");
        bench.commit(&source, "first");
        bench.write("source/a", "a\nA\n");
        bench.commit(&source, "second");
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        // Without links, as git writes it.
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn source(&self) -> PathBuf {
        self.path("source")
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Run git as a person would.
    fn try_git(&self, cwd: &Path, arguments: &[&str]) -> std::process::Output {
        let who = ["AUTHOR", "COMMITTER"].map(|who| {
            [
                (format!("GIT_{who}_NAME"), "Somebody"),
                (format!("GIT_{who}_EMAIL"), "somebody@example.com"),
            ]
        });
        let mut command = std::process::Command::new("git");
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"GIT_") {
                command.env_remove(name);
            }
        }
        command
            .args([
                "-c",
                "init.defaultBranch=main",
                "-c",
                "protocol.file.allow=always",
            ])
            .args(arguments)
            .current_dir(cwd)
            .envs(who.into_iter().flatten())
            .env("GIT_EDITOR", "true")
            .output()
            .unwrap()
    }

    #[track_caller]
    fn git(&self, cwd: &Path, arguments: &[&str]) -> String {
        let output = self.try_git(cwd, arguments);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {complaint}");
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned()
    }

    fn init(&self, dir: &Path) {
        self.git(
            dir.parent().unwrap(),
            &["init", "-q", dir.to_str().unwrap()],
        );
    }

    fn commit(&self, dir: &Path, message: &str) -> String {
        self.git(dir, &["add", "--all"]);
        self.git(dir, &["commit", "-q", "--allow-empty", "-m", message]);
        self.git(dir, &["rev-parse", "HEAD"])
    }

    fn head(&self, dir: &Path) -> String {
        self.git(dir, &["rev-parse", "HEAD"])
    }

    fn configure(&self, name: &str, value: &str) {
        self.git(&self.source(), &["config", name, value]);
    }

    fn slot(&self, name: impl AsRef<OsStr>) -> Workspace {
        let source = Source::Git {
            repository: self.source(),
        };
        Workspace::new(source, self.path("slots").join(name.as_ref()))
    }

    /// A slot that is cut.
    #[track_caller]
    fn cut(&mut self, name: impl AsRef<OsStr>) -> Workspace {
        let slot = self.slot(name);
        slot.cut(&mut self.hands(), None).unwrap();
        slot
    }

    fn hands(&mut self) -> Hands<'_> {
        Hands {
            minder: &mut self.minder,
            held: None,
            stop: None,
            within: self.within,
            grace: Duration::from_secs(10),
        }
    }

    fn judge(&mut self, slot: &Workspace) -> Judgement {
        slot.judge(&mut self.hands())
    }

    #[track_caller]
    fn assert_sound(&mut self, slot: &Workspace) {
        assert_eq!(self.judge(slot), Judgement::Sound);
    }

    /// The kinds of work in a slot.
    #[track_caller]
    fn work(&mut self, slot: &Workspace) -> Vec<Kind> {
        match self.judge(slot) {
            Judgement::Work(work) => work.iter().map(|one| one.kind).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn broken(&mut self, slot: &Workspace) -> String {
        match self.judge(slot) {
            Judgement::Broken(why) => why,
            other => panic!("{other:?}"),
        }
    }

    fn reset(&mut self, slot: &Workspace) -> Result<Option<crate::process::Ran>, Trouble> {
        slot.reset(&mut self.hands(), None)
    }

    fn trash(&self) -> PathBuf {
        self.path("trash")
    }

    /// Run a command of the pool, as a script.
    fn chore<T>(
        &mut self,
        script: &str,
        run: impl FnOnce(&mut Hands<'_>, &Chore<'_>) -> Result<T, Trouble>,
    ) -> (Result<T, Trouble>, String) {
        let path = self.path("log");
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .unwrap();
        let argv: Vec<OsString> = ["sh", "-c", script].map(OsString::from).into();
        let chore = Chore {
            argv: &argv,
            mark: ("OUTLIVE_TEST_MARK", "1".as_ref()),
            timeout: Duration::from_secs(60),
            log: log.as_fd(),
        };
        let done = run(&mut self.hands(), &chore);
        (done, fs::read_to_string(path).unwrap())
    }

    /// What the repository has registered.
    fn registered(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.source().join(".git/worktrees")) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// Everything in a tree but `.git` and what is ignored: kind, mode and contents.
fn tree(dir: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    add(dir, dir, &mut found);
    found
}

fn add(top: &Path, dir: &Path, found: &mut BTreeMap<PathBuf, (u32, Vec<u8>)>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(top).unwrap().to_owned();
        let is_left_out = name == Path::new(".git")
            || name == Path::new("cache")
            || name.extension() == Some(OsStr::new("o"));
        if is_left_out {
            continue;
        }
        let metadata = fs::symlink_metadata(&path).unwrap();
        let contents = if metadata.is_dir() {
            add(top, &path, found);
            Vec::new()
        } else if metadata.is_symlink() {
            fs::read_link(&path)
                .unwrap()
                .into_os_string()
                .into_encoded_bytes()
        } else {
            fs::read(&path).unwrap()
        };
        found.insert(name, (metadata.permissions().mode(), contents));
    }
}

/// Everything in a directory, byte for byte.
fn everything(dir: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        if metadata.is_dir() {
            found.extend(everything(&path));
        } else {
            let contents = fs::read(&path).unwrap_or_default();
            found.insert(path, (metadata.permissions().mode(), contents));
        }
    }
    found
}
