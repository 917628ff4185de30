//! The course of one job: its attempts, the waits between them, and its end. Read [`Course::run`] first.

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use state_machine::control::Request;
use state_machine::disk::{Dir, Disk, Name, Place};
use state_machine::id::JobId;
use state_machine::job::State;
use state_machine::protocol::create::Durable;
use state_machine::protocol::hold::Holder;
use state_machine::record::{Command, Descriptor, Exit, Failure, Kind, Status, What};

use super::attempt::{self, Ready, Refused};
use super::book::{Book, Written};
use super::launch::{Report, Terms};
use super::oversee::{Until, stopping};
use super::tree::{Tree, Why};
use super::wake::{Wake, Woken};
use crate::clock;
use crate::disk::LockFile;
use crate::process;
use crate::store::{Held, Job, exit_code};
use crate::sys;

/// How soon an attempt that could not be recorded is tried again.
const RECORD_LOOK: Duration = Duration::from_millis(500);

/// What there is to do after a step of the course.
enum Next {
    /// Try again, after a wait.
    Retry(Duration),
    /// Nothing more: the end, or the pause, is recorded.
    Leave,
}

/// One job, from its first attempt to its end.
pub(super) struct Course<'a> {
    pub(super) job: &'a Job,
    pub(super) id: JobId,
    dir: PathBuf,
    pub(super) descriptor: Descriptor,
    terms: Terms,
    pub(super) book: Book,
    pub(super) wake: Wake,
    pub(super) grace: Duration,
    pub(super) told_to_end: bool,
    /// Since when a control file is there and empty, in time since boot.
    pub(super) empty_since: Option<Duration>,
    /// What the limits of earlier streams and attempts have cost, in bytes.
    pub(super) dropped_bytes: u64,
    /// Failed attempts in a row, for the backoff.
    failures: u32,
    /// The job cannot be seen yet: nothing may be recorded, and nothing may run.
    unpublished: bool,
}

impl<'a> Course<'a> {
    /// Set up what the worker sleeps on, and become the parent of every orphan of the tree (F47).
    pub(super) fn new(job: &'a Job, held: Held, terms: Terms) -> std::io::Result<Course<'a>> {
        let dir = job.dir();
        let wake = Wake::new(&dir)?;
        Course::with(job, held, terms, dir, wake)
    }

    /// As [`Course::new`], for a job whose directory this process stands in and that is not published yet.
    pub(super) fn before_publication(
        job: &'a Job,
        held: Held,
        terms: Terms,
    ) -> std::io::Result<Course<'a>> {
        let wake = Wake::new(Path::new("."))?;
        let mut course = Course::with(job, held, terms, job.dir(), wake)?;
        let standing_here = job.store().disk().standing_in(&course.id);
        *course.book.disk() = standing_here;
        course.unpublished = true;
        Ok(course)
    }

