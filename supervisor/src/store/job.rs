//! One job: looking at it, asking things of it, waiting for it.

use std::path::PathBuf;
use std::time::Duration;

use state_machine::control::{Control, Request};
use state_machine::disk::{Dir, Disk, Name, Place, Read};
use state_machine::id::JobId;
use state_machine::job::State;
use state_machine::protocol::claim::{Claim, claim, tree_is_free};
use state_machine::protocol::create::Durable;
use state_machine::protocol::hold::{Holder, TakeOver, record, take_over};
use state_machine::protocol::look::{Look, View, look};
use state_machine::protocol::recover::{Recovered, recover_job};
use state_machine::protocol::request::{Asked, discard, request};
use state_machine::protocol::settle::{LetGo, Searched, Settled, let_go, settle};
use state_machine::record::{Descriptor, Failure, History, Line};

use super::{Held, Report, Search, Store, end_leftovers, ticket};
use crate::clock;
use crate::disk::LockFile;
use crate::error::{Error, Result};
use crate::watch::Watch;

/// A job of a store.
#[derive(Clone, Debug)]
pub struct Job {
    store: Store,
    id: JobId,
}

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

/// How long a job that changes under a look is tried again, in looks.
const TENDING: u32 = 4;

impl Job {
    pub(super) fn new(store: Store, id: JobId) -> Job {
        Job { store, id }
    }

    /// The id of the job.
    pub fn id(&self) -> &JobId {
        &self.id
    }

    /// The store that the job is in.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The directory of the job.
    pub fn dir(&self) -> PathBuf {
        self.store.job_dir(&self.id)
    }

    /// What is true about the job. Changes nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Gone`] when it was forgotten, [`Error::Damaged`] when a record of it cannot be read.
    pub fn look(&self) -> Result<View> {
        match look(&mut self.store.disk(), &self.id)? {
            Look::Job(view) => Ok(*view),
            Look::Gone => Err(Error::Gone(self.id.clone())),
            Look::Damaged { file, why } => Err(Error::Damaged {
                path: self.store.disk.path(&Place::of_job(&self.id, file)),
                why: why.0,
            }),
        }
    }

    /// What is true about the job, after completing what was asked of it if nobody else will: a stop whose worker
    /// was killed half way is completed by the next one to look.
    ///
    /// # Errors
    ///
    /// As [`Job::look`]. Where something was asked and cannot be completed, what is true is returned all the same.
    pub fn tend(&self) -> Result<View> {
        let view = self.look()?;
        self.tend_view(view)
    }

    /// As [`Job::tend`], for a job that was just looked at.
    pub fn tend_view(&self, view: View) -> Result<View> {
        let is_over = view.state.is_terminal() && !view.leftovers;
        if view.held || is_over || !self.has_request()? {
            return Ok(view);
        }
        match self.settle() {
            Ok(_) => self.look(),
            Err(_) => Ok(view),
        }
    }

    /// Whether nothing that was asked of the job waits to be honoured. What cannot be looked at counts as answered: then
    /// the record is all there is to go by.
    pub(crate) fn is_answered(&self) -> bool {
        self.has_request().map_or(true, |waits| !waits)
    }

    fn has_request(&self) -> Result<bool> {
        let mut disk = self.store.disk();
        Ok(disk.exists(&Place::of_job(&self.id, Name::Taken))?
            || disk.exists(&Place::of_job(&self.id, Name::Control))?)
    }

    /// The job as programs read it.
    pub fn report(&self, view: &View) -> Report {
        Report::new(view, &self.dir())
    }

    /// The history of the job: every line that can be read, and the states that are true and not in it yet (the
    /// history is written after the record).
    pub fn events(&self) -> Result<Vec<Line>> {
        let mut disk = self.store.disk();
        let dir = Dir::Job(self.id.clone());
        let status = disk.read_status(&dir)?;
        let mut history = disk.read_history(&dir)?;
        if history.lines.is_empty() {
            let created_at_ms = match disk.read_descriptor(&dir)? {
                Read::Value(descriptor) => descriptor.created_at_ms,
                Read::Damaged(_) => return Ok(history.lines),
                Read::Absent => return Err(Error::Gone(self.id.clone())),
            };
            history
                .lines
                .push(Line::state(created_at_ms, State::Queued));
        }
        if let Read::Value(status) = status
            && let Some(last) = history.last_state()
            && status.state.is_terminal()
            && !last.is_terminal()
        {
            history
                .lines
                .push(Line::state(status.updated_at_ms, status.state));
        }
        Ok(history.lines)
    }

    /// The history as it is on disk, for a check of it.
    pub(crate) fn raw_history(&self) -> Result<History> {
        Ok(self.store.disk().read_history(&Dir::Job(self.id.clone()))?)
    }

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

