//! The worker's book: what it means to record, and how it goes on when the disk does not let it. A status that cannot
//! be written is kept and tried again; the command runs on meanwhile, and an exit status is never lost for it (R13).
//!
//! When a try is due is the worker's business: nothing here knows the time.

use crate::disk::Disk;
use crate::job;
use crate::protocol::create::Durable;
use crate::protocol::hold::{Holder, Recorded, note, record, write_pending};
use crate::record::{Status, What};

/// A record that is still to be written.
#[derive(Debug)]
struct Unwritten {
    status: Status,
    notes: Vec<What>,
    durable: Durable,
}

/// The book of one job.
#[derive(Debug)]
pub struct Book<H> {
    holder: Holder<H>,
    unwritten: Option<Unwritten>,
}

impl<H> Book<H> {
    /// The book of a job that is held.
    pub fn new(holder: Holder<H>) -> Book<H> {
        Book {
            holder,
            unwritten: None,
        }
    }

    /// The status as it is meant to be: on disk, or about to be.
    pub fn status(&self) -> &Status {
        match &self.unwritten {
            Some(unwritten) => &unwritten.status,
            None => self.holder.status(),
        }
    }

    /// The holder.
    pub fn holder(&self) -> &Holder<H> {
        &self.holder
    }

    /// Give the holder back. What is unwritten is lost.
    pub fn into_holder(self) -> Holder<H> {
        self.holder
    }

    /// Whether everything is written.
    pub fn is_clean(&self) -> bool {
        self.unwritten.is_none()
    }

    /// Mean to record this status and these notes. What could not be written before goes with it.
    pub fn mean(&mut self, status: Status, notes: Vec<What>, durable: Durable) {
        let mut all = self
            .unwritten
            .take()
            .map_or_else(Vec::new, |before| before.notes);
        all.extend(notes);
        self.unwritten = Some(Unwritten {
            status,
            notes: all,
            durable,
        });
    }

    /// Put one note more beside what is unwritten.
    pub fn remark(&mut self, what: What) {
        if let Some(unwritten) = &mut self.unwritten {
            unwritten.notes.push(what);
        }
    }

    /// Try to write what is unwritten. After a fault it still is, and another try completes what is missing and doubles
    /// nothing.
    pub fn write<D: Disk<Handle = H>>(&mut self, disk: &mut D) -> Result<Recorded, D::Fault> {
        let Some(mut unwritten) = self.unwritten.take() else {
            return Ok(Recorded::Done);
        };
        // The holder counts the steps; a status that differs in nothing else is the one on disk.
        unwritten.status.steps = self.holder.status().steps;
        let before = self.holder.status().clone();
        let tried = self.try_to(disk, &unwritten);
        if tried.is_err() {
            unwritten.status.steps = self.holder.status().steps;
            let stands = self.holder.status() == &unwritten.status;
            if stands && self.holder.status() != &before {
                // The holder has taken the notes in since the status stands; it would be given them twice.
                unwritten.notes.clear();
            }
            self.unwritten = Some(unwritten);
        }
        tried
    }

    /// One try. Where only the history is owed, only that is written; what must survive a loss of power is written anew,
    /// as a sync that failed cannot be made good by another one (F31).
    fn try_to<D: Disk<Handle = H>>(
        &mut self,
        disk: &mut D,
        unwritten: &Unwritten,
    ) -> Result<Recorded, D::Fault> {
        let stands = self.holder.status() == &unwritten.status && self.holder.owes_history();
        if stands && unwritten.durable == Durable::No && unwritten.notes.is_empty() {
            return write_pending(disk, &mut self.holder);
        }
        // A step over a state that could never be written down must still be a path of the table (R7).
        let from = self.holder.status().state;
        let to = unwritten.status.state;
        for state in job::path(from, to).unwrap_or_default() {
            if state == to {
                continue;
            }
            let mut between = unwritten.status.clone();
            between.state = state;
            if record(disk, &mut self.holder, between, &[], Durable::No)? == Recorded::Gone {
                return Ok(Recorded::Gone);
            }
        }
        let status = unwritten.status.clone();
        record(
            disk,
            &mut self.holder,
            status,
            &unwritten.notes,
            unwritten.durable,
        )
    }

    /// Put a line into the history that changes no state. One that cannot be written now goes with the next record.
    pub fn note<D: Disk<Handle = H>>(
        &mut self,
        disk: &mut D,
        what: What,
        now_ms: u64,
    ) -> Result<Recorded, D::Fault> {
        note(disk, &mut self.holder, what, now_ms)
    }
}
