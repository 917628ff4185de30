//! What a protocol can ask of a disk, and what it can be told: one [`Effect`] and one kind of [`Reply`] for
//! each method of the `Disk` trait, and some more for what a role does beside files: it starts a tree, sleeps,
//! looks whether something is left of its tree, and ends trees.
//!
//! No rule of the file system is in here: this is only the language.

use std::fmt;

use state_machine::control::Request;
use state_machine::disk::{Change, Create, Dir, Fill, Mode, Name, Open, Place};
use state_machine::id::{JobId, Key, PoolName, Token};
use state_machine::record::Line;

use crate::errand::{Glimpse, Memory};
use crate::filesystem::{Data, TORN};
use crate::shared::Shared;

/// A descriptor number, local to its process.
pub type Handle = u8;

/// One effect that the operating system makes atomic.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(
    missing_docs,
    reason = "each is the method of `Disk` or `Stage` of the same name"
)]
pub enum Effect {
    Open(Place, Mode),
    Create(Place),
    Lock(Handle, Mode),
    Stands(Handle, Place),
    Close(Handle),
    Release(Handle),
    Exists(Place),
    ReadDescriptor(Dir),
    ReadStatus(Dir),
    ReadHistory(Dir),
    ReadControl(Place),
    ReadPointer(Key),
    ReadPool(PoolName),
    ReadSlot(PoolName, u32),
    ReadSession(Token),
    ReadPart(Place),
    Write(Place, Data),
    Fill(Place, Data),
    Append(Dir, Vec<Line>, bool),
    Sync(Place),
    SyncAll,
    Rename(Place, Place),
    RenameNew(Place, Place),
    Link(Place, Place),
    Unlink(Place),
    Mkdir(Dir),
    Rmdir(Dir),
    List(Dir),
    GiveWay(u32),
    Spawn(JobId, Handle),
    Wake(JobId, Until, Stopping),
    Stop(Known),
    HasLeft,
    WorksIn(u32),
    EndTrees(JobId, Search),
    BackOff(JobId),
    Peek(Place),
    HandOpen(Place),
    HandWrite(Handle, Request),
    WaitForHands,
    AwaitErrand,
    IsWanted,
    Fork(JobId),
    Sleep(Memory<Handle>, Option<Vec<Glimpse>>),
    Boot,
    Length(Handle),
    Shorten(Handle, usize),
    Ask(u8),
    Pour(Handle, u8, usize, u8),
    Verify(Handle, Option<usize>, u8),
    Peruse(Place),
    InTurn(Handle),
}

pub use state_machine::course::{Search, Until};

/// Whether the tree that a worker sleeps over is being ended. A request that must wait for that wakes nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stopping {
    /// It is.
    Yes,
    /// It is not.
    No,
}

/// Whether a worker that ends its tree knows that its command has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Known {
    /// It does: this is about what the command has left.
    Ended,
    /// It does not.
    Running,
}

/// Why a worker woke up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wake {
    /// What it sleeps over has come; a command has ended well.
    Ended,
    /// Its command has failed.
    Failed,
    /// A control file is there.
    Asked,
    /// What its command is made of has changed.
    Renewed,
}

/// What an effect came to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// Of an open.
    Opened(Open<Handle>),
    /// Of a create.
    Created(Create<Handle>),
    /// Of a lock, a stands or an exists.
    Is(bool),
    /// What the file holds, `None` where there is none: of every read.
    Holds(Option<Shared<Data>>),
    /// Of every change of names or contents.
    Changed(Change),
    /// Of a fill.
    Filled(Fill),
    /// Of a list.
    Listed(Option<Vec<Name>>),
    /// Of what has only one outcome.
    Done,
    /// Of a wake.
    Woke(Wake),
    /// Of a fork: the lane of the worker.
    Forked(u8),
    /// Of a length, in blocks; of a request, the version that is sent, 0 where nobody answers; of a boot, which one it is.
    Counted(usize),
    /// Of waiting to be forked: the job.
    Errand(JobId),
    /// Of a sleep: what the sleeper still remembers.
    Slept(Memory<Handle>),
    /// Of anything: it failed, and nothing that a protocol decides on came of it.
    Failed,
}

