//! Maintaining the slots of a pool, one after the other and one run at a time (R15), with every attempt recorded (R17).

use super::find::{Finding, Inspect};
use super::give_back::{Condition, give_back};
use super::occupy::{Occupant, Occupy, Why, leave, occupy};
use super::place::{make_room, numbers, placement_lock};
use super::remove::remove_slot;
use super::write::write;
use crate::call::Call;
use crate::disk::{Create, Dir, Disk, Name};
use crate::id::{PoolName, Ticket};
use crate::protocol::lock::{Taken, lock_in_turn, take_lock};
use crate::record::{Claim, Outcome};
use crate::slot;

/// Be the one who maintains a pool: its lock, or `None` where somebody else is that. Its file is never removed (F18).
pub fn claim_maintenance<D: Disk>(
    disk: &mut D,
    pool: &PoolName,
) -> Result<Option<D::Handle>, D::Fault> {
    disk.begins(|_| Call::ClaimMaintenance { pool: pool.clone() });
    make_room(disk, pool)?;
    let place = Dir::Pool(pool.clone()).at(Name::MaintainLock);
    for _ in 0..2 {
        match take_lock(disk, &place)? {
            Taken::Mine(lock) => return Ok(Some(lock)),
            Taken::Owned => break,
            // The first of this pool. Of two who make the file, both may lock it.
            Taken::Absent => match disk.create(&place)? {
                Create::Created(file) => disk.close(file)?,
                Create::Exists => {}
                Create::Absent => break,
            },
        }
    }
    Ok(None)
}

/// Cease to maintain a pool.
pub fn end_maintenance<D: Disk>(disk: &mut D, lock: D::Handle) -> Result<(), D::Fault> {
    disk.begins(|number| Call::EndMaintenance {
        lock: number(&lock),
    });
    disk.release(lock)
}

/// What visiting a slot to maintain it came to.
#[derive(Debug)]
pub enum Visit<H> {
    /// It is idle and due. Whoever has it looks at what stands in it, and starts, calls it broken, or leaves it.
    Due(Occupant<H>),
    /// It was maintained within the span, at this stamp.
    NotDue(String),
    /// It cannot be had.
    Taken(Why),
    /// There is no such slot any more.
    Gone,
    /// Others have been looking for slots all the time.
    Busy,
}

/// Visit a slot. What it is like is read now, under the placement lock, so that nobody who looks for a slot finds us in one
/// that we then leave.
pub fn visit<D: Disk>(
    disk: &mut D,
    pool: &PoolName,
    number: u32,
    older_than_ms: Option<u64>,
    now_ms: u64,
) -> Result<Visit<D::Handle>, D::Fault> {
    disk.begins(|_| Call::Visit {
        pool: pool.clone(),
        number,
        older_than_ms,
        now_ms,
    });
    let Some(lock) = lock_in_turn(disk, &placement_lock(pool))? else {
        return Ok(Visit::Busy);
    };
    let visit = match occupy(disk, pool, number, now_ms)? {
        Occupy::Mine(occupant) if !slot::is_due(occupant.record(), older_than_ms, now_ms) => {
            let stamp = occupant.record.last_maintained.clone().unwrap_or_default();
            disk.release(occupant.lock)?;
            Visit::NotDue(stamp)
        }
        Occupy::Mine(occupant) => Visit::Due(occupant),
        Occupy::Taken(why) => Visit::Taken(why),
        Occupy::Gone => Visit::Gone,
    };
    disk.release(lock)?;
    Ok(visit)
}

/// Note that the maintenance of a slot starts that one has alone, before its command does (R17). `false` where the slot was
/// taken away.
pub fn start_maintenance<D: Disk>(
    disk: &mut D,
    occupant: &mut Occupant<D::Handle>,
    claim: Claim,
) -> Result<bool, D::Fault> {
    disk.begins(|number| Call::StartMaintenance {
        occupant: occupant.on_tape(number),
        claim: claim.clone(),
    });
    match slot::maintained_by(occupant.record.clone(), claim) {
        Ok(record) => write(disk, occupant, record),
        Err(_) => Ok(false),
    }
}

/// Record how the maintenance of a slot ended, whatever that is, and let its lock go (R17). `false` where the slot was taken
/// away.
pub fn conclude_maintenance<D: Disk>(
    disk: &mut D,
    mut occupant: Occupant<D::Handle>,
    outcome: Outcome,
    now: &str,
) -> Result<bool, D::Fault> {
    disk.begins(|number| Call::ConcludeMaintenance {
        occupant: occupant.on_tape(number),
        outcome,
        now: now.to_owned(),
    });
    let written = match slot::maintained(occupant.record.clone(), outcome, now) {
        Ok(record) => write(disk, &mut occupant, record)?,
        Err(_) => false,
    };
    disk.release(occupant.lock)?;
    Ok(written)
}

