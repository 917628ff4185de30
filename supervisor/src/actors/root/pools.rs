//! The pools as they are set up: those that are configured, and what somebody made of them.

use std::collections::{BTreeMap, HashSet};

use actix::prelude::*;
use state_machine::id::PoolName;
use state_machine::record;

use super::Root;
use crate::actors::keeper::SetUp;
use crate::actors::pool::{Configure, PoolActor};
use crate::actors::{backoff, off};
use crate::error::Result;
use crate::store::processors;

/// What somebody made of pools, or why that cannot be read.
pub(super) type MadePools = BTreeMap<PoolName, Result<record::Pool>>;

impl Root {
    /// See how the pools are set up now.
    pub(super) fn read_pools(&mut self, ctx: &mut Context<Root>) {
        let store = self.store.clone();
        off(move || store.each_made_pool())
            .into_actor(self)
            .map(|pools, actor, ctx| match pools {
                Ok(pools) => actor.set_up_pools(pools),
                Err(error) => {
                    actor.scans += 1;
                    tracing::error!(%error, "the pools stay as they were");
                    ctx.run_later(backoff(actor.scans), |actor, ctx| actor.read_pools(ctx));
                }
            })
            .spawn(ctx);
    }

    /// Set the pools up: those that are configured, and what somebody made of them.
    pub(super) fn set_up_pools(&mut self, made: MadePools) {
        self.unreadable.retain(|name| made.contains_key(name));
        self.made.retain(|name, _| made.contains_key(name));
        for (name, read) in made {
            match read {
                Ok(pool) => {
                    self.unreadable.remove(&name);
                    self.made.insert(name, pool);
                }
                // What was read before still holds; where nothing was, nobody is admitted (R21).
                Err(error) => {
                    if self.unreadable.insert(name.clone()) {
                        tracing::error!(pool = %name, %error, "the pool stays as it was");
                    }
                }
            }
        }
        if self.is_ready() {
            self.keeper.do_send(SetUp);
        }
        let names: HashSet<PoolName> = self
            .config
            .pool
            .keys()
            .chain(self.made.keys())
            .chain(&self.unreadable)
            .chain(self.pools.keys())
            .cloned()
            .chain([PoolName::default()])
            .collect();
        for name in names {
            self.pool(&name);
        }
        for (name, pool) in &self.pools {
            let (slots, paused) = self.setup(name);
            pool.do_send(Configure { slots, paused });
        }
    }

    /// How many slots a pool has and whether it is paused. One that nobody has set up has no slots: its jobs wait until
    /// somebody does.
    pub(super) fn setup(&self, name: &PoolName) -> (u32, bool) {
        if self.unreadable.contains(name) && !self.made.contains_key(name) {
            return (0, true);
        }
        match self.config.pool(name, self.made.get(name)) {
            None => (0, false),
            Some(setup) => (setup.slots.unwrap_or_else(processors), setup.paused),
        }
    }

    pub(super) fn pool(&mut self, name: &PoolName) -> Addr<PoolActor> {
        if let Some(pool) = self.pools.get(name) {
            return pool.clone();
        }
        let (slots, paused) = self.setup(name);
        let admits = self.is_ready() && !self.draining;
        let pool = PoolActor::new(name.clone(), slots, paused, admits, self.starts.clone()).start();
        self.pools.insert(name.clone(), pool.clone());
        pool
    }
}
