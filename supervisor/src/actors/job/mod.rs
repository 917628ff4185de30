//! The actor of one unfinished job. It looks at the job when something says that it may have changed, lets
//! [`state_machine::supervise`] say what the job needs, and sees to that.

mod admission;
mod sight;

use std::collections::HashSet;
use std::time::Duration;

use actix::prelude::*;
use state_machine::dependency::Dependency;
use state_machine::id::JobId;
use state_machine::job::State;
use state_machine::record::{After, Descriptor, Kind};
use state_machine::supervise::{Need, keeps_busy, need};

use self::sight::{AfterSeen, Seen, Sight, sight};
use super::pool::PoolActor;
use super::root::{ComesAfter, Ended, PoolOf, Root, Standing};
use super::starts::Starts;
use super::{Vigil, backoff, off, off_long};
use crate::clock;
use crate::error::Error;
use crate::spawner::Answer;
use crate::store::Job;

/// Something about the job may have changed.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Look;

/// A job that this one comes after has ended, or is gone.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct OneLess(pub(super) JobId);

/// The job was given this slot, and its start is under way.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Admitted(pub(super) u32);

/// What the spawner says about a worker of the job.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Heard(pub(super) Answer);

/// The pool that was asked for; `None` where none can have that name, and the job is never admitted.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct PoolIs(pub(super) Option<Addr<PoolActor>>);

/// The longest rest of a job that no worker could be had for.
const REFUSED: Duration = Duration::from_secs(5);

