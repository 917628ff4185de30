//! The worker's book on the real disk: when what could not be recorded is tried again. What is recorded, and how a try
//! goes on after one that failed, is [`state_machine::protocol::book`] (R13).

use std::time::Duration;

use state_machine::course::Written;
use state_machine::disk::{Disk, Name, Place};
use state_machine::protocol::book;
use state_machine::protocol::create::Durable;
use state_machine::protocol::hold::{Holder, Recorded};
use state_machine::record::{Status, What};

use crate::clock;
use crate::disk::{FsDisk, LockFile};

/// The first wait before a record is tried again; it doubles up to the longest.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The book of one job.
pub(super) struct Book {
    disk: FsDisk,
    book: book::Book<LockFile>,
    /// When what is unwritten is tried again, in time since boot.
    next_try: Duration,
    /// How long the next wait is.
    wait: Duration,
}

impl Book {
    pub(super) fn new(disk: FsDisk, holder: Holder<LockFile>) -> Book {
        Book {
            disk,
            book: book::Book::new(holder),
            next_try: Duration::ZERO,
            wait: FIRST_WAIT,
        }
    }

    /// What is meant to be recorded, and whether it is.
    pub(super) fn inner(&self) -> &book::Book<LockFile> {
        &self.book
    }

    pub(super) fn disk(&mut self) -> &mut FsDisk {
        &mut self.disk
    }

    pub(super) fn into_holder(self) -> Holder<LockFile> {
        self.book.into_holder()
    }

    /// Whether the lock that we hold is still the one at its path (R1). What cannot be asked now counts as so.
    pub(super) fn lock_stands(&mut self) -> bool {
        let holder = self.book.holder();
        let place = Place::of_job(holder.id(), Name::Lock);
        self.disk.stands(holder.lock(), &place).unwrap_or(true)
    }

    /// When an unwritten record is to be tried again, in time since boot.
    pub(super) fn next_try(&self) -> Option<Duration> {
        (!self.book.is_clean()).then_some(self.next_try)
    }

    /// Record this status. What could not be written before goes with it.
    pub(super) fn write(&mut self, status: Status, notes: Vec<What>, durable: Durable) -> Written {
        if self.book.is_clean() {
            self.wait = FIRST_WAIT;
        }
        self.book.mean(status, notes, durable);
        self.try_again()
    }

    /// Try to write what could not be written, if it is time.
    pub(super) fn try_if_due(&mut self) -> Written {
        if self.book.is_clean() {
            Written::Yes
        } else if self.next_try > clock::since_boot() {
            Written::NotYet
        } else {
            self.try_again()
        }
    }

    fn try_again(&mut self) -> Written {
        match self.book.write(&mut self.disk) {
            Ok(Recorded::Done) => Written::Yes,
            Ok(Recorded::Gone) => Written::Gone,
            Err(error) => {
                if self.wait == FIRST_WAIT {
                    let text = format!("recording is late: {error}");
                    self.book.remark(What::Status { text });
                }
                self.next_try = clock::since_boot() + self.wait;
                self.wait = (self.wait * 2).min(LONGEST_WAIT);
                Written::NotYet
            }
        }
    }

    /// Put a line into the history that changes no state. One that cannot be written now goes with the next record.
    pub(super) fn note(&mut self, text: String) {
        let what = What::Status { text };
        // The holder keeps the line when this fails.
        let _ = self.book.note(&mut self.disk, what, clock::now_ms());
    }
}
