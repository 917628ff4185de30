//! Disks that fail and disks that kill: wrappers over a disk that let everything pass until a chosen effect, so that the
//! protocols that ship can be tried with a fault at every point. [`Meddled`] asks a [`Meddler`] before each effect;
//! [`Failing`] and [`Killing`] are the two there are.
//!
//! Nothing here knows a protocol.

mod effect;
mod errnos;
mod failing;
mod halves;
mod killing;

pub use effect::{Kind, Wanted};
pub use errnos::{ERRNOS, Outcome, errnos};
pub use failing::{Failing, Lasting};
pub use halves::half;
pub use killing::Killing;

use std::path::{Path, PathBuf};

use outlive::DiskError;
use state_machine::control::Control;
use state_machine::disk::{
    Change, Content, Create, Dir, Disk, Fill, Mode, Open, Place, Pointer, Read,
};
use state_machine::id::{Key, PoolName, Token};
use state_machine::pull::part::Part;
use state_machine::record::{Descriptor, History, Line, Pool, Session, Slot, Status};

/// What becomes of an effect.
#[derive(Debug)]
pub enum Verdict {
    /// It happens.
    Pass,
    /// It fails with this error.
    Fail(rustix::io::Errno),
    /// It is an open, and is denied: a value that protocols decide on (R3).
    Deny,
}

/// Who decides what becomes of each effect.
pub trait Meddler {
    /// The effect that comes next, on the store at `root`. Waiting is none.
    fn meddle(&mut self, root: &Path, wanted: &Wanted<'_>) -> Verdict;
}

/// A disk whose effects a meddler decides on.
#[derive(Debug)]
pub struct Meddled<D, M> {
    disk: D,
    root: PathBuf,
    /// The meddler, to be asked afterwards what it did.
    pub meddler: M,
}

impl<D: Disk<Fault = DiskError>, M: Meddler> Meddled<D, M> {
    /// A disk of the store at `root`.
    pub fn new(disk: D, root: &Path, meddler: M) -> Meddled<D, M> {
        Meddled {
            disk,
            root: root.to_owned(),
            meddler,
        }
    }

    /// Ask the meddler. `true` where the effect is to be denied.
    fn ask(&mut self, wanted: Wanted<'_>) -> Result<bool, DiskError> {
        match self.meddler.meddle(&self.root, &wanted) {
            Verdict::Pass => Ok(false),
            Verdict::Deny => Ok(true),
            Verdict::Fail(errno) => Err(DiskError::new(
                wanted.kind.operation(),
                &wanted.path(&self.root),
                errno,
            )),
        }
    }
}

impl<D: Disk<Fault = DiskError>, M: Meddler> Disk for Meddled<D, M> {
    type Handle = D::Handle;
    type Fault = DiskError;

    fn open(&mut self, place: &Place, mode: Mode) -> Result<Open<D::Handle>, DiskError> {
        if self.ask(Wanted::at(Kind::Open, place))? {
            return Ok(Open::Denied);
        }
        self.disk.open(place, mode)
    }

    fn create(&mut self, place: &Place) -> Result<Create<D::Handle>, DiskError> {
        self.ask(Wanted::at(Kind::Create, place))?;
        self.disk.create(place)
    }

    fn lock(&mut self, handle: &D::Handle, mode: Mode) -> Result<bool, DiskError> {
        self.ask(Wanted::nowhere(Kind::Lock))?;
        self.disk.lock(handle, mode)
    }

    fn stands(&mut self, handle: &D::Handle, place: &Place) -> Result<bool, DiskError> {
        self.ask(Wanted::at(Kind::Stands, place))?;
        self.disk.stands(handle, place)
    }

    fn close(&mut self, handle: D::Handle) -> Result<(), DiskError> {
        self.ask(Wanted::nowhere(Kind::Close))?;
        self.disk.close(handle)
    }

    fn release(&mut self, handle: D::Handle) -> Result<(), DiskError> {
        self.ask(Wanted::nowhere(Kind::Release))?;
        self.disk.release(handle)
    }

    fn exists(&mut self, place: &Place) -> Result<bool, DiskError> {
        self.ask(Wanted::at(Kind::Exists, place))?;
        self.disk.exists(place)
    }

    fn read_descriptor(&mut self, dir: &Dir) -> Result<Read<Descriptor>, DiskError> {
        self.ask(Wanted::in_dir(Kind::Read, dir))?;
        self.disk.read_descriptor(dir)
    }

