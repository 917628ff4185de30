//! Asking something of a job, and stopping it (R6). A request is placed on disk first; who honours it is found out then.

use std::time::Duration;

use state_machine::control::Request;
use state_machine::disk::{Disk, Name, Place};
use state_machine::job::State;
use state_machine::protocol::look::confirm;
use state_machine::protocol::request::{Asked, discard, request};

use crate::clock;
use crate::error::{Error, Result};
use crate::store::ticket;

use super::Job;

/// How long a control file may stay empty: a hand that writes it in two steps takes no longer.
const EMPTY_PATIENCE: Duration = Duration::from_secs(1);

/// How often a request looks whether an earlier one has been honoured.
const BUSY_LOOK: Duration = Duration::from_millis(200);

/// How long a request waits for an earlier one of the same strength to be honoured.
const REQUEST_PATIENCE: Duration = Duration::from_secs(10);

/// What a request came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requested {
    /// It is on disk, or has taken effect already.
    Accepted,
    /// A cancel is waiting, which outranks it.
    Outranked,
}

/// How a stop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// The state that the job ended in.
    pub state: State,
    /// Whether SIGKILL was needed.
    pub forced: bool,
    /// Whether the job had ended before anything was asked, with nothing left behind.
    pub already: bool,
}

impl Job {
    /// Ask something of the job. When this returns it is on disk, and where nobody works on the job it has taken
    /// effect (R6).
    ///
    /// # Errors
    ///
    /// [`Error::Ended`], [`Error::TooLate`] and [`Error::Gone`] say that there is nothing left to ask of;
    /// [`Error::Busy`] that an earlier request was not honoured in time.
    pub fn request(&self, asked: Request) -> Result<Requested> {
        let requested = self.place(asked)?;
        self.settle()?;
        Ok(requested)
    }

    /// Put a request on disk, for whoever holds the job.
    pub(crate) fn place(&self, asked: Request) -> Result<Requested> {
        let mut disk = self.store.disk();
        let mut watch = None;
        let begun = clock::since_boot();
        loop {
            match request(&mut disk, &self.id, asked, &ticket())? {
                Asked::Placed => return Ok(Requested::Accepted),
                Asked::Standing(standing) if standing == asked => return Ok(Requested::Accepted),
                Asked::Standing(_) => return Ok(Requested::Outranked),
                busy @ (Asked::Busy(_) | Asked::Crowded) => {
                    // Whoever should honour the earlier one may be gone.
                    self.settle()?;
                    let now = clock::since_boot();
                    if busy == Asked::Crowded && now > begun + EMPTY_PATIENCE {
                        self.discard_empty()?;
                    }
                    if now > begun + REQUEST_PATIENCE {
                        return Err(Error::Busy(format!("an earlier request to {}", self.id)));
                    }
                    let watch = watch.get_or_insert_with(|| self.watch());
                    self.store.sleep(watch, Some(BUSY_LOOK))?;
                }
                Asked::Ended(state) => {
                    return Err(Error::Ended {
                        id: self.id.clone(),
                        state,
                    });
                }
                Asked::TooLate => return Err(Error::TooLate(self.id.clone())),
                Asked::Gone => return Err(Error::Gone(self.id.clone())),
                Asked::Damaged(why) => {
                    return Err(Error::Damaged {
                        path: self.dir().join("status.json"),
                        why: why.0,
                    });
                }
            }
        }
    }

    /// Throw away a control file that stays empty on a job that nobody holds: it would bar every pause and resume.
    fn discard_empty(&self) -> Result<()> {
        let Some(held) = self.hold()? else {
            // Whoever holds the job does the same.
            return Ok(());
        };
        discard(&mut self.store.disk(), &self.id)?;
        self.let_go(held)
    }

    /// Whether nothing that was asked of the job waits to be honoured. What cannot be looked at counts as answered: then
    /// the record is all there is to go by.
    pub(crate) fn is_answered(&self) -> bool {
        self.has_request().map_or(true, |waits| !waits)
    }

    pub(crate) fn has_request(&self) -> Result<bool> {
        let mut disk = self.store.disk();
        // In the order in which a request goes from one to the other: it could be missed in both otherwise.
        Ok(disk.exists(&Place::of_job(&self.id, Name::Control))?
            || disk.exists(&Place::of_job(&self.id, Name::Taken))?)
    }

    /// Stop the job and wait until nothing of it is left.
    ///
    /// # Errors
    ///
    /// As [`Job::request`]; [`Error::TimedOut`] when it takes longer than `timeout`: the stop goes on all the same.
    pub fn stop(&self, timeout: Option<Duration>) -> Result<Stopped> {
        match self.begin_stop()? {
            Some(stopped) => Ok(stopped),
            None => self.see_stop_through(timeout),
        }
    }

    /// Stop the job, so that another can have its name.
    pub(crate) fn make_way(&self) -> Result<()> {
        match self.stop(None) {
            Ok(_) | Err(Error::Gone(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Ask the job to end, without waiting. Says how it ended if it has.
    pub(crate) fn begin_stop(&self) -> Result<Option<Stopped>> {
        match self.place(Request::Cancel) {
            Ok(_) => Ok(None),
            Err(Error::Ended { state, .. }) => {
                // It may have ended just now.
                confirm(&mut self.store.disk(), &self.id)?;
                Ok(Some(Stopped {
                    state,
                    forced: false,
                    already: true,
                }))
            }
            Err(error) => Err(error),
        }
    }

    /// Wait until nothing is left of a job that was asked to end.
    pub(crate) fn see_stop_through(&self, timeout: Option<Duration>) -> Result<Stopped> {
        let forced_by_us = self.settle()?;
        let view = self.wait_until(timeout, |view| view.state.is_terminal() && !view.leftovers)?;
        let stopping = view.status.stopping;
        Ok(Stopped {
            state: view.state,
            forced: forced_by_us || stopping.is_some_and(|stopping| stopping.forced),
            already: false,
        })
    }
}
