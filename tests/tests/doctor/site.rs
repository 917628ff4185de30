//! A store to break something in: a copy of one at rest, with two jobs more that live.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use outlive::state_machine::id::Name;
use outlive_tests::{Bench, Job, until};
use serde_json::Value;

/// What is in every store: jobs that have ended or wait, and a pool with a session.
pub(crate) struct Template {
    bench: Bench,
    done: String,
    failed: String,
    limited: String,
    queued: String,
    token: String,
}

impl Template {
    pub(crate) fn new(bench: Bench) -> Template {
        let ended = |job: Job<'_>| {
            job.wait();
            job.id().to_owned()
        };
        let done = ended(bench.sh("echo hello"));
        let failed = ended(bench.sh("exit 3"));
        let limited = ended(bench.sh_with(&["--log-max", "64K", "--log-keep", "1"], "echo short"));
        ended(bench.sh_with(&["--name", "old"], "exit 0"));
        let mut spec = bench.spec(&["true"]);
        spec.name = Some(Name::parse("web").unwrap());
        let queued = bench.store().create(spec).unwrap().id().to_string();
        bench
            .run([
                "pool",
                "add",
                "w",
                "--slots",
                "2",
                "--prepare",
                "echo > made",
            ])
            .expect(0);
        let open = || {
            let opened = bench.run(["pool", "open", "w", "--json"]).expect(0).json();
            opened["token"].as_str().unwrap().to_owned()
        };
        let token = open();
        let other = open();
        bench.run(["pool", "close", &other]).expect(0);
        until("the workers are gone", || bench.census().is_empty());
        Template {
            done,
            failed,
            limited,
            queued,
            token,
            bench,
        }
    }

    /// A store of its own, with a running job and a paused one.
    pub(crate) fn site(&self, bench: Bench) -> Site {
        let mut copy = Command::new("cp");
        copy.arg("-a").arg(self.bench.root()).arg(bench.root());
        assert!(copy.status().unwrap().success());
        let running = bench.sh("exec sleep 600").id().to_owned();
        let paused = bench.sh("exec sleep 600").id().to_owned();
        bench.run(["pause", &paused]).expect(0);
        let request = bench.job(&paused).file("control.taken");
        until("the pause is honoured", || !request.exists());
        Site {
            done: self.done.clone(),
            failed: self.failed.clone(),
            limited: self.limited.clone(),
            queued: self.queued.clone(),
            token: self.token.clone(),
            running,
            paused,
            saved: RefCell::default(),
            children: RefCell::default(),
            bench,
        }
    }

    pub(crate) fn audit(&self) {
        self.bench.job(&self.queued).stop(0);
        self.bench.run(["pool", "close", &self.token]).expect(0);
        self.bench.audit();
    }
}

/// A store of its own.
pub(crate) struct Site {
    pub(crate) bench: Bench,
    /// It has printed a line and exited with 0.
    pub(crate) done: String,
    /// It exited with 3.
    pub(crate) failed: String,
    /// It keeps 64 KiB of output.
    pub(crate) limited: String,
    /// It has the name `web`.
    pub(crate) queued: String,
    pub(crate) running: String,
    pub(crate) paused: String,
    /// It is open in the slot 1 of `w`; 2 was given back.
    pub(crate) token: String,
    saved: RefCell<Vec<(PathBuf, Vec<u8>)>>,
    children: RefCell<Vec<Child>>,
}

impl Site {
    pub(crate) fn path(&self, inside: &str) -> PathBuf {
        self.bench.root().join(inside)
    }

    /// The path of a job's directory from the root, or of a file in it.
    pub(crate) fn of(&self, job: &str, file: &str) -> String {
        match file {
            "" => format!("jobs/{job}"),
            file => format!("jobs/{job}/{file}"),
        }
    }

    pub(crate) fn read(&self, inside: &str) -> Vec<u8> {
        fs::read(self.path(inside)).unwrap()
    }

