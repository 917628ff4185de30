//! What is there before anyone moves. A scene is never built by hand: the shipped protocols made it.

use state_machine::control::Request;
use state_machine::disk::{Dir, Name, Place};

use crate::alone::{LANE, Trees, play};
use crate::effect::Effect;
use crate::machine::{Machine, Nature};
use crate::role::fetcher;
use crate::role::slot::Slots;
use crate::role::{Change, Part, Role, Special, first_job, key, pool};

/// What is there in the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    /// Nothing.
    Empty,
    /// No job, and a directory for one to come.
    Laid,
    /// A job that waits.
    Queued,
    /// Two jobs that wait.
    TwoQueued,
    /// A job that waits, and is to be run again if its worker is lost.
    QueuedResuming,
    /// A job that waits, and whose tree a pause freezes.
    QueuedFreezing,
    /// A job that waits, and is tried a second time where its command fails.
    QueuedRetrying,
    /// A job that waits, and is run anew where what its command is made of changes.
    QueuedRenewing,
    /// Two jobs that wait, and the second comes after the success of the first.
    Dependent,
    /// The same, and the first was cancelled.
    Unmet,
    /// A pool that somebody made, and what was made of it cannot be read.
    GarbagePool,
    /// A pool that somebody made.
    Pooled,
    /// A pool with one slot that was given back.
    OneSlot,
    /// A pool with one slot, in which a session is open.
    SessionOpen,
    /// A pool with one slot, which was found broken.
    BrokenSlot,
    /// A pool with two slots that were given back.
    TwoSlots,
    /// A pool with one slot whose record cannot be read.
    GarbageSlot,
    /// A job that was paused before anyone ran it.
    Paused,
    /// A job whose worker was killed, and whose tree has ended.
    Abandoned,
    /// A job whose worker was killed, and whose tree lives.
    Orphaned,
    /// A job that has ended well.
    Ended,
    /// The same, and its status cannot be read.
    GarbageStatus,
    /// The same, and somebody has emptied its status.
    EmptiedEnd,
    /// A job whose worker was lost, and a loss of power has emptied its status.
    Emptied,
    /// A job that waits, and its descriptor cannot be read.
    GarbageDescriptor,
    /// A job that was started under a key and has ended, and the key's pointer cannot be read.
    GarbagePointer,
    /// A directory whose maker died while it was building it.
    Litter,
    /// A directory that files are to be fetched to.
    Destination,
}

impl Scene {
    /// Whether a record is there that cannot be read.
    pub fn has_garbage(self) -> bool {
        use Scene::{
            EmptiedEnd, GarbageDescriptor, GarbagePointer, GarbagePool, GarbageSlot, GarbageStatus,
        };
        matches!(
            self,
            GarbageStatus
                | EmptiedEnd
                | GarbageDescriptor
                | GarbagePointer
                | GarbagePool
                | GarbageSlot
        )
    }

    /// Whether the job has a record that cannot be read.
    pub fn is_unreadable(self) -> bool {
        // An emptied status reads as that of a running job while somebody holds it.
        self.has_garbage() && !matches!(self, Scene::GarbagePointer | Scene::EmptiedEnd)
    }

    /// Whether something lies in `staging/` from the beginning.
    pub fn has_litter(self) -> bool {
        self == Scene::Litter
    }

    /// Whether there is no job yet.
    pub fn is_without_job(self) -> bool {
        matches!(
            self,
            Scene::Empty
                | Scene::Laid
                | Scene::Litter
                | Scene::GarbagePool
                | Scene::Pooled
                | Scene::OneSlot
                | Scene::SessionOpen
                | Scene::BrokenSlot
                | Scene::TwoSlots
                | Scene::GarbageSlot
                | Scene::Destination
        )
    }

