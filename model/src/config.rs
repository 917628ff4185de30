//! The configurations, by name: small, hostile, and each with what must be seen in it.

use state_machine::control::Request::{Cancel, Pause, Resume};

use crate::coverage::Coverage;
use crate::machine::Nature;
use crate::mutant::{Edit, Older};
use crate::role::Role::{
    self, Client, Collector, Creator, Hand, Layer, Numbered, Peeker, Reader, Recoverer, Starter,
    Sweeper, Worker, Wrong,
};
use crate::role::{Part, first_job};
use crate::rule::power::Survivors;
use crate::rule::{Rule, Sight};
use crate::scene::Scene::{self, Abandoned, Empty, Ended, Laid, Orphaned, Paused, Queued};
use crate::world::{Heal, Patience, Power, World};

/// A world of these roles with nothing special about it.
pub fn world(name: &'static str, scene: Scene, roles: &[Role], crashes: u8) -> World {
    let parts = (0u8..)
        .zip(roles)
        .map(|(lane, &role)| Part::new(role, first_job(), &format!("t{lane}"), 10));
    World {
        name,
        scene,
        parts: parts.collect(),
        crashes,
        faults: 0,
        power: Power::Steady,
        nature: Nature::default(),
        patience: Patience::Fair,
        heal: Heal::AtRest,
        sights: Vec::new(),
        large: false,
        breaks: None,
        edit: None,
        coverage: Coverage::default(),
        survivors: Survivors::default(),
    }
}

impl World {
    /// With these sights, which must all be seen.
    #[must_use]
    pub fn seeing(mut self, sights: &[Sight]) -> World {
        self.sights = sights.to_vec();
        self
    }

    /// Asked in every state whether it heals alone.
    #[must_use]
    pub fn healing_everywhere(mut self) -> World {
        self.heal = Heal::Everywhere;
        self
    }

    /// Where so many effects may fail.
    #[must_use]
    pub fn failing(mut self, faults: u8) -> World {
        self.faults = faults;
        self.with_syncs()
    }

    /// Where everything is looked at that a loss of power may leave.
    #[must_use]
    pub fn judged_for_power(mut self) -> World {
        self.power = Power::Judged;
        self.with_syncs()
    }

    /// Where power may be lost once, and those who have not begun go on after the boot.
    #[must_use]
    pub fn losing_power(mut self) -> World {
        self.power = Power::Lost;
        self.with_syncs()
    }

    /// Where the last one begins only after the boot.
    #[must_use]
    pub fn the_last_after_boot(mut self) -> World {
        if let Some(last) = self.parts.last_mut() {
            last.after_boot = true;
        }
        self
    }

    fn with_syncs(mut self) -> World {
        for part in &mut self.parts {
            part.syncs = true;
        }
        self
    }

    /// Where a pause freezes the tree, and the worker stays.
    #[must_use]
    pub fn freezing(mut self) -> World {
        for part in &mut self.parts {
            part.freezes = true;
        }
        self
    }

    /// Where the trees are like this.
    #[must_use]
    pub fn with_trees(mut self, nature: Nature) -> World {
        self.nature = nature;
        self
    }

    /// Where this is wrong about the protocols.
    #[must_use]
    pub fn edited(mut self, edit: Edit) -> World {
        self.edit = Some(edit);
        // What survives under the right protocols need not survive under these.
        self.survivors = Survivors::default();
        self.coverage = Coverage::default();
        for part in &mut self.parts {
            part.edit = Some(edit);
        }
        self
    }

    /// Where those who give way do not wait.
    #[must_use]
    pub fn impatient(mut self) -> World {
        self.patience = Patience::None;
        self
    }

    /// In which this rule is broken.
    #[must_use]
    pub fn breaking(mut self, rule: Rule) -> World {
        self.breaks = Some(rule);
        self
    }

    /// Too big for the ordinary tests.
    #[must_use]
    pub fn large(mut self) -> World {
        self.large = true;
        self
    }
}

/// Every configuration in which all rules hold.
pub fn all() -> Vec<World> {
    [ordinary(), hostile()].concat()
}

