//! The slots of pools as embedding programs and the command line use them: opening, closing and entering sessions, looking at
//! slots, maintaining, mending and removing them.
//!
//! Who has a slot is decided by the protocols of the pure crate; what stands in one is looked at and changed by the room
//! `workspace`; who works in one is told by the room `process`. Here the three meet: a slot is taken, looked at, made fit, handed
//! on or given back. Of a job no more is known here than its id.

mod artifact;
mod claimant;
mod close;
mod enter;
mod environment;
mod inspect;
mod leaving;
mod lodging;
mod maintain;
mod open;
mod orphans;
mod remove;
mod repair;
mod standing;
mod token;
mod vacancy;
mod who;
mod yard;

use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use state_machine::id::{PoolName, Token};

use self::yard::is_readable;
use crate::error::Result;
use crate::process::Minder;
use crate::store::Store;

pub use self::close::Closed;
pub use self::enter::Inside;
pub(crate) use self::environment::{OF_ANOTHER_REPOSITORY, settled};
pub(crate) use self::lodging::Lodging;
pub use self::remove::{Left, Removal};
pub use self::repair::Repaired;
pub use self::standing::{PoolSlots, SlotStanding};
pub(crate) use self::standing::{any_path, standings};
pub(crate) use self::vacancy::{GivenBack, Vacancies};
pub(crate) use self::yard::workspace_of;

/// How long all of git's work about one slot may take.
const GIT_TIME: Duration = Duration::from_secs(600);
/// How long a command has between being asked to end and being killed.
const GRACE: Duration = Duration::from_secs(10);

/// What makes a helper that runs commands for this process.
type MakeMinder = dyn Fn() -> Result<Minder> + Send + Sync;

/// The slots of a store. Made by [`Store::slots`].
///
/// ```no_run
/// use outlive::slots::{Force, SessionSpec};
/// use outlive::state_machine::id::PoolName;
/// use outlive::worker::Launcher;
/// use outlive::Store;
///
/// let slots = Store::open("/srv/store")?.slots(&Launcher::outlive());
/// let web = PoolName::parse("web").map_err(|why| outlive::Error::Usage(why.to_string()))?;
/// let session = slots.open_session(&web, &SessionSpec::default())?;
/// std::fs::write(session.path.join("target.txt"), "ignored by git, I hope").ok();
/// let closed = slots.close_session(&session.token, Force::No)?;
/// assert!(closed.discarded.is_empty());
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone)]
pub struct Slots {
    store: Store,
    make_minder: Arc<MakeMinder>,
    stop: Option<Arc<OwnedFd>>,
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

/// What is wanted of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionSpec {
    /// After how long it may be closed by whoever looks, if its slot is empty and nothing would be lost; never where absent.
    pub expires: Option<Duration>,
    /// What others are to read of it.
    pub note: Option<String>,
}

/// A session that was just opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSession {
    /// What it is named by from now on.
    pub token: Token,
    /// Its pool.
    pub pool: PoolName,
    /// The number of its slot.
    pub slot: u32,
    /// Where to work.
    pub path: PathBuf,
    /// When it expires, in ms since the epoch.
    pub expires_at_ms: Option<u64>,
    /// How long git and the pool's commands took for it.
    pub work: Duration,
}

/// Whether what would be lost may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// Nothing may; it is said what would be.
    No,
    /// Everything may; it is said what was.
    Yes,
}

impl Slots {
    /// The slots of this store, with what makes helpers that run commands.
    pub(crate) fn new(
        store: Store,
        make_minder: impl Fn() -> Result<Minder> + Send + Sync + 'static,
    ) -> Slots {
        Slots {
            store,
            make_minder: Arc::new(make_minder),
            stop: None,
        }
    }

    /// The same, but that what is under way is ended in order as soon as something can be read from this descriptor: the command
    /// that runs is asked to end, and killed after its grace, and no other is begun. Nothing is read from it.
    #[must_use]
    pub fn until(self, stop: OwnedFd) -> Slots {
        Slots {
            stop: Some(Arc::new(stop)),
            ..self
        }
    }

    /// Whether what is under way is to be ended.
    fn is_stopped(&self) -> bool {
        self.stop
            .as_ref()
            .is_some_and(|stop| is_readable(stop.as_fd()))
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }
}

/// The variable that holds the token of a maintenance in the environment of its command.
pub(crate) const MAINTENANCE_VARIABLE: &str = "OUTLIVE_MAINTENANCE";

/// The variable that names the session whose command a process is.
pub(crate) const SESSION_VARIABLE: &str = "OUTLIVE_SESSION";

/// A time in whole milliseconds.
fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
