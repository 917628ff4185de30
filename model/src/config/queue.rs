//! Jobs that wait, those who queue them, and those who see that they are run; pools and batches.

use state_machine::control::Request::{Cancel, Pause};

use super::build::world;
use crate::role::Change::{Forget, Pause as PausePool, TwoSlots};
use crate::role::Role::{
    Asker, Batcher, Changer, Client, Collector, Creator, Forked, Queuer, Supervisor, Worker,
};
use crate::role::{first_job, second_job};
use crate::rule::Sight;
use crate::scene::Scene::{
    Dependent, Empty, GarbagePool, Paused as PausedJob, Pooled, Queued, QueuedResuming, TwoQueued,
    Unmet,
};
use crate::world::World;

/// Those about the queue.
pub(super) fn queue() -> Vec<World> {
    [supervised(), dying(), made()].concat()
}

/// Those in which nobody dies.
fn supervised() -> Vec<World> {
    vec![
        world("queue-alone", Empty, &[Queuer, Forked], 0)
            .seeing(&[Sight::AllDone(1), Sight::Retired]),
        // With nobody to run their jobs: whatever they do, one of them supervises.
        world("two-queuers", Empty, &[Queuer, Queuer], 0)
            .seeing(&[Sight::TwoJobs, Sight::LeftToSupervisor]),
        world("two-queuers-run", TwoQueued, &[Queuer, Queuer, Forked], 0)
            .with_their_jobs_made()
            .seeing(&[Sight::AllDone(2), Sight::Retired, Sight::LeftToSupervisor])
            .large(),
        world("queue-retiring", Empty, &[Supervisor, Queuer, Forked], 0)
            .seeing(&[Sight::AllDone(1), Sight::Retired, Sight::LeftToSupervisor])
            .large(),
        // Whoever only asks keeps nobody from it.
        world("supervisor-asked", Queued, &[Supervisor, Asker], 0),
        // One leaves while the other comes, and nobody is there to run the job.
        world("retiring", Empty, &[Supervisor, Queuer], 0)
            .seeing(&[Sight::Retired, Sight::LeftToSupervisor]),
        world(
            "two-supervisors",
            Queued,
            &[Supervisor, Supervisor, Forked],
            0,
        )
        .seeing(&[Sight::AllDone(1), Sight::Retired, Sight::LeftToSupervisor]),
        world(
            "queue-cancel",
            Queued,
            &[Supervisor, Forked, Client(Cancel)],
            0,
        )
        .seeing(&[
            Sight::AllDone(1),
            Sight::SettledByClient,
            Sight::LeftToHolder,
        ]),
        world(
            "queue-pause",
            Queued,
            &[Supervisor, Forked, Client(Pause)],
            0,
        )
        .seeing(&[
            Sight::AllDone(1),
            Sight::SettledByClient,
            Sight::LeftToHolder,
        ])
        .large(),
        world("adopt", TwoQueued, &[Supervisor, Worker, Forked], 0)
            .seeing(&[Sight::AllDone(2), Sight::Done])
            .large(),
        // A worker that was forked by a supervisor which died then claims its job only when the next one may have given
        // the slot to another.
        world("overtaken", TwoQueued, &[Supervisor, Forked, Forked], 0)
            .with_straggler(second_job())
            .seeing(&[Sight::AllDone(2)])
            .large(),
        // The same with everything left out but the two workers: the slot is another's, whoever gave it to him.
        world("unwanted", TwoQueued, &[Worker, Forked], 0).with_straggler(second_job()),
        world("dependent", Dependent, &[Supervisor, Forked], 0).seeing(&[Sight::AllDone(2)]),
        world(
            "dependent-cancel",
            Dependent,
            &[Supervisor, Forked, Client(Cancel)],
            0,
        )
        .seeing(&[Sight::AllDone(2), Sight::Unmet])
        .large(),
        world("unmet", Unmet, &[Supervisor, Client(Cancel), Forked], 0)
            .about_the_second(1)
            .seeing(&[Sight::Unmet, Sight::SettledByClient]),
    ]
}

/// Those in which somebody dies.
fn dying() -> Vec<World> {
    vec![
        world(
            "supervisor-dies",
            Queued,
            &[Supervisor, Supervisor, Forked, Forked],
            1,
        )
        .seeing(&[Sight::AllDone(1), Sight::Adopted])
        .large(),
        world(
            "supervisor-died",
            TwoQueued,
            &[Supervisor, Forked, Forked],
            0,
        )
        .with_straggler(first_job())
        .seeing(&[Sight::AllDone(2)])
        .large(),
        world(
            "forked-dies",
            QueuedResuming,
            &[Supervisor, Forked, Forked],
            1,
        )
        .seeing(&[Sight::AllDone(1), Sight::RunAgain, Sight::Orphan]),
        world("forked-dies-left", Queued, &[Supervisor, Forked, Forked], 1)
            .seeing(&[Sight::AllDone(1), Sight::Orphan]),
        // What a client has asked that died then.
        world(
            "supervisor-settles",
            PausedJob,
            &[Supervisor, Client(Cancel)],
            1,
        )
        .with_a_clock_of_its_own()
        .seeing(&[Sight::SettledBySupervisor]),
        world("unmet-death", Unmet, &[Supervisor, Supervisor], 1).seeing(&[Sight::Unmet]),
    ]
}

/// Those about what is made: batches and pools.
fn made() -> Vec<World> {
    vec![
        world("batch", Empty, &[Batcher, Collector], 1).seeing(&[Sight::Made, Sight::TwoJobs]),
        world("batch-taken", Queued, &[Batcher, Client(Cancel)], 1).seeing(&[Sight::Made]),
        world("batch-creator", Empty, &[Batcher, Creator], 0).seeing(&[Sight::Made]),
        world("batch-power", Empty, &[Batcher], 0)
            .losing_power()
            .seeing(&[Sight::Made]),
        world("batch-failing", Empty, &[Batcher], 0).failing(1),
        world("pool", Empty, &[Changer(TwoSlots), Changer(PausePool)], 1)
            .seeing(&[Sight::BothChanged]),
        world(
            "pool-forget",
            Pooled,
            &[Changer(Forget), Changer(PausePool)],
            1,
        ),
        world("pool-power", Pooled, &[Changer(PausePool)], 0)
            .losing_power()
            .seeing(&[Sight::BothChanged]),
        world("pool-forgotten", Pooled, &[Changer(Forget)], 0).losing_power(),
        world("batch-taken-power", TwoQueued, &[Batcher], 0)
            .losing_power()
            .seeing(&[Sight::Made]),
        world(
            "garbage-pool",
            GarbagePool,
            &[Changer(PausePool), Changer(Forget)],
            0,
        ),
    ]
}
