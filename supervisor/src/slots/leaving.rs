//! Waiting until a job that has ended has given its slot back: its end is recorded first, as that must not wait for a reset (R13).

use std::time::Duration;

use state_machine::disk::{Name, Place};
use state_machine::id::{JobId, PoolName};
use state_machine::protocol::claim::{Held, probe};
use state_machine::protocol::slot::look::{LookSlot, Standing, look_at_slot};
use state_machine::record::Holder;

use super::Slots;
use super::yard::slot_dir;
use crate::clock;
use crate::error::{DiskError, Error, Result};
use crate::watch::{Interest, Watch};

/// The pauses between the looks before it is worth a watch: they double, 15 ms in all.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(16);

impl Slots {
    /// Wait until this job does not have this slot, but no longer than `timeout`.
    pub(crate) fn until_left(
        &self,
        pool: &PoolName,
        number: u32,
        job: &JobId,
        timeout: Option<Duration>,
    ) -> Result<()> {
        let deadline = timeout.map(|timeout| clock::since_boot() + timeout);
        let left = || deadline.map(|deadline| deadline.saturating_sub(clock::since_boot()));
        let mut pause = FIRST_PAUSE;
        let mut watch = None;
        while self.has(job, pool, number)? && left() != Some(Duration::ZERO) {
            match &mut watch {
                None if pause < LONGEST_PAUSE => {
                    std::thread::sleep(left().map_or(pause, |left| left.min(pause)));
                    pause *= 2;
                }
                // It is looked at again once the watch stands.
                None => {
                    let mut new = Watch::with(Interest::Records);
                    new.add(&slot_dir(&self.store, pool, number));
                    watch = Some(new);
                }
                Some(watch) => {
                    let failed = |error| DiskError::new("watch", self.store.root(), error);
                    watch.wait(left()).map_err(failed)?;
                }
            }
        }
        Ok(())
    }

    /// Whether a job that has ended has a slot, or is just leaving it. One that has left processes behind keeps it, for nobody
    /// knows how long: that one is not waited for.
    fn has(&self, job: &JobId, pool: &PoolName, number: u32) -> Result<bool> {
        let mut disk = self.store.disk();
        let LookSlot::Slot(view) = look_at_slot(&mut disk, pool, number)? else {
            return Ok(false);
        };
        let may_be_his = match view.standing {
            Standing::Claimed(claim) => claim.holder == Holder::Job(job.clone()),
            Standing::Held => true,
            _ => false,
        };
        // It is the last that he lets go.
        let is_there =
            may_be_his && probe(&mut disk, &Place::of_job(job, Name::Lock))? == Held::Yes;
        Ok(is_there && !self.leaves_something(job)?)
    }

    fn leaves_something(&self, job: &JobId) -> Result<bool> {
        Ok(match self.store.job(job).look() {
            Ok(view) => view.status.leftovers.is_some(),
            Err(Error::Gone(_)) => true,
            Err(error) => return Err(error),
        })
    }
}