    fn read_status(&mut self, dir: &Dir) -> Result<Read<Status>, DiskError> {
        self.ask(Wanted::in_dir(Kind::Read, dir))?;
        self.disk.read_status(dir)
    }

    fn read_history(&mut self, dir: &Dir) -> Result<History, DiskError> {
        self.ask(Wanted::in_dir(Kind::Read, dir))?;
        self.disk.read_history(dir)
    }

    fn read_control(&mut self, place: &Place) -> Result<Option<Control>, DiskError> {
        self.ask(Wanted::at(Kind::Read, place))?;
        self.disk.read_control(place)
    }

    fn read_pointer(&mut self, key: &Key) -> Result<Read<Pointer>, DiskError> {
        self.ask(Wanted::in_dir(Kind::Read, &Dir::Keys))?;
        self.disk.read_pointer(key)
    }

    fn read_pool(&mut self, pool: &PoolName) -> Result<Read<Pool>, DiskError> {
        self.ask(Wanted::in_dir(Kind::Read, &Dir::Pool(pool.clone())))?;
        self.disk.read_pool(pool)
    }

    fn read_slot(&mut self, pool: &PoolName, number: u32) -> Result<Read<Slot>, DiskError> {
        let dir = Dir::Slot(pool.clone(), number);
        self.ask(Wanted::in_dir(Kind::Read, &dir))?;
        self.disk.read_slot(pool, number)
    }

    fn read_session(&mut self, token: &Token) -> Result<Read<Session>, DiskError> {
        self.ask(Wanted::in_dir(Kind::Read, &Dir::Sessions))?;
        self.disk.read_session(token)
    }

    fn read_part(&mut self, place: &Place) -> Result<Read<Part>, DiskError> {
        self.ask(Wanted::at(Kind::Read, place))?;
        self.disk.read_part(place)
    }

    fn sync_all(&mut self) -> Result<(), DiskError> {
        self.ask(Wanted::at(Kind::Sync, &Place::Dir(Dir::Root)))?;
        self.disk.sync_all()
    }

    fn write(&mut self, place: &Place, content: &Content) -> Result<Change, DiskError> {
        self.ask(Wanted::write(place, content))?;
        self.disk.write(place, content)
    }

    fn fill(&mut self, place: &Place, content: &Content) -> Result<Fill, DiskError> {
        self.ask(Wanted::fill(place, content))?;
        self.disk.fill(place, content)
    }

    fn append(&mut self, dir: &Dir, lines: &[Line], mend: bool) -> Result<Change, DiskError> {
        self.ask(Wanted::append(dir, lines, mend))?;
        self.disk.append(dir, lines, mend)
    }

    fn sync(&mut self, place: &Place) -> Result<Change, DiskError> {
        self.ask(Wanted::at(Kind::Sync, place))?;
        self.disk.sync(place)
    }

    fn rename(&mut self, from: &Place, to: &Place) -> Result<Change, DiskError> {
        self.ask(Wanted::at(Kind::Rename, to))?;
        self.disk.rename(from, to)
    }

    fn rename_new(&mut self, from: &Place, to: &Place) -> Result<Change, DiskError> {
        self.ask(Wanted::at(Kind::RenameNew, to))?;
        self.disk.rename_new(from, to)
    }

    fn link(&mut self, from: &Place, to: &Place) -> Result<Change, DiskError> {
        self.ask(Wanted::at(Kind::Link, to))?;
        self.disk.link(from, to)
    }

    fn unlink(&mut self, place: &Place) -> Result<Change, DiskError> {
        self.ask(Wanted::at(Kind::Unlink, place))?;
        self.disk.unlink(place)
    }

    fn mkdir(&mut self, dir: &Dir) -> Result<Change, DiskError> {
        self.ask(Wanted::in_dir(Kind::Mkdir, dir))?;
        self.disk.mkdir(dir)
    }

    fn rmdir(&mut self, dir: &Dir) -> Result<Change, DiskError> {
        self.ask(Wanted::in_dir(Kind::Rmdir, dir))?;
        self.disk.rmdir(dir)
    }

    fn list(&mut self, dir: &Dir) -> Result<Option<Vec<state_machine::disk::Name>>, DiskError> {
        self.ask(Wanted::in_dir(Kind::List, dir))?;
        self.disk.list(dir)
    }

    fn give_way(&mut self, round: u32) -> Result<(), DiskError> {
        self.disk.give_way(round)
    }
}