/// Those about processes that do the ordinary things at once, and die.
fn ordinary() -> Vec<World> {
    vec![
        world("worker-reader", Queued, &[Worker, Reader], 1).seeing(&[
            Sight::Done,
            Sight::SawRunning,
            Sight::SawInterrupted,
            Sight::Orphan,
        ]),
        world("worker-readers", Abandoned, &[Worker, Reader, Reader], 0).seeing(&[
            Sight::Done,
            Sight::SawRunning,
            Sight::SawInterrupted,
        ]),
        world("two-workers", Queued, &[Worker, Worker], 1).seeing(&[Sight::Done, Sight::Orphan]),
        world("worker-client", Queued, &[Worker, Client(Cancel)], 1).seeing(&[
            Sight::Done,
            Sight::CancelHonoured,
            Sight::SettledByClient,
            Sight::LeftToHolder,
        ]),
        world("heals-everywhere", Queued, &[Worker, Client(Cancel)], 0).healing_everywhere(),
        world("abandoned", Abandoned, &[Recoverer, Reader, Worker], 0)
            .seeing(&[Sight::Done, Sight::SawInterrupted]),
        world("sweep", Ended, &[Sweeper, Sweeper, Reader], 1)
            .seeing(&[Sight::Swept, Sight::SawGone]),
        world(
            "sweep-request",
            Ended,
            &[Sweeper, Client(Cancel), Worker],
            1,
        )
        .seeing(&[Sight::Swept]),
        world("create-collect", Empty, &[Creator, Collector], 1),
        world("two-creators", Empty, &[Creator, Creator, Collector], 0).seeing(&[Sight::TwoJobs]),
        world("two-takers", Laid, &[Creator, Creator], 1)
            .seeing(&[Sight::TwoJobs, Sight::SpareTaken]),
        world("spare-collect", Laid, &[Creator, Collector], 1).seeing(&[Sight::Made]),
        world("lay-in", Empty, &[Layer, Creator, Collector], 0)
            .seeing(&[Sight::LaidIn, Sight::Made]),
        world("layers", Laid, &[Layer, Layer], 1).seeing(&[Sight::LaidIn]),
        world("starters", Empty, &[Starter, Starter], 1).seeing(&[Sight::Joined, Sight::Done]),
        world(
            "two-workers-client",
            Queued,
            &[Worker, Worker, Client(Cancel)],
            1,
        )
        .large(),
        world("pause-two-deaths", Queued, &[Worker, Client(Pause)], 2)
            .seeing(&[Sight::PauseHonoured, Sight::Orphan]),
        world("start-and-sweep", Empty, &[Starter, Starter, Sweeper], 0)
            .seeing(&[Sight::Swept, Sight::TwoJobs])
            .large(),
        world(
            "starters-collector",
            Empty,
            &[Starter, Starter, Collector],
            0,
        )
        .large(),
        world("impatient", Queued, &[Worker, Reader, Client(Cancel)], 0)
            .impatient()
            .large(),
        world("orphan-client", Orphaned, &[Worker, Client(Cancel)], 1)
            .seeing(&[Sight::SettledByClient, Sight::Orphan]),
        world("resume", Paused, &[Client(Resume), Worker], 1).seeing(&[Sight::SettledByClient]),
        world(
            "recover-two-deaths",
            Abandoned,
            &[Recoverer, Client(Cancel)],
            2,
        ),
        world(
            "recoverer-clients",
            Queued,
            &[Recoverer, Client(Pause), Client(Cancel)],
            0,
        )
        .large(),
        world("peeked", Queued, &[Recoverer, Client(Cancel), Peeker], 0)
            .seeing(&[Sight::Peeked, Sight::SettledByClient]),
        world("peeked-worker", Queued, &[Worker, Client(Pause), Peeker], 0)
            .seeing(&[Sight::Peeked, Sight::PauseHonoured]),
        world("sweep-of-the-living", Queued, &[Sweeper, Client(Cancel)], 0)
            .seeing(&[Sight::NotSwept]),
        world(
            "collector-client",
            Empty,
            &[Creator, Collector, Client(Cancel)],
            0,
        ),
        world(
            "resume-then-cancel",
            Paused,
            &[Client(Resume), Client(Cancel), Worker],
            0,
        )
        .large(),
        world(
            "orphan-crowd",
            Orphaned,
            &[Worker, Recoverer, Client(Cancel)],
            0,
        )
        .large(),
        world(
            "worker-client-reader",
            Queued,
            &[Worker, Client(Cancel), Reader],
            1,
        )
        .large(),
        world(
            "pause-then-cancel",
            Queued,
            &[Worker, Client(Pause), Client(Cancel)],
            0,
        )
        .seeing(&[Sight::PauseHonoured, Sight::CancelHonoured])
        .large(),
        world(
            "whole-life",
            Queued,
            &[Worker, Client(Cancel), Sweeper, Recoverer],
            0,
        )
        .large(),
    ]
}

