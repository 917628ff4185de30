//! Holding a job that nobody works on: to answer what was asked of it, to end what its dead worker left, or to hand it to
//! a worker.

use std::time::Duration;

use state_machine::control::{Control, Request};
use state_machine::disk::{Dir, Disk, Name, Place};
use state_machine::job::State;
use state_machine::protocol::claim::{Claim, claim, tree_is_free};
use state_machine::protocol::create::Durable;
use state_machine::protocol::hold::{Holder, TakeOver, record, take_over};
use state_machine::protocol::recover::{Recovered, recover_job};
use state_machine::protocol::settle::{LetGo, let_go, tend};
use state_machine::record::{Descriptor, Failure};

use crate::clock;
use crate::disk::{FsDisk, LockFile};
use crate::error::{Error, Result};
use crate::store::{Held, Search, end_leftovers};

use super::Job;

impl Job {
    /// Answer what was asked of the job, if nobody holds it, ending the processes that its dead worker left where
    /// that comes first (R6, R11). Says whether that took SIGKILL.
    pub(crate) fn settle(&self) -> Result<bool> {
        match recover_job(&mut self.store.disk(), &self.id, clock::now_ms())? {
            Recovered::LeftoversFirst(holder) => self.see_through(&self.descriptor()?, holder),
            // What is damaged is said by whoever tries to take the job or to look at it.
            Recovered::Damaged => {
                if let Some(held) = self.hold()? {
                    self.let_go(held)?;
                }
                Ok(false)
            }
            Recovered::Gone => {
                self.see_that_it_can_be_held()?;
                Ok(false)
            }
            Recovered::Quiet | Recovered::Held => Ok(false),
        }
    }

    /// End what is left of a held job, honour what was asked of it, and let it go. Says whether that took SIGKILL.
    fn see_through(&self, descriptor: &Descriptor, holder: Holder<LockFile>) -> Result<bool> {
        let mut forced = false;
        let end = |_: &mut FsDisk, holder: &Holder<LockFile>| -> Result<()> {
            forced |= self.end_leftovers(descriptor, holder)?;
            Ok(())
        };
        let mut disk = self.store.disk();
        let made_ms = descriptor.created_at_ms;
        if tend(&mut disk, holder, made_ms, clock::now_ms, end)? {
            Ok(forced)
        } else {
            Err(Error::Busy(self.id.to_string()))
        }
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

    /// Take the job to run it, after ending what an earlier attempt left (R11): a worker that did it would be deaf
    /// meanwhile. `None` when somebody holds it.
    pub(crate) fn hold_to_run(&self) -> Result<Option<Held>> {
        let Some(held) = self.hold()? else {
            return Ok(None);
        };
        if held.holder.may_have_leftovers()
            && let Err(error) = self.end_leftovers(&held.descriptor, &held.holder)
        {
            // What was asked while we held the job must not lie unread for that (R6).
            self.let_go(held)?;
            return Err(error);
        }
        Ok(Some(held))
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
        let created_at_ms = held.descriptor.created_at_ms;
        let mut disk = self.store.disk();
        match let_go(&mut disk, held.holder, created_at_ms, clock::now_ms())? {
            LetGo::Free => Ok(()),
            LetGo::LeftoversFirst(holder) => self.see_through(&held.descriptor, holder).map(|_| ()),
        }
    }
}
