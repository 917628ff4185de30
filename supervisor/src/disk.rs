//! The disk of the protocols on a real file system: one system call, or the few that make one atomic effect, per
//! method. No decision is made here; what a reply means is the protocols' business.
//!
//! [`FsDisk`] is what everybody uses: it does each effect here, and writes it down where a [tape](state_machine::tape) is
//! kept.

mod tape;
mod taped;

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{self, AtFlags, CWD, FileType, FlockOperation, Mode as FileMode, OFlags};
use rustix::io::Errno;
use state_machine::control::Control;
use state_machine::disk::{
    Change, Content, Create, Dir, Disk, Fill, Mode, Name, Open, Place, Pointer, Read,
};
use state_machine::id::{JobId, Key, PoolName, Token};
use state_machine::pull::part::Part;
use state_machine::record::{
    self, Damaged, Descriptor, History, Line, Pool, Session, Slot, Status,
};

use crate::error::DiskError;
use crate::sys;

pub use tape::{listen, record_in};
pub use taped::FsDisk;

/// No record is longer than this, in bytes: what is, is damaged. Arguments and environment are far below it.
const RECORD_LIMIT: u64 = 64 << 20;
/// How much of a control file is read, in bytes.
const CONTROL_LIMIT: u64 = 4096;

/// An open file, and the lock that was taken through it. Dropping it only closes (F6, F7): where another process
/// has the same description, the lock stays. [`Disk::release`] alone unlocks.
#[derive(Debug)]
pub struct LockFile(OwnedFd);

impl AsFd for LockFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl LockFile {
    /// Another descriptor of the same description, for a forked child that goes on with the lock.
    pub(crate) fn share(&self) -> io::Result<LockFile> {
        Ok(LockFile(self.0.try_clone()?))
    }
}

impl From<LockFile> for OwnedFd {
    fn from(file: LockFile) -> OwnedFd {
        file.0
    }
}

impl From<OwnedFd> for LockFile {
    /// A descriptor that was inherited or doubled: it shares the description, and so the lock (F1).
    fn from(fd: OwnedFd) -> LockFile {
        LockFile(fd)
    }
}

/// The files under the root of a store.
#[derive(Clone, Debug)]
struct Files {
    root: PathBuf,
    /// The job whose directory this process stands in, wherever that is now.
    here: Option<JobId>,
    /// How descriptors are read.
    descriptors: fn(&[u8]) -> Result<Descriptor, Damaged>,
}

impl Files {
    fn new(root: PathBuf) -> Files {
        Files {
            root,
            here: None,
            descriptors: Descriptor::decode,
        }
    }

    /// The same for a process that stands in the directory of `job`, which is about to be renamed.
    fn standing_in(&self, job: &JobId) -> Files {
        Files {
            here: Some(job.clone()),
            ..self.clone()
        }
    }

    fn without_environments(&self) -> Files {
        Files {
            descriptors: Descriptor::decode_without_environment,
            ..self.clone()
        }
    }

    /// The path of a directory.
    fn dir(&self, dir: &Dir) -> PathBuf {
        match dir {
            Dir::Root => self.root.clone(),
            Dir::Jobs => self.root.join("jobs"),
            Dir::Staging => self.root.join("staging"),
            Dir::Trash => self.root.join("trash"),
            Dir::Keys => self.root.join("keys"),
            Dir::Spares => self.root.join("spares"),
            Dir::Pools => self.root.join("pools"),
            Dir::Job(id) if self.here.as_ref() == Some(id) => PathBuf::from("."),
            Dir::Job(id) => self.joined("jobs", id.as_str()),
            Dir::Staged(ticket) => self.joined("staging", ticket.as_str()),
            Dir::Trashed(ticket) => self.joined("trash", ticket.as_str()),
            Dir::Spare(number) => self.joined("spares", &number.to_string()),
            Dir::Pool(pool) => self.joined("pools", pool.as_str()),
            Dir::Slots(pool) => self.joined("pools", pool.as_str()).join("slots"),
            Dir::Slot(pool, number) => self
                .joined("pools", pool.as_str())
                .join("slots")
                .join(number.to_string()),
            Dir::Sessions => self.root.join("sessions"),
            Dir::Outside(path) => PathBuf::from(std::ffi::OsStr::from_bytes(path)),
        }
    }

    fn joined(&self, parent: &str, entry: &str) -> PathBuf {
        let mut path = self.root.join(parent);
        path.push(entry);
        path
    }

