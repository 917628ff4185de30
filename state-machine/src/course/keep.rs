//! Keeping a job that nobody works on: putting it in order, seeing the processes gone that its dead worker left, and letting
//! it go (R6, R11). Clients do this, whoever recovers a job, whoever is about to run one, and a worker that leaves.

use crate::disk::Disk;
use crate::id::JobId;
use crate::protocol::claim::tree_is_free;
use crate::protocol::hold::Holder;
use crate::protocol::recover::{Recovered, recover_job};
use crate::protocol::settle::{LetGo, Searched, Settled, let_go, settle};
use crate::record::Descriptor;

use super::worker::Search;

/// How often what is left of a job is ended because somebody asked for something just then.
const TENDING: u32 = 64;

/// Who holds a job for a while: what it has beside the disk.
///
/// Every deed tracks its caller, as every effect of a [`Disk`] does.
pub trait Keeper {
    /// The disk that its jobs are on.
    type Disk: Disk;
    /// What it cannot go on after.
    type Fault: From<<Self::Disk as Disk>::Fault>;

    /// The disk.
    fn disk(&mut self) -> &mut Self::Disk;

    /// The time for stamps, in ms since the epoch.
    fn now_ms(&self) -> u64;

    /// End what an earlier attempt of this job has left, found so, and see it gone (R11). Where it cannot be ended: why.
    #[track_caller]
    fn end_leftovers(
        &mut self,
        descriptor: &Descriptor,
        holder: &HolderOf<Self>,
        search: Search,
    ) -> Result<Result<(), String>, Self::Fault>;

    /// Whether it is still to run the job that it has taken: it is not, where it was asked by a supervisor that is gone (R20).
    #[track_caller]
    fn is_wanted(&mut self) -> Result<bool, Self::Fault> {
        Ok(true)
    }
}

/// The handle of a keeper's disk.
pub type HandleOf<K> = <<K as Keeper>::Disk as Disk>::Handle;

/// The holder of a keeper's job.
pub type HolderOf<K> = Holder<HandleOf<K>>;

/// What keeping a job came to. It is free now, and whatever is left of what was asked is gone on with by the next one who
/// looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// What was asked of it is answered.
    InOrder,
    /// What an earlier attempt has left cannot be ended, for this reason.
    Stuck(String),
    /// Something was asked at every turn.
    Busy,
}

/// What putting a job in order came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// It was held for that, and let go.
    Kept(Kept),
    /// Somebody holds it, who does the same when it lets go.
    Held,
    /// There is no such job.
    Gone,
    /// A record of it cannot be read; it was left as it is (R21).
    Damaged,
}

/// Make a job that nobody holds say what is true, and answer what was asked of it, ending what its dead worker has left where
/// that comes first.
pub fn put_in_order<K: Keeper>(keeper: &mut K, id: &JobId) -> Result<Order, K::Fault> {
    let now_ms = keeper.now_ms();
    Ok(match recover_job(keeper.disk(), id, now_ms)? {
        Recovered::Quiet => Order::Kept(Kept::InOrder),
        Recovered::Held => Order::Held,
        Recovered::Gone => Order::Gone,
        Recovered::Damaged => Order::Damaged,
        Recovered::LeftoversFirst(holder, descriptor) => {
            Order::Kept(tend(keeper, &descriptor, holder)?)
        }
    })
}

/// Let a job go, and honour before that what was asked of it while we held it ([`let_go`]).
pub fn leave<K: Keeper>(
    keeper: &mut K,
    descriptor: &Descriptor,
    holder: HolderOf<K>,
) -> Result<Kept, K::Fault> {
    let now_ms = keeper.now_ms();
    match let_go(keeper.disk(), holder, descriptor.created_at_ms, now_ms)? {
        LetGo::Free => Ok(Kept::InOrder),
        LetGo::LeftoversFirst(holder) => tend(keeper, descriptor, holder),
    }
}

/// Go on with a job that is held and of which something is asked that needs an empty tree first ([`Settled::LeftoversFirst`],
/// [`LetGo::LeftoversFirst`]): end what is left, honour what was asked, and let the job go; as often as somebody asks for more
/// just then.
fn tend<K: Keeper>(
    keeper: &mut K,
    descriptor: &Descriptor,
    holder: HolderOf<K>,
) -> Result<Kept, K::Fault> {
    let mut holder = holder;
    let mut kept = Kept::Busy;
    for _ in 0..TENDING {
        if let Err(why) = end_left(keeper, descriptor, &holder)? {
            kept = Kept::Stuck(why);
            break;
        }
        let now_ms = keeper.now_ms();
        let disk = keeper.disk();
        if let Settled::LeftoversFirst(_) = settle(disk, &mut holder, Searched::Yes, now_ms)? {
            continue;
        }
        match let_go(disk, holder, descriptor.created_at_ms, now_ms)? {
            LetGo::Free => return Ok(Kept::InOrder),
            LetGo::LeftoversFirst(again) => holder = again,
        }
    }
    let disk = keeper.disk();
    disk.release(holder.into_lock())?;
    Ok(kept)
}

/// End what an earlier attempt of a held job has left. A process that has the tree lock is looked for in all that processes
/// have open; where nobody has it, one that has closed it is found by its mark.
pub(super) fn end_left<K: Keeper>(
    keeper: &mut K,
    descriptor: &Descriptor,
    holder: &HolderOf<K>,
) -> Result<Result<(), String>, K::Fault> {
    let search = if tree_is_free(keeper.disk(), holder.id())? {
        Search::Marked
    } else {
        Search::Holding
    };
    keeper.end_leftovers(descriptor, holder, search)
}
