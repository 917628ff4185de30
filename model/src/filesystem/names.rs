//! Directories and the names in them. A directory is found by walking from one of the eight that always stand,
//! so what is in a renamed directory moves along with it.

use std::sync::Arc;

use state_machine::disk::{Change, Dir, Name, Place};

use super::power::Naming;
use super::{Filesystem, Ino, Inode};

/// The directories that always stand, by inode.
const JOBS: Ino = 0;
const STAGING: Ino = 1;
const TRASH: Ino = 2;
const KEYS: Ino = 3;
const SPARES: Ino = 4;
const ROOT: Ino = 5;
const POOLS: Ino = 6;
const SESSIONS: Ino = 7;

/// How many directories always stand.
pub(super) const STANDING: usize = 8;

/// Where a pool has its slots.
const SLOTS: Word<'static> = Word::Text("slots");

/// The names of spares and of slots. There are never more than a few.
const NUMBERS: [&str; 4] = ["0", "1", "2", "3"];

/// One component of a path. Requests and staged directories share the names of `staging/`, so what is made
/// from a ticket or an id is compared as text.
#[derive(Clone, Copy)]
enum Word<'a> {
    Known(&'a Name),
    Text(&'a str),
}

impl Word<'_> {
    fn is(self, name: &Name) -> bool {
        match (self, name) {
            // As a listing finds it.
            (Word::Known(Name::Other(bytes)), name) => name.to_bytes() == *bytes,
            (Word::Known(known), name) => known == name,
            (Word::Text(text), Name::Other(bytes)) => text.as_bytes() == bytes,
            (Word::Text(_), _) => false,
        }
    }

    fn to_name(self) -> Name {
        match self {
            Word::Known(name) => name.clone(),
            Word::Text(text) => Name::Other(text.as_bytes().to_vec()),
        }
    }
}

/// A name as a listing finds it: only those of a job's directory are known there.
fn as_listed(name: &Name) -> Name {
    match name {
        Name::KeyLock(_)
        | Name::Pointer(_)
        | Name::NewPointer(_)
        | Name::SupervisorLock
        | Name::PlacementLock
        | Name::Pool
        | Name::NewPool
        | Name::MaintainLock
        | Name::Slot
        | Name::NewSlot
        | Name::Occupancy
        | Name::Session(_) => Name::Other(name.to_bytes()),
        known => known.clone(),
    }
}

/// Where an entry is or would be: its directory and its name there.
#[derive(Clone, Copy)]
pub(super) struct Slot<'a> {
    dir: Ino,
    word: Word<'a>,
}

impl Slot<'_> {
    /// That this name stands for `ino` from here on.
    pub(super) fn names(self, ino: Option<Ino>) -> Naming {
        Naming {
            dir: self.dir,
            name: self.word.to_name(),
            ino,
        }
    }
}

impl Filesystem {
    /// The inode of a directory, or why there is none: it is absent, or a file stands where one on the way would be.
    fn dir(&self, dir: &Dir) -> Result<Ino, Change> {
        match dir {
            Dir::Jobs => Ok(JOBS),
            Dir::Staging => Ok(STAGING),
            Dir::Trash => Ok(TRASH),
            Dir::Keys => Ok(KEYS),
            Dir::Spares => Ok(SPARES),
            Dir::Root => Ok(ROOT),
            Dir::Pools => Ok(POOLS),
            Dir::Sessions => Ok(SESSIONS),
            Dir::Job(_)
            | Dir::Staged(_)
            | Dir::Trashed(_)
            | Dir::Spare(_)
            | Dir::Pool(_)
            | Dir::Slots(_)
            | Dir::Slot(..)
            | Dir::Outside(_) => self
                .at(self.slot(&Place::Dir(dir.clone()))?)
                .ok_or(Change::Absent),
        }
    }

    fn entry(&self, dir: Ino, word: Word<'_>) -> Option<Ino> {
        self.entries(dir)?
            .iter()
            .find(|(name, _)| word.is(name))
            .map(|&(_, ino)| ino)
    }