    /// Answer what was asked of the job, if nobody holds it, ending the processes that its dead worker left where
    /// that comes first (R6, R11). Says whether that took SIGKILL.
    pub(crate) fn settle(&self) -> Result<bool> {
        let mut disk = self.store.disk();
        let mut recovered = recover_job(&mut disk, &self.id, clock::now_ms())?;
        let mut forced = false;
        for _ in 0..TENDING {
            let mut holder = match recovered {
                Recovered::LeftoversFirst(holder) => holder,
                // What is damaged is said by whoever tries to take the job or to look at it.
                Recovered::Damaged => {
                    self.hold()?;
                    return Ok(forced);
                }
                Recovered::Gone => {
                    self.see_that_it_can_be_held()?;
                    return Ok(forced);
                }
                Recovered::Quiet | Recovered::Held => return Ok(forced),
            };
            let descriptor = self.descriptor()?;
            forced |= self.end_leftovers(&descriptor, &holder)?;
            let now_ms = clock::now_ms();
            recovered = match settle(&mut disk, &mut holder, Searched::Yes, now_ms)? {
                Settled::LeftoversFirst(_) => Recovered::LeftoversFirst(holder),
                _ => match let_go(&mut disk, holder, descriptor.created_at_ms, now_ms)? {
                    LetGo::Free => Recovered::Quiet,
                    LetGo::LeftoversFirst(holder) => Recovered::LeftoversFirst(holder),
                },
            };
        }
        Err(Error::NotNow(format!(
            "processes of {} cannot be ended",
            self.id
        )))
    }

    /// End the processes that a dead worker left, within what remains of the grace (R11).
    pub(crate) fn end_leftovers(
        &self,
        descriptor: &Descriptor,
        holder: &Holder<LockFile>,
    ) -> Result<bool> {
        let grace = Duration::from_millis(descriptor.grace_ms);
        // A stop that its worker did not live to complete has used up some of the grace already.
        let begun = holder
            .status()
            .stopping
            .filter(|_| self.is_being_cancelled());
        let used = begun.map_or(0, |stopping| {
            clock::now_ms().saturating_sub(stopping.since_ms)
        });
        let grace = grace.saturating_sub(Duration::from_millis(used));
        let search = if tree_is_free(&mut self.store.disk(), &self.id)? {
            Search::Environments
        } else {
            Search::Descriptors
        };
        end_leftovers(&self.dir(), search, grace).map_err(|error| {
            Error::Worker(format!("processes of {} cannot be ended: {error}", self.id))
        })
    }

    fn is_being_cancelled(&self) -> bool {
        let taken = Place::of_job(&self.id, Name::Taken);
        let taken = self.store.disk().read_control(&taken);
        matches!(taken, Ok(Some(Control::Asked(Request::Cancel))))
    }

    /// A job without its lock file can be held by nobody, ever: whoever waits for that must be told.
    fn see_that_it_can_be_held(&self) -> Result<()> {
        let mut disk = self.store.disk();
        let stands = disk.exists(&Place::Dir(Dir::Job(self.id.clone())))?;
        if stands && !disk.exists(&Place::of_job(&self.id, Name::Lock))? {
            return Err(Error::Damaged {
                path: self.dir().join("lock"),
                why:
                    "it is missing, so nobody can take the job; an empty file of that name mends it"
                        .into(),
            });
        }
        Ok(())
    }

    /// Take the job to run it, after ending what an earlier attempt left (R11): a worker that did it would be deaf
    /// meanwhile. `None` when somebody holds it.
    pub(crate) fn hold_to_run(&self) -> Result<Option<Held>> {
        let held = self.hold()?;
        if let Some(held) = &held
            && held.holder.status().attempt > 0
            && !held.holder.status().state.is_terminal()
        {
            self.end_leftovers(&held.descriptor, &held.holder)?;
        }
        Ok(held)
    }

    /// Record that a job whose worker could not be made has failed, so that it does not stand as one to be resumed.
    pub(crate) fn fail_to_start(&self, why: &str) -> Result<()> {
        let Some(mut held) = self.hold()? else {
            return Ok(());
        };
        let mut disk = self.store.disk();
        if held.holder.status().state == State::Queued && held.holder.status().attempt == 0 {
            let mut status = held.holder.status().clone();
            status.state = State::Running;
            status.updated_at_ms = clock::now_ms();
            record(
                &mut disk,
                &mut held.holder,
                status.clone(),
                &[],
                Durable::No,
            )?;
            status.state = State::Failed;
            status.failure = Some(Failure::Start);
            status.message = Some(why.to_owned());
            status.ended_at_ms = Some(clock::now_ms());
            record(&mut disk, &mut held.holder, status, &[], Durable::Yes)?;
        }
        self.let_go(held)
    }

