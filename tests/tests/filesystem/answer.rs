//! One language for what both disks say: the methods of `Disk` are called on either, and what they return becomes an
//! [`Answer`] that can be compared and counted.

use std::fmt;

use outlive_model::effect::{Effect, Handle};
use outlive_model::filesystem::{Data, Owner};
use state_machine::control::{Control, Request};
use state_machine::disk::{
    Change, Content, Create, Disk, Fill, Mode, Name, Open, Place, Pointer, Read,
};
use state_machine::pull::part::Part;
use state_machine::record::{Descriptor, History, Pool, Session, Slot, Status};

/// What an effect came to, on whichever disk. What is damaged is only that: the words for it are for people, and the
/// model has others.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Opened(Open<Handle>),
    Created(Create<Handle>),
    Is(bool),
    Descriptor(Box<Known<Descriptor>>),
    Status(Box<Known<Status>>),
    Pointer(Known<Pointer>),
    Pool(Known<Pool>),
    Slot(Box<Known<Slot>>),
    Session(Box<Known<Session>>),
    Part(Box<Known<Part>>),
    History(History),
    Control(Asked),
    Changed(Change),
    Filled(Fill),
    Listed(Option<Vec<Name>>),
    Done,
    /// An error that no protocol decides on: the operation, and the number of the error.
    Fault(&'static str, i32),
}

/// What a record holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Known<T> {
    Value(T),
    Absent,
    Damaged,
}

/// What a control file holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Asked {
    Absent,
    Request(Request),
    Empty,
    Unknown,
}

impl<T> From<Read<T>> for Known<T> {
    fn from(read: Read<T>) -> Known<T> {
        match read {
            Read::Value(value) => Known::Value(value),
            Read::Absent => Known::Absent,
            Read::Damaged(_) => Known::Damaged,
        }
    }
}

impl From<Option<Control>> for Asked {
    fn from(control: Option<Control>) -> Asked {
        match control {
            None => Asked::Absent,
            Some(Control::Asked(request)) => Asked::Request(request),
            Some(Control::Empty) => Asked::Empty,
            Some(Control::Unknown(_)) => Asked::Unknown,
        }
    }
}

/// A disk, and who has what open on it.
pub(crate) trait Side {
    type Handle;
    type Fault;

    /// The disk as it is for one owner.
    fn disk(&mut self, owner: Owner) -> impl Disk<Handle = Self::Handle, Fault = Self::Fault>;
    /// Keep what was opened; its number.
    fn keep(&mut self, owner: Owner, handle: Self::Handle) -> Handle;
    /// Take out what was opened under a number, to be used and put back.
    fn take(&mut self, owner: Owner, number: Handle) -> Self::Handle;
    /// Put it back.
    fn put_back(&mut self, owner: Owner, number: Handle, handle: Self::Handle);
    /// Open a file as a shell does to write it anew. What keeps it from that is all one to it.
    fn hand_open(&mut self, owner: Owner, place: &Place) -> Open<Handle>;
    /// Write a word into what was opened so.
    fn hand_write(&mut self, owner: Owner, number: Handle, request: Request);
    /// What an error is.
    fn fault(fault: Self::Fault) -> Answer;
}

/// Let an effect happen on one disk.
pub(crate) fn ask<S: Side>(side: &mut S, owner: Owner, effect: &Effect) -> Answer {
    try_ask(side, owner, effect).unwrap_or_else(S::fault)
}