/// Those about frozen and lingering trees, unreadable records, failing disks and losses of power.
fn hostile() -> Vec<World> {
    use crate::scene::Scene::{
        Emptied, EmptiedEnd, GarbageDescriptor, GarbagePointer, GarbageStatus, Litter,
    };
    let closing = Nature {
        holding: false,
        ..Nature::default()
    };
    let bare = Nature {
        marked: false,
        ..Nature::default()
    };
    let lingering = Nature {
        lingering: true,
        ..Nature::default()
    };
    vec![
        world(
            "freeze",
            Queued,
            &[Worker, Client(Pause), Client(Resume)],
            0,
        )
        .freezing()
        .large(),
        world(
            "freeze-cancel",
            Queued,
            &[Worker, Client(Pause), Client(Cancel)],
            0,
        )
        .freezing()
        .large(),
        world("freeze-death", Queued, &[Worker, Client(Pause)], 1).freezing(),
        world("lingering", Queued, &[Worker, Client(Cancel), Reader], 0).with_trees(lingering),
        world("lingering-death", Queued, &[Worker, Client(Cancel)], 1).with_trees(lingering),
        world("lingering-sweep", Queued, &[Worker, Sweeper], 1).with_trees(lingering),
        world("closing-trees", Orphaned, &[Worker, Client(Cancel)], 0).with_trees(closing),
        world("bare-trees", Orphaned, &[Worker, Client(Cancel)], 0).with_trees(bare),
        world(
            "garbage-status",
            GarbageStatus,
            &[Worker, Sweeper, Client(Cancel), Recoverer],
            0,
        ),
        world("garbage-status-2", GarbageStatus, &[Reader, Sweeper], 0),
        world(
            "garbage-descriptor",
            GarbageDescriptor,
            &[Worker, Sweeper, Client(Cancel), Recoverer],
            0,
        ),
        world("garbage-pointer", GarbagePointer, &[Starter, Starter], 0),
        world("litter", Litter, &[Collector, Creator], 1),
        world("two-collectors", Litter, &[Collector, Collector], 1),
        world("hand", Queued, &[Worker, Hand(Cancel)], 1),
        world("emptied", Emptied, &[Worker, Reader, Client(Cancel)], 0)
            .seeing(&[Sight::Done, Sight::SawInterrupted]),
        world("emptied-end", EmptiedEnd, &[Reader, Worker, Sweeper], 0),
        world("two-clients", Queued, &[Client(Pause), Client(Resume)], 0),
        world("cancel-pause", Queued, &[Client(Cancel), Client(Pause)], 1),
        world("garbage-numbered", GarbagePointer, &[Numbered], 0),
        world("starters-power", Empty, &[Starter, Starter], 0)
            .losing_power()
            .the_last_after_boot(),
        world("collector-request", Queued, &[Client(Cancel), Collector], 0),
        world("spare-starter", Laid, &[Starter, Collector], 1),
        world("lay-then-create-power", Empty, &[Layer, Creator], 0).judged_for_power(),
        world("spare-starters-power", Laid, &[Starter, Starter], 0)
            .losing_power()
            .the_last_after_boot(),
        world(
            "orphan-crowd-death",
            Orphaned,
            &[Worker, Recoverer, Client(Cancel)],
            1,
        )
        .large(),
        world(
            "worker-client-sweeper",
            Queued,
            &[Worker, Client(Cancel), Sweeper],
            2,
        )
        .large(),
        world("three-workers", Abandoned, &[Worker, Worker, Worker], 1).large(),
        world(
            "worker-client-recoverer",
            Queued,
            &[Worker, Client(Cancel), Recoverer],
            1,
        )
        .large(),
        world(
            "pause-reader-death",
            Queued,
            &[Worker, Client(Pause), Reader],
            1,
        )
        .freezing()
        .large(),
        world(
            "two-recoverers",
            Orphaned,
            &[Recoverer, Recoverer, Client(Cancel)],
            1,
        )
        .large(),
        world("numbered", Empty, &[Numbered, Numbered], 1),
        world("numbered-starter", Empty, &[Numbered, Collector, Reader], 0),
        world("worker-failing", Queued, &[Worker, Reader], 0).failing(2),
        world("worker-failing-death", Queued, &[Worker], 1).failing(1),
        world("client-failing", Queued, &[Worker, Client(Cancel)], 0).failing(1),
        world("creator-failing", Empty, &[Creator, Collector], 0).failing(1),
        world("starters-failing", Empty, &[Starter, Starter], 0)
            .failing(1)
            .large(),
        world("sweep-failing", Ended, &[Sweeper, Reader], 0).failing(1),
        world(
            "recover-failing",
            Abandoned,
            &[Recoverer, Client(Cancel)],
            0,
        )
        .failing(1),
        world("create-power", Empty, &[Creator], 0).losing_power(),
        world("lay-in-power", Empty, &[Layer], 0)
            .losing_power()
            .seeing(&[Sight::LaidIn]),
        world("spare-create-power", Laid, &[Creator], 0)
            .losing_power()
            .seeing(&[Sight::Made]),
        world("create-collect-power", Empty, &[Creator, Collector], 0).losing_power(),
        world("worker-power", Queued, &[Worker], 0).losing_power(),
        world("worker-client-power", Queued, &[Worker, Client(Cancel)], 0)
            .judged_for_power()
            .large(),
        world("pause-power", Queued, &[Worker, Client(Pause)], 0)
            .judged_for_power()
            .large(),
        world("starter-power", Empty, &[Starter], 0).losing_power(),
        world("sweep-power", Ended, &[Sweeper], 0).losing_power(),
        world("client-power", Queued, &[Client(Cancel)], 0).losing_power(),
        world("recover-power", Abandoned, &[Recoverer, Worker], 0).losing_power(),
    ]
}

