//! The modelled file system: directories, names, inodes, open descriptions with their locks. It is the one part
//! of the model that no protocol checks, so it does nothing that the manual does not say, and there is no rule
//! of the product in it.
//!
//! What it leaves out, and why: permissions and space (that something is denied or fails is an answer that the world
//! gives, from a budget), and the contents of a file as bytes (values cross the trait typed; how long a file is, is
//! known, as a file is filled in place only where there is room).

mod blocks;
mod data;
mod names;
mod open;
mod power;
mod renumber;
mod view;

use std::sync::Arc;

use state_machine::control::Request;
use state_machine::disk::{Change, Create, Dir, Fill, Mode, Name, Open, Place};
use state_machine::record::{History, Line};

pub use blocks::TORN;
pub use data::Data;
use open::Description;
use power::Medium;

use crate::effect::{Effect, Handle, Reply};
use crate::shared::Shared;

/// An inode number.
type Ino = u8;

/// Who has a file open: a lane of the model is a process and, once it has started one, a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Owner {
    /// The process of a lane.
    Process(u8),
    /// The tree that the process of a lane started.
    Tree(u8),
}

/// A file or a directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Inode {
    /// Sorted by name.
    Directory(Arc<Vec<(Name, Ino)>>),
    File(Shared<Data>),
}

/// All files of one store and who has them open.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Filesystem {
    /// By number. The first ones are the directories that always stand.
    inodes: Vec<Inode>,
    open: Vec<Description>,
    /// Which file each owner was last refused an exclusive lock on, until it has given way. Sorted.
    refused: Vec<(Owner, Ino)>,
    /// What of it would survive a loss of power, where that is kept account of.
    medium: Option<Box<Medium>>,
}

impl Default for Filesystem {
    fn default() -> Self {
        Filesystem {
            inodes: vec![Inode::Directory(Arc::default()); names::STANDING],
            open: Vec::new(),
            refused: Vec::new(),
            medium: None,
        }
    }
}

impl Filesystem {
    /// Let an effect of a disk happen.
    ///
    /// # Panics
    ///
    /// On an effect that is not one of a disk, and on a use of a descriptor that no protocol may make.
    pub fn apply(&mut self, owner: Owner, effect: &Effect) -> Reply {
        match effect {
            Effect::Open(place, mode) => Reply::Opened(self.open_place(owner, place, *mode)),
            Effect::Create(place) => Reply::Created(self.create(owner, place)),
            Effect::Lock(handle, mode) => Reply::Is(self.lock(owner, *handle, *mode)),
            Effect::Stands(handle, place) => {
                let ino = self.open[self.expect(owner, *handle)].ino;
                Reply::Is(self.find(place) == Some(ino))
            }
            Effect::Close(handle) => {
                self.close(owner, *handle);
                Reply::Done
            }
            Effect::Release(handle) => {
                self.release(owner, *handle);
                Reply::Done
            }
            Effect::Exists(place) => Reply::Is(self.find(place).is_some()),
            Effect::ReadDescriptor(dir) => self.read(&dir.at(Name::Descriptor)),
            Effect::ReadStatus(dir) => self.read(&dir.at(Name::Status)),
            Effect::ReadHistory(dir) => self.read(&dir.at(Name::Events)),
            Effect::ReadControl(place) => self.read(place),
            Effect::ReadPointer(key) => self.read(&Dir::Keys.at(Name::Pointer(key.clone()))),
            Effect::Write(place, data) => Reply::Changed(self.write(place, data.clone())),
            Effect::Fill(place, data) => Reply::Filled(self.fill(place, data.clone())),
            Effect::Append(dir, lines, mend) => {
                Reply::Changed(self.append(&dir.at(Name::Events), lines, *mend))
            }
            Effect::ReadPool(pool) => self.read(&Dir::Pool(pool.clone()).at(Name::Pool)),
            Effect::ReadSlot(pool, number) => {
                self.read(&Dir::Slot(pool.clone(), *number).at(Name::Slot))
            }
            Effect::ReadSession(token) => {
                self.read(&Dir::Sessions.at(Name::Session(token.clone())))
            }
            Effect::ReadPart(place) => self.read(place),
            Effect::Sync(place) => Reply::Changed(self.sync(place)),
            Effect::SyncAll => {
                self.sync_everything();
                Reply::Done
            }
            Effect::Rename(from, to) => Reply::Changed(self.rename(from, to, true)),
            Effect::RenameNew(from, to) => Reply::Changed(self.rename(from, to, false)),
            Effect::Link(from, to) => Reply::Changed(self.link(from, to)),
            Effect::Unlink(place) => Reply::Changed(self.unlink(place)),
            Effect::Mkdir(dir) => Reply::Changed(self.mkdir(dir)),
            Effect::Rmdir(dir) => Reply::Changed(self.rmdir(dir)),
            Effect::List(dir) => Reply::Listed(self.list(dir)),
            Effect::GiveWay(_) => {
                self.forget_refusal(owner);
                Reply::Done
            }
            Effect::Peek(place) => Reply::Opened(self.peek(owner, place)),
            Effect::HandOpen(place) => Reply::Opened(self.hand_open(owner, place)),
            Effect::Length(handle) => Reply::Counted(self.blocks_of(owner, *handle).len()),
            Effect::Shorten(handle, count) => {
                self.shorten(owner, *handle, *count);
                Reply::Changed(Change::Done)
            }
            Effect::Pour(handle, _, at, version) => {
                self.put_block(owner, *handle, *at, *version);
                Reply::Is(true)
            }
            Effect::Verify(handle, length, version) => {
                let blocks = self.blocks_of(owner, *handle);
                let is_as_long = length.is_none_or(|length| blocks.len() == length);
                let mut others = blocks.iter().filter(|&&block| block != *version);
                Reply::Is(is_as_long && (*version == TORN || others.next().is_none()))
            }
            Effect::Peruse(place) => self.read(place),
            Effect::InTurn(handle) => Reply::Is(self.lock(owner, *handle, Mode::Exclusive)),
            Effect::HandWrite(handle, request) => {
                self.hand_write(owner, *handle, *request);
                Reply::Done
            }
            Effect::Spawn(..)
            | Effect::Wake(..)
            | Effect::HasLeft
            | Effect::WorksIn(_)
            | Effect::Stop(_)
            | Effect::BackOff(_)
            | Effect::EndTrees(..)
            | Effect::WaitForHands
            | Effect::AwaitErrand
            | Effect::IsWanted
            | Effect::Boot
            | Effect::Ask(_)
            | Effect::Fork(_)
            | Effect::Sleep(..) => {
                unreachable!("not an effect of a disk: {effect}")
            }
        }
    }

