//! A disk that knows only the past: it answers from it and stops at the first effect that has no answer. So a
//! process under check is nothing but the protocol that it runs and the replies that it has had, and the
//! checked code is the code that ships.
//!
//! [`Asking`] turns every method of `Disk` into an [`Effect`] for a [`Host`] and the [`Reply`] back into what
//! the method returns. [`Remembering`] is the host that replays; [`crate::alone::Alone`] is the one that runs
//! to the end with nobody else there; [`crate::mutant::Editing`] stands before either and gets one effect wrong.

use std::panic::Location;

use state_machine::call::Call;
use state_machine::control::{Control, Request};
use state_machine::disk::{
    Change, Content, Create, Dir, Disk, Fill, Mode, Name, Open, Place, Pointer, Read,
};
use state_machine::id::{JobId, Key, PoolName, Token};
use state_machine::pull::part::Part;
use state_machine::record::{Descriptor, History, Line, Pool, Session, Slot, Status};

use crate::effect::{Effect, Handle, Known, Reply, Search, Stopping, Until, Wake};
use crate::errand::{Glimpse, Memory};
use crate::filesystem::Data;
use crate::past::Past;
use crate::stage::{News, Stage, Standing};

/// Where in a protocol an effect is asked for.
pub type At = &'static Location<'static>;

/// Who answers effects.
pub trait Host {
    /// What keeps it from answering.
    type Fault;

    /// Answer an effect, which is put together only if the answer needs it.
    fn answer(&mut self, at: At, effect: impl FnOnce() -> Effect) -> Result<Reply, Self::Fault>;

    /// The fault that an effect comes to which failed.
    fn failure(&self) -> Self::Fault;

    /// Whether a role can go on after this fault.
    fn can_go_on(&self, fault: &Self::Fault) -> bool;

    /// Hear what a role has come to believe.
    fn hear(&mut self, news: News);

    /// What the process remembers from before it slept.
    fn memory(&self) -> Option<Memory<Handle>>;
}

/// A disk that asks a host.
#[derive(Debug)]
pub struct Asking<H> {
    /// Who answers.
    pub host: H,
    /// Whether a sync is an effect. Where power is never lost and nothing ever fails, nobody can tell whether one was
    /// made, so it is left out of the interleaving.
    pub syncs: bool,
}

/// An effect, and where in a protocol it is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Wanted {
    /// The effect.
    pub effect: Effect,
    /// Where.
    pub at: At,
}

/// Why a replay does not go on.
#[derive(Debug)]
pub enum Stop {
    /// The past is over: this is the next effect, which has no answer yet.
    Wants(Box<Wanted>),
    /// An effect failed.
    Failed,
}

/// What somebody is who wakes up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Awakening {
    /// What he remembers from before.
    pub memory: Memory<Handle>,
    /// What he believed then.
    pub standing: Standing,
}

/// The host that knows only the past.
#[derive(Debug)]
pub struct Remembering<'a> {
    past: std::vec::IntoIter<&'a Reply>,
    memory: Option<&'a Memory<Handle>>,
    /// What the role has come to believe so far.
    pub standing: Standing,
}

impl<'a> Remembering<'a> {
    /// Remember a past from its beginning, which was a start or an awakening.
    pub fn new(past: &'a Past, woke: Option<&'a Awakening>) -> Remembering<'a> {
        Remembering {
            past: past.replies().into_iter(),
            memory: woke.map(|woke| &woke.memory),
            standing: woke.map_or_else(Standing::default, |woke| woke.standing.clone()),
        }
    }
}

impl Host for Remembering<'_> {
    type Fault = Stop;

    fn answer(&mut self, at: At, effect: impl FnOnce() -> Effect) -> Result<Reply, Stop> {
        match self.past.next() {
            Some(reply) => Ok(reply.clone()),
            None => Err(Stop::Wants(Box::new(Wanted {
                effect: effect(),
                at,
            }))),
        }
    }

    fn failure(&self) -> Stop {
        Stop::Failed
    }

    fn can_go_on(&self, fault: &Stop) -> bool {
        matches!(fault, Stop::Failed)
    }

    fn hear(&mut self, news: News) {
        self.standing.hear(news);
    }

    fn memory(&self) -> Option<Memory<Handle>> {
        self.memory.cloned()
    }
}

