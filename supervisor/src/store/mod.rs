//! The store, as embedding programs and the command line use it: making jobs, finding them, asking things of them.
//! What is true about a job is decided by the protocols of the pure crate; this room carries their answers to
//! callers and lends them a disk, a clock and tickets.

mod batch;
mod configured;
mod exit_code;
mod job;
mod leftovers;
mod list;
mod pools;
mod remembered;
mod report;
mod root;
mod spec;
mod sweep;
mod tail;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use state_machine::config::Config;
use state_machine::disk::{Dir, Disk, Place};
use state_machine::id::{JobId, Key, Ticket};
use state_machine::protocol::create::{
    Durable, Made, Meanwhile, Newborn, acknowledge, create_while,
};
use state_machine::protocol::hold::Holder;
use state_machine::protocol::look::View;
use state_machine::protocol::spare::lay_in;
use state_machine::protocol::start::{Started, start_numbered_while, start_while};
use state_machine::record::{Bytes, Descriptor, Kind};
use state_machine::resolve::{Candidate, Unresolved, resolve};
use state_machine::wire;

use self::batch::see_that_pool_has_room;
use self::root::Absent;
use crate::clock;
use crate::dial::Teller;
use crate::disk::{FsDisk, LockFile};
use crate::error::{DiskError, Error, Result};
use crate::watch::{Interest, Watch, Woken};

pub(crate) use batch::{BatchJob, IfRunning, Queued, see_that_it_can_be_joined, under_way};
pub use exit_code::exit_code;
pub use job::{Events, Job, Requested, Stopped};
pub(crate) use leftovers::{end_leftovers, with_marks};
pub use list::Listing;
pub(crate) use list::made_at_ms;
pub use pools::PoolStanding;
pub(crate) use pools::{slots_of, standings};
pub use report::{Report, ReportedProgress};

pub(crate) use root::{DIRECTORIES, untrusted};
pub use spec::{JobSpec, PullSpec, StartTime};
pub use sweep::{Kept, Swept};
pub(crate) use tail::Tail;

/// However silent a watched directory is, it is looked at this often.
const RELOOK: Duration = Duration::from_secs(5);
/// The pool that is always there.
const DEFAULT_POOL: &str = "default";
/// How often a start is tried that others keep from happening.
const START_ROUNDS: u32 = 20;

/// A store: every job of a user, in one directory. Cheap to clone; any number of processes use it at once.
///
/// ```no_run
/// use outlive::state_machine::job::State;
/// use outlive::{JobSpec, Store};
///
/// let store = Store::open("/srv/store")?;
/// // It waits in the pool `default` until a supervisor admits it, or somebody starts it.
/// let (job, is_new) = store.queue(JobSpec::command(["make", "-j2"]))?;
/// assert!(is_new);
/// for view in store.list()?.jobs {
///     assert_eq!(view.descriptor.id, *job.id());
///     assert_eq!(view.state, State::Queued);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Store {
    disk: FsDisk,
}

/// A job that was made and that this process holds: it is handed to a worker, or let go.
#[derive(Debug)]
pub struct Held {
    pub(crate) holder: Holder<LockFile>,
    pub(crate) descriptor: Descriptor,
}

/// A job that was made, and that a loss of power may still take: it is acknowledged before anything is done with it (R19).
#[derive(Debug)]
pub(crate) struct Unacknowledged {
    made: Newborn<LockFile>,
    descriptor: Descriptor,
}

impl Unacknowledged {
    /// The job.
    pub(crate) fn id(&self) -> &JobId {
        self.made.id()
    }
}

/// What starting a job came to.
#[derive(Debug)]
pub(crate) enum Begun {
    /// It is new, and ours.
    New(Box<Unacknowledged>),
    /// An unfinished job bears its name already.
    UnderWay(Box<View>),
}

impl Store {
    /// Open the store at `root`, making it if there is nothing yet.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] when another user owns it, others may write to it, its file system's locks cannot be
    /// trusted, or it is no store or one of another format.
    pub fn open(root: impl AsRef<Path>) -> Result<Store> {
        Store::at(root.as_ref(), Absent::Make)
    }

    /// Open a store that is there already.
    pub(crate) fn open_existing(root: &Path) -> Result<Store> {
        Store::at(root, Absent::Refuse)
    }

    fn at(root: &Path, absent: Absent) -> Result<Store> {
        let root = root::prepare(root, absent)?;
        Ok(Store {
            disk: FsDisk::new(root),
        })
    }