    /// Let only the first half of an effect happen, as when its process dies in the middle of it. Nothing for
    /// one that has no halves.
    pub fn apply_half(&mut self, effect: &Effect) {
        match effect {
            Effect::Write(place, _) => {
                self.write(place, Data::Empty);
            }
            Effect::Fill(place, data) => {
                if let Some(mixture) = self.half_filled(place, data) {
                    self.write(place, mixture);
                }
            }
            Effect::Append(dir, lines, mend) => {
                let place = dir.at(Name::Events);
                let whole = lines.len().saturating_sub(1);
                // Half a line that is glued to a torn one is no further line.
                let glued = whole == 0 && !mend && self.is_torn(&place);
                self.append(&place, &lines[..whole], *mend);
                self.tear(&place, glued);
            }
            _ => {}
        }
    }

    /// Whether the effect can be cut in two by a death.
    pub fn has_halves(&self, effect: &Effect) -> bool {
        match effect {
            Effect::Write(place, _) => self.slot(place).is_ok(),
            Effect::Fill(place, data) => self.half_filled(place, data).is_some(),
            Effect::Append(dir, ..) => self.slot(&dir.at(Name::Events)).is_ok(),
            _ => false,
        }
    }

    /// Somebody who is no program of ours leaves something in a file that cannot be read as what it should be.
    pub fn spoil(&mut self, place: &Place) {
        self.write(place, Data::Garbage);
    }

    /// A loss of power, or somebody who is no program of ours, leaves a file without content.
    pub fn empty(&mut self, place: &Place) {
        self.write(place, Data::Empty);
    }

    /// Let the process of `owner` start a tree that shares the open file `handle`.
    pub fn inherit(&mut self, owner: Owner, handle: Handle, tree: Owner) {
        self.share(owner, handle, tree);
    }