/// Take a reply apart that is a failure or can only be of one kind.
macro_rules! expect {
    ($host:expr, $effect:expr, $pattern:pat => $value:expr) => {
        match $host.answer(Location::caller(), $effect)? {
            $pattern => Ok($value),
            Reply::Failed => Err($host.failure()),
            other => unreachable!("a protocol asked differently of the same past: {other:?}"),
        }
    };
}

impl<H: Host> Asking<H> {
    #[track_caller]
    fn changed(&mut self, effect: impl FnOnce() -> Effect) -> Result<Change, H::Fault> {
        expect!(self.host, effect, Reply::Changed(change) => change)
    }

    #[track_caller]
    fn is(&mut self, effect: impl FnOnce() -> Effect) -> Result<bool, H::Fault> {
        expect!(self.host, effect, Reply::Is(is) => is)
    }

    #[track_caller]
    fn done(&mut self, effect: impl FnOnce() -> Effect) -> Result<(), H::Fault> {
        expect!(self.host, effect, Reply::Done => ())
    }

    #[track_caller]
    fn read<T>(
        &mut self,
        effect: impl FnOnce() -> Effect,
        known: impl FnOnce(&Data) -> Read<T>,
    ) -> Result<Read<T>, H::Fault> {
        expect!(self.host, effect, Reply::Holds(data) => match data {
            None => Read::Absent,
            Some(data) => known(&data),
        })
    }
}

impl<H: Host> Disk for Asking<H> {
    type Handle = Handle;
    type Fault = H::Fault;

    /// Whoever begins one of these as the holder of a job believes to be that.
    fn begins(&mut self, call: impl FnOnce(&dyn Fn(&Handle) -> u32) -> Call) {
        let held = match call(&|handle| u32::from(*handle)) {
            Call::TakeOver { id, lock, .. } => (id, lock),
            Call::Record { holder, .. }
            | Call::Note { holder, .. }
            | Call::WritePending { holder }
            | Call::Settle { holder, .. }
            | Call::LetGo { holder, .. } => (holder.id, holder.lock),
            _ => return,
        };
        let (id, lock) = held;
        // It was a handle before the call was put together.
        let lock = Handle::try_from(lock).expect("every handle is small");
        self.host.hear(News::Holds(id, lock));
    }

    fn open(&mut self, place: &Place, mode: Mode) -> Result<Open<Handle>, H::Fault> {
        let effect = || Effect::Open(place.clone(), mode);
        expect!(self.host, effect, Reply::Opened(open) => open)
    }

    fn create(&mut self, place: &Place) -> Result<Create<Handle>, H::Fault> {
        let effect = || Effect::Create(place.clone());
        expect!(self.host, effect, Reply::Created(create) => create)
    }

    fn lock(&mut self, handle: &Handle, mode: Mode) -> Result<bool, H::Fault> {
        self.is(|| Effect::Lock(*handle, mode))
    }

    fn stands(&mut self, handle: &Handle, place: &Place) -> Result<bool, H::Fault> {
        self.is(|| Effect::Stands(*handle, place.clone()))
    }

    fn close(&mut self, handle: Handle) -> Result<(), H::Fault> {
        self.host.hear(News::Closes(handle));
        self.done(|| Effect::Close(handle))
    }

    fn release(&mut self, handle: Handle) -> Result<(), H::Fault> {
        self.host.hear(News::Closes(handle));
        self.done(|| Effect::Release(handle))
    }

    fn exists(&mut self, place: &Place) -> Result<bool, H::Fault> {
        self.is(|| Effect::Exists(place.clone()))
    }

    fn read_descriptor(&mut self, dir: &Dir) -> Result<Read<Descriptor>, H::Fault> {
        self.read(|| Effect::ReadDescriptor(dir.clone()), Data::descriptor)
    }

    fn read_status(&mut self, dir: &Dir) -> Result<Read<Status>, H::Fault> {
        self.read(|| Effect::ReadStatus(dir.clone()), Data::status)
    }

    fn read_history(&mut self, dir: &Dir) -> Result<History, H::Fault> {
        let effect = || Effect::ReadHistory(dir.clone());
        expect!(self.host, effect, Reply::Holds(data) => {
            data.map_or_else(History::default, |data| data.history())
        })
    }

    fn read_control(&mut self, place: &Place) -> Result<Option<Control>, H::Fault> {
        let effect = || Effect::ReadControl(place.clone());
        expect!(self.host, effect, Reply::Holds(data) => data.map(|data| data.control()))
    }

    fn read_pointer(&mut self, key: &Key) -> Result<Read<Pointer>, H::Fault> {
        self.read(|| Effect::ReadPointer(key.clone()), Data::pointer)
    }

