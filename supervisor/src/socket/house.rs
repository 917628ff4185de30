//! Who is connected: how many may be, and who has to go when one more comes.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;

/// How many may be connected that are not told of changes.
const GUESTS: usize = 512;
/// How many may be told of changes.
const SUBSCRIBERS: usize = 16_384;
/// So many descriptors are left for everything else.
const RESERVE: u64 = 32;
/// Nobody has to go so soon after he came or asked: what he has to say may be on its way.
const GRACE: Duration = Duration::from_millis(100);

/// A connection.
struct Seat {
    task: AbortHandle,
    /// When it last asked something.
    asked: Instant,
    /// It waits for something that we will tell it, and is not to go for another.
    stays: bool,
}

/// Everybody who is connected. For one thread.
pub(super) struct House {
    seats: RefCell<HashMap<u64, Seat>>,
    next: Cell<u64>,
    staying: Cell<usize>,
    guests: usize,
    subscribers: usize,
}

impl House {
    /// One for a process that may have so many descriptors; some are needed for other things.
    pub(super) fn new(descriptors: u64) -> House {
        let ours = descriptors.saturating_sub(RESERVE);
        let part = |of: u64| usize::try_from(ours / of).unwrap_or(usize::MAX);
        House {
            seats: RefCell::default(),
            next: Cell::new(0),
            staying: Cell::new(0),
            guests: GUESTS.min(part(4)).max(1),
            subscribers: SUBSCRIBERS.min(part(2)).max(1),
        }
    }

    /// Have room for one more. Where the house is full, the one goes who has asked nothing for the longest time; where
    /// that is not long, it is said how long it takes until he may have to go.
    pub(super) fn make_room(&self) -> Result<(), Duration> {
        let guests = self.seats.borrow().len() - self.staying.get();
        if guests < self.guests {
            return Ok(());
        }
        self.clear_a_seat()
    }

    /// Have the one go who has asked nothing for the longest time, if anybody may have to.
    pub(super) fn clear_a_seat(&self) -> Result<(), Duration> {
        let idlest = {
            let seats = self.seats.borrow();
            let guests = seats.iter().filter(|(_, seat)| !seat.stays);
            guests
                .min_by_key(|(_, seat)| seat.asked)
                .map(|(number, seat)| (*number, seat.asked.elapsed()))
        };
        match idlest {
            Some((number, idle)) if idle >= GRACE => {
                self.leave(number);
                Ok(())
            }
            Some((_, idle)) => Err(GRACE - idle),
            None => Err(GRACE),
        }
    }

    /// The number of the next to come in.
    pub(super) fn number(&self) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        number
    }

    /// Somebody has come in.
    pub(super) fn seat(&self, number: u64, task: AbortHandle) {
        let seat = Seat {
            task,
            asked: Instant::now(),
            stays: false,
        };
        self.seats.borrow_mut().insert(number, seat);
    }

    /// Somebody has asked something.
    pub(super) fn asks(&self, number: u64) {
        if let Some(seat) = self.seats.borrow_mut().get_mut(&number) {
            seat.asked = Instant::now();
        }
    }

    /// Somebody is to stay until he leaves. Says whether he may.
    pub(super) fn keep(&self, number: u64) -> bool {
        let mut seats = self.seats.borrow_mut();
        match seats.get_mut(&number) {
            Some(seat) if seat.stays => true,
            Some(seat) if self.staying.get() < self.subscribers => {
                seat.stays = true;
                self.staying.set(self.staying.get() + 1);
                true
            }
            _ => false,
        }
    }

    /// Somebody leaves.
    pub(super) fn leave(&self, number: u64) {
        let seat = self.seats.borrow_mut().remove(&number);
        if let Some(seat) = seat {
            self.staying
                .set(self.staying.get() - usize::from(seat.stays));
            seat.task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn come_in(house: &House) -> (u64, tokio::task::JoinHandle<()>) {
        let number = house.number();
        let task = tokio::task::spawn(std::future::pending());
        house.seat(number, task.abort_handle());
        (number, task)
    }

    #[tokio::test]
    async fn the_idlest_guest_goes_and_who_stays_does_not() {
        let house = House::new(32 + 12);
        let (first, kept) = come_in(&house);
        assert!(house.keep(first) && house.keep(first));
        let (second, _) = come_in(&house);
        let (_, third) = come_in(&house);
        assert_eq!(house.make_room(), Ok(()));
        let (_, fourth) = come_in(&house);
        // They have only just come.
        let wait = house.make_room().unwrap_err();
        assert!(wait <= GRACE);
        while house.make_room().is_err() {
            house.asks(second);
            tokio::task::yield_now().await;
        }
        assert!(third.await.unwrap_err().is_cancelled());
        assert_eq!(house.seats.borrow().len(), 3);
        assert!(!kept.is_finished() && !fourth.is_finished());
        house.leave(first);
        assert_eq!(house.staying.get(), 0);
    }

    #[tokio::test]
    async fn no_more_stay_than_may() {
        let house = House::new(32 + 4);
        let (first, _) = come_in(&house);
        assert!(house.keep(first));
        let (second, _) = come_in(&house);
        assert!(house.keep(second));
        let (third, _) = come_in(&house);
        assert!(!house.keep(third));
        house.leave(second);
        assert!(house.keep(third));
    }
}
