//! The configurations, by name: small, hostile, and each with what must be seen in it.

use state_machine::control::Request::{Cancel, Pause, Resume};
use state_machine::id::Ticket;

use crate::mutant::Mutant;
use crate::role::Role::{
    self, Client, Collector, Creator, Reader, Recoverer, Starter, Sweeper, Worker, Wrong,
};
use crate::role::{Part, first_job};
use crate::rule::{Rule, Sight};
use crate::scene::Scene::{self, Abandoned, Empty, Ended, Orphaned, Paused, Queued};
use crate::world::{Heal, Patience, World};

/// A world of these roles with nothing special about it.
pub fn world(name: &'static str, scene: Scene, roles: &[Role], crashes: u8) -> World {
    let parts = (0u8..).zip(roles).map(|(lane, &role)| Part {
        role,
        job: first_job(),
        ticket: Ticket::parse(&format!("t{lane}")).expect("a short word is a ticket"),
        now_ms: 10,
    });
    World {
        name,
        scene,
        parts: parts.collect(),
        crashes,
        patience: Patience::Fair,
        heal: Heal::AtRest,
        sights: Vec::new(),
        large: false,
        breaks: None,
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

/// Configurations in which a rule is broken by the protocols as they are. Once a protocol is mended its
/// configuration belongs into [`all`].
pub fn findings() -> Vec<World> {
    Vec::new()
}

/// Worlds in which something is wrong, and must be found.
pub fn mutants() -> Vec<World> {
    let wrong = |mutant: Mutant, rule, name, scene, others: &[Role]| {
        let roles = [&[Wrong(mutant)], others].concat();
        world(name, scene, &roles, 0).breaking(rule)
    };
    vec![
        wrong(
            Mutant::CheckThenRemove,
            Rule::R9,
            "check-then-remove",
            Paused,
            &[Recoverer],
        ),
        wrong(
            Mutant::CompareThenUnlink,
            Rule::R6,
            "compare-then-unlink",
            Queued,
            &[Client(Pause), Client(Cancel)],
        ),
        wrong(
            Mutant::LockWithoutLook,
            Rule::R1,
            "lock-without-look",
            Ended,
            &[Sweeper],
        ),
        wrong(
            Mutant::SkipRunning,
            Rule::NoPanic,
            "skip-running",
            Queued,
            &[Reader],
        ),
        wrong(
            Mutant::StatusThenProbe,
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