    /// The entries of a directory, `None` for a file.
    fn entries(&self, dir: Ino) -> Option<&[(Name, Ino)]> {
        match &self.inodes[usize::from(dir)] {
            Inode::Directory(entries) => Some(entries),
            Inode::File(_) => None,
        }
    }

    /// Where the entry of `place` is or would be. Where there is no such place, why: its directory is absent, or a file
    /// stands in its stead. The directories that always stand have none, as nobody moves them.
    pub(super) fn slot<'a>(&self, place: &'a Place) -> Result<Slot<'a>, Change> {
        let inside = |dir: &Dir| self.dir(dir);
        let (dir, word) = match place {
            Place::Dir(Dir::Job(id)) => (JOBS, Word::Text(id.as_str())),
            Place::Dir(Dir::Staged(ticket)) => (STAGING, Word::Text(ticket.as_str())),
            Place::Dir(Dir::Trashed(ticket)) => (TRASH, Word::Text(ticket.as_str())),
            Place::Dir(Dir::Spare(number)) => (SPARES, Word::Text(NUMBERS[usize::from(*number)])),
            Place::Dir(Dir::Pool(pool)) => (POOLS, Word::Text(pool.as_str())),
            Place::Dir(Dir::Slots(pool)) => (inside(&Dir::Pool(pool.clone()))?, SLOTS),
            Place::Dir(Dir::Slot(pool, number)) => {
                let slots = inside(&Dir::Slots(pool.clone()))?;
                (slots, Word::Text(NUMBERS[*number as usize]))
            }
            // What is outside of the store stands beside it.
            Place::Dir(Dir::Outside(path)) => {
                let word = std::str::from_utf8(path).map_err(|_| Change::Absent)?;
                (ROOT, Word::Text(word))
            }
            Place::Dir(
                Dir::Root
                | Dir::Jobs
                | Dir::Staging
                | Dir::Trash
                | Dir::Keys
                | Dir::Spares
                | Dir::Pools
                | Dir::Sessions,
            ) => {
                return Err(Change::Absent);
            }
            Place::File(dir, Name::Request(ticket)) => (inside(dir)?, Word::Text(ticket.as_str())),
            Place::File(dir, name) => (inside(dir)?, Word::Known(name)),
        };
        if self.is_dir(dir) {
            Ok(Slot { dir, word })
        } else {
            Err(Change::NotDirectory)
        }
    }

    /// What stands at `place`.
    pub(super) fn find(&self, place: &Place) -> Option<Ino> {
        self.look_up(place).ok()
    }

    /// What stands at `place`, or why nothing does.
    pub(super) fn look_up(&self, place: &Place) -> Result<Ino, Change> {
        match place {
            Place::Dir(dir) => self.dir(dir),
            Place::File(..) => self.at(self.slot(place)?).ok_or(Change::Absent),
        }
    }

    pub(super) fn at(&self, slot: Slot<'_>) -> Option<Ino> {
        self.entry(slot.dir, slot.word)
    }

    fn entries_mut(&mut self, dir: Ino) -> &mut Vec<(Name, Ino)> {
        match &mut self.inodes[usize::from(dir)] {
            Inode::Directory(entries) => Arc::make_mut(entries),
            Inode::File(_) => unreachable!("a slot is in a directory"),
        }
    }

    /// Let a name stand for an inode, whatever it stood for before. Names stay sorted.
    pub(super) fn put(&mut self, slot: Slot<'_>, ino: Ino) {
        let entries = self.entries_mut(slot.dir);
        match entries.iter().position(|(name, _)| slot.word.is(name)) {
            Some(at) => entries[at].1 = ino,
            None => {
                entries.push((slot.word.to_name(), ino));
                entries.sort();
            }
        }
    }

    pub(super) fn remove(&mut self, slot: Slot<'_>) {
        self.entries_mut(slot.dir)
            .retain(|(name, _)| !slot.word.is(name));
    }

    pub(super) fn is_dir(&self, ino: Ino) -> bool {
        matches!(self.inodes[usize::from(ino)], Inode::Directory(_))
    }

    fn is_empty_dir(&self, ino: Ino) -> bool {
        self.entries(ino).is_some_and(<[_]>::is_empty)
    }

    /// Whether a directory is this one or somewhere below it.
    fn is_within(&self, top: Ino, dir: Ino) -> bool {
        top == dir
            || self
                .entries(top)
                .is_some_and(|entries| entries.iter().any(|&(_, ino)| self.is_within(ino, dir)))
    }

    pub(super) fn rename(&mut self, from: &Place, to: &Place, replace: bool) -> Change {
        let (from, to) = match (self.slot(from), self.slot(to)) {
            (Ok(from), Ok(to)) => (from, to),
            (Err(why), _) | (_, Err(why)) => return why,
        };
        let Some(moved) = self.at(from) else {
            return Change::Absent;
        };
        if self.is_within(moved, to.dir) {
            // Into itself: the kernel refuses that (EINVAL), which no protocol decides on.
            return match self.at(to) {
                Some(_) if !replace => Change::Exists,
                _ => Change::Absent,
            };
        }
        if let Some(there) = self.at(to) {
            match (self.is_dir(moved), self.is_dir(there)) {
                _ if !replace => return Change::Exists,
                // Two names of one file: nothing happens, and both stay (F34).
                _ if there == moved => return Change::Done,
                (true, false) => return Change::NotDirectory,
                (false, true) => return Change::NotEmpty,
                (true, true) if !self.is_empty_dir(there) => return Change::NotEmpty,
                _ => {}
            }
        }
        self.remove(from);
        self.put(to, moved);
        self.note_names(vec![from.names(None), to.names(Some(moved))]);
        Change::Done
    }

    pub(super) fn link(&mut self, from: &Place, to: &Place) -> Change {
        let (ino, to) = match (self.look_up(from), self.slot(to)) {
            (Ok(ino), Ok(to)) => (ino, to),
            (Err(why), _) | (_, Err(why)) => return why,
        };
        if self.at(to).is_some() {
            return Change::Exists;
        }
        if self.is_dir(ino) {
            // The kernel refuses that (EPERM), which no protocol decides on.
            return Change::NotEmpty;
        }
        self.put(to, ino);
        self.note_names(vec![to.names(Some(ino))]);
        Change::Done
    }

    pub(super) fn unlink(&mut self, place: &Place) -> Change {
        let (slot, ino) = match (self.slot(place), self.look_up(place)) {
            (Ok(slot), Ok(ino)) => (slot, ino),
            (Err(why), _) | (_, Err(why)) => return why,
        };
        if self.is_dir(ino) {
            return Change::NotEmpty;
        }
        self.remove(slot);
        self.note_names(vec![slot.names(None)]);
        Change::Done
    }

    pub(super) fn mkdir(&mut self, dir: &Dir) -> Change {
        let place = Place::Dir(dir.clone());
        if self.find(&place).is_some() {
            return Change::Exists;
        }
        let slot = match self.slot(&place) {
            Ok(slot) => slot,
            Err(why) => return why,
        };
        let ino = self.add(Inode::Directory(Arc::default()));
        self.put(slot, ino);
        self.note_names(vec![slot.names(Some(ino))]);
        Change::Done
    }

    pub(super) fn rmdir(&mut self, dir: &Dir) -> Change {
        let place = Place::Dir(dir.clone());
        let slot = match self.slot(&place) {
            Ok(slot) => slot,
            // Those that always stand.
            Err(_) if self.find(&place).is_some() => return Change::NotEmpty,
            Err(why) => return why,
        };
        match self.at(slot) {
            None => Change::Absent,
            Some(ino) if !self.is_dir(ino) => Change::NotDirectory,
            Some(ino) if !self.is_empty_dir(ino) => Change::NotEmpty,
            Some(_) => {
                self.remove(slot);
                self.note_names(vec![slot.names(None)]);
                Change::Done
            }
        }
    }

    pub(crate) fn list(&self, dir: &Dir) -> Option<Vec<Name>> {
        let entries = self.entries(self.dir(dir).ok()?)?;
        Some(entries.iter().map(|(name, _)| as_listed(name)).collect())
    }
}