    /// Open the store of this user: `$OUTLIVE_ROOT`, else `$XDG_STATE_HOME/outlive`, else
    /// `~/.local/state/outlive`.
    ///
    /// # Errors
    ///
    /// As [`Store::open`]; [`Error::NoRoot`] when none of the three is set.
    pub fn open_default() -> Result<Store> {
        Store::open(root::default_root()?)
    }

    /// The store of this user, if there is one already.
    pub(crate) fn default_if_there() -> Option<Store> {
        Store::open_existing(&root::default_root().ok()?).ok()
    }

    /// The root of the store.
    pub fn root(&self) -> &Path {
        self.disk.root()
    }

    /// The configuration of the store; everything default where there is none.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] when it cannot be read: nothing is done by a default that somebody did not want (R21).
    pub fn config(&self) -> Result<Config> {
        configured::with(self.root(), Config::clone)
    }

    /// Have the configuration at hand for every process that is forked from now on. What is wrong with it is told to whoever needs it.
    pub(crate) fn remember_config(&self) {
        let _ = configured::with(self.root(), |_| ());
    }

    pub(crate) fn disk(&self) -> FsDisk {
        self.disk.clone()
    }

    /// The job of this id, whether or not there is one.
    pub fn job(&self, id: &JobId) -> Job {
        Job::new(self.clone(), id.clone())
    }

    /// The directory of a job.
    pub fn job_dir(&self, id: &JobId) -> PathBuf {
        self.disk.dir(&Dir::Job(id.clone()))
    }

    /// Make a job and leave it to whoever starts it: it is queued, in the pool `default` where the spec names none, until
    /// a worker is started with [`Job::start`], or a supervisor admits it.
    ///
    /// When this returns, the job survives a loss of power (R19). Where the spec has a name that an unfinished job
    /// of the same project bears, that job is returned and nothing is made (R12).
    pub fn create(&self, mut spec: JobSpec) -> Result<Job> {
        spec.pool.get_or_insert_with(|| DEFAULT_POOL.to_owned());
        match self.begin(spec)? {
            Begun::New(made) => self.leave_to_pool(*made),
            Begun::UnderWay(view) => Ok(self.job(&view.descriptor.id)),
        }
    }

    /// Make a job that waits for a slot of its pool, `default` where the spec names none. A supervisor admits it. Where the
    /// spec has a name that an unfinished job of the same project bears, that job is returned with `false` and nothing is
    /// made (R12).
    ///
    /// When this returns, the job survives a loss of power (R19).
    ///
    /// # Errors
    ///
    /// [`Error::NoPool`] where there is no such pool; [`Error::NotNow`] where it takes more slots than the pool has;
    /// [`Error::Gone`] where it comes after a job that is not there.
    pub fn queue(&self, mut spec: JobSpec) -> Result<(Job, bool)> {
        spec.pool.get_or_insert_with(|| DEFAULT_POOL.to_owned());
        self.see_that_it_can_be_admitted(spec.pool.as_deref(), spec.slots)?;
        for after in &spec.after {
            let place = Place::Dir(Dir::Job(after.job.clone()));
            if !self.disk().exists(&place)? {
                return Err(Error::Gone(after.job.clone()));
            }
        }
        match self.begin(spec)? {
            Begun::New(made) => Ok((self.leave_to_pool(*made)?, true)),
            Begun::UnderWay(view) => Ok((self.job(&view.descriptor.id), false)),
        }
    }

    /// Whether the pool is there, and can ever have so many idle slots.
    pub(crate) fn see_that_it_can_be_admitted(&self, pool: Option<&str>, slots: u32) -> Result<()> {
        see_that_pool_has_room(&self.pools()?, pool, slots)
    }

    /// Let a job go that was just made, for its pool to admit it.
    pub(crate) fn leave_to_pool(&self, made: Unacknowledged) -> Result<Job> {
        let held = self.acknowledge(made)?;
        let job = self.job(held.holder.id());
        job.let_go(held)?;
        Ok(job)
    }

    /// Make a job and keep its lock. It is to be acknowledged before anybody is told of it.
    pub(crate) fn begin(&self, spec: JobSpec) -> Result<Begun> {
        self.begin_while(spec, &mut |_| {})
    }

    /// As [`Store::begin`]; `meanwhile` is called with the job before it can be seen, and again where that job came to
    /// nothing and another is tried.
    pub(crate) fn begin_while(
        &self,
        spec: JobSpec,
        meanwhile: &mut Meanwhile<'_, LockFile>,
    ) -> Result<Begun> {
        let mut descriptor = spec.into_descriptor(clock::now_ms());
        self.begin_described_while(&mut descriptor, meanwhile)
    }

