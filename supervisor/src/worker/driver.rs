//! The driver of a job's course, from its set-up to letting the job go. What happens in between, and in which order, is
//! [`state_machine::course`]; what its deeds are on this machine, `deeds`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use state_machine::course;
use state_machine::disk::{Disk, Name, Place};
use state_machine::id::JobId;
use state_machine::job::State;
use state_machine::protocol::hold::Holder;
use state_machine::record::Descriptor;

use super::book::Book;
use super::launch::{Report, Terms};
use super::notices::Notices;
use super::sources::Sources;
use super::wake::{Wake, Woken};
use crate::clock;
use crate::disk::LockFile;
use crate::process;
use crate::store::{Held, Job};

/// How often an empty control file is looked at.
const EMPTY_LOOK: Duration = Duration::from_millis(20);

/// A worker of one job.
pub(super) struct Driver<'a> {
    pub(super) job: &'a Job,
    pub(super) id: JobId,
    pub(super) dir: PathBuf,
    pub(super) descriptor: Descriptor,
    pub(super) terms: Terms,
    pub(super) book: Book,
    pub(super) wake: Wake,
    pub(super) report: Report,
    pub(super) grace: Duration,
    pub(super) told_to_end: bool,
    /// Since when a control file is there and empty, in time since boot.
    pub(super) empty_since: Option<Duration>,
    /// What the limits have cost so far, in bytes.
    pub(super) dropped_bytes: u64,
    /// When the next attempt is due, in time since boot.
    pub(super) alarm: Duration,
    /// What the command is made of, where it is to be run anew when that changes.
    pub(super) sources: Option<Sources>,
    /// What the command says of itself, where it does.
    pub(super) notices: Option<Notices>,
    /// What was noted last of the limits that are not held.
    pub(super) unheld: Option<String>,
    /// The job cannot be seen yet: nothing may be recorded, and nothing may run.
    pub(super) unpublished: bool,
}

/// How a worker has left its job.
pub(super) struct Over {
    /// Its own exit code.
    pub(super) code: i32,
    /// Whether the process is as good as a new one.
    pub(super) can_go_on: bool,
}

impl Over {
    /// It could not do what it was there for.
    pub(super) const BADLY: Over = Over {
        code: 1,
        can_go_on: false,
    };
}

impl<'a> Driver<'a> {
    /// Set up what the worker sleeps on, and become the parent of every orphan of the tree (F47).
    pub(super) fn new(job: &'a Job, held: Held, terms: Terms) -> std::io::Result<Driver<'a>> {
        let dir = job.dir();
        let wake = Wake::new(&dir)?;
        Driver::with(job, held, terms, dir, wake)
    }

    /// As [`Driver::new`], for a job whose directory this process stands in and that is not published yet.
    pub(super) fn before_publication(
        job: &'a Job,
        held: Held,
        terms: Terms,
    ) -> std::io::Result<Driver<'a>> {
        let wake = Wake::new(Path::new("."))?;
        let mut driver = Driver::with(job, held, terms, job.dir(), wake)?;
        let standing_here = job.store().disk().standing_in(&driver.id);
        *driver.book.disk() = standing_here;
        driver.unpublished = true;
        Ok(driver)
    }

