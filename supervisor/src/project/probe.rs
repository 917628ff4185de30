//! Asking whether a task is ready, again and again, until it is, it has ended, or its time is over. Whoever asks changes nothing:
//! a task that never gets ready runs on.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use state_machine::project::{Ready, Signal, Task};
use state_machine::protocol::look::View;

use super::Tasks;
use super::aside::{Aside, why_not_done};
use crate::clock;
use crate::error::{Error, Result};
use crate::output;
use crate::store::Job;

/// The pauses between two questions: they double.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// How long one question may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long the question may take that is asked before a task is started.
const EARLY_PATIENCE: Duration = Duration::from_millis(200);

/// The address at which a task is ready once it answers, where something answers there now.
pub(super) fn is_served(ready: &Ready) -> Option<&str> {
    let (address, why_not) = match &ready.signal {
        Signal::Tcp(address) => (address, why_not_accepted(address, EARLY_PATIENCE)),
        Signal::Http(address) => (address, why_not_answered(address, EARLY_PATIENCE)),
        _ => return None,
    };
    why_not.is_none().then_some(address)
}

/// Whoever asks whether a task is ready.
pub(super) struct Probe<'a> {
    ready: &'a Ready,
    job: &'a Job,
    cwd: PathBuf,
    aside: Aside<'a>,
    log: Log,
}

impl<'a> Probe<'a> {
    pub(super) fn new(tasks: &Tasks, task: &'a Task, ready: &'a Ready, job: &'a Job) -> Probe<'a> {
        Probe {
            ready,
            job,
            cwd: tasks.cwd(task),
            aside: Aside::new(tasks, task),
            log: Log::new(job.dir().join(output::LOG)),
        }
    }

    /// Ask until the task is ready; why it is not, if it has ended, or is not ready in time. `over` says why a job cannot be ready any
    /// more.
    pub(super) fn wait(mut self, over: impl Fn(&View) -> Option<String>) -> Result<Option<String>> {
        let deadline = clock::since_boot() + self.ready.timeout;
        let mut pause = FIRST_PAUSE;
        if let Signal::Delay(delay) = self.ready.signal {
            return self.sleep(delay.saturating_sub(self.age()?), &over);
        }
        loop {
            let left = deadline.saturating_sub(clock::since_boot());
            let Some(why) = self.why_not_ready(left.min(PATIENCE))? else {
                // Somebody else may have answered.
                return Ok(over(&self.job.tend()?));
            };
            if left.is_zero() {
                return self.too_late(&why).map(Some);
            }
            if let Some(why) = self.sleep(pause.min(left), &over)? {
                return Ok(Some(why));
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// That its time is over, what was answered last, and how it runs.
    fn too_late(&self, why: &str) -> Result<String> {
        let attempt = self.job.look()?.status.attempt;
        let again = match attempt {
            0 | 1 => String::new(),
            _ => format!(", in attempt {attempt}"),
        };
        let timeout = self.ready.timeout;
        Ok(format!(
            "it is not ready after {timeout:?}: {why}; it runs on{again}"
        ))
    }

    /// Sleep, but no longer than until it is over.
    fn sleep(
        &self,
        time: Duration,
        over: &impl Fn(&View) -> Option<String>,
    ) -> Result<Option<String>> {
        let is_notified =
            |view: &View| self.ready.signal == Signal::Notify && view.status.ready_at_ms.is_some();
        let is_enough = |view: &View| over(view).is_some() || is_notified(view);
        match self.job.wait_until(Some(time), is_enough) {
            Ok(view) => Ok(over(&view)),
            Err(Error::TimedOut(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// How long ago the job has started. A clock that was set back says that it was just now.
    fn age(&self) -> Result<Duration> {
        let started_at_ms = self.job.look()?.status.started_at_ms;
        let age_ms = started_at_ms.map_or(0, |at_ms| clock::now_ms().saturating_sub(at_ms));
        Ok(Duration::from_millis(age_ms))
    }

    fn why_not_ready(&mut self, patience: Duration) -> Result<Option<String>> {
        // One more question after the last moment: it may have become ready in the last pause.
        let patience = patience.max(FIRST_PAUSE);
        let unless = |is_so: bool, why: String| (!is_so).then_some(why);
        Ok(match &self.ready.signal {
            Signal::Tcp(address) => why_not_accepted(address, patience),
            Signal::Http(address) => why_not_answered(address, patience),
            Signal::Command(command) => {
                let ran = self.aside.run(command, patience)?;
                why_not_done(ran, patience).map(|why| format!("of the command that asks: {why}"))
            }
            Signal::Notify => unless(
                self.job.look()?.status.ready_at_ms.is_some(),
                "it has not said so".into(),
            ),
            Signal::File(path) => {
                let path = self.cwd.join(path);
                unless(path.exists(), format!("there is no {}", path.display()))
            }
            Signal::Log(text) => unless(
                self.log.holds(text.as_bytes()),
                format!("it has not printed {text:?}"),
            ),
            // Waited for, not asked.
            Signal::Delay(_) => None,
        })
    }
}

/// Why nothing accepts connections there, if nothing does.
fn why_not_accepted(address: &str, patience: Duration) -> Option<String> {
    let addresses = match address.to_socket_addrs() {
        Ok(addresses) => addresses,
        Err(error) => return Some(format!("{address} is not found: {error}")),
    };
    let mut why = format!("{address} is no address");
    for one in addresses {
        match TcpStream::connect_timeout(&one, patience) {
            Ok(_) => return None,
            Err(error) => why = format!("{one} does not accept connections: {}", words_of(&error)),
        }
    }
    Some(why)
}

/// What the system says, without its number.
fn words_of(error: &io::Error) -> String {
    let errno = error.raw_os_error().map(nix::errno::Errno::from_raw);
    errno.map_or_else(|| error.to_string(), |errno| errno.desc().to_lowercase())
}

/// Why an address does not answer with a status of 200 to 399, if it does not. No proxy is asked: what is meant is near.
fn why_not_answered(address: &str, patience: Duration) -> Option<String> {
    let agent = ureq::Agent::config_builder()
        .timeout_global(Some(patience))
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .build()
        .new_agent();
    match agent.get(address).call() {
        Ok(answer) if (200..400).contains(&answer.status().as_u16()) => None,
        Ok(answer) => Some(format!("{address} answers {}", answer.status().as_u16())),
        Err(error) => Some(format!("{address} does not answer: {error}")),
    }
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
