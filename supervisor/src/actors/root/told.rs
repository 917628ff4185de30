//! What the actors of jobs, and those who start them, tell the root.

use actix::prelude::*;
use state_machine::id::{JobId, PoolName};
use state_machine::job::State;
use state_machine::wire::Notice;

use super::Root;
use crate::actors::job::{JobActor, OneLess, PoolIs};
use crate::actors::sweeper::{Grown, Spare, SpareNoMore};

/// How a job stands, as its actor saw it.
#[derive(Message)]
#[rtype(result = "()")]
pub(in crate::actors) struct Standing {
    pub(in crate::actors) id: JobId,
    pub(in crate::actors) state: State,
    pub(in crate::actors) busy: bool,
    /// Somebody works on it, or is about to.
    pub(in crate::actors) inside: bool,
}

/// A job needs nothing any more.
#[derive(Message)]
#[rtype(result = "()")]
pub(in crate::actors) struct Ended {
    pub(in crate::actors) id: JobId,
    /// `None` where it is gone.
    pub(in crate::actors) state: Option<State>,
}

/// A job waits until others have ended.
#[derive(Message)]
#[rtype(result = "()")]
pub(in crate::actors) struct Await {
    pub(in crate::actors) after: Vec<JobId>,
    pub(in crate::actors) id: JobId,
}

/// A job that has not ended comes after others. They are kept until it has, so that it stays known how they ended.
#[derive(Message)]
#[rtype(result = "()")]
pub(in crate::actors) struct ComesAfter {
    pub(in crate::actors) after: Vec<JobId>,
    pub(in crate::actors) id: JobId,
}

/// A job asks for its pool.
#[derive(Message)]
#[rtype(result = "()")]
pub(in crate::actors) struct PoolOf {
    pub(in crate::actors) name: String,
    pub(in crate::actors) job: Addr<JobActor>,
}

/// Something that no job can do without does not work, or works again. The reason, for people.
#[derive(Message)]
#[rtype(result = "()")]
pub(in crate::actors) struct Cannot(pub(in crate::actors) Option<String>);

impl Handler<Standing> for Root {
    type Result = ();

    fn handle(&mut self, standing: Standing, ctx: &mut Context<Root>) {
        let Standing {
            id,
            state,
            busy,
            inside,
        } = standing;
        if let Some(known) = self.jobs.get_mut(&id) {
            self.busy -= usize::from(known.busy);
            self.running -= usize::from(known.runs());
            let changed = known.state != Some(state);
            known.state = Some(state);
            known.busy = busy;
            known.inside = inside;
            self.busy += usize::from(known.busy);
            self.running += usize::from(known.runs());
            if changed {
                let notice = Notice::State(id.clone(), Some(state));
                self.subscribers.tell(&notice);
            }
        }
        self.seen(&id, ctx);
        self.see_whether_idle(ctx);
    }
}

impl Handler<Ended> for Root {
    type Result = ();

    fn handle(&mut self, Ended { id, state }: Ended, ctx: &mut Context<Root>) {
        let mut told = None;
        if let Some(known) = self.jobs.remove(&id) {
            self.busy -= usize::from(known.busy);
            self.running -= usize::from(known.runs());
            told = known.state;
        }
        self.watcher.forget(&id);
        if let Some(waiting) = self.dependants.remove(&id) {
            for dependant in waiting {
                if let Some(known) = self.jobs.get(&dependant) {
                    known.actor.do_send(OneLess(id.clone()));
                }
            }
        }
        for job in self.comes_after.remove(&id).unwrap_or_default() {
            self.sweeper.do_send(SpareNoMore(job));
        }
        if state.is_some() {
            self.sweeper.do_send(Grown);
        } else {
            self.see_that_the_lock_stands(ctx);
        }
        if state.is_none() || state != told {
            self.subscribers.tell(&Notice::State(id.clone(), state));
        }
        self.seen(&id, ctx);
        self.see_whether_idle(ctx);
    }
}

impl Handler<Await> for Root {
    type Result = ();

    fn handle(&mut self, Await { after, id }: Await, ctx: &mut Context<Root>) {
        for job in after {
            if !self.jobs.contains_key(&job) {
                // It has ended since it was looked at, or nobody has seen it yet: somebody does now, and says so.
                self.look_at(job.clone(), ctx);
            }
            self.dependants.entry(job).or_default().insert(id.clone());
        }
    }
}

impl Handler<PoolOf> for Root {
    type Result = ();

    fn handle(&mut self, PoolOf { name, job }: PoolOf, _: &mut Context<Root>) {
        let pool = match PoolName::parse(&name) {
            Ok(name) => Some(self.pool(&name)),
            Err(why) => {
                tracing::warn!(pool = name, %why, "no pool can have this name");
                None
            }
        };
        job.do_send(PoolIs(pool));
    }
}

impl Handler<ComesAfter> for Root {
    type Result = ();

    fn handle(&mut self, ComesAfter { after, id }: ComesAfter, _: &mut Context<Root>) {
        for job in &after {
            self.sweeper.do_send(Spare(job.clone()));
        }
        self.comes_after.insert(id, after);
    }
}

impl Handler<Cannot> for Root {
    type Result = ();

    fn handle(&mut self, Cannot(why): Cannot, _: &mut Context<Root>) {
        self.trouble = why;
    }
}
