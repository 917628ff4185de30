//! Supervisors of a bench: starting one in the foreground, and finding those that run.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::Signal;

use crate::bench::Bench;
use crate::census::Process;
use crate::client::Client;
use crate::until::{until, until_some};

/// A supervisor that was started by hand; killed when it is dropped.
#[derive(Debug)]
pub struct Supervisor {
    child: Child,
    root: PathBuf,
    log: PathBuf,
}

impl Bench {
    /// Start a supervisor in the foreground, which tells what it does in a file beside the store.
    pub fn supervise(&self) -> Supervisor {
        self.supervise_by(self.verb(["supervise", "--log-level", "debug"]))
    }

    /// As [`Bench::supervise`], by this command. It keeps no tapes: there would be one of each of its threads, as long as it
    /// lives.
    ///
    /// # Panics
    ///
    /// When it cannot be executed.
    pub fn supervise_by(&self, mut command: Command) -> Supervisor {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let log = self.dir().join(format!("supervised-{nth}.log"));
        let told = File::create(&log).expect("there is room for a log");
        let child = command
            .env("OUTLIVE_TAPE", "")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(told)
            .spawn()
            .expect("a supervisor can be executed");
        Supervisor {
            child,
            root: self.root(),
            log,
        }
    }

    /// Start a supervisor and wait until it admits jobs.
    #[track_caller]
    pub fn supervise_ready(&self) -> Supervisor {
        let mut supervisor = self.supervise();
        supervisor.until_told("ready");
        supervisor
    }

    /// Start a supervisor by this command and wait until it admits jobs.
    #[track_caller]
    pub fn supervise_ready_by(&self, command: Command) -> Supervisor {
        let mut supervisor = self.supervise_by(command);
        supervisor.until_told("ready");
        supervisor
    }

    /// The spawners that run on the store.
    pub fn spawners(&self) -> Vec<Process> {
        self.titled(|title| title.starts_with("outlive spawner"))
    }

    /// The workers that run on the store.
    pub fn workers(&self) -> Vec<Process> {
        self.titled(|title| title.starts_with("outlive worker"))
    }

    fn titled(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<Process> {
        let mut found = self.census();
        found.retain(|process| is_wanted(&process.title));
        found
    }

    /// What the store is configured as from now on.
    ///
    /// # Panics
    ///
    /// When that cannot be written.
    pub fn configure(&self, text: &str) {
        self.store();
        fs::write(self.root().join("config.toml"), text).expect("a store can be written to");
    }
}

impl Supervisor {
    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A client of its socket.
    pub fn connect(&self) -> Client {
        until_some("the supervisor takes a connection", || {
            Client::of(&self.root)
        })
    }

    /// Its process.
    pub fn process(&self) -> Option<Process> {
        Process::find(i32::try_from(self.child.id()).ok()?)
    }

    /// What it has told so far.
    pub fn told(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Send it a signal.
    pub fn signal(&self, signal: Signal) {
        if let Some(process) = self.process() {
            process.signal(signal);
        }
    }

    /// Whether it runs.
    pub fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Wait until it has told `what`.
    #[track_caller]
    pub fn until_told(&mut self, what: &str) {
        let mut told = String::new();
        let heard = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            until("the supervisor tells it", || {
                let runs = self.runs();
                told = self.told();
                told.contains(what) || !runs
            });
        }));
        assert!(
            heard.is_ok() && told.contains(what),
            "no '{what}' in: {told}"
        );
    }

    /// Kill it, as nobody should.
    ///
    /// # Panics
    ///
    /// When the kernel does not let us.
    pub fn kill(mut self) {
        self.child.kill().expect("a child can be killed");
        self.child.wait().expect("a killed child ends");
    }

    /// Tell it to end, and see that it does so with 0.
    #[track_caller]
    pub fn end(mut self) {
        self.signal(Signal::TERM);
        self.until_ended();
    }

    /// See that it ends, as it was told to, with 0.
    #[track_caller]
    pub fn ended(mut self) {
        self.until_ended();
    }

    /// See that it ends by itself, with 0.
    #[track_caller]
    pub fn until_ended(&mut self) {
        let mut status = None;
        until("the supervisor ends", || {
            status = self.child.try_wait().expect("a child can be waited for");
            status.is_some()
        });
        let code = status.and_then(|status| status.code());
        assert_eq!(code, Some(0), "{}", self.told());
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // One that has ended needs no killing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
