//! Asking whether a task is ready, again and again, until it is, it has ended, or its time is over. Whoever asks changes nothing:
//! a task that never gets ready runs on.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use state_machine::project::{Invocation, Ready, Signal, Task};
use state_machine::protocol::look::View;

use super::{Tasks, words};
use crate::clock;
use crate::error::{Error, Result};
use crate::output;
use crate::process::{Minder, Work, environment};
use crate::store::Job;
use crate::worker::Launcher;

/// The pauses between two questions: they double.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// How long one question may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a command that asks has after SIGTERM.
const GRACE: Duration = Duration::from_secs(1);

/// Whoever asks whether a task is ready.
pub(super) struct Probe<'a> {
    ready: &'a Ready,
    job: &'a Job,
    task: &'a Task,
    cwd: PathBuf,
    minder: Option<Minder>,
    log: Log,
}

impl<'a> Probe<'a> {
    pub(super) fn new(tasks: &Tasks, task: &'a Task, ready: &'a Ready, job: &'a Job) -> Probe<'a> {
        Probe {
            ready,
            job,
            task,
            cwd: tasks.cwd(task),
            minder: None,
            log: Log::new(job.dir().join(output::LOG)),
        }
    }

    /// Ask until the task is ready; why it is not, if it has ended, or is not ready in time. `over` says why a job cannot be ready any
    /// more.
    pub(super) fn wait(mut self, over: impl Fn(&View) -> Option<String>) -> Result<Option<String>> {
        let deadline = clock::since_boot() + self.ready.timeout;
        let mut pause = FIRST_PAUSE;
        if let Signal::Delay(delay) = self.ready.signal {
            return self.sleep(delay, &over);
        }
        loop {
            let left = deadline.saturating_sub(clock::since_boot());
            if self.is_ready(left.min(PATIENCE))? {
                // Somebody else may have answered.
                return Ok(over(&self.job.tend()?));
            }
            if left.is_zero() {
                return Ok(Some(format!(
                    "it is not ready after {:?}; it runs on",
                    self.ready.timeout
                )));
            }
            if let Some(why) = self.sleep(pause.min(left), &over)? {
                return Ok(Some(why));
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Sleep, but no longer than until it is over.
    fn sleep(
        &self,
        time: Duration,
        over: &impl Fn(&View) -> Option<String>,
    ) -> Result<Option<String>> {
        match self.job.wait_until(Some(time), |view| over(view).is_some()) {
            Ok(view) => Ok(over(&view)),
            Err(Error::TimedOut(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn is_ready(&mut self, patience: Duration) -> Result<bool> {
        // One more question after the last moment: it may have become ready in the last pause.
        let patience = patience.max(FIRST_PAUSE);
        Ok(match &self.ready.signal {
            Signal::Tcp(address) => accepts(address, patience),
            Signal::Http(address) => answers(address, patience),
            Signal::Command(command) => self.succeeds(command, patience)?,
            Signal::File(path) => self.cwd.join(path).exists(),
            Signal::Log(text) => self.log.holds(text.as_bytes()),
            // Waited for, not asked.
            Signal::Delay(_) => true,
        })
    }

    /// Whether a command exits with 0. Nothing that it starts is left.
    fn succeeds(&mut self, command: &Invocation, patience: Duration) -> Result<bool> {
        let cannot = |error: io::Error| Error::Worker(format!("no command can be run: {error}"));
        let argv = words(command);
        let set: Vec<(&str, &str)> = self
            .task
            .env
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let nowhere = OpenOptions::new()
            .write(true)
            .open("/dev/null")
            .map_err(cannot)?;
        let work = Work {
            argv: &argv,
            env: &environment(&set),
            cwd: &self.cwd,
            umask: None,
            stdin: None,
            stdout: nowhere.as_fd(),
            stderr: nowhere.as_fd(),
            held: None,
            timeout: patience,
            grace: GRACE,
        };
        let minder = match &mut self.minder {
            Some(minder) => minder,
            none => none.insert(Launcher::this_program().minder()?),
        };
        match minder.run(&work, None) {
            Ok(ran) => Ok(ran.succeeded()),
            Err(error) => {
                self.minder = None;
                Err(cannot(error))
            }
        }
    }
}

/// Whether something accepts connections there.
fn accepts(address: &str, patience: Duration) -> bool {
    let addresses = address.to_socket_addrs().into_iter().flatten();
    addresses
        .into_iter()
        .any(|address| TcpStream::connect_timeout(&address, patience).is_ok())
}

/// Whether an address answers with a status of 200 to 399. No proxy is asked: what is meant is near.
fn answers(address: &str, patience: Duration) -> bool {
    let agent = ureq::Agent::config_builder()
        .timeout_global(Some(patience))
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .build()
        .new_agent();
    agent
        .get(address)
        .call()
        .is_ok_and(|answer| (200..400).contains(&answer.status().as_u16()))
}

/// What a job prints, looked through once.
struct Log {
    path: PathBuf,
    file: Option<File>,
    /// The end of what was looked through, in which a text may have begun.
    tail: Vec<u8>,
}

impl Log {
    fn new(path: PathBuf) -> Log {
        Log {
            path,
            file: None,
            tail: Vec::new(),
        }
    }

    /// Whether this was printed, in what is new. What cannot be read now may be read next time.
    fn holds(&mut self, text: &[u8]) -> bool {
        self.look(text).unwrap_or(false)
    }

    fn look(&mut self, text: &[u8]) -> io::Result<bool> {
        self.reopen_if_rotated()?;
        let Some(file) = &mut self.file else {
            return Ok(false);
        };
        let mut chunk = [0; 64 << 10];
        loop {
            let read = file.read(&mut chunk)?;
            if read == 0 {
                return Ok(false);
            }
            self.tail.extend_from_slice(&chunk[..read]);
            if self.tail.windows(text.len()).any(|window| window == text) {
                return Ok(true);
            }
            let kept = self.tail.len().min(text.len() - 1);
            self.tail.drain(..self.tail.len() - kept);
        }
    }

    /// A log with a limit is moved away when it is full, and another takes its place.
    fn reopen_if_rotated(&mut self) -> io::Result<()> {
        use std::os::unix::fs::MetadataExt;
        let stands = std::fs::metadata(Path::new(&self.path))?;
        let is_same = match &mut self.file {
            Some(file) => {
                let open = file.metadata()?;
                let place = file.stream_position()?;
                (open.dev(), open.ino()) == (stands.dev(), stands.ino()) && place <= open.len()
            }
            None => false,
        };
        if !is_same {
            let mut file = File::open(&self.path)?;
            file.seek(SeekFrom::Start(0))?;
            self.file = Some(file);
        }
        Ok(())
    }
}
