//! The disk that protocols work on. Each method of [`Disk`] is one effect that the operating system makes
//! atomic, and nothing bigger: what the kernel can interleave, the model must interleave.
//!
//! An outcome that a protocol decides on is a value in the reply. [`Disk::Fault`] is everything else: on the
//! real disk an error with its path and operation, in a replay the suspension itself. Values cross typed, not
//! as bytes, so that a modelled disk stores small values.
//!
//! A protocol hands every handle back: it returns it, closes it, or gives it up with its lock. On a fault it may drop it,
//! which closes it: a handle must never do more than that when it is dropped (F6, F7).

use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::control::{Control, Request};
use crate::id::{JobId, Key, PoolName, Token};
use crate::pull::part::Part;
use crate::record::{self, Damaged, Descriptor, History, Line, Pool, Session, Slot, Status};

pub use crate::place::{Dir, Name, Place};

/// How a lock is taken (F1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Together with other shared ones.
    Shared,
    /// Alone.
    Exclusive,
}

/// What opening a file came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Open<H> {
    /// It is open.
    Opened(H),
    /// There is no such file.
    Absent,
    /// There is one, and it cannot be opened.
    Denied,
}

/// What creating a file that must be new came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Create<H> {
    /// It is there, empty and open.
    Created(H),
    /// There was one already.
    Exists,
    /// Its directory is gone.
    Absent,
}

/// What a change of the tree of names came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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

/// What filling a file came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fill {
    /// It is done.
    Done,
    /// The file is shorter than what was to go into it, and stays as it is.
    NoRoom,
    /// There is no plain file.
    Absent,
}

/// What reading a record came to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Read<T> {
    /// Its value.
    Value(T),
    /// There is none.
    Absent,
    /// There is one that cannot be read as what it should be (R21).
    Damaged(Damaged),
}

/// The job that was last started under a key, and how many have been.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// A descriptor.
    Descriptor(Box<Descriptor>),
    /// A status.
    Status(Box<Status>),
    /// A request.
    Request(Request),
    /// A pointer.
    Pointer(Pointer),
    /// What somebody made of a pool.
    Pool(Box<Pool>),
    /// What is known of a slot.
    Slot(Box<Slot>),
    /// An open session.
    Session(Box<Session>),
    /// What is in an unfinished file.
    Part(Box<Part>),
    /// Bytes that mean something to somebody else.
    Raw(#[serde(with = "record::plain")] Vec<u8>),
    /// Room for a descriptor: blanks, which a record may end in.
    Blank,
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

    /// A protocol begins. No effect, and of interest only to a disk that keeps a [tape](crate::tape); it puts the call
    /// together by giving the closure a number for each handle.
    fn begins(&mut self, call: impl FnOnce(&dyn Fn(&Self::Handle) -> u32) -> Call) {
        // Dropped uncalled: where nobody keeps a tape it costs nothing.
        let _ = call;
    }

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

    /// Give up the lock for everybody who has the description, and close it. Where a lock is only closed, whoever has a
    /// copy of the description for a moment still has the lock (F55), and a claimer takes that one for an owner.
    ///
    /// For whoever is responsible for what is locked, and is done: with a job, with a key. Never for the lock of a tree,
    /// whose processes are to have it, nor for one that was handed over to somebody who lives: he would be left without
    /// (F2, F6).
    #[track_caller]
    fn release(&mut self, handle: Self::Handle) -> Result<(), Self::Fault>;

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

    /// Read what somebody made of a pool.
    #[track_caller]
    fn read_pool(&mut self, pool: &PoolName) -> Result<Read<Pool>, Self::Fault>;

    /// Read the record of a slot.
    #[track_caller]
    fn read_slot(&mut self, pool: &PoolName, number: u32) -> Result<Read<Slot>, Self::Fault>;

    /// Read an open session.
    #[track_caller]
    fn read_session(&mut self, token: &Token) -> Result<Read<Session>, Self::Fault>;

    /// Read the record beside an unfinished file.
    #[track_caller]
    fn read_part(&mut self, place: &Place) -> Result<Read<Part>, Self::Fault>;

    /// Write a whole file that nobody else reads or writes yet.
    #[track_caller]
    fn write(&mut self, place: &Place, content: &Content) -> Result<Change, Self::Fault>;

    /// Write over the beginning of a file that nobody else reads or writes yet, and leave blanks in the rest of it: its
    /// length stays, so that no more than its content is to be synced.
    #[track_caller]
    fn fill(&mut self, place: &Place, content: &Content) -> Result<Fill, Self::Fault>;

    /// Append lines to the history in one write. `mend` gives a torn last line its newline first.
    #[track_caller]
    fn append(&mut self, dir: &Dir, lines: &[Line], mend: bool) -> Result<Change, Self::Fault>;

    /// Make a file's content, or a directory's names, survive a loss of power (F28, F29). Not its times, which nobody reads.
    #[track_caller]
    fn sync(&mut self, place: &Place) -> Result<Change, Self::Fault>;

    /// As [`Disk::sync`], for everything that is written so far in the whole store: many records for the price of one.
    #[track_caller]
    fn sync_all(&mut self) -> Result<(), Self::Fault>;

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