/// How a maintenance command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How.
    pub outcome: Outcome,
    /// When, as a stamp.
    pub now: String,
}

/// What came of visiting a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Maintained {
    /// It was maintained within the span, at this stamp.
    NotDue(String),
    /// It cannot be had.
    Taken(Why),
    /// Processes of a dead holder work in it still.
    Busy(String),
    /// It is gone, or others have been looking for slots all the time.
    Unavailable,
    /// Its command was run, and how that ended is recorded.
    Ran(Outcome),
}

/// What whoever maintains slots does about one, beside what is on disk here.
pub trait Crew<D: Disk> {
    /// Look at what stands in the slot.
    fn inspect(
        &mut self,
        disk: &mut D,
        occupant: &Occupant<D::Handle>,
    ) -> Result<Finding, D::Fault>;

    /// The claim under which the slot is maintained.
    fn claim(&mut self, occupant: &Occupant<D::Handle>) -> Claim;

    /// Run the command in it, and see all of its tree gone.
    fn run(&mut self, disk: &mut D, occupant: &Occupant<D::Handle>) -> Result<Ended, D::Fault>;
}

/// Maintain one slot, if it can be had and is due. Only its own lock is held while its command runs (R15), and whatever comes
/// of that is recorded (R17).
pub fn maintain_slot<D: Disk>(
    disk: &mut D,
    pool: &PoolName,
    number: u32,
    older_than_ms: Option<u64>,
    now_ms: u64,
    crew: &mut impl Crew<D>,
) -> Result<Maintained, D::Fault> {
    let mut occupant = match visit(disk, pool, number, older_than_ms, now_ms)? {
        Visit::Due(occupant) => occupant,
        Visit::NotDue(stamp) => return Ok(Maintained::NotDue(stamp)),
        Visit::Taken(why) => return Ok(Maintained::Taken(why)),
        Visit::Gone | Visit::Busy => return Ok(Maintained::Unavailable),
    };
    let expired = occupant.expired().cloned();
    match (crew.inspect(disk, &occupant)?, expired) {
        (Finding::Sound, None) => {}
        (_, Some(session)) => {
            // Whoever looks for a slot closes it, if it is sound.
            leave(disk, occupant)?;
            return Ok(Maintained::Taken(Why::Session(Box::new(session))));
        }
        (Finding::Busy(who), None) => {
            leave(disk, occupant)?;
            return Ok(Maintained::Busy(who));
        }
        (Finding::Broken(why), None) => {
            give_back(disk, occupant, Condition::Broken(why.clone()))?;
            return Ok(Maintained::Taken(Why::Broken(why)));
        }
    }
    let claim = crew.claim(&occupant);
    if !start_maintenance(disk, &mut occupant, claim)? {
        leave(disk, occupant)?;
        return Ok(Maintained::Unavailable);
    }
    let ended = crew.run(disk, &occupant)?;
    conclude_maintenance(disk, occupant, ended.outcome, &ended.now)?;
    Ok(Maintained::Ran(ended.outcome))
}

/// Take the slots out of a pool that are more than `most`, highest number first: those that can be had and are sound. Each
/// comes to lie in the trash under a ticket of its own, and is to be deleted.
pub fn shed<D: Disk>(
    disk: &mut D,
    pool: &PoolName,
    most: u32,
    now_ms: u64,
    ticket: &Ticket,
    inspect: &mut Inspect<'_, D>,
) -> Result<Vec<(u32, Ticket)>, D::Fault> {
    let mut there = numbers(disk, pool)?;
    let mut gone = Vec::new();
    let mut surplus = there.len().saturating_sub(most as usize);
    while surplus > 0
        && let Some(number) = there.pop()
    {
        let Visit::Due(occupant) = visit(disk, pool, number, None, now_ms)? else {
            continue;
        };
        match inspect(disk, &occupant)? {
            Finding::Sound if occupant.expired().is_none() => {}
            Finding::Broken(why) if occupant.expired().is_none() => {
                give_back(disk, occupant, Condition::Broken(why))?;
                continue;
            }
            _ => {
                leave(disk, occupant)?;
                continue;
            }
        }
        let ticket = ticket.nth(number);
        if remove_slot(disk, occupant, &ticket)? {
            gone.push((number, ticket));
            surplus -= 1;
        }
    }
    Ok(gone)
}