    /// Let an effect fail as far as it can go before it does: a write leaves nothing of its file, what fills one half of
    /// itself, an append half of its last line, and what a sync was to bring is lost (F31).
    pub fn apply_failure(&mut self, effect: &Effect) {
        match effect {
            Effect::Write(place, _) => {
                self.unlink(place);
            }
            Effect::Fill(..) | Effect::Append(..) => self.apply_half(effect),
            Effect::Sync(place) => {
                if let Some(ino) = self.find(place) {
                    self.fail_to_sync(ino);
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, inode: Inode) -> Ino {
        if let Some(medium) = &mut self.medium {
            medium.add(&inode);
        }
        self.inodes.push(inode);
        Ino::try_from(self.inodes.len() - 1).expect("a modelled store has few files")
    }

    /// Open a file as a shell does to write it anew.
    fn hand_open(&mut self, owner: Owner, place: &Place) -> Open<Handle> {
        match self.write(place, Data::Empty) {
            Change::Done => self.open_place(owner, place, Mode::Exclusive),
            _ => Open::Absent,
        }
    }

    /// Write a word where a shell stands in what it has open, which is at the beginning: a longer word that another one
    /// wrote meanwhile shows behind it. Behind a request it only adds a line end.
    fn hand_write(&mut self, owner: Owner, handle: Handle, request: Request) {
        let ino = self.open[self.expect(owner, handle)].ino;
        let Inode::File(there) = &self.inodes[usize::from(ino)] else {
            unreachable!("a shell opens no directory to write into it");
        };
        let length = there.length();
        let word = Data::Request(request);
        let mixed = match there.record() {
            Data::Empty | Data::Request(_) if word.length() >= length => word,
            Data::Empty | Data::Request(_) => Data::Filled(Box::new(word), length),
            _ => Data::Garbage,
        };
        self.inodes[usize::from(ino)] = Inode::File(Shared::new(mixed));
        self.note_content(ino);
    }

    /// How a file is opened matters to who watches its directory, not to locks (F22); a directory is never opened for
    /// writing.
    fn open_place(&mut self, owner: Owner, place: &Place, mode: Mode) -> Open<Handle> {
        match self.find(place) {
            None => Open::Absent,
            Some(ino) if mode == Mode::Exclusive && self.is_dir(ino) => Open::Denied,
            Some(ino) => Open::Opened(self.open_ino(owner, ino, mode)),
        }
    }

    fn create(&mut self, owner: Owner, place: &Place) -> Create<Handle> {
        match self.slot(place) {
            Err(_) => Create::Absent,
            Ok(slot) if self.at(slot).is_some() => Create::Exists,
            Ok(slot) => {
                let ino = self.add(Inode::File(Shared::new(Data::Empty)));
                self.put(slot, ino);
                self.note_names(vec![slot.names(Some(ino))]);
                Create::Created(self.open_ino(owner, ino, Mode::Exclusive))
            }
        }
    }

    /// What a file holds.
    pub fn data(&self, place: &Place) -> Option<&Shared<Data>> {
        match &self.inodes[usize::from(self.find(place)?)] {
            Inode::File(data) => Some(data),
            Inode::Directory(_) => None,
        }
    }

    fn read(&self, place: &Place) -> Reply {
        let found = self.find(place).map(|ino| &self.inodes[usize::from(ino)]);
        Reply::Holds(found.map(|inode| match inode {
            Inode::File(data) => data.clone(),
            Inode::Directory(_) => Shared::new(Data::Directory),
        }))
    }

    fn write(&mut self, place: &Place, data: Data) -> Change {
        let Ok(slot) = self.slot(place) else {
            return Change::Absent;
        };
        let file = Inode::File(Shared::new(data));
        let ino = match self.at(slot) {
            Some(ino) if self.is_dir(ino) => return Change::NotEmpty,
            // The same inode is filled anew: whoever has it open or by another name sees that.
            Some(ino) => {
                self.inodes[usize::from(ino)] = file;
                ino
            }
            None => {
                let ino = self.add(file);
                self.put(slot, ino);
                self.note_names(vec![slot.names(Some(ino))]);
                ino
            }
        };
        self.note_content(ino);
        Change::Done
    }

    fn fill(&mut self, place: &Place, data: Data) -> Fill {
        let Some(there) = self.data(place) else {
            return Fill::Absent;
        };
        let Some(filled) = data.filled_into(there.length()) else {
            return Fill::NoRoom;
        };
        self.write(place, filled);
        Fill::Done
    }

    /// What a file holds when only a part of this was written over its beginning; `None` where it cannot be filled.
    fn half_filled(&self, place: &Place, data: &Data) -> Option<Data> {
        let length = self.data(place)?.length();
        (data.length() <= length).then(|| Data::Filled(Box::new(Data::Garbage), length))
    }

    fn append(&mut self, place: &Place, lines: &[Line], mend: bool) -> Change {
        let mut history = self
            .data(place)
            .map_or_else(History::default, |data| data.history());
        let mut lines = lines.to_vec();
        if history.torn && !mend && !lines.is_empty() {
            // Glued to the torn line, and lost with it.
            lines.remove(0);
        }
        history.torn = false;
        history.lines.extend(lines);
        self.write(place, Data::History(history))
    }

    fn is_torn(&self, place: &Place) -> bool {
        self.data(place).is_some_and(|data| data.history().torn)
    }

    /// Leave half a line at the end of a history.
    fn tear(&mut self, place: &Place, glued: bool) {
        let mut history = self
            .data(place)
            .map_or_else(History::default, |data| data.history());
        history.torn = true;
        history.undecodable += u32::from(!glued);
        self.write(place, Data::History(history));
    }

    fn sync(&mut self, place: &Place) -> Change {
        match self.look_up(place) {
            Ok(ino) => {
                self.sync_ino(ino);
                Change::Done
            }
            Err(why) => why,
        }
    }

    /// Whether `owner` is one of those who have the file at `place` open and locked exclusively.
    pub fn holds(&self, owner: Owner, place: &Place) -> bool {
        self.lockers(place).any(|who| who == owner)
    }

    /// Everyone who has the file at `place` open through an exclusive lock.
    pub fn lockers(&self, place: &Place) -> impl Iterator<Item = Owner> + '_ {
        let ino = self.find(place);
        self.open
            .iter()
            .filter(move |description| {
                Some(description.ino) == ino && description.lock == Some(Mode::Exclusive)
            })
            .flat_map(|description| description.holders.iter().map(|&(who, _)| who))
    }
}