fn try_ask<S: Side>(side: &mut S, owner: Owner, effect: &Effect) -> Result<Answer, S::Fault> {
    Ok(match effect {
        Effect::Open(place, mode) => {
            let opened = side.disk(owner).open(place, *mode)?;
            Answer::Opened(match opened {
                Open::Opened(handle) => Open::Opened(side.keep(owner, handle)),
                Open::Absent => Open::Absent,
                Open::Denied => Open::Denied,
            })
        }
        Effect::Create(place) => {
            let created = side.disk(owner).create(place)?;
            Answer::Created(match created {
                Create::Created(handle) => Create::Created(side.keep(owner, handle)),
                Create::Exists => Create::Exists,
                Create::Absent => Create::Absent,
            })
        }
        Effect::Lock(number, mode) => {
            let handle = side.take(owner, *number);
            let locked = side.disk(owner).lock(&handle, *mode);
            side.put_back(owner, *number, handle);
            Answer::Is(locked?)
        }
        Effect::Stands(number, place) => {
            let handle = side.take(owner, *number);
            let stands = side.disk(owner).stands(&handle, place);
            side.put_back(owner, *number, handle);
            Answer::Is(stands?)
        }
        Effect::Close(number) => {
            let handle = side.take(owner, *number);
            side.disk(owner).close(handle)?;
            Answer::Done
        }
        Effect::Release(number) => {
            let handle = side.take(owner, *number);
            side.disk(owner).release(handle)?;
            Answer::Done
        }
        Effect::Exists(place) => Answer::Is(side.disk(owner).exists(place)?),
        Effect::ReadDescriptor(dir) => {
            Answer::Descriptor(Box::new(side.disk(owner).read_descriptor(dir)?.into()))
        }
        Effect::ReadStatus(dir) => {
            Answer::Status(Box::new(side.disk(owner).read_status(dir)?.into()))
        }
        Effect::ReadHistory(dir) => Answer::History(side.disk(owner).read_history(dir)?),
        Effect::ReadControl(place) => Answer::Control(side.disk(owner).read_control(place)?.into()),
        Effect::ReadPool(pool) => Answer::Pool(side.disk(owner).read_pool(pool)?.into()),
        Effect::ReadSlot(pool, number) => {
            Answer::Slot(Box::new(side.disk(owner).read_slot(pool, *number)?.into()))
        }
        Effect::ReadSession(token) => {
            Answer::Session(Box::new(side.disk(owner).read_session(token)?.into()))
        }
        Effect::ReadPart(place) => {
            Answer::Part(Box::new(side.disk(owner).read_part(place)?.into()))
        }
        Effect::SyncAll => {
            side.disk(owner).sync_all()?;
            Answer::Done
        }
        Effect::ReadPointer(key) => Answer::Pointer(side.disk(owner).read_pointer(key)?.into()),
        Effect::Write(place, data) => {
            Answer::Changed(side.disk(owner).write(place, &content(data))?)
        }
        Effect::Fill(place, data) => Answer::Filled(side.disk(owner).fill(place, &content(data))?),
        Effect::Append(dir, lines, mend) => {
            Answer::Changed(side.disk(owner).append(dir, lines, *mend)?)
        }
        Effect::Sync(place) => Answer::Changed(side.disk(owner).sync(place)?),
        Effect::Rename(from, to) => Answer::Changed(side.disk(owner).rename(from, to)?),
        Effect::RenameNew(from, to) => Answer::Changed(side.disk(owner).rename_new(from, to)?),
        Effect::Link(from, to) => Answer::Changed(side.disk(owner).link(from, to)?),
        Effect::Unlink(place) => Answer::Changed(side.disk(owner).unlink(place)?),
        Effect::Mkdir(dir) => Answer::Changed(side.disk(owner).mkdir(dir)?),
        Effect::Rmdir(dir) => Answer::Changed(side.disk(owner).rmdir(dir)?),
        Effect::List(dir) => {
            let mut names = side.disk(owner).list(dir)?;
            if let Some(names) = &mut names {
                names.sort();
            }
            Answer::Listed(names)
        }
        Effect::HandOpen(place) => Answer::Opened(side.hand_open(owner, place)),
        Effect::HandWrite(number, request) => {
            side.hand_write(owner, *number, *request);
            Answer::Done
        }
        other => unreachable!("not an effect of a disk: {other}"),
    })
}

/// What a file is filled with, as the trait wants it.
pub(crate) fn content(data: &Data) -> Content {
    match data {
        Data::Descriptor(descriptor) => Content::Descriptor(descriptor.clone()),
        Data::Status(status) => Content::Status(status.clone()),
        Data::Request(request) => Content::Request(*request),
        Data::Pointer(pointer) => Content::Pointer(pointer.clone()),
        Data::Pool(pool) => Content::Pool(pool.clone()),
        Data::Slot(slot) => Content::Slot(slot.clone()),
        Data::Session(session) => Content::Session(session.clone()),
        Data::Part(part) => Content::Part(part.clone()),
        Data::Raw(bytes) => Content::Raw(bytes.clone()),
        Data::Blank => Content::Blank,
        other => unreachable!("nobody writes {other}"),
    }
}