    /// As [`Store::begin`], from a descriptor whose id is chosen anew.
    pub(crate) fn begin_described(&self, descriptor: &mut Descriptor) -> Result<Begun> {
        self.begin_described_while(descriptor, &mut |_| {})
    }

    fn begin_described_while(
        &self,
        descriptor: &mut Descriptor,
        meanwhile: &mut Meanwhile<'_, LockFile>,
    ) -> Result<Begun> {
        for _ in 0..START_ROUNDS {
            match self.try_begin(descriptor, meanwhile)? {
                Started::New(made) => {
                    return Ok(Begun::New(Box::new(Unacknowledged {
                        made,
                        descriptor: descriptor.clone(),
                    })));
                }
                Started::UnderWay(view) => return Ok(Begun::UnderWay(view)),
                Started::Damaged(place, why) => {
                    return Err(Error::Damaged {
                        path: self.disk.path(&place),
                        why: why.0,
                    });
                }
                Started::Busy => descriptor.created_at_ms = clock::now_ms(),
            }
        }
        Err(Error::Busy("starting the job".into()))
    }

    fn try_begin(
        &self,
        descriptor: &mut Descriptor,
        meanwhile: &mut Meanwhile<'_, LockFile>,
    ) -> Result<Started<LockFile>> {
        let (mut disk, ticket, durable) = (self.disk(), ticket(), Durable::Yes);
        let project = descriptor.project.clone().unwrap_or_default();
        let disk = &mut disk;
        let started = if let Kind::Pull(pull) = &descriptor.kind {
            let key = Key::of_destination(&pull.target());
            start_while(disk, descriptor, &key, &ticket, durable, meanwhile)
        } else if let Some(name) = descriptor.name.clone() {
            let key = Key::of_name(&project.0, &name);
            start_while(disk, descriptor, &key, &ticket, durable, meanwhile)
        } else if let Some(task) = descriptor.task.clone() {
            let key = Key::of_task(&project.0, &task);
            start_numbered_while(disk, descriptor, &key, &task, &ticket, durable, meanwhile)
        } else {
            create_while(disk, descriptor, None, &ticket, durable, meanwhile).map(|made| match made
            {
                Made::Job(made) => Started::New(made),
                Made::Crowded => Started::Busy,
            })
        };
        if started.is_err() {
            // What a full disk left half made is of no use to anybody, and takes space.
            let _ = self.collect();
        }
        Ok(started?)
    }

    /// Make a job that was begun survive a loss of power, and hold it (R19). Where that fails, the job has failed to start:
    /// whoever is told of the failure must not find one that waits to be run.
    pub(crate) fn acknowledge(&self, begun: Unacknowledged) -> Result<Held> {
        let Unacknowledged { made, descriptor } = begun;
        let job = self.job(made.id());
        match acknowledge(&mut self.disk(), made) {
            Ok(holder) => Ok(Held { holder, descriptor }),
            Err(error) => {
                // Where not even that can be recorded, it stays queued, and the error is what can be told.
                let _ = job.fail_to_start(&error.to_string());
                Err(error.into())
            }
        }
    }

    /// Lay in a directory for a job to come, if there are not enough of them.
    pub(crate) fn lay_in(&self) -> Result<()> {
        let laid = lay_in(&mut self.disk(), &ticket());
        if laid.is_err() {
            // As after a creation: what is half made takes space.
            let _ = self.collect();
        }
        laid?;
        Ok(())
    }

    /// The directory that holds every job.
    pub(crate) fn jobs_dir(&self) -> PathBuf {
        self.disk.dir(&Dir::Jobs)
    }

    /// A watch on the records of these jobs. It stands before the first look at any of them.
    pub(crate) fn watch(&self, jobs: &[Job]) -> Watch {
        let mut watch = Watch::with(Interest::Records);
        for job in jobs {
            watch.add(&job.dir());
        }
        watch
    }

    /// A watch for the states of these jobs: a supervisor tells of them where there is one, so that a thousand who wait need no
    /// inotify each. Of what is no state (a request that is taken, what a job left behind) it may not tell.
    pub(crate) fn watch_states(&self, jobs: &[Job]) -> Watch {
        let ids = jobs.iter().map(|job| job.id().clone()).collect();
        let interest = wire::Interest {
            jobs: Some(ids),
            every: false,
        };
        self.told_or_watched(interest, jobs)
    }

