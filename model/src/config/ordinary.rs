//! Processes that do the ordinary things at once, and die.

use state_machine::control::Request::{Cancel, Pause, Resume};

use super::build::world;
use crate::machine::Nature;
use crate::role::Role::{
    Client, Collector, Creator, Layer, Peeker, Reader, Recoverer, Starter, Sweeper, Worker,
};
use crate::rule::Sight;
use crate::scene::Scene::{Abandoned, Empty, Ended, Laid, Orphaned, Paused, Queued};
use crate::world::World;

/// Those about processes that do the ordinary things at once, and die.
pub(super) fn ordinary() -> Vec<World> {
    let slow = Nature {
        slow: true,
        ..Nature::default()
    };
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
        // A cancel may come while a pause is being honoured.
        world(
            "pause-then-cancel",
            Queued,
            &[Worker, Client(Pause), Client(Cancel)],
            0,
        )
        .with_trees(slow)
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
