//! Frozen and lingering trees, commands that fail and are tried again, hands, unreadable records, failing disks, spares and losses of power.

use state_machine::control::Request::{Cancel, Pause, Resume};

use super::build::world;
use crate::machine::Nature;
use crate::role::Role::{
    Client, Collector, Creator, Hand, Layer, Numbered, Reader, Recoverer, Starter, Sweeper, Waiter,
    Worker,
};
use crate::rule::Sight;
use crate::scene::Scene::{
    Abandoned, Empty, Ended, Laid, Orphaned, Queued, QueuedFreezing, QueuedRenewing, QueuedRetrying,
};
use crate::world::World;

/// Those about frozen and lingering trees, unreadable records, failing disks and losses of power.
pub(super) fn hostile() -> Vec<World> {
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
    let renewing = Nature {
        renewing: true,
        slow: true,
        ..Nature::default()
    };
    vec![
        world(
            "freeze",
            QueuedFreezing,
            &[Worker, Client(Pause), Client(Resume)],
            0,
        )
        .large(),
        world(
            "freeze-cancel",
            QueuedFreezing,
            &[Worker, Client(Pause), Client(Cancel)],
            0,
        )
        .large(),
        world("freeze-death", QueuedFreezing, &[Worker, Client(Pause)], 1),
        world("lingering", Queued, &[Worker, Client(Cancel), Reader], 0).with_trees(lingering),
        world("lingering-death", Queued, &[Worker, Client(Cancel)], 1).with_trees(lingering),
        world("lingering-sweep", Queued, &[Worker, Sweeper], 1).with_trees(lingering),
        world("retry", QueuedRetrying, &[Worker], 1)
            .retrying()
            .seeing(&[
                Sight::SecondAttempt,
                Sight::FailedAtLast,
                Sight::LostWaiting,
            ]),
        world("retry-cancel", QueuedRetrying, &[Worker, Client(Cancel)], 0)
            .retrying()
            .seeing(&[Sight::SecondAttempt, Sight::CancelledWaiting]),
        world("retry-death", QueuedRetrying, &[Worker, Client(Cancel)], 1)
            .retrying()
            .seeing(&[Sight::LostWaiting, Sight::CancelledWaiting]),
        world("retry-pause", QueuedRetrying, &[Worker, Client(Pause)], 1)
            .retrying()
            .seeing(&[Sight::SecondAttempt, Sight::PausedWaiting]),
        world("retry-two-workers", QueuedRetrying, &[Worker, Worker], 1)
            .retrying()
            .seeing(&[Sight::SecondAttempt, Sight::LostWaiting]),
        // Before the next attempt nothing of the last one is left, and what is asked meanwhile is honoured.
        world(
            "retry-lingering",
            QueuedRetrying,
            &[Worker, Client(Cancel)],
            1,
        )
        .with_trees(Nature {
            slow: true,
            ..lingering
        })
        .retrying()
        .seeing(&[Sight::SecondAttempt, Sight::CancelledWaiting]),
        world("retry-reader", QueuedRetrying, &[Worker, Reader], 1)
            .retrying()
            .seeing(&[Sight::SecondAttempt, Sight::SawInterrupted]),
        world("retry-failing", QueuedRetrying, &[Worker], 0)
            .failing(1)
            .retrying()
            .seeing(&[Sight::SecondAttempt]),
        world("retry-power", QueuedRetrying, &[Worker], 0)
            .judged_for_power()
            .retrying(),
        // What a command is made of changes while it runs: it is run anew, and what is asked meanwhile is honoured.
        world("renew", QueuedRenewing, &[Worker, Reader], 1)
            .with_trees(renewing)
            .seeing(&[Sight::SecondAttempt, Sight::Done, Sight::Orphan]),
        world("renew-cancel", QueuedRenewing, &[Worker, Client(Cancel)], 1)
            .with_trees(renewing)
            .seeing(&[
                Sight::SecondAttempt,
                Sight::CancelHonoured,
                Sight::CancelledWaiting,
            ]),
        world("renew-pause", QueuedRenewing, &[Worker, Client(Pause)], 1)
            .with_trees(renewing)
            .seeing(&[Sight::SecondAttempt, Sight::PausedWaiting]),
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
            QueuedFreezing,
            &[Worker, Client(Pause), Reader],
            1,
        )
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
        world("wait-power", Queued, &[Worker, Waiter], 0).judged_for_power(),
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
