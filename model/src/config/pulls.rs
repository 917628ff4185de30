//! Files that are fetched and put into place: by one or by two, from a server that cuts and changes, with deaths, failures and
//! losses of power.

use super::build::world;
use crate::role::Role::{Discarder, Fetcher};
use crate::role::fetcher::Wish;
use crate::rule::Sight;
use crate::scene::Scene::Destination;
use crate::world::World;

/// Those about files that are fetched.
pub(super) fn pulls() -> Vec<World> {
    let plain = Wish::default();
    let shorter = Wish {
        lengths: [3, 1],
        ..plain
    };
    let longer = Wish {
        lengths: [3, 3],
        ..plain
    };
    let short = Wish {
        lengths: [1, 1],
        ..plain
    };
    let untagged = Wish {
        tagged: false,
        ..plain
    };
    let digest = Wish {
        digest: true,
        ..plain
    };
    let longer_digest = Wish {
        lengths: [3, 3],
        ..digest
    };
    let two = Wish {
        files: 2,
        lengths: [1, 1],
        ..digest
    };
    vec![
        world("fetch", Destination, &[Fetcher], 1)
            .fetching(shorter)
            .changing()
            .cutting(2)
            .seeing(&[Sight::Registered(1), Sight::Discarded, Sight::SecondVersion]),
        world("fetch-again", Destination, &[Fetcher, Fetcher], 2)
            .one_after_the_other()
            .fetching(shorter)
            .changing()
            .cutting(1)
            .seeing(&[
                Sight::Registered(2),
                Sight::Resumed,
                Sight::Discarded,
                Sight::SecondVersion,
            ]),
        world("fetch-untagged", Destination, &[Fetcher, Fetcher], 2)
            .one_after_the_other()
            .fetching(untagged)
            .changing()
            .cutting(1)
            .seeing(&[Sight::Registered(2), Sight::Discarded]),
        world("fetch-digest", Destination, &[Fetcher, Fetcher], 2)
            .one_after_the_other()
            .fetching(digest)
            .changing()
            .cutting(1)
            .seeing(&[Sight::Registered(2), Sight::Resumed, Sight::Refused]),
        world("fetch-two", Destination, &[Fetcher, Fetcher], 2)
            .one_after_the_other()
            .fetching(two)
            .seeing(&[Sight::Registered(2)]),
        world("fetch-joined", Destination, &[Fetcher, Fetcher], 1)
            .fetching(short)
            .seeing(&[Sight::Registered(2), Sight::LeftToFetcher]),
        world("fetch-discard", Destination, &[Fetcher, Discarder], 1)
            .fetching(short)
            .seeing(&[Sight::Registered(1), Sight::LeftToFetcher, Sight::TakenAway]),
        world("fetch-then-discard", Destination, &[Fetcher, Discarder], 1)
            .one_after_the_other()
            .fetching(plain)
            .cutting(1),
        world("fetch-failing", Destination, &[Fetcher, Fetcher], 0)
            .one_after_the_other()
            .fetching(plain)
            .failing(1)
            .seeing(&[Sight::Registered(1), Sight::NoRoom, Sight::Resumed]),
        world("fetch-power", Destination, &[Fetcher, Fetcher], 0)
            .fetching(longer)
            .changing()
            .losing_power()
            .the_last_after_boot()
            .seeing(&[Sight::ResumedAfterBoot, Sight::SecondVersion]),
        world("fetch-again-power", Destination, &[Fetcher, Fetcher], 1)
            .one_after_the_other()
            .fetching(plain)
            .changing()
            .judged_for_power()
            .seeing(&[Sight::Registered(2), Sight::SecondVersion]),
        world(
            "fetch-discard-power",
            Destination,
            &[Fetcher, Discarder, Fetcher],
            1,
        )
        .one_after_the_other()
        .fetching(plain)
        .changing()
        .judged_for_power()
        .seeing(&[Sight::SecondVersion]),
        world("fetch-digest-power", Destination, &[Fetcher, Fetcher], 0)
            .one_after_the_other()
            .fetching(longer_digest)
            .changing()
            .judged_for_power()
            .seeing(&[Sight::Refused]),
        world("fetch-two-power", Destination, &[Fetcher], 0)
            .fetching(two)
            .judged_for_power()
            .seeing(&[Sight::Registered(1)]),
    ]
}