/// What an effect is called in the table of what must be reached.
pub(crate) fn kind(effect: &Effect) -> &'static str {
    match effect {
        Effect::Open(_, Mode::Shared) => "open shared",
        Effect::Open(_, Mode::Exclusive) => "open exclusive",
        Effect::Create(_) => "create",
        Effect::Lock(_, Mode::Shared) => "lock shared",
        Effect::Lock(_, Mode::Exclusive) => "lock exclusive",
        Effect::Stands(..) => "stands",
        Effect::Close(_) => "close",
        Effect::Release(_) => "release",
        Effect::Exists(_) => "exists",
        Effect::ReadDescriptor(_) => "read descriptor",
        Effect::ReadStatus(_) => "read status",
        Effect::ReadHistory(_) => "read history",
        Effect::ReadControl(_) => "read control",
        Effect::ReadPointer(_) => "read pointer",
        Effect::ReadPool(_) => "read pool",
        Effect::ReadSlot(..) => "read slot",
        Effect::ReadSession(_) => "read session",
        Effect::ReadPart(_) => "read part",
        Effect::SyncAll => "sync all",
        Effect::Write(..) => "write",
        Effect::Fill(..) => "fill",
        Effect::Append(..) => "append",
        Effect::Sync(_) => "sync",
        Effect::Rename(..) => "rename",
        Effect::RenameNew(..) => "rename new",
        Effect::Link(..) => "link",
        Effect::Unlink(_) => "unlink",
        Effect::Mkdir(_) => "mkdir",
        Effect::Rmdir(_) => "rmdir",
        Effect::List(_) => "list",
        Effect::HandOpen(_) => "hand open",
        Effect::HandWrite(..) => "hand write",
        other => unreachable!("not an effect of a disk: {other}"),
    }
}

impl<T> Known<T> {
    fn class(&self) -> &'static str {
        match self {
            Known::Value(_) => "value",
            Known::Absent => "absent",
            Known::Damaged => "damaged",
        }
    }
}

impl Answer {
    /// What kind of answer it is, in the table of what must be reached.
    pub(crate) fn class(&self) -> &'static str {
        match self {
            Answer::Opened(Open::Opened(_)) => "opened",
            Answer::Opened(Open::Absent) | Answer::Created(Create::Absent) => "absent",
            Answer::Opened(Open::Denied) => "denied",
            Answer::Created(Create::Created(_)) => "created",
            Answer::Created(Create::Exists) => "exists",
            Answer::Is(true) => "yes",
            Answer::Is(false) => "no",
            Answer::Descriptor(known) => known.class(),
            Answer::Status(known) => known.class(),
            Answer::Pointer(known) => known.class(),
            Answer::Pool(known) => known.class(),
            Answer::Slot(known) => known.class(),
            Answer::Session(known) => known.class(),
            Answer::Part(known) => known.class(),
            Answer::History(history) if history.torn => "torn",
            Answer::History(history) if history.undecodable > 0 => "undecodable",
            Answer::History(history) if history.lines.is_empty() => "nothing",
            Answer::History(_) => "lines",
            Answer::Control(Asked::Absent) | Answer::Listed(None) => "absent",
            Answer::Control(Asked::Request(_)) => "request",
            Answer::Control(Asked::Empty) => "empty",
            Answer::Control(Asked::Unknown) => "unknown",
            Answer::Changed(Change::Done) | Answer::Filled(Fill::Done) | Answer::Done => "done",
            Answer::Changed(Change::Absent) | Answer::Filled(Fill::Absent) => "absent",
            Answer::Filled(Fill::NoRoom) => "no room",
            Answer::Changed(Change::Exists) => "exists",
            Answer::Changed(Change::NotEmpty) => "not empty",
            Answer::Changed(Change::NotDirectory) => "not a directory",
            Answer::Listed(Some(names)) if names.is_empty() => "empty",
            Answer::Listed(Some(_)) => "names",
            Answer::Fault(..) => "fault",
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Opened(Open::Opened(number)) | Answer::Created(Create::Created(number)) => {
                write!(f, "{} as {number}", self.class())
            }
            Answer::Descriptor(known) => match &**known {
                Known::Value(descriptor) => write!(f, "job {}", descriptor.id),
                other => f.write_str(other.class()),
            },
            Answer::Status(known) => match &**known {
                Known::Value(status) => write!(f, "{} ({} steps)", status.state, status.steps),
                other => f.write_str(other.class()),
            },
            Answer::Pointer(Known::Value(pointer)) => {
                write!(f, "-> {} ({})", pointer.job, pointer.count)
            }
            Answer::Control(Asked::Request(request)) => write!(f, "{request}"),
            Answer::History(history) => write!(f, "{history:?}"),
            Answer::Listed(Some(names)) => write!(f, "{names:?}"),
            Answer::Fault(operation, number) => {
                let error = std::io::Error::from_raw_os_error(*number);
                write!(f, "cannot {operation}: {error}")
            }
            other => f.write_str(other.class()),
        }
    }
}
