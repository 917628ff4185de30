//! The slots of a pool: sessions, jobs, maintenance and those who take slots away, beside one another.

use super::build::world;
use crate::machine::Nature;
use crate::role::Role::InSlots;
use crate::role::slot::Slots::{
    Close, Enter, Look, Maintain, Mend, Open, OpenBriefly, Renew, Shed, ShedAll, Tenant, Work,
};
use crate::rule::Sight;
use crate::scene::Scene::{BrokenSlot, Empty, GarbageSlot, OneSlot, SessionOpen, TwoSlots};
use crate::world::World;

/// Those about slots.
pub(super) fn slots() -> Vec<World> {
    [sessions(), others(), hostile()].concat()
}

fn sessions() -> Vec<World> {
    vec![
        world("two-openers", Empty, &[InSlots(Open), InSlots(Open)], 0)
            .with_slots(1)
            .seeing(&[Sight::Opened(1), Sight::NoSlot]),
        world(
            "openers-two-slots",
            Empty,
            &[InSlots(Open), InSlots(Open)],
            1,
        )
        .seeing(&[Sight::Opened(2)]),
        world("opener-worker", OneSlot, &[InSlots(Work), InSlots(Open)], 0)
            .with_slots(1)
            .seeing(&[Sight::Opened(1), Sight::Closed, Sight::NoSlot]),
        world("session-dies", OneSlot, &[InSlots(Work), InSlots(Open)], 1)
            .with_slots(1)
            .seeing(&[Sight::Opened(1), Sight::Orphan]),
        // Whoever closes it is not its holder, and one of the two comes late.
        world(
            "late-close",
            SessionOpen,
            &[InSlots(Close), InSlots(Close), InSlots(Open)],
            0,
        )
        .with_slots(1)
        .closing("scene")
        .seeing(&[Sight::Opened(1), Sight::Closed, Sight::NotOpen]),
        world(
            "two-enter",
            SessionOpen,
            &[InSlots(Enter), InSlots(Enter)],
            1,
        )
        .closing("scene")
        .with_slots(1)
        .seeing(&[Sight::RanInSlot, Sight::TwoWork]),
        world(
            "enter-close-open",
            SessionOpen,
            &[InSlots(Enter), InSlots(Close), InSlots(Open)],
            0,
        )
        .closing("scene")
        .with_slots(1)
        .seeing(&[Sight::RanInSlot, Sight::Closed, Sight::Opened(1)]),
        world(
            "enter-close-dies",
            SessionOpen,
            &[InSlots(Enter), InSlots(Close)],
            1,
        )
        .closing("scene")
        .with_slots(1)
        .seeing(&[
            Sight::RanInSlot,
            Sight::Closed,
            Sight::NotOpen,
            Sight::Orphan,
        ]),
        // Its slot is taken away as soon as it is closed.
        world(
            "enter-close-shed",
            SessionOpen,
            &[InSlots(Enter), InSlots(Close), InSlots(ShedAll)],
            0,
        )
        .closing("scene")
        .with_slots(1)
        .seeing(&[Sight::RanInSlot, Sight::Closed, Sight::SlotGone]),
        world(
            "renew-close",
            SessionOpen,
            &[InSlots(Renew), InSlots(Close)],
            1,
        )
        .closing("scene")
        .with_slots(1)
        .seeing(&[Sight::Renewed, Sight::Closed, Sight::NotOpen]),
        world("renew-power", SessionOpen, &[InSlots(Renew)], 0)
            .closing("scene")
            .with_slots(1)
            .losing_power()
            .seeing(&[Sight::Renewed]),
        world("renew-failing", SessionOpen, &[InSlots(Renew)], 0)
            .closing("scene")
            .with_slots(1)
            .failing(1),
        world("open-looked-at", Empty, &[InSlots(Open), InSlots(Look)], 0)
            .with_slots(1)
            .seeing(&[Sight::Opened(1), Sight::SawSession]),
        world("mend-open", BrokenSlot, &[InSlots(Mend), InSlots(Open)], 1)
            .with_slots(1)
            .seeing(&[Sight::Mended, Sight::Opened(1), Sight::NoSlot]),
        world("menders", BrokenSlot, &[InSlots(Mend), InSlots(Mend)], 0)
            .with_slots(1)
            .seeing(&[Sight::Mended]),
        world("mend-failing", BrokenSlot, &[InSlots(Mend)], 0)
            .with_slots(1)
            .failing(1),
        world(
            "garbage-mend",
            GarbageSlot,
            &[InSlots(Mend), InSlots(Look)],
            0,
        ),
        world(
            "expired",
            OneSlot,
            &[InSlots(OpenBriefly), InSlots(Open)],
            1,
        )
        .with_slots(1)
        .seeing(&[Sight::Opened(2)]),
        world(
            "session-looked-at",
            OneSlot,
            &[InSlots(Work), InSlots(Look)],
            1,
        )
        .with_slots(1)
        .seeing(&[Sight::SawSession, Sight::SawIdle]),
    ]
}