    /// The path of a place.
    fn path(&self, place: &Place) -> PathBuf {
        match place {
            Place::Dir(dir) => self.dir(dir),
            Place::File(dir, name) => {
                let mut path = self.dir(dir);
                path.push(std::ffi::OsStr::from_bytes(&name.to_bytes()));
                path
            }
        }
    }

    fn read_record<T>(
        &self,
        dir: &Dir,
        name: Name,
        decode: impl FnOnce(&[u8]) -> Result<T, Damaged>,
    ) -> Result<Read<T>, DiskError> {
        self.read_record_at(&dir.at(name), decode)
    }

    fn read_record_at<T>(
        &self,
        place: &Place,
        decode: impl FnOnce(&[u8]) -> Result<T, Damaged>,
    ) -> Result<Read<T>, DiskError> {
        let read = read_small(&self.path(place), RECORD_LIMIT)?;
        Ok(
            match read.map(|bytes| bytes.and_then(|bytes| decode(&bytes))) {
                None => Read::Absent,
                Some(Ok(record)) => Read::Value(record),
                Some(Err(damaged)) => Read::Damaged(damaged),
            },
        )
    }
}

/// The mode of every file: only its owner reads and writes it.
const PRIVATE: u32 = 0o600;

fn open_at(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let private = FileMode::from_raw_mode(PRIVATE);
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let fd = retry(|| fs::openat(CWD, path, flags, private))?;
    if flags.contains(OFlags::CREATE) {
        keep_private(&fd, &fs::fstat(&fd)?)?;
    }
    Ok(fd)
}

/// A host program's mask may have taken away what the owner needs, and a file that is there may have been given a mode. Asked
/// first, as a change that changes nothing is still one to the disk.
fn keep_private(fd: &OwnedFd, stat: &fs::Stat) -> Result<(), Errno> {
    if stat.st_mode & 0o7777 == PRIVATE {
        return Ok(());
    }
    fs::fchmod(fd, FileMode::from_raw_mode(PRIVATE))
}

/// The file with nothing in it. One that is empty already is not truncated: a file that was is written out in haste when it is
/// closed, lest a careless program lose both its contents, and nothing here relies on that.
fn emptied(fd: OwnedFd) -> Result<OwnedFd, Errno> {
    if fs::fstat(&fd)?.st_size > 0 {
        fs::ftruncate(&fd, 0)?;
    }
    Ok(fd)
}

/// Read a whole small file; `None` where there is none, damaged where it is no plain file of a sane size.
pub(crate) fn read_small(
    path: &Path,
    limit: u64,
) -> Result<Option<Result<Vec<u8>, Damaged>>, DiskError> {
    let fd = match open_at(path, OFlags::RDONLY | OFlags::NONBLOCK) {
        Ok(fd) => fd,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(Errno::LOOP) => return Ok(Some(Err(Damaged("it is a symbolic link".into())))),
        // A socket, or a device that nothing drives.
        Err(Errno::NXIO | Errno::NODEV) => {
            return Ok(Some(Err(Damaged("it is not a plain file".into()))));
        }
        Err(error) => return Err(DiskError::new("open", path, error)),
    };
    let stat = fs::fstat(&fd).map_err(|error| DiskError::new("stat", path, error))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Ok(Some(Err(Damaged("it is not a plain file".into()))));
    }
    if stat.st_size as u64 > limit {
        return Ok(Some(Err(Damaged(format!(
            "it is longer than {limit} bytes"
        )))));
    }
    // With room for one byte more than it has: where that stays empty, the end need not be asked for.
    let size = stat.st_size as usize;
    let mut bytes = Vec::with_capacity(size + 1);
    loop {
        bytes.reserve(1);
        let room = bytes.capacity() - bytes.len();
        let read = retry(|| rustix::io::read(&fd, rustix::buffer::spare_capacity(&mut bytes)))
            .map_err(|error| DiskError::new("read", path, error))?;
        let is_all = read == 0 || read < room && bytes.len() >= size;
        if is_all || bytes.len() as u64 > limit {
            return Ok(Some(Ok(bytes)));
        }
    }
}

