//! Who is connected: how many may be, and who has to go when one more comes.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::Instant;

use tokio::task::AbortHandle;

/// How many may be connected that are not told of changes.
const GUESTS: usize = 512;
/// How many may be told of changes.
const SUBSCRIBERS: usize = 16_384;

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
        let part = |of: u64| usize::try_from(descriptors / of).unwrap_or(usize::MAX);
        House {
            seats: RefCell::default(),
            next: Cell::new(0),
            staying: Cell::new(0),
            guests: GUESTS.min(part(8)).max(1),
            subscribers: SUBSCRIBERS.min(part(2)).max(1),
        }
    }

    /// The number of the next to come in. Where the house is full, the one who has asked nothing for the longest time goes.
    pub(super) fn number(&self) -> u64 {
        let guests = self.seats.borrow().len() - self.staying.get();
        if guests >= self.guests {
            self.make_room();
        }
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

    /// Have the one go who has asked nothing for the longest time.
    pub(super) fn make_room(&self) {
        let idlest = {
            let seats = self.seats.borrow();
            let guests = seats.iter().filter(|(_, seat)| !seat.stays);
            guests
                .min_by_key(|(_, seat)| seat.asked)
                .map(|(number, _)| *number)
        };
        if let Some(number) = idlest {
            self.leave(number);
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
        let house = House::new(24);
        let (first, kept) = come_in(&house);
        assert!(house.keep(first) && house.keep(first));
        let (second, _) = come_in(&house);
        let (_, third) = come_in(&house);
        let (_, fourth) = come_in(&house);
        house.asks(second);
        come_in(&house);
        assert!(third.await.unwrap_err().is_cancelled());
        assert_eq!(house.seats.borrow().len(), 4);
        assert!(!kept.is_finished() && !fourth.is_finished());
        house.leave(first);
        assert_eq!(house.staying.get(), 0);
    }

    #[tokio::test]
    async fn no_more_stay_than_may() {
        let house = House::new(4);
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
