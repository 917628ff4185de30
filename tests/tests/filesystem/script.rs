//! Random scripts of effects. Most of them hit something that exists: a uniform choice would be told *absent* nearly
//! every time. What the effects come to is no business of this file.

use outlive_model::effect::{Effect, Handle};
use outlive_model::filesystem::{Data, Filesystem, Owner};
use outlive_model::role::descriptor;
use outlive_tests::Dice;
use state_machine::control::Request;
use state_machine::disk::{Dir, Mode, Name, Place, Pointer};
use state_machine::id::{JobId, Key, PoolName, Ticket, Token};
use state_machine::job::State;
use state_machine::record::{Line, Pool, Session, Slot, Status, What};

/// How many processes there are; each can have a tree.
const PROCESSES: u64 = 3;

/// One step of a script.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Somebody asks for an effect.
    Ask(Owner, Effect),
    /// A process starts a tree that shares an open file.
    Inherit(Owner, Handle, Owner),
    /// Somebody dies, and everything is closed.
    Die(Owner),
    /// A process dies in the middle of a write, a fill or an append.
    DieIn(Owner, Effect),
}

/// Who has what open; a step that uses a number is made only where it can be.
pub(crate) struct Opened {
    pub(crate) owner: Owner,
    pub(crate) handle: Handle,
    /// Whether a lock was taken through it: none is ever converted (F9).
    pub(crate) locked: bool,
    /// Whether a shell opened it, to write a word into it, and has not yet.
    pub(crate) by_hand: bool,
}

/// Whether both disks know what comes of filling a file: the model does not know how long a history is.
pub(crate) fn can_be_filled(files: &Filesystem, place: &Place) -> bool {
    let data = files.data(place).map(|data| &**data);
    !matches!(data, Some(Data::History(_)))
}

/// Whether a file has room in it, and nothing else.
pub(crate) fn is_blank(files: &Filesystem, place: &Place) -> bool {
    files.data(place).is_some_and(|data| **data == Data::Blank)
}

/// Whether what a shell has open holds nothing but what shells write.
pub(crate) fn can_be_written_by_hand(files: &Filesystem, owner: Owner, handle: Handle) -> bool {
    let data = files.data_of(owner, handle).map(Data::record);
    matches!(data, Some(Data::Empty | Data::Request(_)))
}

/// The few places that one script is about.
pub(crate) struct Script {
    dice: Dice,
    /// Directories that come and go.
    dirs: Vec<Dir>,
    names: Vec<Name>,
    keys: Vec<Key>,
    pools: Vec<PoolName>,
    tokens: Vec<Token>,
    /// Whether it is mostly about a slot.
    deep: bool,
    tickets: Vec<Ticket>,
    ids: Vec<JobId>,
    syncs: bool,
}

/// The directories that always stand. The one that they are all in is not among them: the model's holds only what is in no
/// other.
const STANDING: [Dir; 7] = [
    Dir::Jobs,
    Dir::Staging,
    Dir::Trash,
    Dir::Keys,
    Dir::Spares,
    Dir::Pools,
    Dir::Sessions,
];

/// What can happen, and how often.
const WEIGHTS: &[(Kind, u64)] = &[
    (Kind::Open, 9),
    (Kind::Create, 7),
    (Kind::Lock, 9),
    (Kind::Stands, 5),
    (Kind::Close, 4),
    (Kind::Release, 3),
    (Kind::Exists, 3),
    (Kind::Read, 10),
    (Kind::Write, 12),
    (Kind::Fill, 7),
    (Kind::Append, 8),
    (Kind::Sync, 2),
    (Kind::Rename, 10),
    (Kind::RenameNew, 8),
    (Kind::Link, 6),
    (Kind::Unlink, 5),
    (Kind::Mkdir, 8),
    (Kind::Rmdir, 4),
    (Kind::List, 4),
    (Kind::Inherit, 2),
    (Kind::Die, 1),
    (Kind::DieIn, 3),
    (Kind::HandOpen, 3),
    (Kind::HandWrite, 3),
];

