//! The actor of one unfinished job. It looks at the job when something says that it may have changed, lets
//! [`state_machine::supervise`] say what the job needs, and sees to that.

use std::time::Duration;

use actix::prelude::*;
use state_machine::dependency::{Dependency, Seen, dependency};
use state_machine::disk::Place;
use state_machine::job::State;
use state_machine::protocol::look::{Look as Looked, View, look, look_at};
use state_machine::protocol::supervise::fail_unmet;
use state_machine::record::{After, Descriptor, Kind};
use state_machine::schedule::Rank;
use state_machine::supervise::{Need, Readiness, keeps_busy, need, readiness, resume_delay_ms};

use super::pool::{Enqueue, Leave, Occupy, PoolActor};
use super::root::{Await, Ended, PoolOf, Root, Standing};
use super::starts::{Start, Starts};
use super::{backoff, off};
use crate::clock;
use crate::error::{Error, Result};
use crate::spawner::Answer;
use crate::store::Job;

/// Something about the job may have changed.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Look;

/// The job was given a slot, and its start is under way.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Admitted;

/// What the spawner says about a worker of the job.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Heard(pub(super) Answer);

/// The pool that was asked for; `None` where none can have that name, and the job is never admitted.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct PoolIs(pub(super) Option<Addr<PoolActor>>);

/// How long a job whose worker was asked for is let alone after a notice: most of what it does is told by the spawner, and
/// most of the rest is over by then.
const LET_ALONE: Duration = Duration::from_millis(20);

/// What was seen of a job.
enum Sight {
    Job {
        view: Box<View>,
        asked: bool,
        dependency: Dependency,
    },
    Gone,
    Unreadable(Error),
}

/// Whether a look is under way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Looking {
    No,
    Yes,
    /// And something has changed since it began.
    Again,
}

pub(super) struct JobActor {
    job: Job,
    root: Addr<Root>,
    starts: Addr<Starts>,
    pool: Option<Addr<PoolActor>>,
    pool_is_known: bool,
    /// What was seen before the pool was known.
    waiting: Option<Sight>,
    /// What was asked for, without what only its worker needs.
    descriptor: Option<Descriptor>,
    looking: Looking,
    last: Option<(State, Need)>,
    /// A worker was asked for, and is not known to be gone.
    engaged: bool,
    /// It counts as inside of its pool because somebody holds it.
    inside: bool,
    /// How often in a row it was found in want of a worker after one was asked for.
    resumed: u32,
    /// How often in a row something failed.
    faults: u32,
    /// Since when it is watched, in time since boot.
    since: Duration,
    timer: Option<SpawnHandle>,
    /// A look that is due once the job was let alone for a while.
    due: Option<SpawnHandle>,
}

impl JobActor {
    pub(super) fn new(job: Job, root: Addr<Root>, starts: Addr<Starts>) -> JobActor {
        JobActor {
            job,
            root,
            starts,
            pool: None,
            pool_is_known: false,
            waiting: None,
            descriptor: None,
            looking: Looking::No,
            last: None,
            engaged: false,
            inside: false,
            resumed: 0,
            faults: 0,
            since: clock::since_boot(),
            timer: None,
            due: None,
        }
    }

    fn look(&mut self, ctx: &mut Context<JobActor>) {
        if let Some(due) = self.due.take() {
            ctx.cancel_future(due);
        }
        if self.looking != Looking::No {
            self.looking = Looking::Again;
            return;
        }
        self.looking = Looking::Yes;
        let (job, known) = (self.job.clone(), self.descriptor.clone());
        off(move || sight(&job, known))
            .into_actor(self)
            .map(|sight, actor, ctx| actor.saw(sight, ctx))
            .spawn(ctx);
    }

    fn look_in(&mut self, time: Duration, ctx: &mut Context<JobActor>) {
        self.cancel_timer(ctx);
        self.timer = Some(ctx.run_later(time, |actor, ctx| {
            actor.timer = None;
            actor.look(ctx);
        }));
    }

    fn cancel_timer(&mut self, ctx: &mut Context<JobActor>) {
        if let Some(timer) = self.timer.take() {
            ctx.cancel_future(timer);
        }
    }

    fn saw(&mut self, sight: Sight, ctx: &mut Context<JobActor>) {
        if let Sight::Job { view, .. } = &sight
            && let Some(name) = &view.descriptor.pool
            && !self.pool_is_known
        {
            // It goes on once the pool is known: whoever is told how the job stands must find it there.
            self.root.do_send(PoolOf {
                name: name.clone(),
                job: ctx.address(),
            });
            self.waiting = Some(sight);
            return;
        }
        let changed_meanwhile = self.looking == Looking::Again;
        self.looking = Looking::No;
        match sight {
            Sight::Gone => return self.end(None, ctx),
            Sight::Unreadable(error) => self.cannot_see(&error, ctx),
            Sight::Job {
                view,
                asked,
                dependency,
            } => {
                self.faults = 0;
                self.descriptor
                    .get_or_insert_with(|| bare(&view.descriptor));
                self.act(&view, asked, dependency, ctx);
            }
        }
        if changed_meanwhile {
            self.look(ctx);
        }
    }

