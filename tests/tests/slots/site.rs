//! A bench with a git repository beside its store, and a pool whose slots are worktrees of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use outlive_tests::{Bench, Ran};
use serde_json::Value;

/// A session that a test has open.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) token: String,
    pub(crate) path: PathBuf,
    pub(crate) slot: u64,
}

/// A repository and a pool.
pub(crate) struct Site {
    pub(crate) bench: Bench,
}

impl Site {
    /// A pool `web` of so many slots, set up with these options.
    pub(crate) fn new(bench: Bench, slots: u32, options: &[&str]) -> Site {
        let site = Site { bench };
        fs::create_dir(site.bench.dir().join("home")).unwrap();
        fs::create_dir(site.repository()).unwrap();
        site.git(&["init", "-q", "-b", "main"]);
        fs::write(site.repository().join("tracked"), "one\n").unwrap();
        fs::write(site.repository().join(".gitignore"), "cache\n").unwrap();
        site.commit("one");
        let (slots, repository) = (slots.to_string(), site.repository());
        let mut add = site.verb(&["add", "web", "--slots", &slots, "--source"]);
        add.arg(repository).args(options);
        site.bench.end(add).expect(0);
        site
    }

    pub(crate) fn repository(&self) -> PathBuf {
        self.bench.dir().join("repository")
    }

    /// Everything that is committed there now.
    pub(crate) fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    /// What git says in the repository.
    #[track_caller]
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.git_in(&self.repository(), arguments)
    }

    /// What git says in a directory.
    #[track_caller]
    pub(crate) fn git_in(&self, dir: &Path, arguments: &[&str]) -> String {
        let mut git = self.settled(self.bench.program("git"));
        git.current_dir(dir)
            .args(["-c", "user.name=n", "-c", "user.email=e@e"])
            .args(arguments);
        self.bench.end(git).expect(0).text()
    }

    /// A command that finds nobody's configuration.
    fn settled(&self, mut command: Command) -> Command {
        command
            .env("HOME", self.bench.dir().join("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
        command
    }

    /// A verb of `outlive pool`, not run yet.
    pub(crate) fn verb(&self, arguments: &[&str]) -> Command {
        let mut verb = self.settled(self.bench.verb(["pool"]));
        verb.args(arguments);
        verb
    }

    #[track_caller]
    pub(crate) fn pool(&self, arguments: &[&str]) -> Ran {
        self.bench.end(self.verb(arguments))
    }

    /// Open a session.
    #[track_caller]
    pub(crate) fn open(&self) -> Session {
        self.open_with(&[])
    }

    #[track_caller]
    pub(crate) fn open_with(&self, options: &[&str]) -> Session {
        let opened = self.pool(&[&["open", "web", "--json"], options].concat());
        session(&opened.expect(0).json())
    }

    #[track_caller]
    pub(crate) fn close(&self, session: &Session) -> Ran {
        self.pool(&["close", &session.token])
    }

    #[track_caller]
    pub(crate) fn force(&self, session: &Session) -> Ran {
        self.pool(&["close", &session.token, "--force"])
    }

    /// `pool exec`, not run yet.
    pub(crate) fn exec(&self, session: &Session, command: &[&str]) -> Command {
        let mut verb = self.verb(&["exec", &session.token, "--"]);
        verb.args(command);
        verb
    }

    /// What `pool status` says of a slot.
    #[track_caller]
    pub(crate) fn slot(&self, number: u64) -> Value {
        let pools = self.pool(&["status", "web", "--json"]).expect(0).json();
        let slots = pools[0]["slots"].as_array().unwrap().clone();
        let mut slots = slots.into_iter();
        slots
            .find(|slot| slot["number"] == number)
            .unwrap_or_else(|| panic!("there is no slot {number} in {pools}"))
    }

    #[track_caller]
    pub(crate) fn state(&self, number: u64) -> String {
        self.slot(number)["state"].as_str().unwrap().to_owned()
    }

    /// What `pool maintain --json` says of the pool's slots, by number.
    #[track_caller]
    pub(crate) fn maintained(&self, code: i32, options: &[&str]) -> Vec<Value> {
        let options = [&["maintain", "web", "--json"], options].concat();
        let report = self.pool(&options).expect(code).json();
        report["identities"][0]["outcome"]["visited"]["slots"]
            .as_array()
            .unwrap_or_else(|| panic!("no slots were visited: {report}"))
            .clone()
    }
}

pub(crate) fn session(report: &Value) -> Session {
    Session {
        token: report["token"].as_str().unwrap().to_owned(),
        path: report["path"].as_str().unwrap().into(),
        slot: report["slot"].as_u64().unwrap(),
    }
}