    fn read_pool(&mut self, pool: &PoolName) -> Result<Read<Pool>, H::Fault> {
        self.read(|| Effect::ReadPool(pool.clone()), Data::pool)
    }

    fn read_slot(&mut self, pool: &PoolName, number: u32) -> Result<Read<Slot>, H::Fault> {
        self.read(
            || Effect::ReadSlot(pool.clone(), number),
            |data| data.slot(number),
        )
    }

    fn read_session(&mut self, token: &Token) -> Result<Read<Session>, H::Fault> {
        self.read(|| Effect::ReadSession(token.clone()), Data::session)
    }

    fn read_part(&mut self, place: &Place) -> Result<Read<Part>, H::Fault> {
        self.read(|| Effect::ReadPart(place.clone()), Data::part)
    }

    fn sync_all(&mut self) -> Result<(), H::Fault> {
        if !self.syncs {
            return Ok(());
        }
        self.done(|| Effect::SyncAll)
    }

    fn write(&mut self, place: &Place, content: &Content) -> Result<Change, H::Fault> {
        self.changed(|| Effect::Write(place.clone(), Data::from(content)))
    }

    fn fill(&mut self, place: &Place, content: &Content) -> Result<Fill, H::Fault> {
        let effect = || Effect::Fill(place.clone(), Data::from(content));
        expect!(self.host, effect, Reply::Filled(fill) => fill)
    }

    fn append(&mut self, dir: &Dir, lines: &[Line], mend: bool) -> Result<Change, H::Fault> {
        self.changed(|| Effect::Append(dir.clone(), lines.to_vec(), mend))
    }

    fn sync(&mut self, place: &Place) -> Result<Change, H::Fault> {
        if !self.syncs {
            return Ok(Change::Done);
        }
        self.changed(|| Effect::Sync(place.clone()))
    }

    fn rename(&mut self, from: &Place, to: &Place) -> Result<Change, H::Fault> {
        self.changed(|| Effect::Rename(from.clone(), to.clone()))
    }

    fn rename_new(&mut self, from: &Place, to: &Place) -> Result<Change, H::Fault> {
        self.changed(|| Effect::RenameNew(from.clone(), to.clone()))
    }

    fn link(&mut self, from: &Place, to: &Place) -> Result<Change, H::Fault> {
        self.changed(|| Effect::Link(from.clone(), to.clone()))
    }

    fn unlink(&mut self, place: &Place) -> Result<Change, H::Fault> {
        self.changed(|| Effect::Unlink(place.clone()))
    }

    fn mkdir(&mut self, dir: &Dir) -> Result<Change, H::Fault> {
        self.changed(|| Effect::Mkdir(dir.clone()))
    }

    fn rmdir(&mut self, dir: &Dir) -> Result<Change, H::Fault> {
        self.changed(|| Effect::Rmdir(dir.clone()))
    }

    fn list(&mut self, dir: &Dir) -> Result<Option<Vec<Name>>, H::Fault> {
        let effect = || Effect::List(dir.clone());
        expect!(self.host, effect, Reply::Listed(names) => names)
    }

    fn give_way(&mut self, round: u32) -> Result<(), H::Fault> {
        self.done(|| Effect::GiveWay(round))
    }
}

impl<H: Host> Stage for Asking<H> {
    fn tell(&mut self, news: News) {
        self.host.hear(news);
    }

    #[track_caller]
    fn spawn(&mut self, id: &JobId, tree: &Handle) -> Result<(), H::Fault> {
        self.done(|| Effect::Spawn(id.clone(), *tree))
    }

    #[track_caller]
    fn wake(&mut self, id: &JobId, until: Until, stopping: Stopping) -> Result<Wake, H::Fault> {
        let effect = || Effect::Wake(id.clone(), until, stopping);
        expect!(self.host, effect, Reply::Woke(why) => why)
    }

    #[track_caller]
    fn stop(&mut self, known: Known) -> Result<bool, H::Fault> {
        self.is(|| Effect::Stop(known))
    }

    #[track_caller]
    fn back_off(&mut self, id: &JobId) -> Result<Wake, H::Fault> {
        let effect = || Effect::BackOff(id.clone());
        expect!(self.host, effect, Reply::Woke(why) => why)
    }

    #[track_caller]
    fn has_left(&mut self) -> Result<bool, H::Fault> {
        self.is(|| Effect::HasLeft)
    }

