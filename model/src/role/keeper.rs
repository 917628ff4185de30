//! Whoever holds a job for a while, on the modelled machine. What he does with it is shipped code
//! ([`state_machine::course::keep`], [`state_machine::course::take`]).

use state_machine::course::Search;
use state_machine::course::keep::{HolderOf, Keeper, Kept, leave};
use state_machine::protocol::hold::Holder;
use state_machine::record::Descriptor;

use crate::stage::Stage;

/// Whom a worker asks, once it has the job, whether it is to run it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    /// The supervisor that forked it.
    ItsSupervisor,
    /// Nobody.
    Nobody,
}

/// Who holds a job for a while.
pub(super) struct Keeping<'a, D> {
    pub(super) disk: &'a mut D,
    pub(super) now_ms: u64,
    pub(super) asks: Asks,
}

impl<'a, D> Keeping<'a, D> {
    /// One that nobody has asked.
    pub(super) fn new(disk: &'a mut D, now_ms: u64) -> Keeping<'a, D> {
        Keeping {
            disk,
            now_ms,
            asks: Asks::Nobody,
        }
    }
}

impl<D: Stage> Keeper for Keeping<'_, D> {
    type Disk = D;
    type Fault = D::Fault;

    fn disk(&mut self) -> &mut D {
        self.disk
    }

    fn now_ms(&self) -> u64 {
        self.now_ms
    }

    #[track_caller]
    fn end_leftovers(
        &mut self,
        _: &Descriptor,
        holder: &HolderOf<Self>,
        search: Search,
    ) -> Result<Result<(), String>, D::Fault> {
        self.disk.end_trees(holder.id(), search)?;
        Ok(Ok(()))
    }

    #[track_caller]
    fn is_wanted(&mut self) -> Result<bool, D::Fault> {
        match self.asks {
            Asks::ItsSupervisor => self.disk.is_wanted(),
            Asks::Nobody => Ok(true),
        }
    }
}

/// Let a job go.
pub(super) fn let_go<D: Stage>(
    disk: &mut D,
    descriptor: &Descriptor,
    holder: Holder<D::Handle>,
    now_ms: u64,
) -> Result<(), D::Fault> {
    let kept = leave(&mut Keeping::new(disk, now_ms), descriptor, holder)?;
    see_that_it_is_in_order(&kept);
    Ok(())
}

/// No tree of the model stays that is to end, and no world has so many clients that there is always another request.
pub(super) fn see_that_it_is_in_order(kept: &Kept) {
    assert!(*kept == Kept::InOrder, "{kept:?}");
}
