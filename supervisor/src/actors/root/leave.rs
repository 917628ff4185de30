//! Leaving: for want of work, unless a job comes meanwhile (R18), once everything has run out, or because somebody says so.

use actix::prelude::*;
use state_machine::disk::Disk;
use state_machine::protocol::supervise::{Retired, retire};

use super::{Parts, Root};
use crate::actors::off;
use crate::actors::pool::Admit;
use crate::socket;

impl Root {
    pub(super) fn see_whether_idle(&mut self, ctx: &mut Context<Root>) {
        let is_idle = self.is_ready() && self.busy == 0;
        if self.draining && self.is_ready() && self.running == 0 {
            self.end(ctx);
            return;
        }
        match (is_idle, self.idle, self.idle_exit) {
            (true, None, Some(time)) => {
                self.idle = Some(ctx.run_later(time, |actor, ctx| actor.leave(ctx)));
            }
            (false, Some(timer), _) => {
                ctx.cancel_future(timer);
                self.idle = None;
            }
            _ => {}
        }
    }

    /// Leave for want of work, unless a job comes while we are leaving (R18).
    pub(super) fn leave(&mut self, ctx: &mut Context<Root>) {
        self.idle = None;
        let Some(parts) = self.settings.take() else {
            return;
        };
        // Before the lock is another's, as the socket is then.
        self.socket = None;
        let store = self.store.clone();
        off(move || {
            (
                retire(&mut store.disk(), parts.lock),
                parts.ready,
                parts.ended,
            )
        })
        .into_actor(self)
        .map(|(retired, ready, ended), actor, ctx| match retired {
            Ok(Retired::Again(lock)) => {
                actor.settings = Some(Parts { lock, ready, ended });
                actor.socket = socket::serve(&actor.store, ctx.address());
                actor.scan(ctx);
            }
            Ok(Retired::Free) => {
                tracing::info!("nothing to do");
                let _ = ended.send(());
                ctx.stop();
            }
            Err(error) => {
                // The lock may be gone; who comes next looks at every job.
                tracing::warn!(%error, "leaving");
                let _ = ended.send(());
                ctx.stop();
            }
        })
        .wait(ctx);
    }

    /// End, and leave the jobs to the next supervisor.
    pub(super) fn end(&mut self, ctx: &mut Context<Root>) {
        for pool in self.pools.values() {
            pool.do_send(Admit(false));
        }
        let Some(parts) = self.settings.take() else {
            return;
        };
        // Before the lock is another's, as the socket is then.
        self.socket = None;
        let store = self.store.clone();
        off(move || {
            let released = store.disk().release(parts.lock);
            let _ = parts.ended.send(());
            released
        })
        .into_actor(self)
        .map(|released, _, ctx| {
            if let Err(error) = released {
                tracing::warn!(%error, "leaving");
            }
            ctx.stop();
        })
        .wait(ctx);
    }
}