    pub(crate) fn write(&self, inside: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(inside);
        fs::write(&path, bytes).unwrap();
        set_mode(&path, 0o600);
    }

    pub(crate) fn remove(&self, inside: &str) {
        fs::remove_file(self.path(inside)).unwrap();
    }

    pub(crate) fn mkdir(&self, inside: &str) {
        fs::create_dir(self.path(inside)).unwrap();
        set_mode(&self.path(inside), 0o700);
    }

    pub(crate) fn link(&self, inside: &str, to: &str) {
        std::os::unix::fs::symlink(to, self.path(inside)).unwrap();
    }

    pub(crate) fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).unwrap();
    }

    pub(crate) fn copy(&self, from: &str, to: &str) {
        let mut copy = Command::new("cp");
        copy.arg("-a").arg(self.path(from)).arg(self.path(to));
        assert!(copy.status().unwrap().success());
    }

    /// Change the fields of a record.
    pub(crate) fn edit(&self, inside: &str, change: impl FnOnce(&mut Value)) {
        let mut record: Value = serde_json::from_slice(&self.read(inside)).unwrap();
        change(&mut record);
        self.write(inside, format!("{record}\n"));
    }

    /// As [`Site::edit`], to be taken back by [`Site::restore`].
    pub(crate) fn edit_for_now(&self, inside: &str, change: impl FnOnce(&mut Value)) {
        self.save(inside);
        self.edit(inside, change);
    }

    pub(crate) fn save(&self, inside: &str) {
        let saved = (self.path(inside), self.read(inside));
        self.saved.borrow_mut().push(saved);
    }

    /// Put back what was saved.
    pub(crate) fn restore(&self) {
        for (path, bytes) in self.saved.borrow_mut().drain(..) {
            fs::write(path, bytes).unwrap();
        }
    }

    /// The path of the only pointer of a key that begins so.
    pub(crate) fn pointer(&self, prefix: &str) -> String {
        let names = fs::read_dir(self.path("keys")).unwrap().flatten();
        let names = names.map(|entry| entry.file_name().into_string().unwrap());
        let mut found = names.filter(|name| name.starts_with(prefix) && name.ends_with(".json"));
        format!("keys/{}", found.next().unwrap())
    }

    /// The history of a job, line by line.
    pub(crate) fn lines(&self, job: &str) -> Vec<String> {
        let text = String::from_utf8(self.read(&self.of(job, "events.jsonl"))).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn write_lines(&self, job: &str, lines: &[String]) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        self.write(&self.of(job, "events.jsonl"), text);
    }

    /// A job whose worker was killed, and nothing of which is left.
    pub(crate) fn lost(&self) -> String {
        let job = self.bench.sh("exec sleep 600");
        let pid = job.pid();
        job.kill_worker();
        until("the command is gone", || {
            !Path::new(&format!("/proc/{pid}")).exists()
        });
        job.id().to_owned()
    }

    /// A process that carries the mark of a job.
    pub(crate) fn marked(&self, dir: &str) {
        let mut sleep = self.bench.program("sleep");
        sleep.arg("600");
        sleep.env(
            "OUTLIVE_JOB_DIR",
            self.bench.root().canonicalize().unwrap().join(dir),
        );
        let child = sleep.spawn().unwrap();
        let environ = format!("/proc/{}/environ", child.id());
        until("it is executed", || {
            let environment = fs::read(&environ).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains(dir)
        });
        self.children.borrow_mut().push(child);
    }

    pub(crate) fn end_children(&self) {
        for mut child in self.children.borrow_mut().drain(..) {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Run the doctor: its exit code and its report.
    #[track_caller]
    pub(crate) fn doctor(&self, options: &[&str]) -> (i32, Value) {
        let ran = self.bench.run([&["doctor", "--json"], options].concat());
        (ran.code(), ran.json())
    }
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