impl Effect {
    /// Its name: the method of the trait.
    pub fn kind(&self) -> &'static str {
        match self {
            Effect::Open(..) => "open",
            Effect::Create(_) => "create",
            Effect::Lock(..) => "lock",
            Effect::Stands(..) => "stands",
            Effect::Close(_) => "close",
            Effect::Release(_) => "release",
            Effect::Exists(_) => "exists",
            Effect::ReadDescriptor(_) => "read_descriptor",
            Effect::ReadStatus(_) => "read_status",
            Effect::ReadHistory(_) => "read_history",
            Effect::ReadControl(_) => "read_control",
            Effect::ReadPointer(_) => "read_pointer",
            Effect::ReadPool(_) => "read_pool",
            Effect::ReadSlot(..) => "read_slot",
            Effect::ReadSession(_) => "read_session",
            Effect::ReadPart(_) => "read_part",
            Effect::SyncAll => "sync_all",
            Effect::Write(..) => "write",
            Effect::Fill(..) => "fill",
            Effect::Append(..) => "append",
            Effect::Sync(_) => "sync",
            Effect::Rename(..) => "rename",
            Effect::RenameNew(..) => "rename_new",
            Effect::Link(..) => "link",
            Effect::Unlink(_) => "unlink",
            Effect::Mkdir(_) => "mkdir",
            Effect::Rmdir(_) => "rmdir",
            Effect::List(_) => "list",
            Effect::GiveWay(_) => "give_way",
            Effect::Spawn(..) => "spawn",
            Effect::Wake(..) => "wake",
            Effect::Stop(_) => "stop",
            Effect::BackOff(_) => "back_off",
            Effect::HasLeft => "has_left",
            Effect::WorksIn(_) => "works_in",
            Effect::EndTrees(..) => "end_trees",
            Effect::Peek(_) => "peek",
            Effect::HandOpen(_) => "hand_open",
            Effect::HandWrite(..) => "hand_write",
            Effect::WaitForHands => "wait_for_hands",
            Effect::AwaitErrand => "await_errand",
            Effect::IsWanted => "is_wanted",
            Effect::Fork(_) => "fork",
            Effect::Sleep(..) => "sleep",
            Effect::Boot => "boot",
            Effect::Length(_) => "length",
            Effect::Shorten(..) => "shorten",
            Effect::Ask(_) => "ask",
            Effect::Pour(..) => "pour",
            Effect::Verify(..) => "verify",
            Effect::Peruse(_) => "peruse",
            Effect::InTurn(_) => "in_turn",
        }
    }

    /// The first half of a block that is poured, as an effect of its own.
    pub fn half_poured(&self) -> Option<Effect> {
        match *self {
            Effect::Pour(handle, file, at, _) => Some(Effect::Pour(handle, file, at, TORN)),
            _ => None,
        }
    }

    /// Whether the kernel may refuse it for reasons of its own: no space, no descriptor, a broken disk. A close, or
    /// a release, is one that has happened even where it reports an error, and what is no effect of a disk has its own ways to fail.
    pub fn can_fail(&self) -> bool {
        !matches!(
            self,
            Effect::Close(_)
                | Effect::Release(_)
                | Effect::GiveWay(_)
                | Effect::Spawn(..)
                | Effect::Wake(..)
                | Effect::Stop(_)
                | Effect::BackOff(_)
                | Effect::HasLeft
                | Effect::WorksIn(_)
                | Effect::EndTrees(..)
                | Effect::Peek(_)
                | Effect::HandOpen(_)
                | Effect::HandWrite(..)
                | Effect::WaitForHands
                | Effect::AwaitErrand
                | Effect::IsWanted
                | Effect::Fork(_)
                | Effect::Sleep(..)
                | Effect::Boot
                | Effect::Ask(_)
                | Effect::InTurn(_)
        )
    }
}

impl Reply {
    /// What kind of answer it is, for counting which were ever given.
    pub fn kind(&self) -> &'static str {
        match self {
            Reply::Opened(Open::Opened(_)) | Reply::Created(Create::Created(_)) => "handle",
            Reply::Opened(Open::Absent)
            | Reply::Created(Create::Absent)
            | Reply::Holds(None)
            | Reply::Changed(Change::Absent)
            | Reply::Filled(Fill::Absent)
            | Reply::Listed(None) => "absent",
            Reply::Opened(Open::Denied) => "denied",
            Reply::Created(Create::Exists) | Reply::Changed(Change::Exists) => "exists",
            Reply::Is(true) => "yes",
            Reply::Is(false) => "no",
            Reply::Holds(Some(data)) if data.is_broken() => "broken",
            Reply::Holds(Some(_)) | Reply::Listed(Some(_)) => "value",
            Reply::Changed(Change::Done) | Reply::Filled(Fill::Done) | Reply::Done => "done",
            Reply::Filled(Fill::NoRoom) => "no room",
            Reply::Changed(Change::NotEmpty) => "not empty",
            Reply::Changed(Change::NotDirectory) => "not a directory",
            Reply::Forked(_) | Reply::Errand(_) | Reply::Slept(_) | Reply::Counted(_) => "value",
            Reply::Woke(Wake::Ended) => "ended",
            Reply::Woke(Wake::Failed) => "ended badly",
            Reply::Woke(Wake::Asked) => "asked",
            Reply::Woke(Wake::Renewed) => "renewed",
            Reply::Failed => "failed",
        }
    }
}

