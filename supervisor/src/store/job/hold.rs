//! Holding a job that nobody works on: to answer what was asked of it, to end what its dead worker left, or to hand it to
//! a worker. In which order that is done is [`state_machine::course`]; here is what its deeds are on this machine.

use std::time::Duration;

use state_machine::control::{Control, Request};
use state_machine::course::Search;
use state_machine::course::keep::{Keeper, Kept, Order, leave, put_in_order};
use state_machine::course::take::{By, Taken, take};
use state_machine::disk::{Dir, Disk, Name, Place};
use state_machine::job::State;
use state_machine::protocol::create::Durable;
use state_machine::protocol::hold::{Hold, Holder, hold, record};
use state_machine::record::{Damaged, Descriptor, Failure};

use crate::clock;
use crate::disk::{FsDisk, LockFile};
use crate::error::{Error, Result};
use crate::store::{Held, end_leftovers};

use super::Job;

/// Who holds a job for a while.
struct Keeping<'a> {
    job: &'a Job,
    disk: FsDisk,
    /// Whether whoever asked for the job to be run still wants that.
    is_wanted: &'a dyn Fn() -> bool,
    /// Whether something of the job did not end without SIGKILL.
    forced: bool,
}

impl<'a> Keeping<'a> {
    fn new(job: &'a Job) -> Keeping<'a> {
        Keeping {
            job,
            disk: job.store.disk(),
            is_wanted: &|| true,
            forced: false,
        }
    }
}

impl Keeper for Keeping<'_> {
    type Disk = FsDisk;
    type Fault = Error;

    fn disk(&mut self) -> &mut FsDisk {
        &mut self.disk
    }

    fn now_ms(&self) -> u64 {
        clock::now_ms()
    }

    /// Within what remains of the grace: a stop that its worker did not live to complete has used up some of it already.
    fn end_leftovers(
        &mut self,
        descriptor: &Descriptor,
        holder: &Holder<LockFile>,
        search: Search,
    ) -> Result<std::result::Result<(), String>> {
        let grace = Duration::from_millis(descriptor.grace_ms);
        let begun = holder
            .status()
            .stopping
            .filter(|_| self.job.is_being_cancelled());
        let used = begun.map_or(0, |stopping| {
            clock::now_ms().saturating_sub(stopping.since_ms)
        });
        let grace = grace.saturating_sub(Duration::from_millis(used));
        Ok(match end_leftovers(&self.job.dir(), search, grace) {
            Ok(forced) => {
                self.forced |= forced;
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        })
    }

    fn is_wanted(&mut self) -> Result<bool> {
        Ok((self.is_wanted)())
    }
}

impl Job {
    /// Answer what was asked of the job, if nobody holds it, ending the processes that its dead worker left where
    /// that comes first (R6, R11). Says whether that took SIGKILL.
    pub(crate) fn settle(&self) -> Result<bool> {
        let mut keeping = Keeping::new(self);
        match put_in_order(&mut keeping, &self.id)? {
            Order::Kept(kept) => {
                self.see_that_it_is_in_order(kept)?;
                Ok(keeping.forced)
            }
            // What is damaged is said by whoever tries to take the job or to look at it.
            Order::Damaged => {
                if let Some(held) = self.hold()? {
                    self.let_go(held)?;
                }
                Ok(false)
            }
            Order::Gone => {
                self.see_that_it_can_be_held()?;
                Ok(false)
            }
            Order::Held => Ok(false),
        }
    }

    fn see_that_it_is_in_order(&self, kept: Kept) -> Result<()> {
        match kept {
            Kept::InOrder => Ok(()),
            Kept::Stuck(why) => Err(self.stuck(&why)),
            Kept::Busy => Err(Error::Busy(self.id.to_string())),
        }
    }

    fn stuck(&self, why: &str) -> Error {
        Error::Worker(format!("processes of {} cannot be ended: {why}", self.id))
    }

    fn damaged(&self, file: Name, why: Damaged) -> Error {
        Error::Damaged {
            path: self.store.disk.path(&Place::of_job(&self.id, file)),
            why: why.0,
        }
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

    /// Take the job. `None` when somebody holds it.
    pub(crate) fn hold(&self) -> Result<Option<Held>> {
        match hold(&mut self.store.disk(), &self.id, clock::now_ms())? {
            Hold::Mine(holder, descriptor) => Ok(Some(Held {
                holder,
                descriptor: *descriptor,
            })),
            Hold::Owned => Ok(None),
            Hold::Gone => Err(Error::Gone(self.id.clone())),
            Hold::Damaged { file, why } => Err(self.damaged(file, why)),
        }
    }

    /// Take the job to run it, unless `is_wanted` says that nobody wants that any more. `None` when somebody holds it.
    ///
    /// # Errors
    ///
    /// When it has ended or rests, is gone, cannot be read, or something is left of it that cannot be ended. Then nobody
    /// holds it.
    pub(crate) fn take(&self, by: By, is_wanted: &dyn Fn() -> bool) -> Result<Option<Held>> {
        let mut keeping = Keeping {
            is_wanted,
            ..Keeping::new(self)
        };
        match take(&mut keeping, &self.id, by)? {
            Taken::Ours(holder, descriptor) => Ok(Some(Held {
                holder,
                descriptor: *descriptor,
            })),
            Taken::Owned => Ok(None),
            Taken::Gone => Err(Error::Gone(self.id.clone())),
            Taken::Damaged { file, why } => Err(self.damaged(file, why)),
            Taken::NotInState(state) if state.is_terminal() => Err(Error::Ended {
                id: self.id.clone(),
                state,
            }),
            Taken::NotInState(state) => Err(Error::NotNow(format!("{} is {state}", self.id))),
            Taken::Unwanted => Err(Error::NotNow("its supervisor is gone".into())),
            Taken::Stuck(why) => Err(self.stuck(&why)),
        }
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

    /// Let a held job go without losing what was asked of it meanwhile (R6).
    pub(crate) fn let_go(&self, held: Held) -> Result<()> {
        let mut keeping = Keeping::new(self);
        let kept = leave(&mut keeping, &held.descriptor, held.holder)?;
        self.see_that_it_is_in_order(kept)
    }
}
