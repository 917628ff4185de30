//! The worker's book: what it records, and how it goes on when the disk is full or read-only. A status that cannot be
//! written is kept and tried again; the job runs on meanwhile, and an exit status is never lost for it (R13).

use std::time::Duration;

use state_machine::disk::{Disk, Name, Place};
use state_machine::protocol::create::Durable;
use state_machine::protocol::hold::{Holder, Recorded, note, record};
use state_machine::record::{Status, What};

use crate::clock;
use crate::disk::{FsDisk, LockFile};
use crate::error::DiskError;

/// The first wait before a record is tried again; it doubles up to the longest.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// What a try to record came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// It is recorded.
    Yes,
    /// The disk does not let us; it is tried again.
    NotYet,
    /// The job's directory is gone: there is nothing left to record in (R10).
    Gone,
}

/// A record that is still to be written.
struct Unwritten {
    status: Status,
    notes: Vec<What>,
    durable: Durable,
    next_try: Duration,
    wait: Duration,
}

/// The book of one job.
pub(super) struct Book {
    disk: FsDisk,
    holder: Holder<LockFile>,
    unwritten: Option<Unwritten>,
}

impl Book {
    pub(super) fn new(disk: FsDisk, holder: Holder<LockFile>) -> Book {
        Book {
            disk,
            holder,
            unwritten: None,
        }
    }

    /// The status as it is meant to be: on disk, or about to be.
    pub(super) fn status(&self) -> &Status {
        match &self.unwritten {
            Some(unwritten) => &unwritten.status,
            None => self.holder.status(),
        }
    }

    pub(super) fn disk(&mut self) -> &mut FsDisk {
        &mut self.disk
    }

    pub(super) fn into_holder(self) -> Holder<LockFile> {
        self.holder
    }

    /// Whether the lock that we hold is still the one at its path (R1). What cannot be asked now counts as so.
    pub(super) fn lock_stands(&mut self) -> bool {
        let place = Place::of_job(self.holder.id(), Name::Lock);
        self.disk.stands(self.holder.lock(), &place).unwrap_or(true)
    }

    /// Whether everything is written.
    pub(super) fn is_clean(&self) -> bool {
        self.unwritten.is_none()
    }

    /// When an unwritten record is to be tried again, in time since boot.
    pub(super) fn next_try(&self) -> Option<Duration> {
        self.unwritten.as_ref().map(|unwritten| unwritten.next_try)
    }

    /// Record a change of the status. What could not be written before goes with it.
    pub(super) fn write(
        &mut self,
        change: impl FnOnce(&mut Status),
        notes: Vec<What>,
        durable: Durable,
    ) -> Written {
        let mut status = self.status().clone();
        change(&mut status);
        status.updated_at_ms = clock::now_ms();
        let now = clock::since_boot();
        let (mut all, wait) = match self.unwritten.take() {
            Some(before) => (before.notes, before.wait),
            None => (Vec::new(), FIRST_WAIT),
        };
        all.extend(notes);
        self.unwritten = Some(Unwritten {
            status,
            notes: all,
            durable,
            next_try: now,
            wait,
        });
        self.try_again()
    }

    /// Try to write what could not be written, if it is time.
    pub(super) fn try_if_due(&mut self) -> Written {
        match &self.unwritten {
            None => Written::Yes,
            Some(unwritten) if unwritten.next_try > clock::since_boot() => Written::NotYet,
            Some(_) => self.try_again(),
        }
    }

    fn try_again(&mut self) -> Written {
        let Some(mut unwritten) = self.unwritten.take() else {
            return Written::Yes;
        };
        // The holder counts the steps; a status that differs in nothing else is the one on disk.
        unwritten.status.steps = self.holder.status().steps;
        match self.try_to(&unwritten) {
            Ok(Recorded::Done) => Written::Yes,
            Ok(Recorded::Gone) => Written::Gone,
            Err(error) => {
                if self.holder.status() == &unwritten.status {
                    // The holder has the notes since the status stands; it would be given them twice.
                    unwritten.notes.clear();
                }
                if unwritten.wait == FIRST_WAIT {
                    let text = format!("recording is late: {error}");
                    unwritten.notes.push(What::Status { text });
                }
                unwritten.next_try = clock::since_boot() + unwritten.wait;
                unwritten.wait = (unwritten.wait * 2).min(LONGEST_WAIT);
                self.unwritten = Some(unwritten);
                Written::NotYet
            }
        }
    }

    /// One try. Where only the history is owed, only that is written; what must survive a loss of power is written anew,
    /// as a sync that failed cannot be made good by another one (F31).
    fn try_to(&mut self, unwritten: &Unwritten) -> Result<Recorded, DiskError> {
        let stands = self.holder.status() == &unwritten.status && self.holder.owes_history();
        if stands && unwritten.durable == Durable::No {
            return state_machine::protocol::hold::write_pending(&mut self.disk, &mut self.holder);
        }
        // A step over a state that could never be written down must still be a path of the table.
        let from = self.holder.status().state;
        for state in state_machine::job::path(from, unwritten.status.state)
            .unwrap_or_default()
            .into_iter()
            .filter(|state| *state != unwritten.status.state)
        {
            let mut between = unwritten.status.clone();
            between.state = state;
            if record(&mut self.disk, &mut self.holder, between, &[], Durable::No)?
                == Recorded::Gone
            {
                return Ok(Recorded::Gone);
            }
        }
        record(
            &mut self.disk,
            &mut self.holder,
            unwritten.status.clone(),
            &unwritten.notes,
            unwritten.durable,
        )
    }

    /// Put a line into the history that changes no state. One that cannot be written now goes with the next record.
    pub(super) fn note(&mut self, text: String) {
        // The holder keeps the line when this fails.
        let _ = note(
            &mut self.disk,
            &mut self.holder,
            What::Status { text },
            clock::now_ms(),
        );
    }
}
