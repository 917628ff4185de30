//! Worlds in which something is wrong, and must be found.

use state_machine::control::Request::{Cancel, Pause};

use super::build::world;
use crate::mutant::Older;
use crate::role::Role::{
    self, Client, Fetcher, Forked, Hand, Peeker, Queuer, Reader, Recoverer, Supervisor, Sweeper,
    Worker, Wrong,
};
use crate::role::second_job;
use crate::rule::Rule;
use crate::scene::Scene::{
    Abandoned, Destination, Empty, Ended, Orphaned, Paused, Queued, TwoQueued,
};
use crate::world::World;

/// Configurations in which a rule is broken by the protocols as they are. Once a protocol is mended its
/// configuration belongs into [`all`](super::all).
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
            Older::FetchUnlocked,
            Rule::R12,
            "fetch-unlocked",
            Destination,
            &[Fetcher],
        ),
        wrong(
            Older::RecordAhead,
            Rule::R24,
            "record-ahead",
            Destination,
            &[Fetcher],
        ),
        wrong(
            Older::KeystoneFirst,
            Rule::R24,
            "keystone-first",
            Destination,
            &[Fetcher],
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
        )
        .panicking(),
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
        )
        // It runs the job whatever it has come to, and the client may have cancelled it.
        .panicking(),
        wrong(
            Older::LeaveUnrecorded,
            Rule::R13,
            "leave-unrecorded",
            Queued,
            &[Reader],
        ),
        wrong(Older::GiveUp, Rule::R13, "give-up", Queued, &[Reader]).failing(1),
        wrong(
            Older::LeaveBlindly,
            Rule::R18,
            "leave-blindly",
            Empty,
            &[Queuer, Forked],
        ),
        wrong(
            Older::CountItsOwn,
            Rule::R20,
            "count-its-own",
            TwoQueued,
            &[Worker, Forked],
        ),
        // The one that was forked for the second job by a supervisor that is gone.
        wrong(
            Older::AskNobody,
            Rule::R20,
            "ask-nobody",
            TwoQueued,
            &[Supervisor, Forked],
        )
        .with_straggler(second_job()),
        wrong(
            Older::RunUnclaimed,
            Rule::R2,
            "run-unclaimed",
            Queued,
            &[Supervisor],
        ),
        wrong(
            Older::StatusThenProbe,
            Rule::R3,
            "status-then-probe",
            Queued,
            &[Worker],
        ),
    ]
}
