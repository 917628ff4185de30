//! Looking at the whole store: who is there that nobody has seen, and whether the store is still this supervisor's.

use actix::prelude::*;
use state_machine::disk::{Dir, Disk, Read};
use state_machine::id::JobId;
use state_machine::liveness;
use state_machine::protocol::supervise::supervisor_lock;
use state_machine::wire::Notice;

use super::pools::MadePools;
use super::{LockLook, Phase, Root};
use crate::actors::job::Look;
use crate::actors::{backoff, off};
use crate::error::{DiskError, Result};
use crate::store::Store;

impl Root {
    /// Look at the whole store: who is there, and how the pools are set up.
    pub(super) fn scan(&mut self, ctx: &mut Context<Root>) {
        let store = self.store.clone();
        off(move || scan(&store))
            .into_actor(self)
            .map(|scanned, actor, ctx| match scanned {
                Ok(scanned) => actor.scanned(scanned, ctx),
                Err(error) => {
                    actor.scans += 1;
                    tracing::error!(%error, "the store cannot be read; it is tried again");
                    ctx.run_later(backoff(actor.scans), |actor, ctx| actor.scan(ctx));
                }
            })
            .spawn(ctx);
    }

    /// See whether the store is still the one that this is the supervisor of. Whose lock is not at its place can have a
    /// rival, and whose store was moved or removed looks at nothing: such a one ends.
    pub(super) fn see_that_the_lock_stands(&mut self, ctx: &mut Context<Root>) {
        if self.lock_look != LockLook::No {
            self.lock_look = LockLook::Again;
            return;
        }
        let Some(Ok(lock)) = self.settings.as_ref().map(|parts| parts.lock.share()) else {
            // No descriptor to be had, or it is leaving anyway.
            return;
        };
        self.lock_look = LockLook::Yes;
        let store = self.store.clone();
        off(move || {
            let mut disk = store.disk();
            let stands = disk.stands(&lock, &supervisor_lock())?;
            // A copy that is only closed: the lock stays with the other.
            drop(lock);
            Ok::<bool, DiskError>(stands)
        })
        .into_actor(self)
        .map(|stands, actor, ctx| {
            let again = actor.lock_look == LockLook::Again;
            actor.lock_look = LockLook::No;
            match stands {
                Ok(true) if again => actor.see_that_the_lock_stands(ctx),
                Ok(true) => {}
                Ok(false) => {
                    tracing::error!(
                        root = %actor.store.root().display(),
                        "supervisor.lock is not the one that was taken any more: the store was moved or removed, or the \
                         file was; leaving, and jobs run on"
                    );
                    actor.end(ctx);
                }
                Err(error) => tracing::warn!(%error, "the lock cannot be looked at"),
            }
        })
        .spawn(ctx);
    }

    fn scanned(&mut self, scanned: Scanned, ctx: &mut Context<Root>) {
        self.scans = 0;
        self.set_up_pools(scanned.pools);
        for job in self.jobs.values() {
            job.actor.do_send(Look);
        }
        for id in scanned.unfinished {
            if !self.jobs.contains_key(&id) {
                self.look_at(id, ctx);
            }
        }
        if let Phase::Scanning(unseen) = &mut self.phase {
            self.phase = Phase::Seeing(std::mem::take(unseen));
            self.is_ready_if_all_are_seen(ctx);
        }
        // What ended before anybody saw it is in nobody's hands here.
        self.subscribers.tell(&Notice::Changed(None));
        self.see_whether_idle(ctx);
    }
}

/// What a look at the whole store brings.
struct Scanned {
    unfinished: Vec<JobId>,
    pools: MadePools,
}

fn scan(store: &Store) -> Result<Scanned> {
    if let Err(error) = store.collect() {
        tracing::warn!(%error, "what crashes left cannot be collected");
    }
    let mut disk = store.disk();
    let mut unfinished = Vec::new();
    let (ids, strange) = store.entries()?;
    for error in strange {
        tracing::warn!(%error, "passed over");
    }
    for id in ids {
        // What cannot be read is nothing to keep the rest waiting for: whoever looks at the job says so.
        let ended = matches!(
            disk.read_status(&Dir::Job(id.clone())),
            Ok(Read::Value(status)) if !liveness::needs_probe(&status)
        );
        if !ended {
            unfinished.push(id);
        }
    }
    let pools = store.each_made_pool()?;
    Ok(Scanned { unfinished, pools })
}
