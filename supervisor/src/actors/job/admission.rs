//! The job and the slots of its pool: waiting to be admitted, having its place, being started, and being run again.

use std::time::Duration;

use actix::prelude::*;
use state_machine::dependency::Dependency;
use state_machine::id::PoolName;
use state_machine::job::State;
use state_machine::protocol::look::View;
use state_machine::protocol::supervise::fail_unmet;
use state_machine::record::Descriptor;
use state_machine::schedule::Rank;
use state_machine::supervise::{Clocks, Readiness, readiness, resume_delay_ms};

use super::JobActor;
use crate::actors::pool::{Enqueue, Full, Leave, Occupy};
use crate::actors::root::{Await, AwaitSlots};
use crate::actors::starts::Start;
use crate::actors::{backoff, off};
use crate::clock;

/// How long a job must have run to be trusted to go on: one that loses its worker sooner is run again ever more slowly.
const HEALTHY: Duration = Duration::from_secs(60);

impl JobActor {
    /// Somebody works on it, so it has its slots, whoever gave them to it (R20).
    pub(super) fn give_room(&mut self, view: &View, ctx: &mut Context<JobActor>) {
        self.cancel_timer(ctx);
        self.given = None;
        if view.status.attempt > 0 && view.state == State::Running {
            self.refusals = 0;
            self.runs_since.get_or_insert_with(clock::since_boot);
        }
        if self.engaged || self.inside {
            return;
        }
        let Some(pool) = &self.pool else {
            return;
        };
        self.inside = true;
        pool.do_send(Occupy {
            id: self.job.id().clone(),
            slots: view.descriptor.slots,
            number: view.status.slot,
        });
    }

    pub(super) fn leave_pool(&mut self) {
        self.inside = false;
        self.given = None;
        if let Some(pool) = &self.pool {
            pool.do_send(Leave {
                id: self.job.id().clone(),
            });
        }
    }

    pub(super) fn seek_admission(
        &mut self,
        view: &View,
        dependency: Dependency,
        ctx: &mut Context<JobActor>,
    ) {
        if self.engaged {
            // Its worker is on the way. If it never comes, we are told.
            return;
        }
        if let Some(slot) = self.given {
            // Who was to start it is gone. Its place is its own until it is known whether its worker lives: the slot would
            // have two, were it given away now.
            return self.start(Some(slot), ctx);
        }
        let rest = self.rests_until.saturating_sub(clock::since_boot());
        if !rest.is_zero() {
            self.leave_if_inside();
            return self.look_in(rest, ctx);
        }
        let watched = clock::since_boot().saturating_sub(self.since);
        let clocks = Clocks {
            now_ms: clock::now_ms(),
            found_ms: self.found_ms,
            watched_ms: u64::try_from(watched.as_millis()).unwrap_or(u64::MAX),
        };
        let readiness = readiness(&view.descriptor, view.status.attempt, dependency, clocks);
        if readiness != Readiness::Now {
            self.leave_if_inside();
        }
        match readiness {
            // One that comes back keeps its turn: nobody is admitted between its leaving and its coming.
            Readiness::Now => {
                let leaves = std::mem::take(&mut self.inside);
                self.enqueue(&view.descriptor, leaves, ctx);
            }
            Readiness::In(ms) => self.look_in(Duration::from_millis(ms), ctx),
            Readiness::Later if self.unannounced.is_empty() => {}
            Readiness::Later => self.root.do_send(Await {
                after: std::mem::take(&mut self.unannounced),
                id: self.job.id().clone(),
            }),
            Readiness::Never(why) => self.fail(&view.descriptor, why, ctx),
        }
    }

    fn leave_if_inside(&mut self) {
        if self.inside {
            self.leave_pool();
        }
    }

    fn enqueue(&mut self, descriptor: &Descriptor, leaves: bool, ctx: &mut Context<JobActor>) {
        if let Some(pool) = &self.pool {
            pool.do_send(Enqueue {
                rank: Rank::of(descriptor),
                slots: descriptor.slots,
                job: ctx.address(),
                leaves,
            });
        }
    }

    fn start(&mut self, slot: Option<u32>, ctx: &mut Context<JobActor>) {
        self.engaged = true;
        self.starts.do_send(Start {
            id: self.job.id().clone(),
            slot,
            job: ctx.address(),
        });
    }

    fn fail(&mut self, descriptor: &Descriptor, why: String, ctx: &mut Context<JobActor>) {
        tracing::info!(job = %self.job.id(), why, "the job can never start");
        let (job, created_at_ms) = (self.job.clone(), descriptor.created_at_ms);
        off(move || {
            let mut disk = job.store().disk();
            fail_unmet(&mut disk, job.id(), &why, created_at_ms, clock::now_ms())
        })
        .into_actor(self)
        .map(|failed, actor, ctx| match failed {
            Ok(_) => actor.look_after_writing(ctx),
            Err(error) => actor.cannot("fail", &error.into(), ctx),
        })
        .spawn(ctx);
    }

    /// Run again what lost its worker, as it says itself.
    pub(super) fn seek_resumption(&mut self, view: &View, ctx: &mut Context<JobActor>) {
        if self.engaged || self.timer.is_some() {
            return;
        }
        if let Some(slot) = self.given {
            return self.start(Some(slot), ctx);
        }
        if self.pool.is_some() && !self.inside && self.resumed > 0 && self.runs_since.is_none() {
            // It waits in its pool already.
            return self.enqueue(&view.descriptor, false, ctx);
        }
        if self.inside {
            self.leave_pool();
        }
        let was_healthy = self
            .runs_since
            .take()
            .is_some_and(|since| clock::since_boot().saturating_sub(since) >= HEALTHY);
        if was_healthy {
            self.resumed = 0;
        }
        let delay = Duration::from_millis(resume_delay_ms(self.resumed));
        self.resumed += 1;
        tracing::info!(job = %self.job.id(), ?delay, "the job lost its worker and is run again");
        let descriptor = view.descriptor.clone();
        self.timer = Some(ctx.run_later(delay, move |actor, ctx| {
            actor.timer = None;
            if actor.engaged {
                return;
            }
            if actor.pool.is_some() {
                actor.enqueue(&descriptor, false, ctx);
            } else {
                actor.start(None, ctx);
            }
        }));
    }

    /// A worker that was asked for has come to nothing, or is gone. Where the job waits all the same, it is tried again
    /// ever more slowly.
    pub(super) fn is_free_again(&mut self, ctx: &mut Context<JobActor>) {
        self.engaged = false;
        // Its place is left once it is seen that nobody has the job.
        self.inside = true;
        self.look(ctx);
    }

    pub(super) fn came_to_nothing(&mut self, ctx: &mut Context<JobActor>) {
        self.rest(backoff(self.refusals + 1), ctx);
    }

    /// Its pool has no slot to be had: it waits there, with everybody else, until one is given back.
    pub(super) fn waits_for_a_slot(&mut self, ctx: &mut Context<JobActor>) {
        self.given = None;
        self.refusals += 1;
        if let Some(pool) = &self.pool {
            pool.do_send(Full);
        }
        if let Some(name) = self.pool_name() {
            self.root.do_send(AwaitSlots(name));
        }
        self.is_free_again(ctx);
    }

    fn pool_name(&self) -> Option<PoolName> {
        let name = self.descriptor.as_ref()?.pool.as_deref()?;
        PoolName::parse(name).ok()
    }

    pub(super) fn rest(&mut self, time: Duration, ctx: &mut Context<JobActor>) {
        self.given = None;
        self.refusals += 1;
        self.rests_until = clock::since_boot() + time;
        self.is_free_again(ctx);
    }
}
