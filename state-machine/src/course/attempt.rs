//! An attempt: what was asked before it, the start in its order (R11, R13), and the wait for the next one.

use super::oversee::Attempt;
use super::{Course, Next, Parting, Refused, Search, Until, Worker, Written};
use crate::control::Request;
use crate::job::State;
use crate::protocol::claim::{Tree, claim_tree};
use crate::protocol::create::Durable;
use crate::record::{Failure, What};

/// How soon an attempt that could not be recorded is tried again, in ms.
const RECORD_LOOK_MS: u64 = 500;

/// How often the tree lock is tried, with leftovers ended in between.
const TREE_ROUNDS: u32 = 2;

impl<W: Worker> Course<'_, W> {
    /// One attempt: start the command, watch it, record how it ended.
    pub(super) fn attempt(&mut self) -> Result<Next, W::Fault> {
        let mut early = None;
        if self.worker.is_early() {
            // What needs nobody to see the job is done while its maker waits for the disk.
            early = Some(self.prepare()?);
            if !self.worker.is_published()? {
                self.dismiss(early)?;
                return Ok(Next::Leave(Parting::Unrecorded));
            }
        }
        if let Some(parting) = self.is_asked_away()? {
            self.dismiss(early)?;
            return Ok(Next::Leave(parting));
        }
        let prepared = match early {
            Some(prepared) => prepared,
            None => self.prepare()?,
        };
        let started = match prepared {
            Ok(ready) => self.start(ready)?,
            Err(refused) => Err(refused),
        };
        match started {
            Ok(Some(tree)) => {
                self.worker.say_started();
                let mut attempt = Attempt::new(tree, self.worker.status());
                self.oversee(&mut attempt, Until::CommandEnds)?;
                self.conclude(attempt)
            }
            // A full disk must not end a job that was promised more attempts.
            Ok(None) if self.has_run() && !self.worker.book().is_clean() => {
                Ok(Next::Retry(RECORD_LOOK_MS))
            }
            Ok(None) => {
                self.worker.say_unrecorded();
                Ok(Next::Leave(Parting::Unrecorded))
            }
            Err(refused) => self.cannot_start(refused),
        }
    }

    fn dismiss(&mut self, prepared: Option<Result<W::Ready, Refused>>) -> Result<(), W::Fault> {
        match prepared {
            Some(Ok(ready)) => self.worker.dismiss(ready),
            Some(Err(_)) | None => Ok(()),
        }
    }

    /// Whether something was asked that keeps the command from being started, and what came of it.
    fn is_asked_away(&mut self) -> Result<Option<Parting>, W::Fault> {
        if self.worker.is_told_to_end()? {
            self.worker.say_over();
            return Ok(Some(Parting::Unrecorded));
        }
        let when = if self.has_run() {
            "between two attempts"
        } else {
            "before it ran"
        };
        let (state, message) = match self.take()? {
            Some(Request::Cancel) => (State::Cancelled, format!("cancelled {when}")),
            Some(Request::Pause) => (State::Paused, format!("paused {when}")),
            // It is about to run: that is what was asked.
            Some(Request::Resume) => {
                self.answer()?;
                return Ok(None);
            }
            None => return Ok(None),
        };
        self.finish(|status| {
            status.state = state;
            if state == State::Paused {
                status.slot = None;
            }
            status.next_attempt_at_ms = None;
            status.message = Some(message);
        })?;
        self.answer()?;
        self.worker.say_over();
        if state.is_terminal() {
            self.tell_hooks(None)?;
        }
        Ok(Some(Parting::Recorded))
    }

    /// Take the tree lock, and make the process that will be the command, and waits.
    fn prepare(&mut self) -> Result<Result<W::Ready, Refused>, W::Fault> {
        match self.take_tree()? {
            Ok(tree) => self.worker.prepare(tree),
            Err(message) => Ok(Err(Refused::start(message))),
        }
    }

    /// Take the tree lock, ending whatever an earlier attempt has left (R11). Where there was one, its mark is searched for
    /// too: a process that has closed the lock has that.
    fn take_tree(&mut self) -> Result<Result<HandleOf<W>, String>, W::Fault> {
        for _ in 0..TREE_ROUNDS {
            if self.worker.status().attempt > 0
                && let Err(why) = self.worker.end_leftovers(Search::Marked)?
            {
                return Ok(Err(why));
            }
            match claim_tree(self.worker.disk(), self.id) {
                Ok(Tree::Mine(lock)) => return Ok(Ok(lock)),
                Ok(Tree::Gone) => return Ok(Err("the job's directory is gone".into())),
                Ok(Tree::Leftovers) => {
                    if let Err(why) = self.worker.end_leftovers(Search::Holding)? {
                        return Ok(Err(why));
                    }
                }
                Err(fault) => return Ok(Err(self.worker.survive(fault)?)),
            }
        }
        let why = "processes of an earlier attempt are left and cannot be found";
        Ok(Err(why.into()))
    }

    /// Start the command. `None` when it cannot be recorded that it runs: then it does not run.
    fn start(&mut self, ready: W::Ready) -> Result<Result<Option<W::Tree>, Refused>, W::Fault> {
        let pid = self.worker.pid(&ready);
        let slot = self.worker.slot();
        let now_ms = self.worker.now_ms();
        let written = self.note_down(|status| {
            status.state = State::Running;
            status.attempt = status.attempt.max(1);
            status.pid = pid;
            status.slot = slot;
            status.started_at_ms.get_or_insert(now_ms);
            status.next_attempt_at_ms = None;
            status.stopping = None;
            status.status_line = None;
            status.message = None;
            status.exit = None;
            status.ready_at_ms = None;
        })?;
        if written != Written::Yes {
            self.worker.dismiss(ready)?;
            return Ok(Ok(None));
        }
        Ok(self.worker.release(ready)?.map(Some))
    }

    fn cannot_start(&mut self, refused: Refused) -> Result<Next, W::Fault> {
        let Refused { failure, message } = refused;
        if failure == Failure::Start && self.may_retry(0) {
            self.worker.say_started();
            return self.again(message, 0, 0);
        }
        if self.worker.status().state != State::Running {
            // Only what runs can fail; this one ran for no time.
            let slot = self.worker.slot();
            self.note_down(|status| {
                status.state = State::Running;
                status.slot = slot;
                status.attempt = status.attempt.max(1);
            })?;
        }
        self.finish(|status| {
            status.state = State::Failed;
            status.pid = None;
            status.failure = Some(failure);
            status.message = Some(message);
        })?;
        self.answer()?;
        self.worker.say_over();
        self.tell_hooks(None)?;
        Ok(Next::Leave(Parting::Recorded))
    }

    /// Whether another attempt follows this one, which ran for `ran_ms`.
    pub(super) fn may_retry(&self, ran_ms: u64) -> bool {
        let attempt = self.worker.status().attempt.max(1);
        let retry = self.worker.descriptor().retry;
        retry.allows_another(attempt, retry.failures_in_a_row(self.failures, ran_ms))
    }

    /// See to another attempt at once, as what the command is made of has changed. That is no failure, and those before it were
    /// of something else.
    pub(super) fn renew(&mut self, reason: String) -> Result<Next, W::Fault> {
        self.failures = 0;
        self.another(reason, 0)
    }

    /// Record that another attempt is due, and when, after one that ran for `ran_ms`; not before `after_ms` have passed.
    pub(super) fn again(
        &mut self,
        reason: String,
        ran_ms: u64,
        after_ms: u64,
    ) -> Result<Next, W::Fault> {
        let retry = self.worker.descriptor().retry;
        self.failures = retry.failures_in_a_row(self.failures, ran_ms);
        let delay_ms = retry.delay_ms(self.failures, self.worker.random());
        self.another(reason, delay_ms.max(after_ms))
    }

    fn another(&mut self, reason: String, delay_ms: u64) -> Result<Next, W::Fault> {
        let attempt = self.worker.status().attempt.max(1) + 1;
        let due_ms = self.worker.now_ms().saturating_add(delay_ms);
        let note = What::Retry {
            attempt,
            reason: reason.clone(),
            delay_ms,
        };
        self.record(Durable::No, vec![note], |status| {
            status.state = State::Running;
            status.attempt = attempt;
            status.pid = None;
            status.stopping = None;
            status.status_line = None;
            status.next_attempt_at_ms = Some(due_ms);
            status.ready_at_ms = None;
            status.message = Some(reason);
        })?;
        Ok(Next::Retry(delay_ms))
    }

    /// Wait for the next attempt. Where it is not to come, what came instead.
    pub(super) fn back_off(&mut self, delay_ms: u64) -> Result<Option<Parting>, W::Fault> {
        self.worker.set_alarm(delay_ms);
        loop {
            if let Some(parting) = self.is_asked_away()? {
                return Ok(Some(parting));
            }
            if self.worker.try_if_due()? == Written::Gone {
                return Ok(Some(Parting::Unrecorded));
            }
            if self.worker.await_alarm()? {
                return Ok(None);
            }
        }
    }
}

/// The handle of the worker's disk.
type HandleOf<W> = <<W as Worker>::Disk as crate::disk::Disk>::Handle;