    /// It stays where it was: nothing is concluded from what cannot be read (R21).
    fn cannot_see(&mut self, error: &Error, ctx: &mut Context<JobActor>) {
        self.faults += 1;
        if self.faults == 1 {
            tracing::warn!(job = %self.job.id(), %error, "the job cannot be read");
        }
        if self.last.is_none() {
            self.stands(State::Queued, Need::Rest);
        }
        self.look_in(backoff(self.faults), ctx);
    }

    fn act(
        &mut self,
        view: &View,
        asked: bool,
        dependency: Dependency,
        ctx: &mut Context<JobActor>,
    ) {
        let need = need(view, asked);
        if need != Need::Room || self.last.is_none_or(|(_, last)| last != need) {
            tracing::debug!(job = %self.job.id(), state = %view.state, ?need, "seen");
        }
        match need {
            Need::Nothing => return self.end(Some(view.state), ctx),
            Need::Room => self.give_room(view, ctx),
            Need::Settling => self.settle(ctx),
            Need::Admission => self.seek_admission(view, dependency, ctx),
            Need::Resumption => self.seek_resumption(view, ctx),
            Need::Rest => self.leave_pool(),
        }
        // Last: with it, the root knows that the pool knows.
        self.stands(view.state, need);
    }

    fn stands(&mut self, state: State, need: Need) {
        if self.last == Some((state, need)) {
            return;
        }
        self.last = Some((state, need));
        let busy = self
            .descriptor
            .as_ref()
            .is_some_and(|descriptor| keeps_busy(need, descriptor));
        self.root.do_send(Standing {
            id: self.job.id().clone(),
            state,
            busy,
        });
    }

    fn end(&mut self, state: Option<State>, ctx: &mut Context<JobActor>) {
        self.leave_pool();
        self.root.do_send(Ended {
            id: self.job.id().clone(),
            state,
        });
        ctx.stop();
    }

    /// Somebody works on it, so it has its slots, whoever gave them to it (R20).
    fn give_room(&mut self, view: &View, ctx: &mut Context<JobActor>) {
        self.cancel_timer(ctx);
        if view.status.attempt > 0 && view.state == State::Running {
            self.resumed = 0;
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

    fn leave_pool(&mut self) {
        self.inside = false;
        if let Some(pool) = &self.pool {
            pool.do_send(Leave {
                id: self.job.id().clone(),
            });
        }
    }

    /// Write down what is true: that its worker is gone, or the answer to what was asked of it.
    fn settle(&mut self, ctx: &mut Context<JobActor>) {
        let job = self.job.clone();
        off(move || job.settle())
            .into_actor(self)
            .map(|settled, actor, ctx| match settled {
                Ok(_) => actor.look(ctx),
                Err(error) => actor.cannot("settle", &error, ctx),
            })
            .spawn(ctx);
    }

    fn cannot(&mut self, what: &str, error: &Error, ctx: &mut Context<JobActor>) {
        self.faults += 1;
        let job = self.job.id();
        tracing::warn!(%job, %error, tries = self.faults, "cannot {what} the job; it is tried again");
        self.look_in(backoff(self.faults), ctx);
    }

    fn seek_admission(&mut self, view: &View, dependency: Dependency, ctx: &mut Context<JobActor>) {
        if self.engaged {
            // Its worker is on the way. If it never comes, we are told.
            return;
        }
        if self.inside {
            self.leave_pool();
        }
        let watched = clock::since_boot().saturating_sub(self.since);
        match readiness(
            &view.descriptor,
            view.status.attempt,
            dependency,
            clock::now_ms(),
            u64::try_from(watched.as_millis()).unwrap_or(u64::MAX),
        ) {
            Readiness::Now => self.enqueue(view, ctx),
            Readiness::In(ms) => self.look_in(Duration::from_millis(ms), ctx),
            Readiness::Later => self.root.do_send(Await {
                after: view
                    .descriptor
                    .after
                    .iter()
                    .map(|after| after.job.clone())
                    .collect(),
                id: self.job.id().clone(),
            }),
            Readiness::Never(why) => self.fail(&view.descriptor, why, ctx),
        }
    }

    fn enqueue(&mut self, view: &View, ctx: &mut Context<JobActor>) {
        if let Some(pool) = &self.pool {
            pool.do_send(Enqueue {
                rank: Rank::of(&view.descriptor),
                slots: view.descriptor.slots,
                job: ctx.address(),
            });
        }
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
            Ok(_) => actor.look(ctx),
            Err(error) => actor.cannot("fail", &error.into(), ctx),
        })
        .spawn(ctx);
    }

