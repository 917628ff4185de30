//! What the root hears that no actor says: that something on disk has changed, and that the clock was set.

use std::collections::BTreeSet;

use actix::prelude::*;
use outlive_mailbox::{Drained, Mailbox, Notices};
use state_machine::wire::Notice;

use super::{Root, Shutdown};
use crate::actors::Vigil;
use crate::actors::clock::ClockSet;
use crate::watcher;

/// What has changed on disk.
#[derive(Message)]
#[rtype(result = "()")]
struct Changed(Notices<watcher::Changed>);

pub(super) async fn pass_notices_on(mut mailbox: Mailbox<watcher::Changed>, root: Addr<Root>) {
    let _vigil = Vigil;
    loop {
        match mailbox.next().await {
            Drained::Notices(notices) => {
                if root.send(Changed(notices)).await.is_err() {
                    return;
                }
            }
            Drained::Gone => {
                // Unless it is leaving anyway, the kernel cannot poll. Who hears nothing is no supervisor.
                if root.connected() {
                    tracing::error!(
                        "nothing is heard of the store any more; leaving, and jobs run on"
                    );
                    root.do_send(Shutdown);
                }
                return;
            }
        }
    }
}

pub(super) async fn pass_clock_on(root: Addr<Root>) {
    let _vigil = Vigil;
    let clock = match ClockSet::new() {
        Ok(clock) => clock,
        Err(error) => {
            tracing::warn!(%error, "a clock that is set is not noticed");
            return;
        }
    };
    while clock.changed().await.is_ok() {
        tracing::info!("the clock was set");
        if root.send(Changed(Notices::Everything)).await.is_err() {
            return;
        }
    }
}

impl Handler<Changed> for Root {
    type Result = ();

    fn handle(&mut self, Changed(notices): Changed, ctx: &mut Context<Root>) {
        match notices {
            Notices::Everything => {
                self.see_that_the_lock_stands(ctx);
                for pool in self.awaited.clone() {
                    self.see_slots(pool, false, ctx);
                }
                self.scan(ctx);
            }
            Notices::Of(subjects) => {
                let (mut jobs, mut pools, mut gone) = (false, false, false);
                let mut slots = BTreeSet::new();
                for subject in subjects {
                    match subject {
                        watcher::Changed::Job(id) => {
                            self.subscribers.tell(&Notice::Changed(Some(id.clone())));
                            self.look_at(id, ctx);
                        }
                        watcher::Changed::Forgotten(id) if self.jobs.contains_key(&id) => {
                            self.look_at(id, ctx);
                        }
                        // A sweep forgets thousands at once: nobody need look where each was.
                        watcher::Changed::Forgotten(id) => {
                            self.subscribers.tell(&Notice::State(id, None));
                            gone = true;
                        }
                        watcher::Changed::Pools | watcher::Changed::Pool(_) => pools = true,
                        watcher::Changed::Slot(pool, _) => {
                            slots.insert(pool);
                        }
                        watcher::Changed::Jobs => jobs = true,
                    }
                }
                for pool in slots {
                    self.see_slots(pool, false, ctx);
                }
                if gone {
                    self.see_that_the_lock_stands(ctx);
                }
                if jobs {
                    self.scan(ctx);
                } else if pools {
                    self.read_pools(ctx);
                }
            }
        }
    }
}
