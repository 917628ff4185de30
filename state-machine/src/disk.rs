//! The disk that protocols work on. Each method of [`Disk`] is one effect that the operating system makes
//! atomic, and nothing bigger: what the kernel can interleave, the model must interleave.
//!
//! An outcome that a protocol decides on is a value in the reply. [`Disk::Fault`] is everything else: on the
//! real disk an error with its path and operation, in a replay the suspension itself. Values cross typed, not
//! as bytes, so that a modelled disk stores small values.
//!
//! A protocol hands every handle back: it returns it or closes it. On a fault it may drop it, which closes it
//! too: a handle must never do more than that when it is dropped (F6, F7).

use crate::control::{Control, Request};
use crate::id::{JobId, Key, Ticket};
use crate::record::{self, Damaged, Descriptor, History, Line, Status};

/// A directory of the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dir {
    /// Every job that can be seen.
    Jobs,
    /// What is on its way in.
    Staging,
    /// What is on its way out.
    Trash,
    /// The keys under which one start at a time is under way.
    Keys,
    /// One job.
    Job(JobId),
    /// One job on its way in.
    Staged(Ticket),
    /// One job on its way out.
    Trashed(Ticket),
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Name {
    /// `job.json`.
    Descriptor,
    /// `status.json`.
    Status,
    /// The next `status.json`, before it takes its place. One name is enough: only the lock's holder writes it.
    NewStatus,
    /// `events.jsonl`.
    Events,
    /// `lock`.
    Lock,
    /// `tree`.
    Tree,
    /// `control`: a request that waits to be taken.
    Control,
    /// `control.taken`: the request that the holder is honouring, kept until its effect is recorded (R6).
    Taken,
    /// `<key>.lock` in `keys/`.
    KeyLock(Key),
    /// `<key>.json` in `keys/`: the job that was last started under the key.
    Pointer(Key),
    /// The next pointer, before it takes its place; written under the key's lock.
    NewPointer(Key),
    /// A request in `staging/`, before it takes its place.
    Request(Ticket),
    /// Anything else, as its bytes.
    Other(Vec<u8>),
}

/// Something with a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// A directory.
    Dir(Dir),
    /// An entry of a directory.
    File(Dir, Name),
}

impl Dir {
    /// The place of one of its entries.
    pub fn at(&self, name: Name) -> Place {
        Place::File(self.clone(), name)
    }
}

impl Place {
    /// An entry of a job's directory.
    pub fn of_job(id: &JobId, name: Name) -> Place {
        Place::File(Dir::Job(id.clone()), name)
    }
}

/// How a lock is taken (F1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Together with other shared ones.
    Shared,
    /// Alone.
    Exclusive,
}

/// What opening a file came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Open<H> {
    /// It is open.
    Opened(H),
    /// There is no such file.
    Absent,
    /// There is one, and it cannot be opened.
    Denied,
}

/// What creating a file that must be new came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Create<H> {
    /// It is there, empty and open.
    Created(H),
    /// There was one already.
    Exists,
    /// Its directory is gone.
    Absent,
}

/// What a change of the tree of names came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// It is done.
    Done,
    /// What it works on, or the directory that it goes to, is not there.
    Absent,
    /// Something stands where it would go.
    Exists,
    /// It is a directory with something in it, or a directory where a file was meant.
    NotEmpty,
    /// It is a file where a directory was meant.
    NotDirectory,
}

/// What reading a record came to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Read<T> {
    /// Its value.
    Value(T),
    /// There is none.
    Absent,
    /// There is one that cannot be read as what it should be (R21).
    Damaged(Damaged),
}

/// The job that was last started under a key, and how many have been.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Pointer {
    /// The job.
    pub job: JobId,
    /// How many jobs have been started under the key; numbers the unnamed jobs of a task.
    #[serde(default)]
    pub count: u64,
}

impl Pointer {
    /// The bytes of a pointer's file.
    pub fn encode(&self) -> Vec<u8> {
        record::encode(self)
    }

    /// Read the bytes of a pointer's file.
    pub fn decode(bytes: &[u8]) -> Result<Pointer, Damaged> {
        record::decode(bytes)
    }
}

/// What a file is filled with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    /// A descriptor.
    Descriptor(Box<Descriptor>),
    /// A status.
    Status(Box<Status>),
    /// A request.
    Request(Request),
    /// A pointer.
    Pointer(Pointer),
}

/// A file system, one atomic effect per method.
///
/// Every method tracks its caller, so that a checker can name an effect by where a protocol asks for it. A real disk has
/// no use for that, and what is not used is not passed once the call is inlined.
pub trait Disk {
    /// An open description of a file, and with it the lock that was taken through it.
    type Handle;
    /// What stops a protocol.
    type Fault;

    /// Open an existing file, to lock it in this mode. One that is to be locked exclusively is opened for
    /// writing: then its last close is a notice to whoever watches the directory, and a mere probe is none.
    #[track_caller]
    fn open(&mut self, place: &Place, mode: Mode) -> Result<Open<Self::Handle>, Self::Fault>;