    #[track_caller]
    fn works_in(&mut self, number: u32) -> Result<bool, H::Fault> {
        self.is(|| Effect::WorksIn(number))
    }

    #[track_caller]
    fn end_trees(&mut self, id: &JobId, search: Search) -> Result<(), H::Fault> {
        self.done(|| Effect::EndTrees(id.clone(), search))
    }

    #[track_caller]
    fn peek(&mut self, place: &Place) -> Result<Option<Handle>, H::Fault> {
        let effect = || Effect::Peek(place.clone());
        expect!(self.host, effect, Reply::Opened(open) => match open {
            Open::Opened(handle) => Some(handle),
            Open::Absent | Open::Denied => None,
        })
    }

    #[track_caller]
    fn hand_open(&mut self, place: &Place) -> Result<Option<Handle>, H::Fault> {
        let effect = || Effect::HandOpen(place.clone());
        expect!(self.host, effect, Reply::Opened(open) => match open {
            Open::Opened(handle) => Some(handle),
            Open::Absent | Open::Denied => None,
        })
    }

    #[track_caller]
    fn hand_write(&mut self, file: &Handle, request: Request) -> Result<(), H::Fault> {
        self.done(|| Effect::HandWrite(*file, request))
    }

    #[track_caller]
    fn wait_for_hands(&mut self) -> Result<(), H::Fault> {
        self.done(|| Effect::WaitForHands)
    }

    #[track_caller]
    fn await_errand(&mut self) -> Result<JobId, H::Fault> {
        expect!(self.host, || Effect::AwaitErrand, Reply::Errand(job) => job)
    }

    #[track_caller]
    fn is_wanted(&mut self) -> Result<bool, H::Fault> {
        self.is(|| Effect::IsWanted)
    }

    #[track_caller]
    fn fork(&mut self, id: &JobId) -> Result<u8, H::Fault> {
        expect!(self.host, || Effect::Fork(id.clone()), Reply::Forked(lane) => lane)
    }

    #[track_caller]
    fn sleep(
        &mut self,
        memory: Memory<Handle>,
        saw: Option<Vec<Glimpse>>,
    ) -> Result<Memory<Handle>, H::Fault> {
        let effect = || Effect::Sleep(memory, saw);
        expect!(self.host, effect, Reply::Slept(memory) => memory)
    }

    #[track_caller]
    fn boot(&mut self) -> Result<usize, H::Fault> {
        expect!(self.host, || Effect::Boot, Reply::Counted(boot) => boot)
    }

    #[track_caller]
    fn length(&mut self, part: &Handle) -> Result<usize, H::Fault> {
        expect!(self.host, || Effect::Length(*part), Reply::Counted(length) => length)
    }

    #[track_caller]
    fn shorten(&mut self, part: &Handle, count: usize) -> Result<(), H::Fault> {
        self.changed(|| Effect::Shorten(*part, count))?;
        Ok(())
    }

    #[track_caller]
    fn ask(&mut self, file: u8) -> Result<Option<u8>, H::Fault> {
        let version = |counted| u8::try_from(counted).ok().filter(|&version| version > 0);
        expect!(self.host, || Effect::Ask(file), Reply::Counted(counted) => version(counted))
    }

    #[track_caller]
    fn pour(&mut self, part: &Handle, file: u8, at: usize, version: u8) -> Result<bool, H::Fault> {
        self.is(|| Effect::Pour(*part, file, at, version))
    }

    #[track_caller]
    fn verify(
        &mut self,
        part: &Handle,
        length: Option<usize>,
        version: u8,
    ) -> Result<bool, H::Fault> {
        self.is(|| Effect::Verify(*part, length, version))
    }

    #[track_caller]
    fn in_turn(&mut self, file: &Handle) -> Result<(), H::Fault> {
        self.is(|| Effect::InTurn(*file))?;
        Ok(())
    }

    #[track_caller]
    fn peruse(&mut self, place: &Place) -> Result<Option<Vec<u8>>, H::Fault> {
        let effect = || Effect::Peruse(place.clone());
        expect!(self.host, effect, Reply::Holds(data) => {
            data.and_then(|data| data.blocks().map(<[u8]>::to_vec))
        })
    }

    fn memory(&self) -> Option<Memory<Handle>> {
        self.host.memory()
    }

    fn survive(&mut self, fault: H::Fault) -> Result<(), H::Fault> {
        if self.host.can_go_on(&fault) {
            Ok(())
        } else {
            Err(fault)
        }
    }
}