/// A place as its path below the root of the store.
pub fn path(place: &Place) -> String {
    let dir = |dir: &Dir| match dir {
        Dir::Jobs => "jobs".to_owned(),
        Dir::Staging => "staging".to_owned(),
        Dir::Trash => "trash".to_owned(),
        Dir::Keys => "keys".to_owned(),
        Dir::Job(id) => format!("jobs/{id}"),
        Dir::Staged(ticket) => format!("staging/{}", ticket.as_str()),
        Dir::Trashed(ticket) => format!("trash/{}", ticket.as_str()),
        Dir::Root => ".".to_owned(),
        Dir::Pools => "pools".to_owned(),
        Dir::Pool(pool) => format!("pools/{pool}"),
        Dir::Slots(pool) => format!("pools/{pool}/slots"),
        Dir::Slot(pool, number) => format!("pools/{pool}/slots/{number}"),
        Dir::Sessions => "sessions".to_owned(),
        Dir::Outside(path) => String::from_utf8_lossy(path).into_owned(),
        Dir::Spares => "spares".to_owned(),
        Dir::Spare(number) => format!("spares/{number}"),
    };
    match place {
        Place::Dir(at) => dir(at),
        Place::File(at, name) => {
            let name = String::from_utf8_lossy(&name.to_bytes()).into_owned();
            format!("{}/{name}", dir(at))
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dir = |dir: &Dir| path(&Place::Dir(dir.clone()));
        match self {
            Effect::Open(place, _) => write!(f, "open {}", path(place)),
            Effect::Create(place) => write!(f, "create {}", path(place)),
            Effect::Lock(handle, Mode::Shared) => write!(f, "lock {handle} shared"),
            Effect::Lock(handle, Mode::Exclusive) => write!(f, "lock {handle} exclusive"),
            Effect::Stands(handle, place) => write!(f, "stands {handle} {}", path(place)),
            Effect::Close(handle) => write!(f, "close {handle}"),
            Effect::Release(handle) => write!(f, "release {handle}"),
            Effect::Exists(place) => write!(f, "exists {}", path(place)),
            Effect::ReadDescriptor(at) => write!(f, "read {}/job.json", dir(at)),
            Effect::ReadStatus(at) => write!(f, "read {}/status.json", dir(at)),
            Effect::ReadHistory(at) => write!(f, "read {}/events.jsonl", dir(at)),
            Effect::ReadControl(place) => write!(f, "read {}", path(place)),
            Effect::ReadPointer(key) => write!(f, "read keys/{}.json", key.as_str()),
            Effect::ReadPool(pool) => write!(f, "read pools/{pool}/pool.json"),
            Effect::ReadSlot(pool, number) => {
                write!(f, "read pools/{pool}/slots/{number}/slot.json")
            }
            Effect::ReadSession(token) => write!(f, "read sessions/{token}.json"),
            Effect::ReadPart(place) => write!(f, "read {}", path(place)),
            Effect::SyncAll => write!(f, "sync everything"),
            Effect::Write(place, data) => write!(f, "write {} = {data}", path(place)),
            Effect::Fill(place, data) => write!(f, "fill {} = {data}", path(place)),
            Effect::Append(at, lines, _) => {
                write!(f, "append {}/events.jsonl +{}", dir(at), lines.len())
            }
            Effect::Sync(place) => write!(f, "sync {}", path(place)),
            Effect::Rename(from, to) => write!(f, "rename {} {}", path(from), path(to)),
            Effect::RenameNew(from, to) => write!(f, "rename-new {} {}", path(from), path(to)),
            Effect::Link(from, to) => write!(f, "link {} {}", path(from), path(to)),
            Effect::Unlink(place) => write!(f, "unlink {}", path(place)),
            Effect::Mkdir(at) => write!(f, "mkdir {}", dir(at)),
            Effect::Rmdir(at) => write!(f, "rmdir {}", dir(at)),
            Effect::List(at) => write!(f, "list {}", dir(at)),
            Effect::GiveWay(round) => write!(f, "give way {round}"),
            Effect::Spawn(id, handle) => write!(f, "spawn the tree of {id} with {handle}"),
            Effect::Wake(id, ..) => write!(f, "sleep over {id}"),
            Effect::Stop(_) => f.write_str("end the tree"),
            Effect::BackOff(id) => write!(f, "wait for the next attempt of {id}"),
            Effect::Peek(place) => write!(f, "peek at who has {}", path(place)),
            Effect::HandOpen(place) => write!(f, "> {}", path(place)),
            Effect::HandWrite(handle, request) => write!(f, "echo {request} into {handle}"),
            Effect::WaitForHands => f.write_str("wait for hands"),
            Effect::AwaitErrand => f.write_str("wait to be forked"),
            Effect::IsWanted => f.write_str("does its supervisor live"),
            Effect::Fork(id) => write!(f, "fork a worker for {id}"),
            Effect::Sleep(..) => f.write_str("sleep until something changes"),
            Effect::Boot => f.write_str("which boot is this"),
            Effect::Length(handle) => write!(f, "length of {handle}"),
            Effect::Shorten(handle, count) => write!(f, "cut {handle} after {count}"),
            Effect::Ask(file) => write!(f, "ask for file {file}"),
            Effect::Pour(handle, file, at, version) => {
                write!(
                    f,
                    "pour block {at} of file {file}, version {version}, into {handle}"
                )
            }
            Effect::Verify(handle, ..) => write!(f, "verify {handle}"),
            Effect::InTurn(handle) => write!(f, "wait for the lock of {handle}"),
            Effect::Peruse(place) => write!(f, "verify {}", path(place)),
            Effect::HasLeft => f.write_str("is something left of the tree"),
            Effect::WorksIn(number) => write!(f, "does something work in slot {number}"),
            Effect::EndTrees(id, Search::Marked) => write!(f, "end what bears the mark of {id}"),
            Effect::EndTrees(id, Search::Holding) => write!(f, "end what has the tree of {id}"),
        }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Opened(Open::Opened(handle)) | Reply::Created(Create::Created(handle)) => {
                write!(f, "{handle}")
            }
            Reply::Opened(Open::Absent)
            | Reply::Created(Create::Absent)
            | Reply::Filled(Fill::Absent) => f.write_str("absent"),
            Reply::Filled(Fill::NoRoom) => f.write_str("no room"),
            Reply::Opened(Open::Denied) => f.write_str("denied"),
            Reply::Created(Create::Exists) => f.write_str("exists"),
            Reply::Is(true) => f.write_str("yes"),
            Reply::Is(false) => f.write_str("no"),
            Reply::Holds(None) | Reply::Listed(None) => f.write_str("absent"),
            Reply::Holds(Some(data)) => write!(f, "{}", **data),
            Reply::Changed(Change::Done) | Reply::Filled(Fill::Done) | Reply::Done => {
                f.write_str("done")
            }
            Reply::Changed(Change::Absent) => f.write_str("absent"),
            Reply::Changed(Change::Exists) => f.write_str("exists"),
            Reply::Changed(Change::NotEmpty) => f.write_str("not empty"),
            Reply::Changed(Change::NotDirectory) => f.write_str("not a directory"),
            Reply::Listed(Some(names)) => {
                let names: Vec<_> = names
                    .iter()
                    .map(|name| String::from_utf8_lossy(&name.to_bytes()).into_owned())
                    .collect();
                write!(f, "{{{}}}", names.join(", "))
            }
            Reply::Forked(lane) => write!(f, "{lane}"),
            Reply::Counted(count) => write!(f, "{count}"),
            Reply::Errand(id) => write!(f, "{id}"),
            Reply::Slept(_) => f.write_str("awake"),
            Reply::Woke(Wake::Ended) => f.write_str("ended"),
            Reply::Woke(Wake::Failed) => f.write_str("ended badly"),
            Reply::Failed => f.write_str("FAILS"),
            Reply::Woke(Wake::Asked) => f.write_str("asked"),
            Reply::Woke(Wake::Renewed) => f.write_str("renewed"),
        }
    }
}
