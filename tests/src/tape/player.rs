//! The disk that plays a tape: it answers what the tape answers, as long as it is asked what the tape was asked.

use std::collections::BTreeMap;

use state_machine::call::Call;
use state_machine::control::Control;
use state_machine::disk::{
    Change, Content, Create, Dir, Disk, Fill, Mode, Name, Open, Place, Pointer, Read,
};
use state_machine::id::{Key, PoolName, Token};
use state_machine::pull::part::Part;
use state_machine::record::{self, Descriptor, History, Pool, Session, Slot, Status};
use state_machine::tape::{Effect, Line, Reply};

/// The protocol goes no further: here the recorded one met a fault, or was killed, or it was not this one.
#[derive(Debug)]
pub(super) struct Stopped;

/// The disk.
#[derive(Debug)]
pub(super) struct Player<'a> {
    /// As they stand on the tape. What began is compared byte by byte, which is much faster than to decode it.
    lines: &'a [Vec<u8>],
    at: usize,
    calls: &'a mut BTreeMap<&'static str, usize>,
    effects: &'a mut usize,
    refused: Option<(usize, String)>,
}

impl<'a> Player<'a> {
    /// Play from the line with which a protocol begins, and count what is played.
    pub(super) fn of(
        lines: &'a [Vec<u8>],
        calls: &'a mut BTreeMap<&'static str, usize>,
        effects: &'a mut usize,
    ) -> Player<'a> {
        Player {
            lines,
            at: 0,
            calls,
            effects,
            refused: None,
        }
    }

    /// How many lines were played, or the first (from 1) that differs, and how.
    pub(super) fn end(self) -> Result<usize, (usize, String)> {
        match self.refused {
            Some(refused) => Err(refused),
            None => Ok(self.at),
        }
    }

    /// The next line, if the tape has one and all agreed so far.
    fn next(&self) -> Option<&'a [u8]> {
        match self.refused {
            None => self.lines.get(self.at).map(Vec::as_slice),
            Some(_) => None,
        }
    }

    fn refuse(&mut self, asked: &str) {
        let recorded = String::from_utf8_lossy(&self.lines[self.at]).into_owned();
        let why = format!("asked: {asked}, recorded: {}", recorded.trim_end());
        self.refused.get_or_insert((self.at + 1, why));
    }

    fn answer(&mut self, asked: Effect) -> Result<Reply, Stopped> {
        let Some(next) = self.next() else {
            return Err(Stopped);
        };
        match Line::decode(next) {
            Ok(Line::Effect(effect, reply)) if effect == asked => {
                self.at += 1;
                *self.effects += 1;
                match reply {
                    Reply::Fault(_) => Err(Stopped),
                    reply => Ok(reply),
                }
            }
            Ok(_) => {
                self.refuse(&format!("{asked:?}"));
                Err(Stopped)
            }
            Err(why) => {
                self.refuse(&format!("{asked:?} ({why})"));
                Err(Stopped)
            }
        }
    }

    /// The last line had a reply that cannot be one to its effect.
    fn unfit(&mut self) -> Stopped {
        self.at -= 1;
        self.refuse("another kind of reply");
        Stopped
    }

    fn changed(&mut self, asked: Effect) -> Result<Change, Stopped> {
        match self.answer(asked)? {
            Reply::Changed(change) => Ok(change),
            _ => Err(self.unfit()),
        }
    }

    fn is(&mut self, asked: Effect) -> Result<bool, Stopped> {
        match self.answer(asked)? {
            Reply::Is(is) => Ok(is),
            _ => Err(self.unfit()),
        }
    }

    fn done(&mut self, asked: Effect) -> Result<(), Stopped> {
        match self.answer(asked)? {
            Reply::Done => Ok(()),
            _ => Err(self.unfit()),
        }
    }
}