    fn with(
        job: &'a Job,
        held: Held,
        terms: Terms,
        dir: PathBuf,
        wake: Wake,
    ) -> std::io::Result<Course<'a>> {
        see_that_files_can_be_opened()?;
        process::become_subreaper()?;
        Ok(Course {
            job,
            id: held.holder.id().clone(),
            grace: Duration::from_millis(held.descriptor.grace_ms),
            dropped_bytes: held.holder.status().dropped_bytes.unwrap_or(0),
            book: Book::new(job.store().disk(), held.holder),
            descriptor: held.descriptor,
            terms,
            dir,
            wake,
            told_to_end: false,
            empty_since: None,
            failures: 0,
            unpublished: false,
        })
    }

    /// Run the job to its end, its pause, or the end of this worker. Returns the worker's own exit code.
    pub(super) fn run(mut self, mut report: Report) -> i32 {
        let went = self.attempts(&mut report);
        let unpublished = self.unpublished;
        if let Err(error) = &went {
            // The kernel denies us what we live on. The command dies with us, by its parent-death signal; readers see
            // an interrupted job and, if more is left, its leftovers.
            self.book.note(format!("the worker cannot go on: {error}"));
        }
        if !unpublished {
            report.close("left");
        }
        let Course {
            job,
            book,
            descriptor,
            terms,
            ..
        } = self;
        let is_clean = book.is_clean();
        let holder = book.into_holder();
        if unpublished && !is_in_place(job, &holder) {
            // Its maker still has the lock, and goes on with it under another id or not at all: it is not ours to give up.
            return 1;
        }
        // A request that came while we were leaving is answered now, by us or by its sender (R6).
        let left = job.let_go(Held { holder, descriptor });
        if went.is_err() || left.is_err() || unpublished {
            // A maker that dismissed us waits for the end of this process.
            return 1;
        }
        if is_clean && terms.lays_in {
            // Nobody waits for us any more, so there is time for what the next start would have to do. It can do without.
            let _ = job.store().lay_in();
        }
        0
    }

    fn attempts(&mut self, report: &mut Report) -> std::io::Result<()> {
        loop {
            match self.attempt(report)? {
                Next::Leave => return Ok(()),
                Next::Retry(delay) => {
                    if !self.back_off(delay)? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// One attempt: start the command, watch it, record how it ended.
    fn attempt(&mut self, report: &mut Report) -> std::io::Result<Next> {
        // What needs nobody to see the job is done while its maker waits for the disk.
        let prepared = match &self.descriptor.kind {
            Kind::Command(command) if self.unpublished => {
                let command = command.clone();
                Some(self.prepare(&command))
            }
            _ => None,
        };
        if self.unpublished && !self.is_published(report)? {
            return Ok(Next::Leave);
        }
        if self.is_asked_away()? {
            report.close(&self.over(report));
            self.tell_hook_of_end()?;
            return Ok(Next::Leave);
        }
        let Kind::Command(command) = self.descriptor.kind.clone() else {
            let refused = Refused {
                failure: Failure::Start,
                message: "this version runs commands only".into(),
            };
            return self.cannot_start(report, &refused);
        };
        let prepared = prepared.unwrap_or_else(|| self.prepare(&command));
        let mut tree = match prepared.and_then(|ready| self.start(ready, report)) {
            Ok(Some(tree)) => tree,
            Ok(None) if self.has_run() && !self.book.is_clean() => {
                // A full disk must not end a job that was promised more attempts.
                return Ok(Next::Retry(RECORD_LOOK));
            }
            Ok(None) => {
                report.close("the start cannot be recorded, so the command was not run");
                return Ok(Next::Leave);
            }
            Err(refused) => return self.cannot_start(report, &refused),
        };
        report.started();
        // From here on there may be nothing to do for days; what is not needed is given back.
        sys::trim_heap();
        self.oversee(&mut tree, Until::CommandEnds)?;
        tree.drain();
        self.conclude(tree, report)
    }

    /// Whether something was asked before the command was started that keeps it from being started.
    fn is_asked_away(&mut self) -> std::io::Result<bool> {
        let woken = self.wake.heard()?;
        self.note_waking(woken);
        if self.told_to_end {
            return Ok(true);
        }
        let when = if self.has_run() {
            "between two attempts"
        } else {
            "before it ran"
        };
        let (state, message) = match self.take() {
            Some(Request::Cancel) => (State::Cancelled, format!("cancelled {when}")),
            Some(Request::Pause) => (State::Paused, format!("paused {when}")),
            // It is about to run: that is what was asked.
            Some(Request::Resume) => {
                self.answer();
                return Ok(false);
            }
            None => return Ok(false),
        };
        self.finish(|status| {
            status.state = state;
            if state == State::Paused {
                status.slot = None;
            }
            status.next_attempt_at_ms = None;
            status.message = Some(message);
        })?;
        self.answer();
        Ok(true)
    }

    /// Wait until the job can be seen and survives a loss of power. `false` when its maker is gone or wants no worker.
    fn is_published(&mut self, report: &Report) -> std::io::Result<bool> {
        if !report.hears_of_publication() {
            return Ok(false);
        }
        // The directory is in its place now, and must not be kept from being unmounted by us.
        *self.book.disk() = self.job.store().disk();
        self.unpublished = false;
        rustix::process::chdir("/")?;
        Ok(true)
    }

    /// Make the child that will be the command, and waits.
    fn prepare(&mut self, command: &Command) -> Result<Ready, Refused> {
        let earlier = self.book.status().attempt > 0;
        let tree_lock =
            attempt::take_tree(self.book.disk(), &self.id, &self.dir, self.grace, earlier)?;
        let now_at = self.book.disk().dir(&Dir::Job(self.id.clone()));
        attempt::prepare(&self.descriptor, command, &self.dir, &now_at, tree_lock)
    }

    /// Start the command. `None` when it cannot be recorded that it runs: then it does not run.
    fn start(&mut self, ready: Ready, report: &mut Report) -> Result<Option<Tree>, Refused> {
        let pid = ready.pid();
        let slot = self.terms.slot;
        let written = self.write(
            |status| {
                status.state = State::Running;
                status.attempt = status.attempt.max(1);
                status.pid = Some(pid);
                status.slot = slot;
                status.started_at_ms.get_or_insert_with(clock::now_ms);
                status.next_attempt_at_ms = None;
                status.stopping = None;
                status.message = None;
                status.exit = None;
            },
            Vec::new(),
            Durable::No,
        );
        if written != Written::Yes {
            return Ok(None);
        }
        let timeout = self.descriptor.timeout_ms.map(Duration::from_millis);
        ready.release(timeout, || report.started()).map(Some)
    }

    fn cannot_start(&mut self, report: &mut Report, refused: &Refused) -> std::io::Result<Next> {
        if refused.failure == Failure::Start && self.may_retry() {
            report.started();
            return Ok(self.again(&refused.message, Duration::ZERO));
        }
        if self.book.status().state != State::Running {
            // Only what runs can fail; this one ran for no time.
            let slot = self.terms.slot;
            self.write(
                |status| {
                    status.state = State::Running;
                    status.slot = slot;
                    status.attempt = status.attempt.max(1);
                },
                Vec::new(),
                Durable::No,
            );
        }
        let (failure, message) = (refused.failure, refused.message.clone());
        self.finish(|status| {
            status.state = State::Failed;
            status.pid = None;
            status.failure = Some(failure);
            status.message = Some(message);
        })?;
        self.answer();
        report.close(&self.over(report));
        self.tell_hook(None)?;
        Ok(Next::Leave)
    }

    /// The command has ended, or the tree was ended: record it, or see to the next attempt.
    fn conclude(&mut self, mut tree: Tree, report: &mut Report) -> std::io::Result<Next> {
        match tree.stop.map(|stop| stop.why) {
            Some(Why::Shutdown) => Ok(Next::Leave),
            Some(Why::Cancel) => self.conclude_cancelled(&tree, report),
            Some(Why::Pause) => {
                self.finish(|status| {
                    status.state = State::Paused;
                    status.pid = None;
                    status.slot = None;
                    status.stopping = None;
                    status.message = None;
                })?;
                self.answer();
                Ok(Next::Leave)
            }
            why @ (Some(Why::Timeout | Why::NextAttempt) | None) => {
                if tree.frozen.is_some() {
                    // It was killed where it stood. What is left of it must be able to end.
                    self.thaw(&mut tree)?;
                }
                match self.failure_of(tree.exit, why) {
                    Some(reason) if self.may_retry() => self.see_to_retry(tree, reason, report),
                    failed => self.conclude_ended(tree, failed, report),
                }
            }
        }
    }

    fn conclude_cancelled(&mut self, tree: &Tree, report: &mut Report) -> std::io::Result<Next> {
        let (exit, stop) = (tree.exit, tree.stop);
        let dropped = self.dropped(tree);
        let forced = stop.is_some_and(|stop| stop.forced());
        self.terms.vacate(&self.id);
        self.finish(|status| {
            status.state = State::Cancelled;
            status.exit = exit;
            status.pid = None;
            status.stopping = stop.as_ref().map(stopping);
            status.dropped_bytes = dropped;
            status.message = forced.then(|| "SIGKILL was needed to end it".into());
        })?;
        self.answer();
        report.close(&self.ended());
        self.tell_hook(None)?;
        Ok(Next::Leave)
    }

    fn conclude_ended(
        &mut self,
        mut tree: Tree,
        failed: Option<String>,
        report: &mut Report,
    ) -> std::io::Result<Next> {
        let (exit, stop) = (tree.exit, tree.stop);
        let timed_out = stop.is_some_and(|stop| stop.why == Why::Timeout);
        let left = tree.others()?;
        let leftovers = u32::try_from(left).unwrap_or(u32::MAX);
        let dropped = self.dropped(&tree);
        if left == 0 {
            self.terms.vacate(&self.id);
        }
        self.finish(|status| {
            status.state = match failed {
                Some(_) => State::Failed,
                None => State::Done,
            };
            status.exit = exit;
            status.pid = None;
            status.leftovers = (leftovers > 0).then_some(leftovers);
            status.failure = timed_out.then_some(Failure::Timeout);
            status.stopping = stop.as_ref().map(stopping);
            status.dropped_bytes = dropped;
            status.message = failed;
        })?;
        report.close(&self.ended());
        tree.stop = None;
        if left == 0 {
            self.answer();
            self.tell_hook(None)?;
        } else {
            // A cancel that came too late for the command is for what it left behind: it is answered when that is gone.
            self.tell_hook(Some(&mut tree))?;
            self.linger(tree)?;
            self.answer();
        }
        Ok(Next::Leave)
    }

    /// The last word to whoever waits: with it the exit status is known even where the job is forgotten at once.
    fn ended(&self) -> String {
        let status = self.book.status();
        format!("ended {}", exit_code(status.state, status))
    }

    /// The last word where no command runs (any more).
    fn over(&self, report: &Report) -> String {
        let status = self.book.status();
        if report.has_said_started() && status.state.is_terminal() {
            return self.ended();
        }
        format!("over {}", exit_code(status.state, status))
    }

    /// Why the attempt counts as failed, or `None` when it succeeded.
    fn failure_of(&self, exit: Option<Exit>, why: Option<Why>) -> Option<String> {
        if why == Some(Why::Timeout) {
            let timeout = Duration::from_millis(self.descriptor.timeout_ms.unwrap_or(0));
            return Some(format!("timed out after {timeout:?}"));
        }
        match exit {
            Some(Exit::Code(code)) if self.descriptor.success_codes.contains(&code) => None,
            Some(Exit::Code(code)) => Some(format!("exited with {code}")),
            Some(Exit::Signal(signal)) => Some(format!("killed by {}", signal_name(signal))),
            None => Some("ended in a way that the kernel does not tell".into()),
        }
    }

    /// Whether an attempt was made before.
    fn has_run(&self) -> bool {
        self.book.status().attempt > 1
    }

    fn may_retry(&self) -> bool {
        let attempt = self.book.status().attempt.max(1);
        self.descriptor.retry.allows_another(attempt)
    }

    /// Before the next attempt, nothing of this one may be left (R11).
    fn see_to_retry(
        &mut self,
        mut tree: Tree,
        reason: String,
        report: &mut Report,
    ) -> std::io::Result<Next> {
        let ran = clock::since_boot().saturating_sub(tree.started);
        if !tree.is_empty()? {
            if tree.stop.is_none() {
                self.begin_stop(&mut tree, Why::NextAttempt)?;
            }
            self.oversee(&mut tree, Until::Empty)?;
            tree.drain();
        }
        // While it was ended, something else may have been asked for.
        if let Some(Why::Cancel | Why::Shutdown) = tree.stop.map(|stop| stop.why) {
            return self.conclude(tree, report);
        }
        self.dropped_bytes = self.dropped(&tree).unwrap_or(0);
        Ok(self.again(&reason, ran))
    }

    /// Record that another attempt is due, and when.
    fn again(&mut self, reason: &str, ran: Duration) -> Next {
        let retry = self.descriptor.retry;
        let ran_ms = u64::try_from(ran.as_millis()).unwrap_or(u64::MAX);
        self.failures = retry.failures_in_a_row(self.failures, ran_ms);
        let delay_ms = retry.delay_ms(self.failures, random());
        let attempt = self.book.status().attempt.max(1) + 1;
        let note = What::Retry {
            attempt,
            reason: reason.to_owned(),
            delay_ms,
        };
        let message = reason.to_owned();
        self.write(
            |status| {
                status.state = State::Running;
                status.attempt = attempt;
                status.pid = None;
                status.stopping = None;
                status.next_attempt_at_ms = Some(clock::now_ms().saturating_add(delay_ms));
                status.message = Some(message);
            },
            vec![note],
            Durable::No,
        );
        Next::Retry(Duration::from_millis(delay_ms))
    }

    /// Wait for the next attempt. `false` when it is not to come.
    fn back_off(&mut self, delay: Duration) -> std::io::Result<bool> {
        let due = clock::since_boot() + delay;
        loop {
            if self.is_asked_away()? {
                self.tell_hook_of_end()?;
                return Ok(false);
            }
            if self.book.try_if_due() == Written::Gone {
                return Ok(false);
            }
            if clock::since_boot() >= due {
                return Ok(true);
            }
            let deadline = [Some(due), self.book.next_try(), self.empty_look()];
            let woken = self.wake.sleep(deadline.into_iter().flatten().min(), &[])?;
            self.note_waking(woken);
        }
    }

    /// The job has ended and processes of its command are left: stay, holding the lock, until they end or a stop ends
    /// them. State and exit stay as they are recorded.
    fn linger(&mut self, mut tree: Tree) -> std::io::Result<()> {
        let message = self.book.status().message.clone();
        self.oversee(&mut tree, Until::Empty)?;
        tree.drain();
        let (stop, dropped) = (tree.stop, self.dropped(&tree));
        self.finish(|status| {
            status.leftovers = None;
            status.message = message;
            status.dropped_bytes = dropped;
            // What is recorded of the end stays; that its remains had to be stopped is new.
            if let Some(stop) = &stop {
                status.stopping = Some(stopping(stop));
            }
        })
    }

    /// Record an end or a pause, however long the disk takes to let us (R13).
    fn finish(&mut self, change: impl FnOnce(&mut Status)) -> std::io::Result<()> {
        let had_ended = self.book.status().state.is_terminal();
        let mut written = self.write(
            |status| {
                change(status);
                if status.state.is_terminal() && !had_ended {
                    // A wall clock can be set back; a job never ends before it starts.
                    let now_ms = clock::now_ms();
                    status.ended_at_ms = Some(now_ms.max(status.started_at_ms.unwrap_or(0)));
                    status.next_attempt_at_ms = None;
                }
            },
            Vec::new(),
            Durable::Yes,
        );
        while written == Written::NotYet && !self.told_to_end {
            let woken = self.wake.sleep(self.book.next_try(), &[])?;
            self.note_waking(woken);
            written = self.book.try_if_due();
        }
        Ok(())
    }

    /// Take in why the worker woke. A job whose directory or lock was removed could not be stopped by anybody any more,
    /// and readers take it for one that lost its worker: then that is what happens.
    pub(super) fn note_waking(&mut self, woken: Woken) {
        self.told_to_end |= woken.told_to_end || woken.changed && !self.book.lock_stands();
    }

    pub(super) fn write(
        &mut self,
        change: impl FnOnce(&mut Status),
        notes: Vec<What>,
        durable: Durable,
    ) -> Written {
        self.book.write(change, notes, durable)
    }

    /// What the limits have cost so far, in bytes.
    pub(super) fn dropped(&self, tree: &Tree) -> Option<u64> {
        let dropped = self.dropped_bytes + tree.dropped_bytes();
        (dropped > 0).then_some(dropped)
    }
}

/// Whether the job of this lock can be seen under its id. Where that cannot be asked, it counts as not.
fn is_in_place(job: &Job, holder: &Holder<LockFile>) -> bool {
    let place = Place::of_job(holder.id(), Name::Lock);
    let stands = job.store().disk().stands(holder.lock(), &place);
    stands.unwrap_or(false)
}

/// A worker that may open nothing more could neither start its command nor record anything, and would try for ever.
fn see_that_files_can_be_opened() -> std::io::Result<()> {
    const NEEDED: i32 = 12;
    let null = std::fs::File::open("/dev/null")?;
    // The numbers below are as good as all taken: a worker has closed what it does not need.
    match rustix::io::fcntl_dupfd_cloexec(&null, null.as_raw_fd() + NEEDED) {
        Ok(_) => Ok(()),
        // It says so of a number above the limit.
        Err(rustix::io::Errno::INVAL) => Err(rustix::io::Errno::MFILE.into()),
        Err(error) => Err(error.into()),
    }
}

/// A number nobody can guess, for the jitter.
fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

/// The name of a signal, as people know it.
fn signal_name(signal: u8) -> String {
    match nix::sys::signal::Signal::try_from(i32::from(signal)) {
        Ok(signal) => signal.as_str().to_owned(),
        Err(_) => format!("signal {signal}"),
    }
}
