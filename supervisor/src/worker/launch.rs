//! Making a worker by forking it: the child leaves everything of its parent behind and takes the job's lock along. Only for a
//! program with one thread.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::rc::Rc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Mode;
use rustix::process::{chdir, fchdir, setsid, umask};
use state_machine::course::take::By;
use state_machine::id::{JobId, PoolName};

use super::driver::{Driver, Over};
use super::early;
use super::launcher::Launcher;
use super::next;
use super::take::take_in_time;
use crate::error::{Error, Result};
use crate::process;
use crate::slots::Lodging;
use crate::store::{Held, Job, Store};
use crate::sys::{self, Forked};

/// What a worker has said about its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// The command runs, or is on its way: it was let go, and can be expected to run. Should it fail to, the record says so.
    Running,
    /// The command could not be started, or was not to be any more; the record says why.
    Over,
}

/// A worker that was just made.
pub(crate) struct Launched {
    report: BufReader<UnixStream>,
}

impl Launched {
    /// Wait until the command runs, or is on its way, or cannot.
    pub(crate) fn started(&mut self) -> Result<Start> {
        // Not in the read: who sleeps there is woken by the worker's reading of what we have told it, too.
        // A poll that fails costs nothing else: the read waits.
        let _ = poll(
            &mut [PollFd::new(self.report.get_ref(), PollFlags::IN)],
            None,
        );
        let word = self.word()?;
        match word.split_whitespace().next().unwrap_or_default() {
            "started" => Ok(Start::Running),
            "over" => Ok(Start::Over),
            "" => Err(Error::Worker(
                "the worker was lost before the command ran".into(),
            )),
            _ => Err(Error::Worker(word)),
        }
    }

    /// Hear what the worker at the other end says.
    pub(super) fn hearing(channel: UnixStream) -> Launched {
        Launched {
            report: BufReader::with_capacity(256, channel),
        }
    }

    /// Wait until the end is recorded, and say the exit code for it; `None` when the worker is lost, or left a job that
    /// has not ended.
    pub(crate) fn ended(&mut self) -> Option<u8> {
        let word = self.word().ok()?;
        word.strip_prefix("ended ")?.parse().ok()
    }

    /// Wait until the worker has nothing to do any more that whoever waited for the job would stumble over: its slot is given
    /// back.
    pub(crate) fn until_done(&mut self) {
        // One that was lost is done as well.
        let _ = self.report.read_to_end(&mut Vec::new());
    }

    fn word(&mut self) -> Result<String> {
        let mut line = String::new();
        self.report
            .read_line(&mut line)
            .map_err(|error| Error::Worker(format!("the worker was lost: {error}")))?;
        Ok(line.trim_end().to_owned())
    }
}

/// The worker's side of what its maker is told. Nobody need be listening.
pub(super) struct Report {
    maker: Option<UnixStream>,
    said_started: bool,
}

impl Report {
    pub(super) fn to(maker: UnixStream) -> Report {
        Report {
            maker: Some(maker),
            said_started: false,
        }
    }

    /// For as long as nobody is to be told anything.
    pub(super) fn to_nobody() -> Report {
        Report {
            maker: None,
            said_started: false,
        }
    }

    fn fd(&self) -> RawFd {
        self.maker.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Wait until the job is published, for a worker that was made before that.
    pub(super) fn hears_of_publication(&self) -> bool {
        self.maker.as_ref().is_some_and(early::hears_of_publication)
    }

    /// Say that the command runs or is on its way. A maker is told that once, and not of every attempt.
    pub(super) fn started(&mut self) {
        if !self.said_started {
            self.said_started = true;
            self.say("started");
        }
    }

    pub(super) fn has_said_started(&self) -> bool {
        self.said_started
    }

    fn say(&mut self, word: &str) {
        let said = self.maker.as_ref().is_some_and(|stream| {
            sys::send(stream.as_fd(), format!("{word}\n").as_bytes()).is_ok()
        });
        if !said {
            self.maker = None;
        }
    }

    /// Say how the job ended. There is something left to do that its maker may wait for.
    pub(super) fn ended(&mut self, word: &str) {
        self.say(word);
    }

    /// The last word.
    pub(super) fn close(&mut self, word: &str) {
        self.say(word);
        self.maker = None;
    }
}

/// What a worker is told beside its job.
#[derive(Debug)]
pub(crate) struct Terms {
    /// The slot that the job runs in; the running record says so.
    pub(crate) slot: Option<u32>,
    /// Whether it lays in a directory for a job to come when it is done. Worth it where somebody waits for a job to be
    /// made and run, and for nothing else.
    pub(crate) lays_in: bool,
    /// Where it says that nothing of the command is left.
    pub(crate) vacates: Option<Rc<UnixDatagram>>,
    /// The slot in whose place the job works.
    pub(crate) lodging: Option<Lodging>,
}

impl Terms {
    /// A job that is run in no slot, for somebody who asked for just that.
    pub(super) const ALONE: Terms = Terms {
        slot: None,
        lays_in: true,
        vacates: None,
        lodging: None,
    };

