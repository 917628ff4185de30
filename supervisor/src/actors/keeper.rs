//! The actor that keeps slots: those that are too many are shed, and the maintenance command of a pool is run as often as the
//! pool says. Where no pool says anything, it does nothing at all.

use std::collections::BTreeMap;
use std::time::Duration;

use actix::prelude::*;
use state_machine::config::PoolSetup;
use state_machine::id::PoolName;
use state_machine::maintenance::{PoolResult, SlotResult};
use state_machine::record::Outcome;

use super::{Vigil, off_long};
use crate::error::Result;
use crate::slots::Slots;
use crate::store::slots_of;

/// The shortest time between two looks at a pool, and the longest.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Pools may be set up otherwise now.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct SetUp;

/// Nothing new is begun any more.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Cease;

pub(super) struct Keeper {
    slots: Slots,
    /// How the pools were set up that were last seen.
    pools: BTreeMap<PoolName, PoolSetup>,
    timers: BTreeMap<PoolName, SpawnHandle>,
    ceased: bool,
    _vigil: Vigil,
}

impl Keeper {
    pub(super) fn new(slots: Slots) -> Keeper {
        Keeper {
            slots,
            pools: BTreeMap::new(),
            timers: BTreeMap::new(),
            ceased: false,
            _vigil: Vigil,
        }
    }

    /// See to every pool that is set up otherwise than before, and to no other: looking at one is a notice to whoever watches
    /// it, and we are told of that.
    fn are_set_up(&mut self, pools: BTreeMap<PoolName, PoolSetup>, ctx: &mut Context<Keeper>) {
        let before = std::mem::replace(&mut self.pools, pools);
        let changed: Vec<PoolName> = self
            .pools
            .iter()
            .filter(|(name, setup)| setup.ground.has_place() && before.get(*name) != Some(*setup))
            .map(|(name, _)| name.clone())
            .collect();
        self.timers.retain(|name, timer| {
            let stays = self.pools.contains_key(name) && !changed.contains(name);
            if !stays {
                ctx.cancel_future(*timer);
            }
            stays
        });
        for name in changed {
            self.see_to(name, ctx);
        }
    }

    /// Shed what is too much of a pool, maintain it if it is time, and look again later.
    fn see_to(&mut self, name: PoolName, ctx: &mut Context<Keeper>) {
        let Some(setup) = self.pools.get(&name) else {
            return;
        };
        let every = setup.ground.maintain.as_ref();
        let every = every.and_then(|upkeep| upkeep.every_ms);
        let every = every.map(Duration::from_millis);
        if self.ceased {
            return;
        }
        let (slots, pool, most) = (self.slots.clone(), name.clone(), slots_of(setup));
        off_long(move || keep(&slots, &pool, every))
            .into_actor(self)
            .map(move |kept, actor, ctx| {
                let all_are_kept = kept.unwrap_or_else(|error| {
                    tracing::warn!(pool = %name, most, %error, "the slots cannot be kept");
                    false
                });
                if let Some(every) = every {
                    // Who was in use when it was time is maintained soon after.
                    let next = if all_are_kept { every } else { every / 10 };
                    actor.look_again(name, next.clamp(SHORTEST, LONGEST), ctx);
                }
            })
            .spawn(ctx);
    }

    fn look_again(&mut self, name: PoolName, time: Duration, ctx: &mut Context<Keeper>) {
        let pool = name.clone();
        let timer = ctx.run_later(time, move |actor, ctx| {
            actor.timers.remove(&pool);
            actor.see_to(pool, ctx);
        });
        if let Some(older) = self.timers.insert(name, timer) {
            ctx.cancel_future(older);
        }
    }
}

/// Whether every slot is as it is to be now, and none was only passed over.
fn keep(slots: &Slots, pool: &PoolName, every: Option<Duration>) -> Result<bool> {
    let Some(every) = every else {
        let shed = slots.shed(pool)?;
        if !shed.is_empty() {
            tracing::info!(%pool, ?shed, "slots that were too many are shed");
        }
        return Ok(true);
    };
    let mut all = true;
    for report in slots.maintain(Some(pool), Some(every))? {
        let visited = match report.result {
            PoolResult::Visited { slots, .. } => slots,
            PoolResult::Claimed { .. } => return Ok(false),
            PoolResult::NoSlots | PoolResult::NoMaintainCommand => continue,
        };
        for slot in visited {
            match slot.result {
                SlotResult::Ran {
                    outcome: Outcome::Succeeded,
                    duration_ms,
                    ..
                } => tracing::info!(%pool, slot = slot.slot, duration_ms, "maintained"),
                SlotResult::Ran {
                    outcome, artifact, ..
                } => {
                    tracing::warn!(%pool, slot = slot.slot, ?outcome, artifact, "its maintenance failed");
                }
                SlotResult::InUse { .. } | SlotResult::Unavailable { .. } => all = false,
                SlotResult::NotDue { .. } | SlotResult::Broken { .. } => {}
            }
        }
    }
    Ok(all)
}

impl Actor for Keeper {
    type Context = Context<Keeper>;
}

impl Handler<SetUp> for Keeper {
    type Result = ();

    fn handle(&mut self, _: SetUp, ctx: &mut Context<Keeper>) {
        let store = self.slots.store().clone();
        super::off(move || store.pools())
            .into_actor(self)
            .map(|pools, actor, ctx| match pools {
                Ok(pools) => actor.are_set_up(pools, ctx),
                // Whoever reads them for other reasons says so, too.
                Err(error) => tracing::debug!(%error, "the pools cannot be read"),
            })
            .spawn(ctx);
    }
}

impl Handler<Cease> for Keeper {
    type Result = ();

    fn handle(&mut self, _: Cease, _: &mut Context<Keeper>) {
        self.ceased = true;
    }
}
