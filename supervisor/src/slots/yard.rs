//! A pool whose slots have a place, and what is needed to work on them: where each is, and hands that run git and the pool's own
//! commands. The helper that runs these is only made when it is first needed: a slot that is as it must be needs none.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use state_machine::config::PoolSetup;
use state_machine::disk::{Dir, Name};
use state_machine::id::PoolName;
use state_machine::protocol::slot::place::placement_lock;
use state_machine::record::{Bytes, Ground};

use super::artifact::artifact;
use super::{GIT_TIME, GRACE, MakeMinder, Slots};
use crate::clock;
use crate::error::{Error, Result};
use crate::process::{Minder, Ran, SLOT_VARIABLE, Tenancy, Work, described, pid_that_locks};
use crate::store::{Store, os_string, slots_of};
use crate::workspace::{
    Chore, Hands, Judgement, Source, Trouble, Workspace, clear_maintenance_lock,
};

/// How long a command that prepares or resets a slot may run.
const CHORE_TIME: Duration = Duration::from_secs(600);

/// A pool whose slots have a place.
pub(super) struct Yard<'s> {
    pub(super) store: &'s Store,
    pub(super) pool: PoolName,
    pub(super) setup: PoolSetup,
    make_minder: &'s MakeMinder,
    minder: Option<Minder>,
    /// Readable when what is under way is to be ended.
    stop: Option<BorrowedFd<'s>>,
    /// How long git and the pool's commands have taken.
    pub(super) spent: Duration,
    /// Where what the last of the pool's commands wrote is that failed.
    evidence: Option<PathBuf>,
}

/// Why a command was not run to its end.
#[derive(Debug)]
pub(super) enum CannotRun {
    /// Nobody can be made who runs it.
    NotBegun(Error),
    /// Who ran it was lost, for this reason.
    Lost(String),
}

/// One of the pool's own commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Own {
    Prepare,
    Reset,
}

impl Slots {
    /// The pool of this name.
    ///
    /// # Errors
    ///
    /// [`Error::NoPool`] where there is none, [`Error::NoPlace`] where its slots have no place.
    pub(super) fn yard(&self, pool: &PoolName) -> Result<Yard<'_>> {
        let setup = self.store.pool(pool)?;
        if !setup.ground.has_place() {
            return Err(Error::NoPlace(pool.clone()));
        }
        Ok(Yard {
            store: &self.store,
            pool: pool.clone(),
            setup,
            make_minder: self.make_minder.as_ref(),
            minder: None,
            stop: self.stop.as_ref().map(|stop| stop.as_fd()),
            spent: Duration::ZERO,
            evidence: None,
        })
    }
}