#[derive(Clone, Copy, PartialEq)]
enum Kind {
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
    Inherit,
    Die,
    DieIn,
    HandOpen,
    HandWrite,
}

impl Script {
    /// A script about places of its own choice. Without `syncs` nothing is synced.
    pub(crate) fn new(mut dice: Dice, syncs: bool) -> Script {
        let some = 1 + dice.below(2) as usize;
        let words = |words: [&str; 2]| words.map(str::to_owned)[..some].to_vec();
        let ids: Vec<_> = words(["1-j", "2-j"])
            .iter()
            .map(|word| JobId::parse(word).unwrap())
            .collect();
        let tickets: Vec<_> = words(["t", "u"])
            .iter()
            .map(|word| Ticket::parse(word).unwrap())
            .collect();
        let pools = vec![PoolName::parse("p").unwrap()];
        let tokens = vec![Token::parse("s").unwrap()];
        let slots = [1, 2].map(|number| Dir::Slot(pools[0].clone(), number));
        let dirs = ids
            .iter()
            .cloned()
            .map(Dir::Job)
            .chain(tickets.iter().cloned().map(Dir::Staged))
            .chain(tickets.iter().cloned().map(Dir::Trashed))
            .chain((0..some as u8).map(Dir::Spare))
            .chain(pools.iter().cloned().map(Dir::Pool))
            .chain(pools.iter().cloned().map(Dir::Slots))
            .chain(slots)
            .collect();
        let mut names = vec![
            Name::Descriptor,
            Name::Status,
            Name::NewStatus,
            Name::Events,
            Name::Lock,
            Name::Tree,
            Name::Control,
            Name::Taken,
            Name::Log,
            Name::Other(b"odd".to_vec()),
        ];
        names.retain(|_| dice.chance(55));
        names.push(Name::Lock);
        // Seldom would anything stand so deep if everything else was as likely.
        let deep = dice.chance(10);
        Script {
            dirs,
            names,
            keys: vec![Key::parse("k").unwrap()],
            pools,
            tokens,
            deep,
            tickets,
            ids,
            syncs,
            dice,
        }
    }

    /// How long the script is to be.
    pub(crate) fn length(&mut self) -> u64 {
        8 + self.dice.below(28)
    }

    /// The next step; `None` where the one that was chosen cannot be made now.
    pub(crate) fn next(&mut self, files: &Filesystem, opened: &[Opened]) -> Option<Step> {
        if self.deep && self.dice.chance(40) {
            let process = Owner::Process(self.dice.below(PROCESSES) as u8);
            return Some(Step::Ask(process, self.about_a_slot(files)));
        }
        let all: u64 = WEIGHTS.iter().map(|&(_, weight)| weight).sum();
        let mut left = self.dice.below(all);
        let &(kind, _) = WEIGHTS.iter().find(|&&(_, weight)| {
            let here = left < weight;
            left = left.saturating_sub(weight);
            here
        })?;
        self.step(kind, files, opened)
    }

