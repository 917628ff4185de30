//! Which queued job gets which idle slot: the admission of one pool. It knows who waits and who is in, and nothing of
//! how a job is started.
//!
//! Highest priority first, the oldest first within. A job that takes several slots and finds too few of them idle is
//! waited for: nobody behind it starts before it does, so that many small ones never starve it. One that takes more slots
//! than its pool has is passed over until the pool has them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::id::JobId;
use crate::record::Descriptor;

/// Where a job stands in the queue of its pool. The least goes first.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rank {
    priority: Reverse<i32>,
    created_at_ms: u64,
    order: u32,
    id: JobId,
}

impl Rank {
    /// The rank of the job of this descriptor.
    pub fn of(descriptor: &Descriptor) -> Rank {
        Rank {
            priority: Reverse(descriptor.priority),
            created_at_ms: descriptor.created_at_ms,
            order: descriptor.order,
            id: descriptor.id.clone(),
        }
    }

    /// The job.
    pub fn id(&self) -> &JobId {
        &self.id
    }
}

/// A job that is to start, and the number of its slot: the first where it takes several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// The job.
    pub id: JobId,
    /// The number of its slot, from 1.
    pub slot: u32,
}

/// How many slots a job takes, and where it sits or stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Seat {
    slots: u32,
    /// `None` where it was found running and nobody knows its number.
    number: Option<u32>,
}

/// The admission of one pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pool {
    slots: u32,
    paused: bool,
    queue: BTreeMap<Rank, u32>,
    ranks: BTreeMap<JobId, Rank>,
    inside: BTreeMap<JobId, Seat>,
}

impl Pool {
    /// A pool of so many slots, with nobody in it.
    pub fn new(slots: u32, paused: bool) -> Pool {
        Pool {
            slots,
            paused,
            ..Pool::default()
        }
    }

    /// From now on there are so many slots, and jobs are admitted or not. Whoever is inside stays, however few there are.
    pub fn configure(&mut self, slots: u32, paused: bool) {
        self.slots = slots;
        self.paused = paused;
    }

    /// A job waits. One that is inside stays there: its worker may not have taken it yet. Whoever knows that it has come to
    /// nothing there removes it first.
    pub fn enqueue(&mut self, rank: Rank, slots: u32) {
        let id = rank.id.clone();
        if self.inside.contains_key(&id) {
            return;
        }
        if let Some(earlier) = self.ranks.insert(id, rank.clone()) {
            self.queue.remove(&earlier);
        }
        self.queue.insert(rank, slots.max(1));
    }

    /// A job is inside, whoever started it (R20): it was found running, or in this slot. One whose number was not known
    /// when it was found, as its worker had not recorded it, can be told of again.
    pub fn occupy(&mut self, id: &JobId, slots: u32, number: Option<u32>) {
        self.leave_queue(id);
        let seat = self.inside.entry(id.clone()).or_insert(Seat {
            slots: slots.max(1),
            number,
        });
        seat.number = seat.number.or(number);
    }

    /// A job is neither waiting nor inside any more.
    pub fn remove(&mut self, id: &JobId) {
        self.leave_queue(id);
        self.inside.remove(id);
    }

    fn leave_queue(&mut self, id: &JobId) {
        if let Some(rank) = self.ranks.remove(id) {
            self.queue.remove(&rank);
        }
    }

    /// The next job to start, if there is one. It is inside from here on; to be asked until there is none.
    pub fn admit(&mut self) -> Option<Admitted> {
        if self.paused {
            return None;
        }
        let (rank, &slots) = self.queue.iter().find(|(_, slots)| **slots <= self.slots)?;
        if slots > self.idle() {
            return None;
        }
        let id = rank.id.clone();
        let slot = self.free_number();
        self.occupy(&id, slots, Some(slot));
        Some(Admitted { id, slot })
    }

    /// The lowest number that nobody inside has.
    fn free_number(&self) -> u32 {
        let taken: BTreeSet<u32> = self
            .inside
            .values()
            .filter_map(|seat| seat.number)
            .collect();
        (1..)
            .find(|number| !taken.contains(number))
            .unwrap_or(u32::MAX)
    }

