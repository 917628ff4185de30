//! The disk that everybody uses: each effect is one of the files', written down where a tape is kept.

use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use state_machine::call::Call;
use state_machine::control::Control;
use state_machine::disk::{
    Change, Content, Create, Dir, Disk, Fill, Mode, Name, Open, Place, Pointer, Read,
};
use state_machine::id::{JobId, Key, PoolName, Token};
use state_machine::pull::part::Part;
use state_machine::record::{Descriptor, History, Line, Pool, Session, Slot, Status};
use state_machine::tape::{self as lines, Effect, Reply};

use super::{Files, LockFile, tape};
use crate::error::DiskError;

/// A store's directory tree. A [`Store`](crate::Store) makes its own; it is public for whoever runs a protocol of
/// [`state_machine`] by itself, as checkers do.
#[derive(Clone, Debug)]
pub struct FsDisk(Files);

impl FsDisk {
    /// The disk under `root`, which is taken as it is: [`Store::open`](crate::Store::open) looks whether it may be used.
    pub fn new(root: PathBuf) -> FsDisk {
        FsDisk(Files::new(root))
    }

    /// The same disk for a process that stands in the directory of `job`, which is about to be renamed.
    pub(crate) fn standing_in(&self, job: &JobId) -> FsDisk {
        FsDisk(self.0.standing_in(job))
    }

    /// The same disk for a listing: no descriptor that it reads has the environment of its command, and what is damaged
    /// there is damaged all the same.
    pub(crate) fn without_environments(&self) -> FsDisk {
        FsDisk(self.0.without_environments())
    }

    /// The root.
    pub(crate) fn root(&self) -> &Path {
        &self.0.root
    }

    /// The path of a directory.
    pub(crate) fn dir(&self, dir: &Dir) -> PathBuf {
        self.0.dir(dir)
    }

    /// The path of a place.
    pub(crate) fn path(&self, place: &Place) -> PathBuf {
        self.0.path(place)
    }

    /// Write down what was asked, and what came of it. Afterwards: of what was never answered a replay has nothing to ask.
    #[inline]
    fn tell<T>(
        &self,
        outcome: Result<T, DiskError>,
        asked: impl FnOnce() -> Effect,
        reply: impl FnOnce(&T) -> Reply,
    ) -> Result<T, DiskError> {
        if tape::is_kept() {
            tape::write(&self.0.root, || {
                let reply = match &outcome {
                    Ok(outcome) => reply(outcome),
                    Err(error) => Reply::Fault(error.source.raw_os_error().unwrap_or(0)),
                };
                lines::Line::Effect(asked(), reply)
            });
        }
        outcome
    }
}

/// What stands for a handle on a tape: its descriptor.
fn number(handle: &LockFile) -> u32 {
    handle.as_fd().as_raw_fd().unsigned_abs()
}

fn changed(change: &Change) -> Reply {
    Reply::Changed(*change)
}

impl Disk for FsDisk {
    type Handle = LockFile;
    type Fault = DiskError;

    #[inline]
    fn begins(&mut self, call: impl FnOnce(&dyn Fn(&LockFile) -> u32) -> Call) {
        if tape::is_kept() {
            tape::write(&self.0.root, || lines::Line::Call(call(&number)));
        }
    }

    fn open(&mut self, place: &Place, mode: Mode) -> Result<Open<LockFile>, DiskError> {
        let outcome = self.0.open(place, mode);
        self.tell(
            outcome,
            || Effect::Open(place.clone(), mode),
            |open| {
                Reply::Opened(match open {
                    Open::Opened(handle) => Open::Opened(number(handle)),
                    Open::Absent => Open::Absent,
                    Open::Denied => Open::Denied,
                })
            },
        )
    }

    fn create(&mut self, place: &Place) -> Result<Create<LockFile>, DiskError> {
        let outcome = self.0.create(place);
        self.tell(
            outcome,
            || Effect::Create(place.clone()),
            |create| {
                Reply::Created(match create {
                    Create::Created(handle) => Create::Created(number(handle)),
                    Create::Exists => Create::Exists,
                    Create::Absent => Create::Absent,
                })
            },
        )
    }

    fn lock(&mut self, handle: &LockFile, mode: Mode) -> Result<bool, DiskError> {
        let outcome = self.0.lock(handle, mode);
        self.tell(
            outcome,
            || Effect::Lock(number(handle), mode),
            |is| Reply::Is(*is),
        )
    }

    fn stands(&mut self, handle: &LockFile, place: &Place) -> Result<bool, DiskError> {
        let outcome = self.0.stands(handle, place);
        self.tell(
            outcome,
            || Effect::Stands(number(handle), place.clone()),
            |is| Reply::Is(*is),
        )
    }

    fn close(&mut self, handle: LockFile) -> Result<(), DiskError> {
        let number = number(&handle);
        let outcome = self.0.close(handle);
        self.tell(outcome, || Effect::Close(number), |()| Reply::Done)
    }

    fn release(&mut self, handle: LockFile) -> Result<(), DiskError> {
        let number = number(&handle);
        let outcome = self.0.release(handle);
        self.tell(outcome, || Effect::Release(number), |()| Reply::Done)
    }

    fn exists(&mut self, place: &Place) -> Result<bool, DiskError> {
        let outcome = self.0.exists(place);
        self.tell(
            outcome,
            || Effect::Exists(place.clone()),
            |is| Reply::Is(*is),
        )
    }

    fn read_descriptor(&mut self, dir: &Dir) -> Result<Read<Descriptor>, DiskError> {
        let outcome = self.0.read_descriptor(dir);
        self.tell(
            outcome,
            || Effect::ReadDescriptor(dir.clone()),
            |read| Reply::Descriptor(read.clone()),
        )
    }