    /// Make a file that must not exist yet, and open it to lock it.
    #[track_caller]
    fn create(&mut self, place: &Place) -> Result<Create<Self::Handle>, Self::Fault>;

    /// Try to lock without waiting. Only for a description that holds no lock: converting one loses it (F9).
    #[track_caller]
    fn lock(&mut self, handle: &Self::Handle, mode: Mode) -> Result<bool, Self::Fault>;

    /// Whether the open file is the one that stands at `place` now (F17).
    #[track_caller]
    fn stands(&mut self, handle: &Self::Handle, place: &Place) -> Result<bool, Self::Fault>;

    /// Close, and let the lock go unless another process has the same description (F2).
    #[track_caller]
    fn close(&mut self, handle: Self::Handle) -> Result<(), Self::Fault>;

    /// Whether anything stands at `place`.
    #[track_caller]
    fn exists(&mut self, place: &Place) -> Result<bool, Self::Fault>;

    /// Read a descriptor.
    #[track_caller]
    fn read_descriptor(&mut self, dir: &Dir) -> Result<Read<Descriptor>, Self::Fault>;

    /// Read a status.
    #[track_caller]
    fn read_status(&mut self, dir: &Dir) -> Result<Read<Status>, Self::Fault>;

    /// Read a history; an absent one is empty.
    #[track_caller]
    fn read_history(&mut self, dir: &Dir) -> Result<History, Self::Fault>;

    /// Read a control file; `None` where there is none.
    #[track_caller]
    fn read_control(&mut self, place: &Place) -> Result<Option<Control>, Self::Fault>;

    /// Read the pointer of a key.
    #[track_caller]
    fn read_pointer(&mut self, key: &Key) -> Result<Read<Pointer>, Self::Fault>;

    /// Write a whole file that nobody else reads or writes yet.
    #[track_caller]
    fn write(&mut self, place: &Place, content: &Content) -> Result<Change, Self::Fault>;

    /// Append lines to the history in one write. `mend` gives a torn last line its newline first.
    #[track_caller]
    fn append(&mut self, dir: &Dir, lines: &[Line], mend: bool) -> Result<Change, Self::Fault>;

    /// Make a file's content, or a directory's names, survive a loss of power (F28, F29).
    #[track_caller]
    fn sync(&mut self, place: &Place) -> Result<Change, Self::Fault>;

    /// Rename, replacing a file that is there.
    #[track_caller]
    fn rename(&mut self, from: &Place, to: &Place) -> Result<Change, Self::Fault>;

    /// Rename, unless something is there (F21).
    #[track_caller]
    fn rename_new(&mut self, from: &Place, to: &Place) -> Result<Change, Self::Fault>;

    /// Give a file a second name, unless something is there.
    #[track_caller]
    fn link(&mut self, from: &Place, to: &Place) -> Result<Change, Self::Fault>;

    /// Remove a file's name.
    #[track_caller]
    fn unlink(&mut self, place: &Place) -> Result<Change, Self::Fault>;

    /// Make a directory.
    #[track_caller]
    fn mkdir(&mut self, dir: &Dir) -> Result<Change, Self::Fault>;

    /// Remove an empty directory.
    #[track_caller]
    fn rmdir(&mut self, dir: &Dir) -> Result<Change, Self::Fault>;

    /// The names in a directory, in any order; `None` where there is none.
    #[track_caller]
    fn list(&mut self, dir: &Dir) -> Result<Option<Vec<Name>>, Self::Fault>;

    /// Give way to others before the `round`th further try (from 0); no effect on any file.
    #[track_caller]
    fn give_way(&mut self, round: u32) -> Result<(), Self::Fault>;
}

impl Name {
    /// The name as it stands on disk.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Name::Descriptor => b"job.json".to_vec(),
            Name::Status => b"status.json".to_vec(),
            Name::NewStatus => b"status.json.new".to_vec(),
            Name::Events => b"events.jsonl".to_vec(),
            Name::Lock => b"lock".to_vec(),
            Name::Tree => b"tree".to_vec(),
            Name::Control => b"control".to_vec(),
            Name::Taken => b"control.taken".to_vec(),
            Name::KeyLock(key) => format!("{}.lock", key.as_str()).into_bytes(),
            Name::Pointer(key) => format!("{}.json", key.as_str()).into_bytes(),
            Name::NewPointer(key) => format!("{}.json.new", key.as_str()).into_bytes(),
            Name::Request(ticket) => ticket.as_str().as_bytes().to_vec(),
            Name::Other(bytes) => bytes.clone(),
        }
    }

    /// The name of an entry of a job's directory, as a listing found it.
    pub fn in_job(bytes: &[u8]) -> Name {
        [
            Name::Descriptor,
            Name::Status,
            Name::NewStatus,
            Name::Events,
            Name::Lock,
            Name::Tree,
            Name::Control,
            Name::Taken,
        ]
        .into_iter()
        .find(|name| name.to_bytes() == bytes)
        .unwrap_or_else(|| Name::Other(bytes.to_vec()))
    }

    /// The name as text, where it is UTF-8.
    pub fn to_text(&self) -> Option<String> {
        String::from_utf8(self.to_bytes()).ok()
    }
}