/// How long a job whose worker was asked for is let alone after a notice: most of what it does is told by the spawner, and
/// most of the rest is over by then.
const LET_ALONE: Duration = Duration::from_millis(20);

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
    /// Those that it comes after and that were not seen to have ended; `None` as long as none was looked at. There may be
    /// thousands, and each end is a reason to look at one of them only.
    open: Option<Vec<After>>,
    /// Those of them that have ended, as the root says, and were not looked at since.
    ended: HashSet<JobId>,
    /// Those of them that the root has not been asked to tell the end of.
    unannounced: Vec<JobId>,
    looking: Looking,
    last: Option<(State, Need)>,
    /// A worker was asked for, and is not known to be gone.
    engaged: bool,
    /// It counts as inside of its pool because somebody holds it, or did a moment ago.
    inside: bool,
    /// The slot that it was given, as long as nothing is known of the worker that was asked for there.
    given: Option<u32>,
    /// How often in a row it was found in want of a worker after one was asked for.
    resumed: u32,
    /// How often in a row a worker that was asked for came to nothing.
    refusals: u32,
    /// Until when it is not to be tried again for that, in time since boot.
    rests_until: Duration,
    /// Since when it was seen to run, in time since boot.
    runs_since: Option<Duration>,
    /// How often in a row it could not be read.
    unread: u32,
    /// How often in a row what was to be written down could not be.
    faults: u32,
    /// Since when it is watched, in time since boot.
    since: Duration,
    /// What the wall clock said then, in ms since the epoch.
    found_ms: u64,
    timer: Option<SpawnHandle>,
    /// A look that is due once the job was let alone for a while.
    due: Option<SpawnHandle>,
    _vigil: Vigil,
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
            open: None,
            ended: HashSet::new(),
            unannounced: Vec::new(),
            looking: Looking::No,
            last: None,
            engaged: false,
            inside: false,
            given: None,
            resumed: 0,
            refusals: 0,
            rests_until: Duration::ZERO,
            runs_since: None,
            unread: 0,
            faults: 0,
            since: clock::since_boot(),
            found_ms: clock::now_ms(),
            timer: None,
            due: None,
            _vigil: Vigil,
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
        let open = self.open.as_ref();
        let ended = open.map(|open| {
            let ended = open.iter().filter(|after| self.ended.contains(&after.job));
            ended.cloned().collect()
        });
        off(move || sight(&job, known, ended))
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
        if let Sight::Job(seen) = &sight
            && let Some(name) = &seen.view.descriptor.pool
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
            Sight::Job(seen) => {
                if std::mem::take(&mut self.unread) > 0 {
                    tracing::info!(job = %self.job.id(), "the job can be read again");
                }
                if self.descriptor.is_none() {
                    self.meet(&seen.view.descriptor);
                }
                self.act(seen, ctx);
            }
        }
        if changed_meanwhile {
            self.look(ctx);
        }
    }

    /// It stays where it was: nothing is concluded from what cannot be read (R21).
    fn cannot_see(&mut self, error: &Error, ctx: &mut Context<JobActor>) {
        self.unread += 1;
        if self.unread == 1 {
            tracing::warn!(job = %self.job.id(), %error, "the job cannot be read");
        }
        if self.last.is_none() {
            self.stands(State::Queued, Need::Rest);
        }
        self.look_in(backoff(self.unread), ctx);
    }

    /// Keep what is always needed of the descriptor, and have those spared that the job comes after.
    fn meet(&mut self, descriptor: &Descriptor) {
        self.descriptor = Some(bare(descriptor));
        if !descriptor.after.is_empty() {
            self.root.do_send(ComesAfter {
                after: after(descriptor),
                id: self.job.id().clone(),
            });
        }
    }

    fn act(&mut self, seen: Seen, ctx: &mut Context<JobActor>) {
        let (view, state) = (&seen.view, seen.view.state);
        let need = need(view, seen.asked);
        let last = self.last.map(|(_, last)| last);
        if need != Need::Room || last != Some(need) {
            tracing::debug!(job = %self.job.id(), %state, ?need, "seen");
        }
        let dependency = self.take_in(seen.after);
        let is_never = matches!(dependency, Dependency::Never(_));
        if need != Need::Settling && !is_never {
            self.faults = 0;
        }
        match need {
            Need::Nothing => return self.end(Some(state), ctx),
            Need::Room => self.give_room(view, ctx),
            Need::Settling => self.settle(ctx),
            Need::Admission => self.seek_admission(view, dependency, ctx),
            Need::Resumption => self.seek_resumption(view, ctx),
            Need::Rest => {
                self.cancel_timer(ctx);
                self.leave_pool();
            }
        }
        // Last: with it, the root knows that the pool knows.
        self.stands(state, need);
    }

    /// Take in what was found of those that it comes after.
    fn take_in(&mut self, seen: Option<AfterSeen>) -> Dependency {
        let Some(AfterSeen { looked_at, open }) = seen else {
            return Dependency::Met;
        };
        let open = match open {
            Ok(open) => open,
            Err(why) => return Dependency::Never(why),
        };
        let looked_at: HashSet<JobId> = looked_at.into_iter().map(|after| after.job).collect();
        let still = self.open.get_or_insert_default();
        still.retain(|after| !looked_at.contains(&after.job));
        self.ended.retain(|id| !looked_at.contains(id));
        self.unannounced
            .extend(open.iter().map(|after| after.job.clone()));
        still.extend(open);
        if still.is_empty() {
            Dependency::Met
        } else {
            Dependency::Waits
        }
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
            inside: need == Need::Room,
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

    /// Write down what is true: that its worker is gone, or the answer to what was asked of it.
    fn settle(&mut self, ctx: &mut Context<JobActor>) {
        let job = self.job.clone();
        off_long(move || job.settle())
            .into_actor(self)
            .map(|settled, actor, ctx| match settled {
                Ok(_) => actor.look_after_writing(ctx),
                Err(error) => actor.cannot("settle", &error, ctx),
            })
            .spawn(ctx);
    }

    /// What was to be written down is, or somebody else was faster. What is not seen to have changed then is tried again
    /// ever more slowly.
    fn look_after_writing(&mut self, ctx: &mut Context<JobActor>) {
        self.faults += 1;
        match self.faults {
            1 => self.look(ctx),
            more => self.look_in(backoff(more - 1), ctx),
        }
    }

    fn cannot(&mut self, what: &str, error: &Error, ctx: &mut Context<JobActor>) {
        self.faults += 1;
        let job = self.job.id();
        if self.faults == 1 {
            tracing::warn!(%job, %error, "cannot {what} the job; it is tried again");
        } else {
            tracing::debug!(%job, %error, tries = self.faults, "cannot {what} the job");
        }
        self.look_in(backoff(self.faults), ctx);
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

impl Handler<OneLess> for JobActor {
    type Result = ();

    fn handle(&mut self, OneLess(id): OneLess, ctx: &mut Context<JobActor>) {
        self.ended.insert(id);
        self.look(ctx);
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

    fn handle(&mut self, Admitted(slot): Admitted, ctx: &mut Context<JobActor>) {
        self.engaged = true;
        self.given = Some(slot);
        self.cancel_timer(ctx);
        // Whoever waits until nothing runs waits for it from now on.
        self.stands(State::Queued, Need::Room);
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
            Answer::Refused { why, full, .. } => {
                if self.refusals == 0 {
                    tracing::info!(job = %self.job.id(), why, "no worker; it is looked at again");
                } else {
                    tracing::debug!(job = %self.job.id(), why, tries = self.refusals, "no worker");
                }
                if full {
                    return self.waits_for_a_slot(ctx);
                }
                self.rest(backoff(self.refusals + 1).min(REFUSED), ctx);
            }
            Answer::Left { .. } => self.came_to_nothing(ctx),
            Answer::Gone => self.is_free_again(ctx),
        }
    }
}

/// The jobs that a job comes after.
fn after(descriptor: &Descriptor) -> Vec<JobId> {
    let after = descriptor.after.iter();
    after.map(|after| after.job.clone()).collect()
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