impl Yard<'_> {
    /// How many slots there are to be.
    pub(super) fn most(&self) -> u32 {
        slots_of(&self.setup)
    }

    /// A slot as messages name it.
    pub(super) fn name_of(&self, number: u32) -> String {
        format!("{}/{number}", self.pool)
    }

    /// The directory of a slot.
    pub(super) fn slot_dir(&self, number: u32) -> PathBuf {
        slot_dir(self.store, &self.pool, number)
    }

    /// Where whoever has a slot works.
    pub(super) fn place(&self, number: u32) -> PathBuf {
        place(self.store, &self.pool, number)
    }

    /// Whether nobody ever had a slot: it has no record, and holds nothing yet.
    pub(super) fn was_never_had(&self, number: u32) -> bool {
        let record = Dir::Slot(self.pool.clone(), number).at(Name::Slot);
        !is_there(&self.store.disk().path(&record)) && !is_there(&self.place(number))
    }

    /// The process that has a slot's lock, as the kernel tells.
    pub(super) fn who_locks(&self, number: u32) -> Option<u32> {
        pid_that_locks(&lock_path(self.store, &self.pool, number))
    }

    /// The error for whoever found others looking for slots all the time: one who does not go on is named.
    pub(super) fn busy(&self) -> Error {
        let lock = self.store.disk().path(&placement_lock(&self.pool));
        let who = pid_that_locks(&lock).and_then(described);
        let who = who.map_or(String::new(), |who| format!(" ({who} has its lock)"));
        Error::Busy(format!("the pool {}{who}", self.pool))
    }

    /// Who works in a slot.
    pub(super) fn tenancy(&self, number: u32) -> Tenancy {
        Tenancy::of(&self.slot_dir(number), &self.place(number))
    }

    /// What is or is to be in a slot.
    pub(super) fn workspace(&self, number: u32) -> Workspace {
        workspace_of(self.store, &self.pool, number, &self.setup.ground)
    }

    /// Have hands that hold the slot with this lock do something.
    pub(super) fn with_hands<T>(
        &mut self,
        held: BorrowedFd<'_>,
        work: impl FnOnce(&mut Hands<'_>) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let stop = self.stop;
        let minder = self.minder().map_err(|error| Trouble::Lost {
            what: "commands".into(),
            why: error.to_string(),
        })?;
        let begun = clock::since_boot();
        let done = work(&mut Hands {
            minder,
            held: Some(held),
            stop,
            within: GIT_TIME,
            grace: GRACE,
        });
        self.spent += clock::since_boot().saturating_sub(begun);
        if let Err(Trouble::Lost { .. }) = &done {
            // It is gone, or has something of this left.
            self.minder = None;
        }
        done
    }

    /// Who runs commands, made when it is first needed.
    fn minder(&mut self) -> Result<&mut Minder> {
        match &mut self.minder {
            Some(minder) => Ok(minder),
            empty => Ok(empty.insert((self.make_minder)()?)),
        }
    }

    /// Make what a slot is to hold.
    pub(super) fn cut(&mut self, number: u32, held: BorrowedFd<'_>) -> Result<(), Trouble> {
        let workspace = self.workspace(number);
        self.with_own(number, Own::Prepare, held, |hands, prepare| {
            workspace.cut(hands, prepare)
        })
    }

    /// Bring what a slot holds to a fresh state, if nothing is lost by that.
    pub(super) fn reset(&mut self, number: u32, held: BorrowedFd<'_>) -> Result<(), Trouble> {
        let workspace = self.workspace(number);
        self.with_own(number, Own::Reset, held, |hands, reset| {
            workspace.reset(hands, reset).map(drop)
        })
    }

    /// With one of the pool's own commands, if it has that. What it writes is kept where it has failed.
    fn with_own<T>(
        &mut self,
        number: u32,
        which: Own,
        held: BorrowedFd<'_>,
        work: impl FnOnce(&mut Hands<'_>, Option<&Chore<'_>>) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let ground = &self.setup.ground;
        let (argv, word) = match which {
            Own::Prepare => (&ground.prepare, "prepare"),
            Own::Reset => (&ground.reset, "reset"),
        };
        let Some(argv) = argv.as_deref().map(words) else {
            return self.with_hands(held, |hands| work(hands, None));
        };
        let (path, log) = artifact(self.store, &format!("{}-{number}-{word}", self.pool))?;
        let slot_dir = self.slot_dir(number);
        let done = self.with_hands(held, |hands| {
            let chore = Chore {
                argv: &argv,
                mark: (SLOT_VARIABLE, slot_dir.as_os_str()),
                timeout: CHORE_TIME,
                log: log.as_fd(),
            };
            work(hands, Some(&chore))
        });
        match &done {
            Err(Trouble::Chore { .. }) => self.evidence = Some(path),
            // Of no use to anybody, and no harm where it stays.
            _ => drop(std::fs::remove_file(&path)),
        }
        done
    }

    /// Remove what a dead `git maintenance` has locked the source with, which would have the next one do nothing and say that all
    /// is well; what was done about it, in words.
    pub(super) fn clear_stale_lock(&mut self, held: BorrowedFd<'_>) -> Option<String> {
        let source = self.setup.ground.source.as_ref().map(os_string)?;
        match self.with_hands(held, |hands| {
            clear_maintenance_lock(hands, Path::new(&source))
        }) {
            Ok(cleared) => {
                cleared.map(|path| format!("removed {}, which nobody holds", path.display()))
            }
            Err(trouble) => Some(format!(
                "cannot see whether the source is locked: {trouble}"
            )),
        }
    }

    /// Run one command in a slot. Where it is lost on the way, something of it may be left.
    pub(super) fn run(&mut self, work: &Work<'_>) -> Result<Ran, CannotRun> {
        let stop = self.stop;
        let minder = self.minder().map_err(CannotRun::NotBegun)?;
        let ran = minder.run(work, stop);
        ran.map_err(|error| {
            self.minder = None;
            CannotRun::Lost(error.to_string())
        })
    }

    /// Whether whoever does this is to stop.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_some_and(is_readable)
    }

    /// What went wrong with a slot, and where more of it is.
    pub(super) fn describe(&self, trouble: &Trouble) -> String {
        match (trouble, &self.evidence) {
            (Trouble::Chore { .. }, Some(path)) => {
                format!("{trouble}; what it wrote is in {}", path.display())
            }
            _ => trouble.to_string(),
        }
    }

    /// What went wrong with a slot, for a caller.
    pub(super) fn failed(&self, number: u32, trouble: &Trouble) -> Error {
        Error::Place {
            slot: self.name_of(number),
            why: self.describe(trouble),
        }
    }

    /// Whether this is a matter of what stands in the slot, and not of its source or of the moment.
    pub(super) fn is_of_slot(trouble: &Trouble) -> bool {
        match trouble {
            Trouble::Kept(judgement) => {
                matches!(judgement, Judgement::Work(_) | Judgement::Broken(_))
            }
            Trouble::Chore { what, .. } => *what == "reset",
            Trouble::Refused(_) => true,
            _ => false,
        }
    }
}

/// What is or is to be in a slot of a pool whose slots hold this.
pub(crate) fn workspace_of(
    store: &Store,
    pool: &PoolName,
    number: u32,
    ground: &Ground,
) -> Workspace {
    let source = match &ground.source {
        Some(repository) => Source::Git {
            repository: os_string(repository).into(),
        },
        None => Source::Nothing,
    };
    Workspace::new(source, place(store, pool, number))
}

/// The directory of a slot.
pub(super) fn slot_dir(store: &Store, pool: &PoolName, number: u32) -> PathBuf {
    store.disk().dir(&Dir::Slot(pool.clone(), number))
}

/// Where whoever has a slot works.
pub(super) fn place(store: &Store, pool: &PoolName, number: u32) -> PathBuf {
    slot_dir(store, pool, number).join("worktree")
}

/// The lock file of a slot.
pub(super) fn lock_path(store: &Store, pool: &PoolName, number: u32) -> PathBuf {
    let place = Dir::Slot(pool.clone(), number).at(Name::Occupancy);
    store.disk().path(&place)
}

/// The words of a command.
pub(super) fn words(words: &[Bytes]) -> Vec<OsString> {
    words.iter().map(os_string).collect()
}

/// Whether something can be read from a descriptor now.
pub(super) fn is_readable(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut fds, Some(&at_once)).is_ok_and(|ready| ready > 0)
}

/// Whether anything stands at a path.
pub(super) fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
