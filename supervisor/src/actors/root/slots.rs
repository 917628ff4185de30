//! The slots of pools whose jobs wait for one that has a place: they are watched for as long as somebody waits, and no longer.

use actix::prelude::*;
use state_machine::id::PoolName;

use super::Root;
use crate::actors::off;
use crate::actors::pool::Seen;

/// Somebody waits for a slot of this pool that has a place.
#[derive(Message)]
#[rtype(result = "()")]
pub(in crate::actors) struct AwaitSlots(pub(in crate::actors) PoolName);

impl Root {
    /// Tell a pool how its slots are, as one of them may have been given back. Where nobody waits for that, they are watched no
    /// more.
    pub(super) fn see_slots(&mut self, name: PoolName, twice: bool, ctx: &mut Context<Root>) {
        let Some(pool) = self.pools.get(&name).cloned() else {
            return;
        };
        let (slots, of) = (self.slots.clone(), name.clone());
        off(move || slots.vacancies(&of))
            .into_actor(self)
            .then(move |vacancies, actor, _| {
                let seen = match vacancies {
                    Ok(vacancies) => {
                        if actor.awaited.contains(&name) {
                            actor.watcher.watch_slots(&name, &vacancies.numbers);
                        }
                        Some(pool.send(Seen(vacancies)))
                    }
                    // It is tried again after a while all the same.
                    Err(error) => {
                        tracing::debug!(pool = %name, %error, "its slots cannot be looked at");
                        None
                    }
                };
                async move {
                    match seen {
                        Some(seen) => (name, seen.await.unwrap_or(false)),
                        None => (name, true),
                    }
                }
                .into_actor(actor)
            })
            .map(move |(name, is_awaited), actor, ctx| {
                if twice {
                    actor.see_slots(name, false, ctx);
                } else if !is_awaited && actor.awaited.remove(&name) {
                    actor.watcher.forget_slots(&name);
                }
            })
            .spawn(ctx);
    }
}

impl Handler<AwaitSlots> for Root {
    type Result = ();

    fn handle(&mut self, AwaitSlots(pool): AwaitSlots, ctx: &mut Context<Root>) {
        // What is given back before they are watched is seen by the second look.
        let is_first = self.awaited.insert(pool.clone());
        self.see_slots(pool, is_first, ctx);
    }
}