/// Configurations in which a rule is broken by the protocols as they are. Once a protocol is mended its
/// configuration belongs into [`all`].
pub fn findings() -> Vec<World> {
    vec![
        // Two shells that write one control file at once share what they have open: what the slower one writes goes
        // where the faster one's word was taken to. No protocol can see that coming; who wants more than one file
        // gives asks with a client.
        world("two-hands", Queued, &[Worker, Hand(Pause), Hand(Cancel)], 0).breaking(Rule::R6),
    ]
}

/// Worlds in which something is wrong, and must be found.
pub fn mutants() -> Vec<World> {
    let wrong = |mutant: Older, rule, name, scene, others: &[Role]| {
        let roles = [&[Wrong(mutant)], others].concat();
        world(name, scene, &roles, 0).breaking(rule)
    };
    vec![
        wrong(
            Older::CheckThenRemove,
            Rule::R9,
            "check-then-remove",
            Paused,
            &[Recoverer],
        ),
        wrong(
            Older::CloseOnly,
            Rule::R6,
            "close-only",
            Queued,
            &[Client(Cancel), Peeker],
        ),
        wrong(
            Older::CompareThenUnlink,
            Rule::R6,
            "compare-then-unlink",
            Queued,
            &[Client(Pause), Client(Cancel)],
        ),
        wrong(
            Older::LockWithoutLook,
            Rule::R1,
            "lock-without-look",
            Ended,
            &[Sweeper],
        ),
        wrong(
            Older::SkipRunning,
            Rule::NoPanic,
            "skip-running",
            Queued,
            &[Reader],
        ),
        wrong(
            Older::WriteUnlocked,
            Rule::R2,
            "write-unlocked",
            Queued,
            &[Reader],
        ),
        wrong(
            Older::ReaderMends,
            Rule::R2,
            "reader-mends",
            Abandoned,
            &[Worker],
        ),
        wrong(Older::Recreate, Rule::R10, "recreate", Ended, &[Sweeper]),
        wrong(
            Older::RecordAnyway,
            Rule::R10,
            "record-anyway",
            Ended,
            &[Sweeper],
        ),
        wrong(
            Older::StartUnseen,
            Rule::R11,
            "start-unseen",
            Orphaned,
            &[Reader],
        ),
        wrong(
            Older::StatusBeforeEmpty,
            Rule::R11,
            "status-before-empty",
            Queued,
            &[Client(Cancel)],
        ),
        wrong(
            Older::LeaveUnrecorded,
            Rule::R13,
            "leave-unrecorded",
            Queued,
            &[Reader],
        ),
        wrong(Older::GiveUp, Rule::R13, "give-up", Queued, &[Reader]).failing(1),
        wrong(
            Older::StatusThenProbe,
            Rule::R3,
            "status-then-probe",
            Queued,
            &[Worker],
        ),
    ]
}

/// Every world that there is.
pub fn every() -> impl Iterator<Item = World> {
    all().into_iter().chain(findings()).chain(mutants())
}

/// The world of that name.
pub fn named(name: &str) -> Option<World> {
    every().find(|world| world.name == name)
}