    /// Run again what lost its worker, as it says itself.
    fn seek_resumption(&mut self, view: &View, ctx: &mut Context<JobActor>) {
        if self.engaged || self.timer.is_some() {
            return;
        }
        if self.inside {
            self.leave_pool();
        }
        let delay = Duration::from_millis(resume_delay_ms(self.resumed));
        self.resumed += 1;
        tracing::info!(job = %self.job.id(), ?delay, "the job lost its worker and is run again");
        let pooled = view.descriptor.pool.is_some();
        let view = view.clone();
        self.timer = Some(ctx.run_later(delay, move |actor, ctx| {
            actor.timer = None;
            if actor.engaged {
                return;
            }
            if pooled {
                actor.enqueue(&view, ctx);
            } else {
                actor.engaged = true;
                actor.starts.do_send(Start {
                    id: actor.job.id().clone(),
                    slot: None,
                    job: ctx.address(),
                });
            }
        }));
    }

    /// The worker that was asked for is not there, or not any more.
    fn is_free_again(&mut self, ctx: &mut Context<JobActor>) {
        self.engaged = false;
        self.inside = true;
        self.look(ctx);
    }
}

impl Actor for JobActor {
    type Context = Context<JobActor>;

    fn started(&mut self, ctx: &mut Context<JobActor>) {
        self.look(ctx);
    }
}

impl Handler<Look> for JobActor {
    type Result = ();

    fn handle(&mut self, _: Look, ctx: &mut Context<JobActor>) {
        if !self.engaged {
            self.look(ctx);
        } else if self.due.is_none() {
            self.due = Some(ctx.run_later(LET_ALONE, |actor, ctx| {
                actor.due = None;
                actor.look(ctx);
            }));
        }
    }
}

impl Handler<PoolIs> for JobActor {
    type Result = ();

    fn handle(&mut self, PoolIs(pool): PoolIs, ctx: &mut Context<JobActor>) {
        self.pool = pool;
        self.pool_is_known = true;
        if let Some(sight) = self.waiting.take() {
            self.saw(sight, ctx);
        }
    }
}

impl Handler<Admitted> for JobActor {
    type Result = ();

    fn handle(&mut self, _: Admitted, ctx: &mut Context<JobActor>) {
        self.engaged = true;
        self.cancel_timer(ctx);
    }
}

impl Handler<Heard> for JobActor {
    type Result = ();

    fn handle(&mut self, Heard(answer): Heard, ctx: &mut Context<JobActor>) {
        match answer {
            Answer::Started { running: true, .. } => self.stands(State::Running, Need::Room),
            Answer::Forked { .. } | Answer::Started { .. } => {}
            // The next job need not wait until this end is recorded.
            Answer::Vacated { .. } => self.leave_pool(),
            Answer::Refused { why, .. } => {
                tracing::debug!(job = %self.job.id(), why, "no worker");
                self.faults += 1;
                self.engaged = false;
                self.inside = true;
                // Whoever has it now gives notice; what keeps it from being started may need a while.
                self.look_in(backoff(self.faults), ctx);
            }
            Answer::Left { .. } | Answer::Gone => self.is_free_again(ctx),
        }
    }
}

fn sight(job: &Job, known: Option<Descriptor>) -> Sight {
    try_sight(job, known).unwrap_or_else(Sight::Unreadable)
}

fn try_sight(job: &Job, known: Option<Descriptor>) -> Result<Sight> {
    let mut disk = job.store().disk();
    let looked = match known {
        Some(descriptor) => look_at(&mut disk, descriptor)?,
        None => look(&mut disk, job.id())?,
    };
    let view = match looked {
        Looked::Job(view) => view,
        Looked::Gone => return Ok(Sight::Gone),
        Looked::Damaged { file, why } => {
            return Ok(Sight::Unreadable(Error::Damaged {
                path: disk.path(&Place::of_job(job.id(), file)),
                why: why.0,
            }));
        }
    };
    let asked = !view.held && job.has_request()?;
    let dependency = match need(&view, asked) {
        Need::Admission if view.status.attempt == 0 => {
            dependency(&view.descriptor.after, |after| seen(job, after))
        }
        _ => Dependency::Met,
    };
    Ok(Sight::Job {
        view,
        asked,
        dependency,
    })
}

/// How a job that this one comes after stands.
fn seen(job: &Job, after: &After) -> Seen {
    match job.store().job(&after.job).look() {
        Ok(view) => Seen::State(view.state),
        Err(Error::Gone(_)) => Seen::Gone,
        Err(_) => Seen::Damaged,
    }
}

/// A descriptor without what only its worker needs: there may be very many.
fn bare(descriptor: &Descriptor) -> Descriptor {
    let mut bare = descriptor.clone();
    if let Kind::Command(command) = &mut bare.kind {
        command.argv = Vec::new();
        command.env.0 = Vec::new();
    }
    bare.on_end = None;
    bare
}