    pub(crate) fn descriptor(&self) -> Result<Descriptor> {
        match self
            .store
            .disk()
            .read_descriptor(&Dir::Job(self.id.clone()))?
        {
            Read::Value(descriptor) => Ok(descriptor),
            Read::Absent => Err(Error::Gone(self.id.clone())),
            Read::Damaged(why) => Err(Error::Damaged {
                path: self.dir().join("job.json"),
                why: why.0,
            }),
        }
    }

    /// Take the job, to hand it to a worker. `None` when somebody holds it.
    pub(crate) fn hold(&self) -> Result<Option<Held>> {
        let mut disk = self.store.disk();
        let descriptor = self.descriptor()?;
        let lock = match claim(&mut disk, &self.id)? {
            Claim::Mine(lock) => lock,
            Claim::Owned => return Ok(None),
            Claim::Gone => return Err(Error::Gone(self.id.clone())),
        };
        let taken = take_over(
            &mut disk,
            &self.id,
            lock,
            descriptor.created_at_ms,
            clock::now_ms(),
        )?;
        match taken {
            TakeOver::Holder(holder) => Ok(Some(Held { holder, descriptor })),
            TakeOver::Damaged(why) => Err(Error::Damaged {
                path: self.dir().join("status.json"),
                why: why.0,
            }),
        }
    }

    /// Let a held job go without losing what was asked of it meanwhile (R6).
    pub(crate) fn let_go(&self, held: Held) -> Result<()> {
        let created_at_ms = held.descriptor.created_at_ms;
        let mut disk = self.store.disk();
        match let_go(&mut disk, held.holder, created_at_ms, clock::now_ms())? {
            LetGo::Free => Ok(()),
            LetGo::LeftoversFirst(holder) => {
                disk.close(holder.into_lock())?;
                self.settle().map(|_| ())
            }
        }
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

    /// Ask the job to end, without waiting. Says how it ended if it has.
    pub(crate) fn begin_stop(&self) -> Result<Option<Stopped>> {
        match self.place(Request::Cancel) {
            Ok(_) => Ok(None),
            Err(Error::Ended { state, .. }) => Ok(Some(Stopped {
                state,
                forced: false,
                already: true,
            })),
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

    /// Wait until the job has ended or nobody works on it any more.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] after `timeout`; as [`Job::look`] otherwise.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<View> {
        self.wait_until(timeout, |view| {
            view.state.is_terminal() || view.state == State::Interrupted
        })
    }

    /// Wait until `reached` says so of what is true about the job.
    ///
    /// # Errors
    ///
    /// As [`Job::wait`].
    pub fn wait_until(
        &self,
        timeout: Option<Duration>,
        mut reached: impl FnMut(&View) -> bool,
    ) -> Result<View> {
        let deadline = timeout.map(|timeout| clock::since_boot() + timeout);
        // Most of what is waited for comes at once, and a watch costs more to take down than it took to wait for it
        // (closing an inotify instance takes the kernel some 15 ms).
        let mut pause = FIRST_PAUSE;
        while pause < LONGEST_PAUSE {
            let view = self.tend()?;
            if reached(&view) {
                return Ok(view);
            }
            std::thread::sleep(deadline.map_or(pause, |deadline| {
                pause.min(deadline.saturating_sub(clock::since_boot()))
            }));
            pause *= 2;
        }
        // The watch stands before the look, so that no change falls between the two.
        let mut watch = self.watch();
        let mut last = None;
        loop {
            let view = self.tend()?;
            if reached(&view) {
                return Ok(view);
            }
            // What we do to look can itself be a notice; where nothing changes, it must not become a spin.
            let now = (view.status.clone(), view.held);
            if last.as_ref() == Some(&now) {
                std::thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_SPIN);
            } else {
                pause = FIRST_PAUSE;
                last = Some(now);
            }
            let left = deadline.map(|deadline| deadline.saturating_sub(clock::since_boot()));
            if left == Some(Duration::ZERO) {
                return Err(Error::TimedOut(format!(
                    "{} is still {}",
                    self.id, view.state
                )));
            }
            self.store.sleep(&mut watch, left)?;
        }
    }

    fn watch(&self) -> Watch {
        self.store.watch(std::slice::from_ref(self))
    }
}

/// How long a control file may stay empty: a hand that writes it in two steps takes no longer.
const EMPTY_PATIENCE: Duration = Duration::from_secs(1);
/// How often a request looks whether an earlier one has been honoured.
const BUSY_LOOK: Duration = Duration::from_millis(200);
/// The pauses between the looks at a job before it is worth a watch: they double, 6 ms in all.
const FIRST_PAUSE: Duration = Duration::from_micros(200);
const LONGEST_PAUSE: Duration = Duration::from_millis(5);
/// The longest pause after a notice of nothing.
const LONGEST_SPIN: Duration = Duration::from_millis(250);
/// How long a request waits for an earlier one of the same strength to be honoured.
const REQUEST_PATIENCE: Duration = Duration::from_secs(10);