    /// How many slots nobody has.
    pub fn idle(&self) -> u32 {
        self.slots.saturating_sub(self.taken())
    }

    /// How many slots somebody has; more than there are, where there were more before.
    pub fn taken(&self) -> u32 {
        self.inside
            .values()
            .fold(0, |taken: u32, seat| taken.saturating_add(seat.slots))
    }

    /// How many slots there are.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Whether nobody is admitted for now.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// How many jobs wait.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Whether this job is inside.
    pub fn has(&self, id: &JobId) -> bool {
        self.inside.contains_key(id)
    }

    /// Who is inside, with the number of its slot.
    pub fn inside(&self) -> impl Iterator<Item = (&JobId, Option<u32>)> {
        self.inside.iter().map(|(id, seat)| (id, seat.number))
    }

    /// Whether nobody waits and nobody is inside.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.inside.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(priority: i32, created_at_ms: u64) -> Rank {
        Rank {
            priority: Reverse(priority),
            created_at_ms,
            order: 0,
            id: JobId::new(created_at_ms, "x", 1),
        }
    }

    fn admitted(pool: &mut Pool) -> Vec<(String, u32)> {
        std::iter::from_fn(|| pool.admit())
            .map(|admitted| (admitted.id.into(), admitted.slot))
            .collect()
    }

    #[test]
    fn the_highest_priority_goes_first_and_the_oldest_within() {
        let mut pool = Pool::new(3, false);
        for (priority, at) in [(0, 1), (5, 3), (5, 2), (-1, 0)] {
            pool.enqueue(rank(priority, at), 1);
        }
        let names: Vec<_> = [("2-x", 1), ("3-x", 2), ("1-x", 3)]
            .map(|(id, slot)| (id.to_owned(), slot))
            .into();
        assert_eq!(admitted(&mut pool), names);
        pool.remove(&JobId::new(3, "x", 1));
        assert_eq!(admitted(&mut pool), [("0-x".to_owned(), 2)]);
    }

    #[test]
    fn a_job_of_several_slots_is_waited_for() {
        let mut pool = Pool::new(2, false);
        pool.enqueue(rank(0, 1), 1);
        pool.enqueue(rank(0, 2), 2);
        pool.enqueue(rank(0, 3), 1);
        assert_eq!(admitted(&mut pool), [("1-x".to_owned(), 1)]);
        pool.remove(&JobId::new(1, "x", 1));
        assert_eq!(admitted(&mut pool), [("2-x".to_owned(), 1)]);
        pool.remove(&JobId::new(2, "x", 1));
        assert_eq!(admitted(&mut pool), [("3-x".to_owned(), 1)]);
    }

    #[test]
    fn one_that_wants_more_than_there_are_is_passed_over_until_there_are() {
        let mut pool = Pool::new(2, false);
        pool.enqueue(rank(0, 1), 3);
        pool.enqueue(rank(0, 2), 1);
        assert_eq!(admitted(&mut pool), [("2-x".to_owned(), 1)]);
        pool.configure(4, false);
        assert_eq!(admitted(&mut pool), [("1-x".to_owned(), 2)]);
    }

    #[test]
    fn who_is_found_inside_counts_and_fewer_slots_push_nobody_out() {
        let mut pool = Pool::new(2, false);
        let found = JobId::new(9, "x", 1);
        pool.enqueue(rank(0, 9), 1);
        pool.occupy(&found, 1, None);
        pool.enqueue(rank(0, 9), 1);
        pool.enqueue(rank(0, 10), 1);
        pool.configure(1, false);
        assert!(pool.admit().is_none());
        pool.configure(2, true);
        assert!(pool.admit().is_none());
        pool.configure(2, false);
        assert_eq!(admitted(&mut pool), [("10-x".to_owned(), 1)]);
        assert_eq!((pool.taken(), pool.idle(), pool.waiting()), (2, 0, 0));
    }
}
