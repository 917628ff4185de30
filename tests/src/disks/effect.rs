//! Effects by their kind, and where they happen.

use std::path::{Path, PathBuf};

use state_machine::disk::{Content, Dir, Name, Place};
use state_machine::record::Line;

/// A method of `Disk`; all reads are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is the method of that name")]
pub enum Kind {
    Open,
    Create,
    Lock,
    Stands,
    Close,
    Release,
    Exists,
    Read,
    Write,
    Fill,
    Append,
    Sync,
    Rename,
    RenameNew,
    Link,
    Unlink,
    Mkdir,
    Rmdir,
    List,
}

impl Kind {
    /// What the real disk calls it in its errors.
    pub fn operation(self) -> &'static str {
        match self {
            Kind::Open => "open",
            Kind::Create => "create",
            Kind::Lock => "lock",
            Kind::Stands | Kind::Exists => "stat",
            Kind::Close => "close",
            Kind::Release => "unlock",
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Fill => "fill",
            Kind::Append => "append to",
            Kind::Sync => "sync",
            Kind::Rename | Kind::RenameNew => "rename to",
            Kind::Link => "link",
            Kind::Unlink => "remove",
            Kind::Mkdir => "make the directory",
            Kind::Rmdir => "remove the directory",
            Kind::List => "list",
        }
    }
}

/// An effect that is about to happen.
#[derive(Debug)]
pub struct Wanted<'a> {
    /// Which one.
    pub kind: Kind,
    place: Option<Place>,
    pub(super) filling: Option<Filling<'a>>,
}

/// What a write, a fill or an append puts into a file: the effects that can be cut in two.
#[derive(Debug)]
pub(super) enum Filling<'a> {
    Write(&'a Content),
    Fill(&'a Content),
    Append(&'a [Line], bool),
}

impl<'a> Wanted<'a> {
    pub(super) fn at(kind: Kind, place: &Place) -> Wanted<'a> {
        Wanted {
            kind,
            place: Some(place.clone()),
            filling: None,
        }
    }

    pub(super) fn in_dir(kind: Kind, dir: &Dir) -> Wanted<'a> {
        Wanted::at(kind, &Place::Dir(dir.clone()))
    }

    pub(super) fn nowhere(kind: Kind) -> Wanted<'a> {
        Wanted {
            kind,
            place: None,
            filling: None,
        }
    }

    pub(super) fn write(place: &Place, content: &'a Content) -> Wanted<'a> {
        Wanted {
            filling: Some(Filling::Write(content)),
            ..Wanted::at(Kind::Write, place)
        }
    }

    pub(super) fn fill(place: &Place, content: &'a Content) -> Wanted<'a> {
        Wanted {
            filling: Some(Filling::Fill(content)),
            ..Wanted::at(Kind::Fill, place)
        }
    }

    pub(super) fn append(dir: &Dir, lines: &'a [Line], mend: bool) -> Wanted<'a> {
        Wanted {
            filling: Some(Filling::Append(lines, mend)),
            ..Wanted::at(Kind::Append, &dir.at(Name::Events))
        }
    }

    /// Where it happens.
    pub fn path(&self, root: &Path) -> PathBuf {
        match &self.place {
            Some(place) => path(root, place),
            None => root.join("an open file"),
        }
    }
}

/// The path of a place, written from the format and not from the product.
fn path(root: &Path, place: &Place) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    let (Place::Dir(dir) | Place::File(dir, _)) = place;
    let dir = match dir {
        Dir::Root => root.to_owned(),
        Dir::Pools => root.join("pools"),
        Dir::Pool(pool) => root.join("pools").join(pool.as_str()),
        Dir::Slots(pool) => root.join("pools").join(pool.as_str()).join("slots"),
        Dir::Slot(pool, number) => {
            let slots = root.join("pools").join(pool.as_str()).join("slots");
            slots.join(number.to_string())
        }
        Dir::Sessions => root.join("sessions"),
        Dir::Outside(path) => PathBuf::from(std::ffi::OsStr::from_bytes(path)),
        Dir::Jobs => root.join("jobs"),
        Dir::Staging => root.join("staging"),
        Dir::Trash => root.join("trash"),
        Dir::Keys => root.join("keys"),
        Dir::Spares => root.join("spares"),
        Dir::Spare(number) => root.join("spares").join(number.to_string()),
        Dir::Job(id) => root.join("jobs").join(id.as_str()),
        Dir::Staged(ticket) => root.join("staging").join(ticket.as_str()),
        Dir::Trashed(ticket) => root.join("trash").join(ticket.as_str()),
    };
    match place {
        Place::Dir(_) => dir,
        Place::File(_, name) => dir.join(std::ffi::OsStr::from_bytes(&name.to_bytes())),
    }
}