    fn read_status(&mut self, dir: &Dir) -> Result<Read<Status>, DiskError> {
        let outcome = self.0.read_status(dir);
        self.tell(
            outcome,
            || Effect::ReadStatus(dir.clone()),
            |read| Reply::Status(read.clone()),
        )
    }

    fn read_history(&mut self, dir: &Dir) -> Result<History, DiskError> {
        let outcome = self.0.read_history(dir);
        self.tell(
            outcome,
            || Effect::ReadHistory(dir.clone()),
            |read| Reply::History(read.clone()),
        )
    }

    fn read_control(&mut self, place: &Place) -> Result<Option<Control>, DiskError> {
        let outcome = self.0.read_control(place);
        self.tell(
            outcome,
            || Effect::ReadControl(place.clone()),
            |read| Reply::Control(read.clone()),
        )
    }

    fn read_pointer(&mut self, key: &Key) -> Result<Read<Pointer>, DiskError> {
        let outcome = self.0.read_pointer(key);
        self.tell(
            outcome,
            || Effect::ReadPointer(key.clone()),
            |read| Reply::Pointer(read.clone()),
        )
    }

    fn read_pool(&mut self, pool: &PoolName) -> Result<Read<Pool>, DiskError> {
        let outcome = self.0.read_pool(pool);
        self.tell(
            outcome,
            || Effect::ReadPool(pool.clone()),
            |read| Reply::Pool(read.clone()),
        )
    }

    fn read_slot(&mut self, pool: &PoolName, number: u32) -> Result<Read<Slot>, DiskError> {
        let outcome = self.0.read_slot(pool, number);
        self.tell(
            outcome,
            || Effect::ReadSlot(pool.clone(), number),
            |read| Reply::Slot(read.clone()),
        )
    }

    fn read_session(&mut self, token: &Token) -> Result<Read<Session>, DiskError> {
        let outcome = self.0.read_session(token);
        self.tell(
            outcome,
            || Effect::ReadSession(token.clone()),
            |read| Reply::Session(read.clone()),
        )
    }

    fn read_part(&mut self, place: &Place) -> Result<Read<Part>, DiskError> {
        let outcome = self.0.read_part(place);
        self.tell(
            outcome,
            || Effect::ReadPart(place.clone()),
            |read| Reply::Part(read.clone()),
        )
    }

    fn write(&mut self, place: &Place, content: &Content) -> Result<Change, DiskError> {
        let outcome = self.0.write(place, content);
        self.tell(
            outcome,
            || Effect::Write(place.clone(), content.clone()),
            changed,
        )
    }

    fn fill(&mut self, place: &Place, content: &Content) -> Result<Fill, DiskError> {
        let outcome = self.0.fill(place, content);
        self.tell(
            outcome,
            || Effect::Fill(place.clone(), content.clone()),
            |fill| Reply::Filled(*fill),
        )
    }

    fn append(&mut self, dir: &Dir, lines: &[Line], mend: bool) -> Result<Change, DiskError> {
        let outcome = self.0.append(dir, lines, mend);
        self.tell(
            outcome,
            || Effect::Append(dir.clone(), lines.to_vec(), mend),
            changed,
        )
    }

    fn sync(&mut self, place: &Place) -> Result<Change, DiskError> {
        let outcome = self.0.sync(place);
        self.tell(outcome, || Effect::Sync(place.clone()), changed)
    }

    fn sync_all(&mut self) -> Result<(), DiskError> {
        let outcome = self.0.sync_all();
        self.tell(outcome, || Effect::SyncAll, |()| Reply::Done)
    }

    fn rename(&mut self, from: &Place, to: &Place) -> Result<Change, DiskError> {
        let outcome = self.0.rename(from, to);
        self.tell(
            outcome,
            || Effect::Rename(from.clone(), to.clone()),
            changed,
        )
    }

    fn rename_new(&mut self, from: &Place, to: &Place) -> Result<Change, DiskError> {
        let outcome = self.0.rename_new(from, to);
        self.tell(
            outcome,
            || Effect::RenameNew(from.clone(), to.clone()),
            changed,
        )
    }

    fn link(&mut self, from: &Place, to: &Place) -> Result<Change, DiskError> {
        let outcome = self.0.link(from, to);
        self.tell(outcome, || Effect::Link(from.clone(), to.clone()), changed)
    }

    fn unlink(&mut self, place: &Place) -> Result<Change, DiskError> {
        let outcome = self.0.unlink(place);
        self.tell(outcome, || Effect::Unlink(place.clone()), changed)
    }

    fn mkdir(&mut self, dir: &Dir) -> Result<Change, DiskError> {
        let outcome = self.0.mkdir(dir);
        self.tell(outcome, || Effect::Mkdir(dir.clone()), changed)
    }

    fn rmdir(&mut self, dir: &Dir) -> Result<Change, DiskError> {
        let outcome = self.0.rmdir(dir);
        self.tell(outcome, || Effect::Rmdir(dir.clone()), changed)
    }

    fn list(&mut self, dir: &Dir) -> Result<Option<Vec<Name>>, DiskError> {
        let outcome = self.0.list(dir);
        self.tell(
            outcome,
            || Effect::List(dir.clone()),
            |names| Reply::Listed(names.clone()),
        )
    }

    fn give_way(&mut self, round: u32) -> Result<(), DiskError> {
        let outcome = self.0.give_way(round);
        self.tell(outcome, || Effect::GiveWay(round), |()| Reply::Done)
    }
}