    /// A job that works in the place of this slot, if there is one.
    fn in_place(lodging: Option<Lodging>) -> Terms {
        Terms {
            lodging,
            ..Terms::ALONE
        }
    }

    fn lodging_fd(&self) -> RawFd {
        let lodging = self.lodging.as_ref();
        lodging.map_or(-1, |lodging| lodging.lock().as_raw_fd())
    }

    /// Say that nothing of the command is left, so that its slot is idle: the next job need not wait until the end is
    /// recorded. A hint, as every notice is: one that does not arrive costs the time until the record is read.
    pub(super) fn vacate(&self, id: &JobId) {
        if let Some(vacates) = &self.vacates {
            let _ = vacates.send(id.as_str().as_bytes());
        }
    }
}

/// Fork a worker for a job that this process holds. The lock goes over with it: both have the same description until
/// this process closes its copy (F1, F2), and only closes it: given up, it would be the worker's no more (F6). The calling process must have one thread.
///
/// A job whose pool has slots with a place gets one of these, or is let go.
pub(crate) fn launch(job: &Job, held: Held) -> Result<Launched> {
    match lodge(job, &held) {
        Ok(lodging) => launch_in(job, held, lodging),
        Err(error) => {
            job.let_go(held)?;
            Err(error)
        }
    }
}

/// A slot for a job, if its pool's have a place. The job's id is on it from then on.
fn lodge(job: &Job, held: &Held) -> Result<Option<Lodging>> {
    let Some(pool) = held.descriptor.pool.as_deref() else {
        return Ok(None);
    };
    let pool = PoolName::parse(pool).map_err(|why| Error::BadWord {
        word: pool.to_owned(),
        why,
    })?;
    // What is configured may be wrong by now, and a pool gone: that keeps no job from running that needs no place.
    let slots = job.store().slots(&Launcher::this_program());
    let mut lodging = match slots.lodge(&pool) {
        Err(Error::NoPool { .. }) | Ok(None) => return Ok(None),
        lodging => lodging?,
    };
    if let Some(lodging) = &mut lodging {
        lodging.claim(job.id())?;
    }
    Ok(lodging)
}

/// As [`launch`], in this slot, which is claimed for the job; its lock goes over as the job's does.
pub(crate) fn launch_in(job: &Job, held: Held, lodging: Option<Lodging>) -> Result<Launched> {
    let forked = UnixStream::pair().and_then(|pair| Ok((pair, sys::fork()?)));
    match forked {
        Ok(((ours, _), Forked::Parent(_))) => Ok(Launched::hearing(ours)),
        Ok(((ours, theirs), Forked::Child)) => {
            let _bomb = sys::NeverUnwind;
            drop(ours);
            become_worker(
                job,
                held,
                Report::to(theirs),
                Place::Jobs,
                Terms::in_place(lodging),
            )
        }
        Err(error) => {
            // What was asked while we held the job must not lie unread for that (R6).
            job.let_go(held)?;
            Err(Error::Worker(format!("no worker can be made: {error}")))
        }
    }
}

/// Where the directory of a worker's job is when the worker is made.
pub(super) enum Place {
    /// In its place.
    Jobs,
    /// In `staging/`, and open: it is about to be renamed.
    Staged(OwnedFd),
}

/// Leave everything of the parent behind and be the worker, to the end of the job.
pub(super) fn become_worker(
    job: &Job,
    held: Held,
    report: Report,
    place: Place,
    terms: Terms,
) -> ! {
    // Before anything else: the kernel may end the command that we were started by, whole, at any time.
    process::leave_command();
    let lock = held.holder.lock().as_fd().as_raw_fd();
    let left = leave_parent(&place, &[lock, report.fd(), terms.lodging_fd()]);
    sys::exit_now(work(job, held, report, place, terms, left).code)
}

/// What a claiming worker is asked for, and by whom.
pub(crate) struct Asked {
    /// The job.
    pub(crate) job: JobId,
    /// The slot that it runs in.
    pub(crate) slot: Option<u32>,
    /// Where it is heard how that goes.
    pub(crate) channel: UnixStream,
    /// The supervisor is at the other end.
    pub(crate) asked_by: OwnedFd,
}

/// Leave everything of the parent behind, take the job, and be its worker to the end of it; and then the same with the next one,
/// for as long as there is one soon (see [`next`](super::next)). Whoever listens is told "held" first, or "refused" with the
/// reason; then no worker was there, and nothing was written.
///
/// The job is given back where the supervisor at the other end of `asked_by` is gone by then: the next one may have seen the
/// job wait, and given its slot to another. One that comes after this look finds the job held (R20).
pub(crate) fn become_claiming_worker(store: &Store, asked: Asked, vacates: UnixDatagram) -> ! {
    let kept = [
        asked.channel.as_raw_fd(),
        vacates.as_raw_fd(),
        asked.asked_by.as_raw_fd(),
    ];
    let mut left = leave_parent(&Place::Jobs, &kept);
    let vacates = Rc::new(vacates);
    let mut asked = asked;
    let mut jobs_left = MOST_JOBS;
    loop {
        jobs_left -= 1;
        let job = store.job(&asked.job);
        let over = claim_and_work(&job, asked, vacates.clone(), left);
        let goes_on = over.can_go_on && jobs_left > 0;
        let another = goes_on.then(|| next::wait(&vacates, job.id()));
        let Some(another) = another.flatten() else {
            sys::exit_now(over.code)
        };
        (asked, left) = (another, Ok(()));
    }
}

/// How many jobs one worker has at most: what a process uses up adds up, and its limits count it.
const MOST_JOBS: u32 = 500;

/// Take a job, and be its worker to the end of it.
fn claim_and_work(
    job: &Job,
    asked: Asked,
    vacates: Rc<UnixDatagram>,
    left: std::io::Result<()>,
) -> Over {
    let Asked {
        slot,
        channel,
        asked_by,
        ..
    } = asked;
    let mut report = Report::to(channel);
    let mut terms = Terms {
        slot,
        lays_in: false,
        vacates: Some(vacates),
        lodging: None,
    };
    let held = take_in_time(job, By::Queue, &|| is_there(&asked_by)).and_then(|held| {
        match lodge(job, &held) {
            Ok(lodging) => {
                if lodging.is_some() {
                    // Its slot is not idle before it is given back, which is after that.
                    terms.vacates = None;
                }
                terms.lodging = lodging;
                Ok(held)
            }
            Err(error) => {
                job.let_go(held)?;
                Err(error)
            }
        }
    });
    drop(asked_by);
    match held {
        Ok(held) => {
            report.say("held");
            work(job, held, report, Place::Jobs, terms, left)
        }
        Err(error) => {
            let word = if is_for_want_of_a_slot(&error) {
                FULL
            } else {
                "refused"
            };
            report.close(&format!("{word} {}", on_one_line(&error.to_string())));
            Over::BADLY
        }
    }
}

/// What a claiming worker says in place of "refused" where every other job of the pool would be refused for the same reason.
pub(crate) const FULL: &str = "full";

/// Whether no slot with a place is to be had: all are somebody's, broken, or cannot be made.
fn is_for_want_of_a_slot(error: &Error) -> bool {
    matches!(
        error,
        Error::NoSlot { .. } | Error::Kept { .. } | Error::Place { .. }
    )
}

/// Whether the other end of a socket is open. What cannot be asked counts as open.
fn is_there(socket: &OwnedFd) -> bool {
    let mut asked = [PollFd::new(socket, PollFlags::empty())];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let _ = poll(&mut asked, Some(&now));
    !asked[0].revents().contains(PollFlags::HUP)
}

/// A word to the maker is a line.
fn on_one_line(text: &str) -> String {
    text.split(['\n', '\r']).collect::<Vec<_>>().join(" ")
}

/// Close what was the parent's, all but `keep`, and be in nobody's session.
fn leave_parent(place: &Place, keep: &[RawFd]) -> std::io::Result<()> {
    let dir = match place {
        Place::Jobs => -1,
        Place::Staged(dir) => dir.as_raw_fd(),
    };
    sys::close_from(3, &[keep, &[dir]].concat());
    detach(place)
}

/// Be the worker of a job that is held, to its end.
fn work(
    job: &Job,
    held: Held,
    mut report: Report,
    place: Place,
    terms: Terms,
    left: std::io::Result<()>,
) -> Over {
    // The title hides what `--env` gave on the command line; a process that cannot have one runs all the same.
    let _ = sys::set_title(format!("outlive worker {}", job.id()).as_ref());
    let set_up = left.and_then(|()| match &place {
        Place::Jobs => Driver::new(job, held, terms),
        Place::Staged(_) => Driver::before_publication(job, held, terms),
    });
    drop(place);
    match set_up {
        Ok(driver) => driver.run(report),
        Err(error) => {
            report.close(&format!("no worker can be set up: {error}"));
            Over::BADLY
        }
    }
}

/// A session of our own, no terminal, no directory that could not be unmounted, and files for our eyes only.
fn detach(place: &Place) -> std::io::Result<()> {
    // Fails only for the leader of a process group, which a forked child is not (F45).
    setsid()?;
    match place {
        Place::Jobs => chdir("/")?,
        // Until the job is in its place.
        Place::Staged(dir) => fchdir(dir)?,
    }
    umask(Mode::from_raw_mode(0o077));
    let null = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    nix::unistd::dup2_stdin(&null)?;
    nix::unistd::dup2_stdout(&null)?;
    nix::unistd::dup2_stderr(&null)?;
    Ok(())
}
