//! One script on both disks: every answer compared, and the whole tree at the end. What is known to differ is listed
//! here, and nowhere else.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Instant;

use outlive_model::effect::Effect;
use outlive_model::filesystem::{Data, Owner};
use outlive_tests::Dice;
use state_machine::control::Control;
use state_machine::disk::{Change, Mode, Pointer};
use state_machine::pull::part::Part;
use state_machine::record::{Descriptor, History, Pool, Session, Slot, Status};

use crate::answer::{Answer, ask, kind};
use crate::script::{Script, Step, can_be_filled, can_be_written_by_hand, is_blank};
use crate::sides::{Apply, Entry, Model, Real};

/// A difference between the two disks that is meant to be. In none of them anything is changed on either.
///
/// Beside these, what the scripts leave out because the model does not have it: the directories that always stand are
/// never made, moved or removed, as the model has no root that they are in; no lock is converted (F9), which the model
/// refuses; no name is spelled in two ways (`Name::Other` of a name that has a variant of its own); nothing is appended
/// without a line in it; no history is filled in place, as the model does not know how long one is; and no shell writes its
/// word into a record that somebody else has put under its hands. Nobody but a person does any of that. And who dies while
/// a file is filled dies in a blank one: halves of two records that are much alike can be a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Difference {
    /// `write` or `append` where a directory stands: an error on the real disk (EISDIR), as only a person can have put it
    /// there, and no protocol decides on it. The model has no errors, and says *not empty*.
    FillDirectory,
    /// `link` of a directory: an error on the real disk (EPERM). No protocol does it. The model says *not empty*.
    LinkDirectory,
    /// A directory is renamed into itself: an error on the real disk (EINVAL). No protocol does it. The model says
    /// *absent*.
    IntoItself,
}

impl Difference {
    /// Every one; each must be met, or it is not one any more.
    pub(crate) const ALL: [Difference; 3] = [
        Difference::FillDirectory,
        Difference::LinkDirectory,
        Difference::IntoItself,
    ];

    /// The difference that two answers to an effect are, if it is known.
    fn of(effect: &Effect, model: &Answer, real: &Answer) -> Option<Difference> {
        use rustix::io::Errno;
        let &Answer::Fault(_, number) = real else {
            return None;
        };
        let Answer::Changed(change) = model else {
            return None;
        };
        match (effect, change, Errno::from_raw_os_error(number)) {
            (Effect::Write(..) | Effect::Append(..), Change::NotEmpty, Errno::ISDIR) => {
                Some(Difference::FillDirectory)
            }
            (Effect::Link(..), Change::NotEmpty, Errno::PERM) => Some(Difference::LinkDirectory),
            (Effect::Rename(..) | Effect::RenameNew(..), Change::Absent, Errno::INVAL) => {
                Some(Difference::IntoItself)
            }
            _ => None,
        }
    }
}

/// What was met on the way.
#[derive(Default)]
pub(crate) struct Met {
    /// Which kinds of answers, by kind of effect.
    pub(crate) answers: BTreeSet<(&'static str, &'static str)>,
    pub(crate) differences: BTreeSet<Difference>,
    pub(crate) effects: u64,
}

impl Met {
    /// What was met elsewhere was met.
    pub(crate) fn add(&mut self, other: Met) {
        self.answers.extend(other.answers);
        self.differences.extend(other.differences);
        self.effects += other.effects;
    }
}

/// Both disks.
struct Both<'a> {
    model: Model,
    real: &'a mut Real,
}

/// The end of a script on which the disks differ.
#[derive(Debug)]
pub(crate) struct Differ {
    /// One line for each step, with both answers.
    pub(crate) told: String,
    pub(crate) steps: Vec<Step>,
}

