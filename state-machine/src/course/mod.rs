//! The course of one job under its worker: its attempts, the waits between them, and its end. Read [`run`] first.
//!
//! Before a job has a worker, and after that, somebody holds it who is none: he takes it to run it, puts it in order, lets it go.
//! What he has beside the disk is in [`Keeper`](keep::Keeper).
//!
//! What a worker does is in [`Worker`], a trait of its deeds: start the command, sleep until something happens, end the
//! tree. When it does which, and what is recorded before and after it, is here, once: the shipped worker and the model
//! drive the same functions. Nothing here knows a process, a signal or a clock.
//!
//! | file | what it is for |
//! |---|---|
//! | [`take`](mod@take) | taking the job to run it |
//! | [`keep`] | holding a job that nobody works on: putting it in order, and letting it go |
//! | [`worker`] | the deeds of a worker, and what they come to |
//! | `attempt` | what is asked before a start, the start itself, and the wait for the next one |
//! | `oversee` | a command that runs: what is asked of it meanwhile |
//! | `end` | what an end is recorded as; what it has left |
//! | `hook` | the commands that are told of the end |
//!
//! The order in which things are done, and what keeps it:
//!
//! - Whoever takes a job to run it asks under its lock whether it is to be run, and ends what an earlier attempt has left (R11,
//!   R20).
//! - What was asked before the start is honoured before it, and nothing is started that was asked away (R6).
//! - The tree lock is taken before running is recorded, and running is recorded before the command is let go. What cannot
//!   be recorded is not run (R11, R13).
//! - A request is answered only once its effect is recorded (R6).
//! - An end is recorded before anybody is told of it, and tried again for as long as the disk does not let us (R13, R19).
//! - What a command has left is gone before the next attempt (R11); after the last one it is recorded, and waited for.

mod attempt;
mod end;
mod hook;
pub mod keep;
mod oversee;
pub mod take;
pub mod worker;

pub use worker::{End, HookWoke, Notice, Refused, Search, Show, Until, Why, Woke, Worker, Written};

use crate::control::Request;
use crate::id::JobId;
use crate::protocol::create::Durable;
use crate::protocol::request::{Took, answered, discard, take};
use crate::record::{Status, What};

/// What a course came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parting {
    /// An end or a pause is recorded.
    Recorded,
    /// Neither: it could not be recorded that the command runs, so it does not; or the worker was told to end, or its job
    /// is gone.
    Unrecorded,
}

/// Run a job that is held to its end, its pause, or the end of the worker. The lock is still held afterwards.
pub fn run<W: Worker>(worker: &mut W, id: &JobId) -> Result<Parting, W::Fault> {
    let failures = 0;
    Course {
        worker,
        id,
        failures,
    }
    .attempts()
}

/// A job and its worker.
struct Course<'a, W> {
    worker: &'a mut W,
    id: &'a JobId,
    /// Attempts in a row that have ended and were not healthy, for the backoff and for how many there may be.
    failures: u32,
}

/// What there is to do after a step of the course.
enum Next {
    /// Try again, after a wait of so many ms.
    Retry(u64),
    /// Nothing more.
    Leave(Parting),
}

impl<W: Worker> Course<'_, W> {
    fn attempts(&mut self) -> Result<Parting, W::Fault> {
        loop {
            match self.attempt()? {
                Next::Leave(parting) => return Ok(parting),
                Next::Retry(delay_ms) => {
                    if let Some(parting) = self.back_off(delay_ms)? {
                        return Ok(parting);
                    }
                }
            }
        }
    }

    /// The request to honour next. One that is no request is said to be none, and one that is still being written is
    /// looked at again.
    fn take(&mut self) -> Result<Option<Request>, W::Fault> {
        loop {
            let mut taken = take(self.worker.disk(), self.id);
            let is_empty = matches!(taken, Ok(Took::Empty));
            if self.worker.stays_empty(is_empty)? {
                taken = discard(self.worker.disk(), self.id);
            }
            match taken {
                Ok(Took::Asked(request)) => return Ok(Some(request)),
                Ok(Took::Unknown(word)) => {
                    self.worker.note(format!("no such request: {word}"))?;
                    if !self.answer()? {
                        return Ok(None);
                    }
                }
                Ok(Took::Nothing | Took::Empty) => return Ok(None),
                Err(fault) => {
                    // A disk that cannot be read now is read again at the next notice.
                    self.worker.survive(fault)?;
                    return Ok(None);
                }
            }
        }
    }

    /// Let the request go whose effect is recorded. One whose effect the disk did not let us record stays (R6).
    fn answer(&mut self) -> Result<bool, W::Fault> {
        if !self.worker.book().is_clean() {
            return Ok(false);
        }
        match answered(self.worker.disk(), self.id) {
            Ok(()) => Ok(true),
            Err(fault) => {
                self.worker.survive(fault)?;
                Ok(false)
            }
        }
    }

    /// Record a change of the status.
    fn record(
        &mut self,
        durable: Durable,
        notes: Vec<What>,
        change: impl FnOnce(&mut Status),
    ) -> Result<Written, W::Fault> {
        let mut status = self.worker.status().clone();
        change(&mut status);
        status.updated_at_ms = self.worker.now_ms();
        self.worker.write(status, notes, durable)
    }

    /// As [`Course::record`], of something that no loss of power must keep.
    fn note_down(&mut self, change: impl FnOnce(&mut Status)) -> Result<Written, W::Fault> {
        self.record(Durable::No, Vec::new(), change)
    }

    /// Record an end or a pause, however long the disk takes to let us (R13).
    fn finish(&mut self, change: impl FnOnce(&mut Status)) -> Result<(), W::Fault> {
        let had_ended = self.worker.status().state.is_terminal();
        let now_ms = self.worker.now_ms();
        let mut written = self.record(Durable::Yes, Vec::new(), |status| {
            change(status);
            status.ready_at_ms = None;
            if status.state.is_terminal() && !had_ended {
                // A wall clock can be set back; a job never ends before it starts.
                status.ended_at_ms = Some(now_ms.max(status.started_at_ms.unwrap_or(0)));
                status.next_attempt_at_ms = None;
            }
        })?;
        while written == Written::NotYet && self.worker.await_disk()? {
            written = self.worker.try_if_due()?;
        }
        if written == Written::Yes {
            self.worker.recorded();
        }
        Ok(())
    }

    /// Whether an attempt was made before.
    fn has_run(&self) -> bool {
        self.worker.status().attempt > 1
    }
}