impl Disk for Player<'_> {
    type Handle = u32;
    type Fault = Stopped;

    fn begins(&mut self, call: impl FnOnce(&dyn Fn(&u32) -> u32) -> Call) {
        // Where there is none, the process was killed, or this protocol goes on after the tape was refused.
        let Some(recorded) = self.next() else { return };
        let call = call(&|&number| number);
        let name = call.name();
        let line = Line::Call(call);
        if line.encode() == recorded {
            self.at += 1;
            *self.calls.entry(name).or_default() += 1;
        } else {
            self.refuse(&format!("{line:?}"));
        }
    }

    fn open(&mut self, place: &Place, mode: Mode) -> Result<Open<u32>, Stopped> {
        match self.answer(Effect::Open(place.clone(), mode))? {
            Reply::Opened(open) => Ok(open),
            _ => Err(self.unfit()),
        }
    }

    fn create(&mut self, place: &Place) -> Result<Create<u32>, Stopped> {
        match self.answer(Effect::Create(place.clone()))? {
            Reply::Created(create) => Ok(create),
            _ => Err(self.unfit()),
        }
    }

    fn lock(&mut self, handle: &u32, mode: Mode) -> Result<bool, Stopped> {
        self.is(Effect::Lock(*handle, mode))
    }

    fn stands(&mut self, handle: &u32, place: &Place) -> Result<bool, Stopped> {
        self.is(Effect::Stands(*handle, place.clone()))
    }

    fn close(&mut self, handle: u32) -> Result<(), Stopped> {
        self.done(Effect::Close(handle))
    }

    fn release(&mut self, handle: u32) -> Result<(), Stopped> {
        self.done(Effect::Release(handle))
    }

    fn exists(&mut self, place: &Place) -> Result<bool, Stopped> {
        self.is(Effect::Exists(place.clone()))
    }

    fn read_descriptor(&mut self, dir: &Dir) -> Result<Read<Descriptor>, Stopped> {
        match self.answer(Effect::ReadDescriptor(dir.clone()))? {
            Reply::Descriptor(read) => Ok(read),
            _ => Err(self.unfit()),
        }
    }

    fn read_status(&mut self, dir: &Dir) -> Result<Read<Status>, Stopped> {
        match self.answer(Effect::ReadStatus(dir.clone()))? {
            Reply::Status(read) => Ok(read),
            _ => Err(self.unfit()),
        }
    }

    fn read_history(&mut self, dir: &Dir) -> Result<History, Stopped> {
        match self.answer(Effect::ReadHistory(dir.clone()))? {
            Reply::History(history) => Ok(history),
            _ => Err(self.unfit()),
        }
    }

    fn read_control(&mut self, place: &Place) -> Result<Option<Control>, Stopped> {
        match self.answer(Effect::ReadControl(place.clone()))? {
            Reply::Control(control) => Ok(control),
            _ => Err(self.unfit()),
        }
    }

    fn read_pointer(&mut self, key: &Key) -> Result<Read<Pointer>, Stopped> {
        match self.answer(Effect::ReadPointer(key.clone()))? {
            Reply::Pointer(read) => Ok(read),
            _ => Err(self.unfit()),
        }
    }

    fn read_pool(&mut self, pool: &PoolName) -> Result<Read<Pool>, Stopped> {
        match self.answer(Effect::ReadPool(pool.clone()))? {
            Reply::Pool(read) => Ok(read),
            _ => Err(self.unfit()),
        }
    }

    fn read_slot(&mut self, pool: &PoolName, number: u32) -> Result<Read<Slot>, Stopped> {
        match self.answer(Effect::ReadSlot(pool.clone(), number))? {
            Reply::Slot(read) => Ok(read),
            _ => Err(self.unfit()),
        }
    }

    fn read_session(&mut self, token: &Token) -> Result<Read<Session>, Stopped> {
        match self.answer(Effect::ReadSession(token.clone()))? {
            Reply::Session(read) => Ok(read),
            _ => Err(self.unfit()),
        }
    }

    fn read_part(&mut self, place: &Place) -> Result<Read<Part>, Stopped> {
        match self.answer(Effect::ReadPart(place.clone()))? {
            Reply::Part(read) => Ok(read),
            _ => Err(self.unfit()),
        }
    }

    fn sync_all(&mut self) -> Result<(), Stopped> {
        match self.answer(Effect::SyncAll)? {
            Reply::Done => Ok(()),
            _ => Err(self.unfit()),
        }
    }

    fn write(&mut self, place: &Place, content: &Content) -> Result<Change, Stopped> {
        self.changed(Effect::Write(place.clone(), content.clone()))
    }

    fn fill(&mut self, place: &Place, content: &Content) -> Result<Fill, Stopped> {
        match self.answer(Effect::Fill(place.clone(), content.clone()))? {
            Reply::Filled(fill) => Ok(fill),
            _ => Err(self.unfit()),
        }
    }

    fn append(&mut self, dir: &Dir, lines: &[record::Line], mend: bool) -> Result<Change, Stopped> {
        self.changed(Effect::Append(dir.clone(), lines.to_vec(), mend))
    }

    fn sync(&mut self, place: &Place) -> Result<Change, Stopped> {
        self.changed(Effect::Sync(place.clone()))
    }

    fn rename(&mut self, from: &Place, to: &Place) -> Result<Change, Stopped> {
        self.changed(Effect::Rename(from.clone(), to.clone()))
    }

    fn rename_new(&mut self, from: &Place, to: &Place) -> Result<Change, Stopped> {
        self.changed(Effect::RenameNew(from.clone(), to.clone()))
    }

    fn link(&mut self, from: &Place, to: &Place) -> Result<Change, Stopped> {
        self.changed(Effect::Link(from.clone(), to.clone()))
    }

    fn unlink(&mut self, place: &Place) -> Result<Change, Stopped> {
        self.changed(Effect::Unlink(place.clone()))
    }

    fn mkdir(&mut self, dir: &Dir) -> Result<Change, Stopped> {
        self.changed(Effect::Mkdir(dir.clone()))
    }

    fn rmdir(&mut self, dir: &Dir) -> Result<Change, Stopped> {
        self.changed(Effect::Rmdir(dir.clone()))
    }

    fn list(&mut self, dir: &Dir) -> Result<Option<Vec<Name>>, Stopped> {
        match self.answer(Effect::List(dir.clone()))? {
            Reply::Listed(names) => Ok(names),
            _ => Err(self.unfit()),
        }
    }

    fn give_way(&mut self, round: u32) -> Result<(), Stopped> {
        self.done(Effect::GiveWay(round))
    }
}