fn others() -> Vec<World> {
    vec![
        world("tenants", OneSlot, &[InSlots(Tenant), InSlots(Tenant)], 1)
            .with_slots(1)
            .seeing(&[Sight::RanInSlot, Sight::NoSlot, Sight::Orphan]),
        world(
            "tenant-opener",
            OneSlot,
            &[InSlots(Tenant), InSlots(Open)],
            1,
        )
        .with_slots(1)
        .seeing(&[Sight::RanInSlot, Sight::Opened(1), Sight::NoSlot]),
        world(
            "tenant-looked-at",
            OneSlot,
            &[InSlots(Tenant), InSlots(Look)],
            1,
        )
        .with_slots(1)
        .seeing(&[Sight::SawClaimed, Sight::SawIdle, Sight::SawLeft]),
        // What is left in a slot has closed the lock that it was given.
        world(
            "tenant-closes",
            OneSlot,
            &[InSlots(Tenant), InSlots(Open)],
            1,
        )
        .with_slots(1)
        .with_trees(Nature {
            holding: false,
            ..Nature::default()
        })
        .seeing(&[Sight::RanInSlot, Sight::Opened(1), Sight::NoSlot]),
        world(
            "maintainers",
            OneSlot,
            &[InSlots(Maintain), InSlots(Maintain)],
            1,
        )
        .with_slots(1)
        .seeing(&[
            Sight::Maintained,
            Sight::LeftToMaintainer,
            Sight::NotDue,
            Sight::Orphan,
        ]),
        world(
            "maintain-open",
            TwoSlots,
            &[InSlots(Maintain), InSlots(Open)],
            0,
        )
        .seeing(&[Sight::Maintained, Sight::Opened(1)]),
        world(
            "maintain-open-dies",
            OneSlot,
            &[InSlots(Maintain), InSlots(Open)],
            1,
        )
        .with_slots(1)
        .seeing(&[Sight::Maintained, Sight::Opened(1), Sight::NoSlot]),
        world(
            "maintain-tenant",
            OneSlot,
            &[InSlots(Maintain), InSlots(Tenant)],
            1,
        )
        .with_slots(1)
        .seeing(&[Sight::Maintained, Sight::RanInSlot, Sight::NoSlot]),
        world(
            "maintain-looked-at",
            OneSlot,
            &[InSlots(Maintain), InSlots(Look)],
            1,
        )
        .with_slots(1)
        .seeing(&[Sight::SawClaimed, Sight::SawIdle, Sight::SawLeft]),
        world("shed-open", TwoSlots, &[InSlots(Shed), InSlots(Open)], 1)
            .seeing(&[Sight::Shed, Sight::Opened(1)]),
        world(
            "shed-tenants",
            TwoSlots,
            &[InSlots(Shed), InSlots(Tenant), InSlots(Open)],
            0,
        )
        .seeing(&[Sight::Shed, Sight::Opened(1), Sight::RanInSlot])
        .large(),
        world(
            "slot-everybody",
            OneSlot,
            &[InSlots(Open), InSlots(Maintain), InSlots(Tenant)],
            1,
        )
        .with_slots(1)
        .seeing(&[
            Sight::Maintained,
            Sight::RanInSlot,
            Sight::Opened(1),
            Sight::NoSlot,
        ])
        .large(),
    ]
}

fn hostile() -> Vec<World> {
    vec![
        world("open-power", Empty, &[InSlots(Open)], 0)
            .with_slots(1)
            .losing_power()
            .seeing(&[Sight::Opened(1)]),
        world("work-power", OneSlot, &[InSlots(Work), InSlots(Open)], 0)
            .with_slots(1)
            .losing_power()
            .the_last_after_boot()
            .seeing(&[Sight::Opened(1), Sight::Closed]),
        world(
            "tenant-power",
            OneSlot,
            &[InSlots(Tenant), InSlots(Open)],
            0,
        )
        .with_slots(1)
        .losing_power()
        .the_last_after_boot()
        .seeing(&[Sight::RanInSlot]),
        world("maintain-power", OneSlot, &[InSlots(Maintain)], 0)
            .with_slots(1)
            .losing_power()
            .seeing(&[Sight::Maintained]),
        world("open-failing", OneSlot, &[InSlots(Work)], 0)
            .with_slots(1)
            .failing(1),
        world("maintain-failing", OneSlot, &[InSlots(Maintain)], 0)
            .with_slots(1)
            .failing(1),
        world(
            "garbage-slot",
            GarbageSlot,
            &[InSlots(Open), InSlots(Maintain)],
            0,
        ),
    ]
}