    fn with(
        job: &'a Job,
        held: Held,
        terms: Terms,
        dir: PathBuf,
        wake: Wake,
    ) -> std::io::Result<Driver<'a>> {
        see_that_files_can_be_opened()?;
        process::become_subreaper()?;
        Ok(Driver {
            job,
            id: held.holder.id().clone(),
            grace: Duration::from_millis(held.descriptor.grace_ms),
            dropped_bytes: held.holder.status().dropped_bytes.unwrap_or(0),
            book: Book::new(job.store().disk(), held.holder),
            descriptor: held.descriptor,
            terms,
            dir,
            wake,
            report: Report::to_nobody(),
            told_to_end: false,
            empty_since: None,
            alarm: Duration::ZERO,
            sources: None,
            notices: None,
            unheld: None,
            unpublished: false,
        })
    }

    /// Run the job to its end, its pause, or the end of this worker.
    pub(super) fn run(mut self, report: Report) -> Over {
        self.report = report;
        let id = self.id.clone();
        let went = course::run(&mut self, &id);
        if let Err(error) = &went {
            // The kernel denies us what we live on. The command dies with us, by its parent-death signal; readers see
            // an interrupted job and, if more is left, its leftovers.
            self.book.note(format!("the worker cannot go on: {error}"));
        }
        let Driver {
            job,
            book,
            descriptor,
            terms,
            mut report,
            unpublished,
            told_to_end,
            ..
        } = self;
        let is_clean = book.inner().is_clean();
        let holder = book.into_holder();
        let Terms {
            lodging, lays_in, ..
        } = terms;
        // Of a job that runs on its processes have the lock, and it is not ours to give up.
        if went.is_ok()
            && holder.status().state != State::Running
            && let Some(lodging) = lodging
        {
            // What cannot be done now is done by whoever wants the slot next.
            let _ = lodging.give_back();
        }
        if !unpublished {
            report.close("left");
        }
        if unpublished && !is_in_place(job, &holder) {
            // Its maker still has the lock, and goes on with it under another id or not at all: it is not ours to give up.
            return Over::BADLY;
        }
        // A request that came while we were leaving is answered now, by us or by its sender (R6).
        let left = job.let_go(Held { holder, descriptor });
        if went.is_err() || left.is_err() || unpublished {
            // A maker that dismissed us waits for the end of this process.
            return Over::BADLY;
        }
        if is_clean && lays_in {
            // Nobody waits for us any more, so there is time for what the next start would have to do. It can do without.
            let _ = job.store().lay_in();
        }
        Over {
            code: 0,
            can_go_on: !told_to_end,
        }
    }

    /// Take in why the worker woke. A job whose directory or lock was removed could not be stopped by anybody any more,
    /// and readers take it for one that lost its worker: then that is what happens.
    pub(super) fn note_waking(&mut self, woken: Woken) {
        self.told_to_end |= woken.told_to_end || woken.changed && !self.book.lock_stands();
    }

    /// Note what of the limits is not held: once, and not for every attempt of which the same is true.
    pub(super) fn note_unheld(&mut self, unheld: String) {
        if self.unheld.as_ref() != Some(&unheld) {
            self.book.note(unheld.clone());
            self.unheld = Some(unheld);
        }
    }

    /// When an empty control file is to be looked at again.
    pub(super) fn empty_look(&self) -> Option<Duration> {
        self.empty_since.map(|_| clock::since_boot() + EMPTY_LOOK)
    }

    /// What the limits have cost so far, in bytes.
    pub(super) fn dropped(&self) -> Option<u64> {
        (self.dropped_bytes > 0).then_some(self.dropped_bytes)
    }
}

/// Whether the job of this lock can be seen under its id. Where that cannot be asked, it counts as not.
fn is_in_place(job: &Job, holder: &Holder<LockFile>) -> bool {
    let place = Place::of_job(holder.id(), Name::Lock);
    let stands = job.store().disk().stands(holder.lock(), &place);
    stands.unwrap_or(false)
}

/// A worker that may open nothing more could neither start its command nor record anything, and would try for ever.
fn see_that_files_can_be_opened() -> std::io::Result<()> {
    const NEEDED: i32 = 12;
    /// What is open for every worker has a lower number.
    const FIRST: i32 = 7;
    // The numbers below are as good as all taken: a worker has closed what it does not need.
    let null = rustix::stdio::stdin();
    match rustix::io::fcntl_dupfd_cloexec(null, FIRST + NEEDED) {
        Ok(_) => Ok(()),
        // It says so of a number above the limit.
        Err(rustix::io::Errno::INVAL) => Err(rustix::io::Errno::MFILE.into()),
        Err(error) => Err(error.into()),
    }
}