    fn step(&mut self, kind: Kind, files: &Filesystem, opened: &[Opened]) -> Option<Step> {
        let process = Owner::Process(self.dice.below(PROCESSES) as u8);
        let effect = match kind {
            Kind::Open => {
                let mode = self.mode();
                Effect::Open(self.any_place(files, 85), mode)
            }
            Kind::Create => Effect::Create(self.place(files, 30)),
            Kind::Lock => {
                let free: Vec<_> = opened.iter().filter(|one| !one.locked).collect();
                let one = self.one_of(&free)?;
                return Some(Step::Ask(one.owner, Effect::Lock(one.handle, self.mode())));
            }
            Kind::Stands => {
                let one = self.one_of(&opened.iter().collect::<Vec<_>>())?;
                let (owner, handle) = (one.owner, one.handle);
                let place = self.any_place(files, 90);
                return Some(Step::Ask(owner, Effect::Stands(handle, place)));
            }
            Kind::Close => {
                let one = self.one_of(&opened.iter().collect::<Vec<_>>())?;
                return Some(Step::Ask(one.owner, Effect::Close(one.handle)));
            }
            Kind::Release => {
                let one = self.one_of(&opened.iter().collect::<Vec<_>>())?;
                return Some(Step::Ask(one.owner, Effect::Release(one.handle)));
            }
            Kind::Exists => Effect::Exists(self.any_place(files, 50)),
            Kind::Read => self.read(files),
            Kind::Write => self.write(files),
            Kind::Fill => self.fill(files)?,
            Kind::Append => self.append(files),
            Kind::Sync if self.syncs && self.dice.chance(20) => Effect::SyncAll,
            Kind::Sync if self.syncs => Effect::Sync(self.any_place(files, 80)),
            Kind::Sync => return None,
            // Else hardly anything is ever appended to a directory.
            Kind::Rename if self.dice.chance(5) => {
                let [from, to] = [0; 2].map(|_| self.dice.pick(&self.dirs).clone());
                Effect::Rename(Place::Dir(from), to.at(Name::Events))
            }
            Kind::Rename => Effect::Rename(self.place(files, 90), self.target(files)),
            Kind::RenameNew => Effect::RenameNew(self.place(files, 90), self.target(files)),
            Kind::Link => Effect::Link(self.place(files, 90), self.target(files)),
            Kind::Unlink => Effect::Unlink(self.place(files, 85)),
            Kind::Mkdir => Effect::Mkdir(self.any_dir()),
            Kind::Rmdir => Effect::Rmdir(self.dice.pick(&self.dirs).clone()),
            Kind::List => Effect::List(self.any_dir()),
            Kind::Inherit => return self.inherit(files, opened),
            Kind::Die => {
                let one = self.one_of(&opened.iter().collect::<Vec<_>>())?;
                return Some(Step::Die(one.owner));
            }
            Kind::DieIn => {
                let effect = match self.dice.below(3) {
                    0 => self.write(files),
                    1 => self.fill_blank(files)?,
                    _ => self.append(files),
                };
                return Some(Step::DieIn(process, effect));
            }
            Kind::HandOpen => Effect::HandOpen(self.target(files)),
            Kind::HandWrite => {
                let may = |one: &&Opened| {
                    one.by_hand && can_be_written_by_hand(files, one.owner, one.handle)
                };
                let one = self.one_of(&opened.iter().filter(may).collect::<Vec<_>>())?;
                let (owner, handle) = (one.owner, one.handle);
                let request = *self.dice.pick(&Request::ALL);
                return Some(Step::Ask(owner, Effect::HandWrite(handle, request)));
            }
        };
        Some(Step::Ask(process, effect))
    }