/// Repeat a call that a signal interrupted.
fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// What a change came to, or the error that no protocol decides on.
fn changed(
    operation: &'static str,
    path: &Path,
    result: Result<(), Errno>,
) -> Result<Change, DiskError> {
    match result {
        Ok(()) => Ok(Change::Done),
        Err(Errno::NOENT) => Ok(Change::Absent),
        Err(Errno::EXIST) => Ok(Change::Exists),
        Err(Errno::NOTEMPTY | Errno::ISDIR) => Ok(Change::NotEmpty),
        Err(Errno::NOTDIR) => Ok(Change::NotDirectory),
        Err(error) => Err(DiskError::new(operation, path, error)),
    }
}

fn encode(content: &Content) -> Vec<u8> {
    match content {
        Content::Descriptor(descriptor) => descriptor.encode(),
        Content::Status(status) => status.encode(),
        Content::Request(request) => Control::encode(*request),
        Content::Pointer(pointer) => pointer.encode(),
        Content::Pool(pool) => pool.encode(),
        Content::Slot(slot) => slot.encode(),
        Content::Session(session) => session.encode(),
        Content::Part(part) => part.encode(),
        Content::Raw(bytes) => bytes.clone(),
        Content::Blank => record::blank(),
    }
}

impl Disk for Files {
    type Handle = LockFile;
    type Fault = DiskError;

    fn open(&mut self, place: &Place, mode: Mode) -> Result<Open<LockFile>, DiskError> {
        let path = self.path(place);
        let access = match mode {
            Mode::Shared => OFlags::RDONLY,
            Mode::Exclusive => OFlags::RDWR,
        };
        match open_at(&path, access | OFlags::NONBLOCK) {
            Ok(fd) => Ok(Open::Opened(LockFile(fd))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(Open::Absent),
            Err(
                Errno::ACCESS
                | Errno::PERM
                | Errno::LOOP
                | Errno::ISDIR
                | Errno::NXIO
                | Errno::NODEV,
            ) => Ok(Open::Denied),
            Err(error) => Err(DiskError::new("open", &path, error)),
        }
    }

    fn create(&mut self, place: &Place) -> Result<Create<LockFile>, DiskError> {
        let path = self.path(place);
        match open_at(&path, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL) {
            Ok(fd) => Ok(Create::Created(LockFile(fd))),
            Err(Errno::EXIST) => Ok(Create::Exists),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(Create::Absent),
            Err(error) => Err(DiskError::new("create", &path, error)),
        }
    }

    fn lock(&mut self, handle: &LockFile, mode: Mode) -> Result<bool, DiskError> {
        let operation = match mode {
            Mode::Shared => FlockOperation::NonBlockingLockShared,
            Mode::Exclusive => FlockOperation::NonBlockingLockExclusive,
        };
        match retry(|| fs::flock(handle, operation)) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            // Never run unlocked: a file system that cannot lock is an error with its path (F26).
            Err(error) => Err(DiskError::new("lock", &path_of(handle), error)),
        }
    }

    fn stands(&mut self, handle: &LockFile, place: &Place) -> Result<bool, DiskError> {
        let path = self.path(place);
        let ours = fs::fstat(handle).map_err(|error| DiskError::new("stat", &path, error))?;
        match fs::lstat(&path) {
            Ok(there) => {
                Ok(ours.st_dev == there.st_dev && ours.st_ino == there.st_ino && ours.st_nlink > 0)
            }
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(error) => Err(DiskError::new("stat", &path, error)),
        }
    }

    fn close(&mut self, handle: LockFile) -> Result<(), DiskError> {
        drop(handle);
        Ok(())
    }

    fn release(&mut self, handle: LockFile) -> Result<(), DiskError> {
        // Before the close, which is the notice that the lock is free. Where it cannot be unlocked, which no local file
        // system says of what it has locked, the close does it, if a little later.
        let _ = retry(|| fs::flock(&handle, FlockOperation::Unlock));
        drop(handle);
        Ok(())
    }