    /// The machine as it is then, with trees of this nature. With `power`, it keeps account of what would survive a
    /// loss of power, and all that is there would.
    pub fn machine(self, nature: Nature, power: bool) -> Machine {
        let mut machine = Machine::default();
        // A tree that lingers or fails is for later; here the command is all there is.
        machine.nature = Nature {
            lingering: false,
            failing: false,
            ..nature
        };
        if self == Scene::Destination {
            // As whoever asks for files may have made it.
            machine.apply(LANE, &Effect::Mkdir(fetcher::home()));
            machine.apply(LANE, &Effect::Create(fetcher::turn()));
            machine.end_process(LANE);
        }
        let mut make = |role, special, trees, effects| {
            let part = Part {
                special,
                closes: "scene",
                slots: if self == Scene::BrokenSlot { 1 } else { 2 },
                ..Part::new(role, first_job(), "scene", 2)
            };
            // A worker that is killed in its sleep is part of the scene.
            let _ = play(&mut machine, &part, effects, trees, None);
        };
        match self {
            Scene::Empty | Scene::Destination => {}
            Scene::GarbagePool | Scene::Pooled => {
                make(
                    Role::Changer(Change::TwoSlots),
                    Special::Nothing,
                    Trees::End,
                    100,
                );
            }
            Scene::OneSlot
            | Scene::SessionOpen
            | Scene::BrokenSlot
            | Scene::TwoSlots
            | Scene::GarbageSlot => {
                let open = Role::InSlots(Slots::Open);
                make(open, Special::Nothing, Trees::End, 100);
            }
            Scene::QueuedResuming => make(Role::Creator, Special::Resumes, Trees::End, 100),
            Scene::QueuedRetrying => make(Role::Creator, Special::Retries, Trees::End, 100),
            Scene::QueuedRenewing => make(Role::Creator, Special::Renews, Trees::End, 100),
            Scene::QueuedFreezing => make(Role::Creator, Special::Freezes, Trees::End, 100),
            Scene::Laid => make(Role::Layer, Special::Nothing, Trees::End, 100),
            Scene::GarbagePointer => make(Role::Starter, Special::Nothing, Trees::End, 100),
            // It dies before its directory can be seen.
            Scene::Litter => make(Role::Creator, Special::Nothing, Trees::End, 9),
            _ => make(Role::Creator, Special::Nothing, Trees::End, 100),
        }
        match self {
            Scene::Empty
            | Scene::Destination
            | Scene::SessionOpen
            | Scene::Laid
            | Scene::Queued
            | Scene::Litter
            | Scene::GarbagePool
            | Scene::Pooled
            | Scene::QueuedResuming
            | Scene::QueuedRetrying
            | Scene::QueuedRenewing
            | Scene::QueuedFreezing
            | Scene::GarbagePointer
            | Scene::GarbageDescriptor => {}
            Scene::OneSlot | Scene::GarbageSlot => {
                let close = Role::InSlots(Slots::Close);
                make(close, Special::Nothing, Trees::End, 100);
            }
            Scene::BrokenSlot => {
                let close = Role::InSlots(Slots::Close);
                make(close, Special::Nothing, Trees::End, 100);
                let find = Role::InSlots(Slots::Break);
                make(find, Special::Nothing, Trees::End, 100);
            }
            Scene::TwoSlots => {
                let tenant = Role::InSlots(Slots::Tenant);
                make(tenant, Special::Nothing, Trees::End, 100);
                let close = Role::InSlots(Slots::Close);
                make(close, Special::Nothing, Trees::End, 100);
            }
            Scene::TwoQueued => make(Role::Creator, Special::Nothing, Trees::End, 100),
            Scene::Dependent => make(Role::Creator, Special::After, Trees::End, 100),
            Scene::Unmet => {
                make(
                    Role::Client(Request::Cancel),
                    Special::Nothing,
                    Trees::End,
                    100,
                );
                make(Role::Creator, Special::After, Trees::End, 100);
            }
            Scene::Paused => make(
                Role::Client(Request::Pause),
                Special::Nothing,
                Trees::End,
                100,
            ),
            Scene::Abandoned | Scene::Orphaned | Scene::Emptied => {
                make(Role::Worker, Special::Nothing, Trees::OutliveTheWorker, 100)
            }
            Scene::Ended | Scene::GarbageStatus | Scene::EmptiedEnd => {
                make(Role::Worker, Special::Nothing, Trees::End, 100)
            }
        }
        let garbage = match self {
            Scene::GarbageStatus => Some(Place::of_job(&first_job(), Name::Status)),
            Scene::GarbageDescriptor => Some(Place::of_job(&first_job(), Name::Descriptor)),
            Scene::GarbagePool => Some(Dir::Pool(pool()).at(Name::Pool)),
            Scene::GarbageSlot => Some(Dir::Slot(pool(), 1).at(Name::Slot)),
            Scene::GarbagePointer => Some(Dir::Keys.at(Name::Pointer(key()))),
            _ => None,
        };
        if let Some(place) = garbage {
            machine.files.spoil(&place);
        }
        if matches!(self, Scene::Emptied | Scene::EmptiedEnd) {
            machine
                .files
                .empty(&Place::of_job(&first_job(), Name::Status));
        }
        if matches!(self, Scene::Abandoned | Scene::Emptied) {
            machine.end_tree(LANE);
            machine.files.renumber();
        }
        machine.nature = nature;
        if power {
            machine.files.fit_medium();
        }
        machine
    }
}