    /// A watch for the histories of these jobs, or, where there are none, of every job. A supervisor tells of the records, which
    /// are written before the history is, and nothing after a job has ended: whoever is told looks again a little later.
    pub(crate) fn watch_histories(&self, jobs: &[Job]) -> Watch {
        let ids = jobs.iter().map(|job| job.id().clone());
        let interest = wire::Interest {
            jobs: (!jobs.is_empty()).then(|| ids.collect()),
            every: true,
        };
        self.told_or_watched(interest, jobs)
    }

    fn told_or_watched(&self, interest: wire::Interest, jobs: &[Job]) -> Watch {
        let teller = Teller::new(self.root(), interest);
        let mut watch = Watch::told_by(teller, Interest::Records);
        for job in jobs {
            watch.add(&job.dir());
        }
        watch
    }

    /// Wait for a notice, no longer than `timeout`. A notice is a hint (F54): however silent it is, one looks now and
    /// then.
    pub(crate) fn sleep(&self, watch: &mut Watch, timeout: Option<Duration>) -> Result<Woken> {
        let timeout = timeout.map_or(RELOOK, |timeout| timeout.min(RELOOK));
        let woken = watch
            .wait(Some(timeout))
            .map_err(|error| DiskError::new("watch", self.root(), error))?;
        Ok(woken)
    }

    /// The job that `query` names: an exact id, a name or a reference, or an unambiguous prefix of an id.
    ///
    /// # Errors
    ///
    /// [`Error::Unresolved`] when none or several match.
    pub fn resolve(&self, query: &str) -> Result<Job> {
        self.resolve_first(query, |_| false)
    }

    /// As [`Store::resolve`], where the jobs that are `near` are meant before any other.
    pub(crate) fn resolve_first(&self, query: &str, near: impl Fn(&View) -> bool) -> Result<Job> {
        // An exact id needs no listing, whatever the number of jobs.
        if let Ok(id) = JobId::parse(query)
            && self.disk().exists(&Place::Dir(Dir::Job(id.clone())))?
        {
            return Ok(self.job(&id));
        }
        let listing = self.list_outlines()?;
        let around: Vec<Candidate> = listing
            .jobs
            .iter()
            .filter(|view| near(view))
            .map(|view| Candidate {
                task: view.descriptor.task.clone(),
                ..candidate(view)
            })
            .collect();
        match resolve(query, &around) {
            Err(Unresolved::Unknown { .. }) => {}
            Ok(id) => return Ok(self.job(&id)),
            Err(ambiguous) => return Err(ambiguous.into()),
        }
        let candidates: Vec<Candidate> = listing.jobs.iter().map(candidate).collect();
        match resolve(query, &candidates) {
            Ok(id) => Ok(self.job(&id)),
            Err(unresolved) => self.resolve_damaged(query, unresolved),
        }
    }

    /// A damaged job can still be named by its directory.
    fn resolve_damaged(&self, query: &str, unresolved: Unresolved) -> Result<Job> {
        let (ids, _) = self.entries()?;
        let mut matches = ids.iter().filter(|id| id.as_str().starts_with(query));
        match (&unresolved, matches.next(), matches.next()) {
            (Unresolved::Unknown { .. }, Some(id), None) if !query.is_empty() => Ok(self.job(id)),
            _ => Err(unresolved.into()),
        }
    }
}

/// How many slots a pool has where nobody says how many.
pub(crate) fn processors() -> u32 {
    std::thread::available_parallelism()
        .map_or(1, |number| u32::try_from(number.get()).unwrap_or(u32::MAX))
}

fn candidate(view: &View) -> Candidate {
    Candidate {
        id: view.descriptor.id.clone(),
        name: view
            .descriptor
            .name
            .as_ref()
            .map(state_machine::id::Name::to_string),
        reference: match &view.descriptor.kind {
            Kind::Pull(pull) => Some(pull.reference.clone()),
            Kind::Command(_) => None,
        },
        // Two projects may have tasks of one name.
        task: None,
        ended: view.state.is_terminal(),
    }
}

/// A ticket that no other process and no other call uses.
pub(crate) fn ticket() -> Ticket {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let word = format!(
        "{}-{}-{}",
        std::process::id(),
        clock::since_boot().as_nanos(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    );
    // Digits and dashes.
    Ticket::parse(&word).unwrap_or_else(|_| unreachable!("a ticket of digits and dashes"))
}

/// The bytes of a path or argument as an operating system string.
pub(crate) fn os_string(bytes: &Bytes) -> std::ffi::OsString {
    use std::os::unix::ffi::OsStringExt;
    std::ffi::OsString::from_vec(bytes.0.clone())
}
