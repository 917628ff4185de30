//! What is asked of the supervisor as a whole.

use actix::prelude::*;
use state_machine::id::PoolName;
use state_machine::job::State;

use super::Root;
use crate::actors::keeper::Cease;
use crate::actors::off;
use crate::actors::pool::{Admit, Tell};
use crate::actors::subscribers::Subscribe;
use crate::actors::sweeper::Keep;
use crate::error::Result;

/// Take the configuration up again. What cannot be read is reported, and everything stays as it is (R21).
#[derive(Message)]
#[rtype(result = "Result<()>")]
pub(crate) struct Reload;

/// Admit nothing any more, and end once nothing runs in any pool.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Drain;

/// End now. Workers run on.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Shutdown;

/// How the supervisor stands.
#[derive(Message)]
#[rtype(result = "StatusOf")]
pub(crate) struct Status;

/// How the supervisor stands.
#[derive(Clone, Debug, Default, MessageResponse)]
pub(crate) struct StatusOf {
    pub(crate) ready: bool,
    pub(crate) draining: bool,
    pub(crate) pools: Vec<PoolStatus>,
    pub(crate) queued: usize,
    pub(crate) running: usize,
    pub(crate) paused: usize,
    pub(crate) interrupted: usize,
    /// Why no job can be started, where that is so.
    pub(crate) trouble: Option<String>,
}

/// How a pool stands.
#[derive(Clone, Debug)]
pub(crate) struct PoolStatus {
    pub(crate) name: PoolName,
    pub(crate) slots: u32,
    pub(crate) taken: u32,
    pub(crate) waiting: usize,
    pub(crate) paused: bool,
}

impl Handler<Reload> for Root {
    type Result = ResponseActFuture<Root, Result<()>>;

    fn handle(&mut self, _: Reload, _: &mut Context<Root>) -> Self::Result {
        let store = self.store.clone();
        Box::pin(
            off(move || store.config())
                .into_actor(self)
                .map(|config, actor, ctx| {
                    let config = config.inspect_err(|error| {
                        tracing::error!(%error, "the configuration stays as it was");
                    })?;
                    tracing::info!("the configuration is read again");
                    actor.config = config.clone();
                    actor.sweeper.do_send(Keep(config));
                    actor.read_pools(ctx);
                    Ok(())
                }),
        )
    }
}

impl Handler<Drain> for Root {
    type Result = ();

    fn handle(&mut self, _: Drain, ctx: &mut Context<Root>) {
        self.draining = true;
        self.keeper.do_send(Cease);
        for pool in self.pools.values() {
            pool.do_send(Admit(false));
        }
        self.see_whether_idle(ctx);
    }
}

impl Handler<Shutdown> for Root {
    type Result = ();

    fn handle(&mut self, _: Shutdown, ctx: &mut Context<Root>) {
        self.end(ctx);
    }
}

impl Handler<Status> for Root {
    type Result = ResponseActFuture<Root, StatusOf>;

    fn handle(&mut self, _: Status, _: &mut Context<Root>) -> Self::Result {
        let count = |wanted: State| {
            self.jobs
                .values()
                .filter(|known| known.state == Some(wanted))
                .count()
        };
        let mut status = StatusOf {
            ready: self.is_ready(),
            draining: self.draining,
            pools: Vec::new(),
            queued: count(State::Queued),
            running: count(State::Running),
            paused: count(State::Paused),
            interrupted: count(State::Interrupted),
            trouble: self.trouble.clone(),
        };
        let pools: Vec<_> = self
            .pools
            .iter()
            .map(|(name, pool)| (name.clone(), pool.clone()))
            .collect();
        let asked = async move {
            for (name, pool) in pools {
                if let Ok(report) = pool.send(Tell).await {
                    status.pools.push(PoolStatus {
                        name,
                        slots: report.slots,
                        taken: report.taken,
                        waiting: report.waiting,
                        paused: report.paused,
                    });
                }
            }
            status
        };
        Box::pin(asked.into_actor(self))
    }
}

impl Handler<Subscribe> for Root {
    type Result = MessageResult<Subscribe>;

    fn handle(&mut self, Subscribe(interest): Subscribe, _: &mut Context<Root>) -> Self::Result {
        MessageResult(self.subscribers.add(interest))
    }
}