    fn exists(&mut self, place: &Place) -> Result<bool, DiskError> {
        let path = self.path(place);
        match fs::lstat(&path) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(error) => Err(DiskError::new("stat", &path, error)),
        }
    }

    fn read_descriptor(&mut self, dir: &Dir) -> Result<Read<Descriptor>, DiskError> {
        match self.read_record(dir, Name::Descriptor, self.descriptors) {
            // No start waits for a spare that cannot be read.
            Err(error) if matches!(dir, Dir::Spare(_)) => {
                Ok(Read::Damaged(Damaged(error.to_string())))
            }
            read => read,
        }
    }

    fn read_status(&mut self, dir: &Dir) -> Result<Read<Status>, DiskError> {
        self.read_record(dir, Name::Status, Status::decode)
    }

    fn read_history(&mut self, dir: &Dir) -> Result<History, DiskError> {
        let read = read_small(&self.path(&dir.at(Name::Events)), RECORD_LIMIT)?;
        Ok(match read {
            Some(Ok(bytes)) => History::decode(&bytes),
            // What is no plain file holds no lines.
            None | Some(Err(_)) => History::default(),
        })
    }

    fn read_control(&mut self, place: &Place) -> Result<Option<Control>, DiskError> {
        let read = read_small(&self.path(place), CONTROL_LIMIT)?;
        Ok(read.map(|bytes| match bytes {
            Ok(bytes) => Control::decode(&bytes),
            Err(Damaged(why)) => Control::Unknown(why),
        }))
    }

    fn read_pointer(&mut self, key: &Key) -> Result<Read<Pointer>, DiskError> {
        self.read_record(&Dir::Keys, Name::Pointer(key.clone()), Pointer::decode)
    }

    fn read_pool(&mut self, pool: &PoolName) -> Result<Read<Pool>, DiskError> {
        self.read_record(&Dir::Pool(pool.clone()), Name::Pool, Pool::decode)
    }

    fn read_slot(&mut self, pool: &PoolName, number: u32) -> Result<Read<Slot>, DiskError> {
        let dir = Dir::Slot(pool.clone(), number);
        self.read_record(&dir, Name::Slot, |bytes| Slot::decode(bytes)?.of(number))
    }

    fn read_session(&mut self, token: &Token) -> Result<Read<Session>, DiskError> {
        let name = Name::Session(token.clone());
        self.read_record(&Dir::Sessions, name, Session::decode)
    }

    fn read_part(&mut self, place: &Place) -> Result<Read<Part>, DiskError> {
        self.read_record_at(place, Part::decode)
    }

    fn write(&mut self, place: &Place, content: &Content) -> Result<Change, DiskError> {
        let path = self.path(place);
        let fd = match open_at(&path, OFlags::WRONLY | OFlags::CREATE).and_then(emptied) {
            Ok(fd) => fd,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Change::Absent),
            Err(error) => return Err(DiskError::new("write", &path, error)),
        };
        match File::from(fd).write_all(&encode(content)) {
            Ok(()) => Ok(Change::Done),
            Err(error) => {
                // A half written file takes space that may be what is missing; nobody reads it under this name.
                let _ = fs::unlink(&path);
                Err(DiskError::new("write", &path, error))
            }
        }
    }

    fn fill(&mut self, place: &Place, content: &Content) -> Result<Fill, DiskError> {
        let path = self.path(place);
        let failed = |error| DiskError::new("fill", &path, error);
        let fd = match open_at(&path, OFlags::WRONLY | OFlags::NONBLOCK) {
            Ok(fd) => fd,
            // A link, a directory, or a FIFO without a reader.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ISDIR | Errno::NXIO) => {
                return Ok(Fill::Absent);
            }
            // Somebody has closed it to us: nothing that could be filled.
            Err(Errno::ACCESS | Errno::PERM) => return Ok(Fill::Absent),
            Err(error) => return Err(failed(error)),
        };
        let stat = fs::fstat(&fd).map_err(failed)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(Fill::Absent);
        }
        let bytes = encode(content);
        let room = stat.st_size as u64;
        if bytes.len() as u64 > room || room > RECORD_LIMIT {
            return Ok(Fill::NoRoom);
        }
        keep_private(&fd, &stat).map_err(failed)?;
        let mut file = File::from(fd);
        file.write_all(&record::padded(bytes, room as usize))
            .map_err(|error| DiskError::new("fill", &path, error))?;
        // It is synced next, and until then its maker has other things to do.
        sys::begin_writing_out(file.as_fd());
        Ok(Fill::Done)
    }

    fn append(&mut self, dir: &Dir, lines: &[Line], mend: bool) -> Result<Change, DiskError> {
        let path = self.path(&dir.at(Name::Events));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND;
        let fd = match open_at(&path, flags) {
            Ok(fd) => fd,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Change::Absent),
            Err(error) => return Err(DiskError::new("append to", &path, error)),
        };
        let mut bytes = Vec::new();
        if mend {
            bytes.push(b'\n');
        }
        for line in lines {
            bytes.extend(line.encode());
        }
        // One write, so that another writer's line can never stand inside ours.
        match retry(|| rustix::io::write(&fd, &bytes)) {
            Ok(written) if written == bytes.len() => Ok(Change::Done),
            Ok(_) => Err(DiskError::new("append to", &path, Errno::NOSPC)),
            Err(error) => Err(DiskError::new("append to", &path, error)),
        }
    }

    fn sync(&mut self, place: &Place) -> Result<Change, DiskError> {
        let path = self.path(place);
        let synced = open_at(&path, OFlags::RDONLY).and_then(|fd| {
            retry(|| match place {
                Place::Dir(_) => fs::fsync(&fd),
                // Its times are nobody's business; where there is a journal they would be a commit of their own.
                Place::File(..) => fs::fdatasync(&fd),
            })
        });
        match synced {
            // Some file systems have nothing to sync for a directory and say so.
            Err(Errno::INVAL) if matches!(place, Place::Dir(_)) => Ok(Change::Done),
            synced => changed("sync", &path, synced),
        }
    }

    fn sync_all(&mut self) -> Result<(), DiskError> {
        open_at(&self.root, OFlags::RDONLY)
            .and_then(|fd| retry(|| fs::syncfs(&fd)))
            .map_err(|error| DiskError::new("sync", &self.root, error))
    }

    fn rename(&mut self, from: &Place, to: &Place) -> Result<Change, DiskError> {
        let target = self.path(to);
        let renamed = fs::renameat(CWD, self.path(from), CWD, &target);
        changed("rename to", &target, renamed)
    }

    fn rename_new(&mut self, from: &Place, to: &Place) -> Result<Change, DiskError> {
        let target = self.path(to);
        let renamed = fs::renameat_with(
            CWD,
            self.path(from),
            CWD,
            &target,
            fs::RenameFlags::NOREPLACE,
        );
        match renamed {
            // A spare that cannot be moved is none.
            Err(Errno::XDEV | Errno::ACCESS | Errno::PERM | Errno::BUSY)
                if matches!(from, Place::Dir(Dir::Spare(_))) =>
            {
                Ok(Change::Absent)
            }
            renamed => changed("rename to", &target, renamed),
        }
    }

    fn link(&mut self, from: &Place, to: &Place) -> Result<Change, DiskError> {
        let target = self.path(to);
        let linked = fs::linkat(CWD, self.path(from), CWD, &target, AtFlags::empty());
        changed("link", &target, linked)
    }

    fn unlink(&mut self, place: &Place) -> Result<Change, DiskError> {
        let path = self.path(place);
        changed("remove", &path, fs::unlink(&path))
    }

    fn mkdir(&mut self, dir: &Dir) -> Result<Change, DiskError> {
        let path = self.dir(dir);
        let made = fs::mkdir(&path, FileMode::RWXU).and_then(|()| fs::chmod(&path, FileMode::RWXU));
        changed("make the directory", &path, made)
    }

    fn rmdir(&mut self, dir: &Dir) -> Result<Change, DiskError> {
        let path = self.dir(dir);
        // POSIX lets a full directory be reported either way.
        match changed("remove the directory", &path, fs::rmdir(&path))? {
            Change::Exists => Ok(Change::NotEmpty),
            change => Ok(change),
        }
    }

    fn list(&mut self, dir: &Dir) -> Result<Option<Vec<Name>>, DiskError> {
        let path = self.dir(dir);
        let entries = match std::fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            // A request waits in `staging/` as a plain file.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(None),
            Err(error) => return Err(DiskError::new("list", &path, error)),
        };
        entries
            .map(|entry| {
                entry
                    .map(|entry| Name::in_job(entry.file_name().as_bytes()))
                    .map_err(|error| DiskError::new("list", &path, error))
            })
            .collect::<Result<_, _>>()
            .map(Some)
    }

    fn give_way(&mut self, round: u32) -> Result<(), DiskError> {
        // Two claimers that look at each other must not keep step: the process id spreads them.
        let spread = u64::from(std::process::id() % 16) * 8;
        let micros = (50u64 << round.min(8)) + spread;
        std::thread::sleep(Duration::from_micros(micros));
        Ok(())
    }
}

/// The path of an open file, for a message.
fn path_of(handle: &LockFile) -> PathBuf {
    use std::os::fd::AsRawFd;
    let link = format!("/proc/self/fd/{}", handle.as_fd().as_raw_fd());
    std::fs::read_link(link).unwrap_or_else(|_| PathBuf::from("a lock file"))
}