impl<'a> Both<'a> {
    fn new(real: &'a mut Real, apply: Apply, renumbers: bool) -> Both<'a> {
        Both {
            model: Model::new(apply, renumbers),
            real,
        }
    }

    /// Whether a step can be made: one that uses a number may have lost the step that opened it.
    fn can(&self, step: &Step) -> bool {
        match step {
            Step::Ask(owner, Effect::Lock(handle, _)) => {
                self.real.lock_of(*owner, *handle) == Some(false)
            }
            Step::Ask(
                owner,
                Effect::Stands(handle, _) | Effect::Close(handle) | Effect::Release(handle),
            ) => self.real.lock_of(*owner, *handle).is_some(),
            Step::Ask(owner, Effect::HandWrite(handle, _)) => {
                self.real.is_by_hand(*owner, *handle)
                    && can_be_written_by_hand(&self.model.files, *owner, *handle)
            }
            Step::Ask(_, Effect::Fill(place, _)) => can_be_filled(&self.model.files, place),
            Step::DieIn(_, Effect::Fill(place, _)) => is_blank(&self.model.files, place),
            Step::Ask(..) | Step::DieIn(..) | Step::Die(_) => true,
            Step::Inherit(owner, handle, tree) => {
                self.real.lock_of(*owner, *handle).is_some() && !self.real.has_open(*tree)
            }
        }
    }

    /// Make one step on both. What both said, where something is said; an error where they differ.
    fn step(&mut self, step: &Step, met: &mut Met) -> Result<(), Box<(Answer, Answer)>> {
        match step {
            Step::Ask(owner, effect) => {
                let (model, real) = self.ask(*owner, effect);
                met.effects += 1;
                met.answers.insert((kind(effect), real.class()));
                if model != real {
                    let known = Difference::of(effect, &model, &real);
                    met.differences
                        .insert(known.ok_or_else(|| Box::new((model, real)))?);
                }
            }
            Step::Inherit(owner, handle, tree) => {
                self.model.files.inherit(*owner, *handle, *tree);
                self.real.inherit(*owner, *handle, *tree);
                self.model.settle();
            }
            Step::Die(owner) => {
                self.model.files.close_all(*owner);
                self.real.die(*owner);
                self.model.settle();
            }
            Step::DieIn(owner, effect) => {
                self.model.files.apply_half(effect);
                self.real.half(effect);
                self.model.files.close_all(*owner);
                self.real.die(*owner);
                self.model.settle();
            }
        }
        Ok(())
    }

    fn ask(&mut self, owner: Owner, effect: &Effect) -> (Answer, Answer) {
        let model = ask(&mut self.model, owner, effect);
        let mut real = ask(self.real, owner, effect);
        if matches!(effect, Effect::Lock(..)) && model == Answer::Is(true) {
            // A lock can outlive its last close for a moment: who reads the links in `/proc/<pid>/fd` has the description
            // too meanwhile, and the tests that run beside this one search there.
            let deadline = Instant::now() + self.real.patience;
            while real == Answer::Is(false) && Instant::now() < deadline {
                std::thread::yield_now();
                real = ask(self.real, owner, effect);
            }
        }
        if let (Effect::Lock(handle, _), Answer::Is(true)) = (effect, &real) {
            self.real.note_lock(owner, *handle);
        }
        if matches!(effect, Effect::Release(_)) {
            self.real.note_release();
        }
        (model, real)
    }

    /// Compare everything that stands, and who has locks.
    fn compare_trees(&mut self, found: &[Entry]) -> Result<(), String> {
        let mut model = self.model.files.walk();
        model.sort_by(|a, b| a.0.cmp(&b.0));
        let mut real: Vec<_> = found.iter().collect();
        real.sort_by(|a, b| a.0.cmp(&b.0));
        let names = |paths: &mut dyn Iterator<Item = &Vec<u8>>| {
            let names: Vec<_> = paths.map(|path| String::from_utf8_lossy(path)).collect();
            names.join(" ")
        };
        if !model
            .iter()
            .map(|entry| &entry.0)
            .eq(real.iter().map(|entry| &entry.0))
        {
            return Err(format!(
                "the model has {}\nthe disk has  {}",
                names(&mut model.iter().map(|entry| &entry.0)),
                names(&mut real.iter().map(|entry| &entry.0))
            ));
        }
        let mut there = BTreeMap::new();
        let mut back = BTreeMap::new();
        for ((path, ino, data), (_, real_ino, bytes)) in model.iter().zip(real) {
            let path = String::from_utf8_lossy(path);
            if there
                .insert(*ino, *real_ino)
                .is_some_and(|known| known != *real_ino)
                || back
                    .insert(*real_ino, *ino)
                    .is_some_and(|known| known != *ino)
            {
                return Err(format!(
                    "{path} is a name of another file on one of the two"
                ));
            }
            let same = match (data, bytes) {
                (None, None) => true,
                (Some(data), Some(bytes)) => holds(data, bytes),
                _ => false,
            };
            if !same {
                let data = data.as_ref().map(|data| data.to_string());
                let bytes = bytes.as_ref().map(|bytes| String::from_utf8_lossy(bytes));
                return Err(format!(
                    "{path}: the model holds {data:?}, the disk {bytes:?}"
                ));
            }
        }
        Ok(())
    }

    /// Ask who has which lock at the end: a stranger tries both modes on every file.
    fn compare_locks(&mut self, files: &[Entry]) -> Result<(), String> {
        const STRANGER: Owner = Owner::Process(9);
        for (path, _, bytes) in files {
            let Some(place) = bytes.as_ref().and_then(|_| crate::place_of(path)) else {
                continue;
            };
            for mode in [Mode::Exclusive, Mode::Shared] {
                let tried = self.ask(STRANGER, &Effect::Open(place.clone(), Mode::Shared));
                let locked = self.ask(STRANGER, &Effect::Lock(0, mode));
                let closed = self.ask(STRANGER, &Effect::Close(0));
                if [&tried, &locked, &closed]
                    .iter()
                    .any(|(model, real)| model != real)
                {
                    let path = String::from_utf8_lossy(path);
                    return Err(format!(
                        "{path}: lock {mode:?}: {} and {}",
                        locked.0, locked.1
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Whether the bytes of a file are what the model holds.
fn holds(data: &Data, bytes: &[u8]) -> bool {
    match data {
        Data::Empty => bytes.is_empty(),
        // Nobody here makes garbage but by dying while a file is filled.
        Data::Directory | Data::Garbage => false,
        Data::Blank => bytes.len() == data.length() && bytes.trim_ascii().is_empty(),
        Data::Filled(_, length) if bytes.len() != *length => false,
        Data::Filled(cut, _) if **cut == Data::Garbage => cannot_be_read(bytes),
        Data::Filled(whole, _) => holds(whole, bytes),
        Data::Descriptor(descriptor) => Descriptor::decode(bytes).as_ref() == Ok(descriptor),
        Data::Status(status) => Status::decode(bytes).as_ref() == Ok(status),
        Data::Pointer(pointer) => Pointer::decode(bytes).as_ref() == Ok(pointer),
        Data::Pool(pool) => Pool::decode(bytes).as_ref() == Ok(&**pool),
        Data::Slot(slot) => Slot::decode(bytes).as_ref() == Ok(slot),
        Data::Session(session) => Session::decode(bytes).as_ref() == Ok(session),
        Data::Part(part) => Part::decode(bytes).as_ref() == Ok(part),
        // Nobody here fetches.
        Data::Blocks(_) => false,
        Data::Raw(raw) => bytes == raw,
        Data::History(history) => History::decode(bytes) == *history,
        Data::Request(request) => Control::decode(bytes) == Control::Asked(*request),
    }
}

/// Whether it is no record of any kind.
fn cannot_be_read(bytes: &[u8]) -> bool {
    Descriptor::decode(bytes).is_err()
        && Status::decode(bytes).is_err()
        && Pointer::decode(bytes).is_err()
        && Pool::decode(bytes).is_err()
        && Slot::decode(bytes).is_err()
        && Session::decode(bytes).is_err()
        && !matches!(Control::decode(bytes), Control::Asked(_))
}

/// The steps of a script, and whether inodes are numbered anew after each.
pub(crate) struct Course {
    pub(crate) steps: Vec<Step>,
    renumbers: bool,
    why: String,
}

/// Make a script of random steps on both disks. `Err` holds the course on which they differ.
pub(crate) fn random(
    real: &mut Real,
    apply: Apply,
    mut dice: Dice,
    syncs: bool,
    met: &mut Met,
) -> Result<(), Course> {
    let renumbers = dice.chance(50);
    let mut script = Script::new(dice, syncs);
    let mut both = Both::new(real, apply, renumbers);
    let mut steps = Vec::new();
    let mut why = None;
    for _ in 0..script.length() {
        let opened = both.real.opened();
        let Some(step) = script.next(&both.model.files, &opened) else {
            continue;
        };
        let made = both.step(&step, met);
        steps.push(step);
        if let Err(said) = made {
            let (model, real) = *said;
            why = Some(format!("the model: {model}, the disk: {real}"));
            break;
        }
    }
    let found = both.real.walk();
    let why = why
        .or_else(|| both.compare_trees(&found).err())
        .or_else(|| both.compare_locks(&found).err());
    real.clear(&found);
    match why {
        None => Ok(()),
        Some(why) => Err(Course {
            steps,
            renumbers,
            why,
        }),
    }
}

/// Make the steps again, those that can be made. What was said, and whether the disks differ.
fn again(real: &mut Real, apply: Apply, renumbers: bool, steps: &[Step]) -> Result<(), String> {
    let mut both = Both::new(real, apply, renumbers);
    let mut met = Met::default();
    let mut told = String::new();
    let mut why = None;
    for step in steps {
        if !both.can(step) {
            continue;
        }
        let made = both.step(step, &mut met);
        let _ = match step {
            Step::Ask(owner, effect) => write!(told, "  {owner:?}: {effect}"),
            Step::Inherit(owner, handle, tree) => {
                write!(told, "  {owner:?}: hands {handle} on to {tree:?}")
            }
            Step::Die(owner) => write!(told, "  {owner:?}: dies"),
            Step::DieIn(owner, effect) => write!(told, "  {owner:?}: dies in: {effect}"),
        };
        if let Err(said) = made {
            let (model, real) = *said;
            why = Some(format!("\n    the model: {model}\n    the disk:  {real}"));
            break;
        }
        told.push('\n');
    }
    let found = both.real.walk();
    let why = why
        .or_else(|| both.compare_trees(&found).err())
        .or_else(|| both.compare_locks(&found).err());
    real.clear(&found);
    match why {
        None => Ok(()),
        Some(why) => Err(told + &why),
    }
}

/// Drop steps one at a time for as long as the disks still differ.
pub(crate) fn shrink(real: &mut Real, apply: Apply, course: Course) -> Differ {
    let Course {
        mut steps,
        renumbers,
        why,
    } = course;
    let mut told = match again(real, apply, renumbers, &steps) {
        Err(told) => told,
        Ok(()) => format!("only once, and not again: {why}\n{steps:#?}"),
    };
    loop {
        let mut shorter = false;
        for at in (0..steps.len()).rev() {
            let mut fewer = steps.clone();
            fewer.remove(at);
            if let Err(still) = again(real, apply, renumbers, &fewer) {
                (steps, told, shorter) = (fewer, still, true);
            }
        }
        if !shorter {
            return Differ { told, steps };
        }
    }
}