    fn one_of<'a>(&mut self, opened: &[&'a Opened]) -> Option<&'a Opened> {
        (!opened.is_empty()).then(|| *self.dice.pick(opened))
    }

    fn inherit(&mut self, files: &Filesystem, opened: &[Opened]) -> Option<Step> {
        let of_processes: Vec<_> = opened
            .iter()
            .filter(|one| matches!(one.owner, Owner::Process(_)))
            .collect();
        let one = self.one_of(&of_processes)?;
        let Owner::Process(lane) = one.owner else {
            return None;
        };
        let tree = Owner::Tree(lane);
        (!files.has_open(tree)).then_some(Step::Inherit(one.owner, one.handle, tree))
    }

    fn mode(&mut self) -> Mode {
        *self.dice.pick(&[Mode::Shared, Mode::Exclusive])
    }

    fn any_dir(&mut self) -> Dir {
        if self.dice.chance(15) {
            self.dice.pick(&STANDING).clone()
        } else {
            self.dice.pick(&self.dirs).clone()
        }
    }

    /// A place that can be made, moved and removed; in `percent` of all cases one where something stands.
    fn place(&mut self, files: &Filesystem, percent: u64) -> Place {
        let exists = self.dice.chance(percent);
        let mut place = self.blind();
        for _ in 0..12 {
            if files.has(&place) == exists {
                break;
            }
            place = self.blind();
        }
        place
    }

    /// Where something is to go: where something stands, or where nothing does, and mostly not into the void.
    fn target(&mut self, files: &Filesystem) -> Place {
        for _ in 0..6 {
            let place = self.place(files, 40);
            let parent_stands = match &place {
                Place::File(dir, _) => files.has(&Place::Dir(dir.clone())),
                Place::Dir(_) => true,
            };
            if parent_stands {
                return place;
            }
        }
        self.blind()
    }

    /// Any place, the directories that always stand among them.
    fn any_place(&mut self, files: &Filesystem, percent: u64) -> Place {
        if self.dice.chance(4) {
            Place::Dir(self.dice.pick(&STANDING).clone())
        } else {
            self.place(files, percent)
        }
    }

    fn blind(&mut self) -> Place {
        match self.dice.below(100) {
            0..20 => Place::Dir(self.dice.pick(&self.dirs).clone()),
            20..76 => {
                let dir = self.dice.pick(&self.dirs).clone();
                dir.at(self.dice.pick(&self.names).clone())
            }
            76..80 => Dir::Root.at(Name::SupervisorLock),
            80..84 => {
                let pool = Dir::Pool(self.dice.pick(&self.pools).clone());
                let names = [Name::Pool, Name::NewPool, Name::PlacementLock];
                pool.at(self.dice.pick(&names).clone())
            }
            84..86 => Dir::Sessions.at(Name::Session(self.dice.pick(&self.tokens).clone())),
            86..88 => {
                let pool = self.dice.pick(&self.pools).clone();
                let slot = Dir::Slot(pool, self.number());
                let names = [
                    Name::Slot,
                    Name::NewSlot,
                    Name::Occupancy,
                    Name::MaintainLock,
                ];
                slot.at(self.dice.pick(&names).clone())
            }
            88..93 => {
                let key = self.dice.pick(&self.keys).clone();
                let names = [
                    Name::KeyLock(key.clone()),
                    Name::Pointer(key.clone()),
                    Name::NewPointer(key),
                ];
                Dir::Keys.at(self.dice.pick(&names).clone())
            }
            _ => Dir::Staging.at(Name::Request(self.dice.pick(&self.tickets).clone())),
        }
    }

    fn read(&mut self, files: &Filesystem) -> Effect {
        // Mostly where something of that name stands.
        let mut dir = self.dice.pick(&self.dirs).clone();
        for _ in 0..6 {
            if files.has(&Place::Dir(dir.clone())) {
                break;
            }
            dir = self.dice.pick(&self.dirs).clone();
        }
        match self.dice.below(8) {
            0 => Effect::ReadDescriptor(dir),
            1 => Effect::ReadStatus(dir),
            2 => Effect::ReadHistory(dir),
            3 => Effect::ReadControl(self.any_place(files, 85)),
            4 => Effect::ReadPool(self.dice.pick(&self.pools).clone()),
            5 => {
                let pool = self.dice.pick(&self.pools).clone();
                Effect::ReadSlot(pool, self.number())
            }
            6 => Effect::ReadSession(self.dice.pick(&self.tokens).clone()),
            _ => Effect::ReadPointer(self.dice.pick(&self.keys).clone()),
        }
    }

    fn write(&mut self, files: &Filesystem) -> Effect {
        let place = self.target(files);
        let meant = match &place {
            Place::File(_, Name::Descriptor) => 0,
            Place::File(_, Name::Status | Name::NewStatus) => 1,
            Place::File(_, Name::Control | Name::Taken | Name::Request(_)) => 2,
            Place::File(_, Name::Pointer(_) | Name::NewPointer(_)) => 3,
            Place::File(_, Name::Pool | Name::NewPool) => 5,
            Place::File(_, Name::Slot | Name::NewSlot) => 6,
            Place::File(_, Name::Session(_)) => 7,
            _ => 4,
        };
        let what = match self.dice.below(100) {
            // Room is for descriptors, and wherever it comes to lie.
            0..20 => 4,
            20..40 => self.dice.below(4),
            _ if meant == 4 => self.dice.below(4),
            _ => meant,
        };
        Effect::Write(place, self.data(what))
    }

    /// What is filled is mostly what was laid in, or filled in before.
    fn fill(&mut self, files: &Filesystem) -> Option<Effect> {
        let mut place = self.place(files, 90);
        for _ in 0..10 {
            let data = files.data(&place).map(|data| &**data);
            if matches!(data, Some(Data::Blank | Data::Filled(..))) || self.dice.chance(10) {
                break;
            }
            place = self.place(files, 90);
        }
        let what = self.dice.below(6);
        can_be_filled(files, &place).then(|| Effect::Fill(place, self.data(what)))
    }

    /// Fill something blank, if there is anything.
    fn fill_blank(&mut self, files: &Filesystem) -> Option<Effect> {
        let place = (0..20)
            .map(|_| self.place(files, 90))
            .find(|place| is_blank(files, place))?;
        let what = self.dice.below(4);
        Some(Effect::Fill(place, self.data(what)))
    }

    /// A record of one kind, or room for one.
    fn data(&mut self, what: u64) -> Data {
        match what {
            0 => {
                let mut descriptor = descriptor();
                descriptor.id = self.dice.pick(&self.ids).clone();
                Data::Descriptor(Box::new(descriptor))
            }
            1 => {
                let mut status = Status::queued(self.dice.below(9));
                status.state = self.state();
                status.steps = self.dice.below(4) as u32;
                status.message = self.dice.chance(50).then(|| "said".into());
                Data::Status(Box::new(status))
            }
            2 => Data::Request(*self.dice.pick(&Request::ALL)),
            3 => Data::Pointer(Pointer {
                job: self.dice.pick(&self.ids).clone(),
                count: self.dice.below(3),
            }),
            5 => Data::Pool(Box::new(Pool {
                slots: self.dice.chance(50).then_some(2),
                paused: self.dice.chance(50),
                ..Pool::default()
            })),
            6 => Data::Slot(Box::new(Slot {
                returned: self.dice.chance(50),
                ..Slot::new(self.number())
            })),
            7 => Data::Session(Box::new(Session {
                token: self.dice.pick(&self.tokens).clone(),
                pool: self.dice.pick(&self.pools).clone(),
                slot: self.number(),
                since: "then".into(),
                expires: None,
                note: None,
            })),
            _ => Data::Blank,
        }
    }

    /// Something about the record of a slot, where there is a directory for it; and that there is one.
    fn about_a_slot(&mut self, files: &Filesystem) -> Effect {
        let pool = self.pools[0].clone();
        let slot = Dir::Slot(pool.clone(), 1);
        let ways = [
            Dir::Pool(pool.clone()),
            Dir::Slots(pool.clone()),
            slot.clone(),
        ];
        let missing = ways
            .into_iter()
            .find(|dir| !files.has(&Place::Dir(dir.clone())));
        match (missing, self.dice.below(3)) {
            (Some(dir), _) => Effect::Mkdir(dir),
            (None, 0) => {
                let what = *self.dice.pick(&[0, 4, 6]);
                Effect::Write(slot.at(Name::Slot), self.data(what))
            }
            (None, _) => Effect::ReadSlot(pool, 1),
        }
    }

    /// The number of a slot.
    fn number(&mut self) -> u32 {
        1 + self.dice.below(2) as u32
    }

    fn append(&mut self, files: &Filesystem) -> Effect {
        let mut dir = self.dice.pick(&self.dirs).clone();
        for _ in 0..6 {
            if files.has(&Place::Dir(dir.clone())) {
                break;
            }
            dir = self.dice.pick(&self.dirs).clone();
        }
        let lines = (0..=self.dice.below(2)).map(|_| self.line()).collect();
        Effect::Append(dir, lines, self.dice.chance(50))
    }

    fn line(&mut self) -> Line {
        let at_ms = self.dice.below(9);
        let what = match self.dice.below(4) {
            0 => What::Status {
                text: "said".into(),
            },
            1 => What::Retry {
                attempt: 2,
                reason: "it failed".into(),
                delay_ms: 5,
            },
            _ => What::State {
                state: self.state(),
            },
        };
        Line { at_ms, what }
    }

    fn state(&mut self) -> State {
        *self.dice.pick(&[
            State::Queued,
            State::Running,
            State::Paused,
            State::Interrupted,
            State::Done,
            State::Failed,
            State::Cancelled,
        ])
    }
}
