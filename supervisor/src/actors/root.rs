//! The root of the supervisor: it holds the lock, brings the other actors up in order, passes notices on, and takes
//! everything down again. What is asked of the supervisor as a whole is asked of it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use actix::prelude::*;
use outlive_mailbox::{Drained, Mailbox, Notices};
use state_machine::config::Config;
use state_machine::disk::{Dir, Disk, Read};
use state_machine::id::{JobId, PoolName};
use state_machine::job::State;
use state_machine::liveness;
use state_machine::protocol::supervise::{Retired, retire, supervisor_lock};
use state_machine::record;
use state_machine::wire::Notice;
use tokio::sync::oneshot;

use super::clock::ClockSet;
use super::job::{JobActor, Look, OneLess, PoolIs};
use super::keeper::{Cease, Keeper, SetUp};
use super::pool::{Admit, Configure, PoolActor, Seen, Tell};
use super::starts::{Serve, Source, Starts};
use super::subscribers::{Subscribe, Subscribers};
use super::sweeper::{Grown, Keep, Spare, SpareNoMore, Sweeper};
use super::{Vigil, backoff, off};
use crate::disk::LockFile;
use crate::error::{DiskError, Result};
use crate::slots::Slots;
use crate::socket::{self, Server};
use crate::store::{Store, processors};
use crate::watcher::{self, Watcher};
use crate::worker::Launcher;

/// How often the whole store is looked at although nothing tells that it has changed.
const RECONCILE: Duration = Duration::from_secs(15 * 60);

/// What a supervisor is started with.
pub(crate) struct Settings {
    pub(crate) store: Store,
    pub(crate) launcher: Launcher,
    /// The soft limit of open files that workers are to have.
    pub(crate) open_files: Option<u64>,
    /// How long it stays with nothing to do; for ever where absent.
    pub(crate) idle_exit: Option<Duration>,
    /// Its lock, held.
    pub(crate) lock: LockFile,
    pub(crate) config: Config,
    /// Told once everything that is there is known.
    pub(crate) ready: oneshot::Sender<()>,
    /// Told when it has ended.
    pub(crate) ended: oneshot::Sender<()>,
}

/// How a job stands, as its actor saw it.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Standing {
    pub(super) id: JobId,
    pub(super) state: State,
    pub(super) busy: bool,
    /// Somebody works on it, or is about to.
    pub(super) inside: bool,
}

/// A job needs nothing any more.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Ended {
    pub(super) id: JobId,
    /// `None` where it is gone.
    pub(super) state: Option<State>,
}

/// A job waits until others have ended.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Await {
    pub(super) after: Vec<JobId>,
    pub(super) id: JobId,
}

/// Somebody waits for a slot of this pool that has a place.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct AwaitSlots(pub(super) PoolName);

/// A job that has not ended comes after others. They are kept until it has, so that it stays known how they ended.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct ComesAfter {
    pub(super) after: Vec<JobId>,
    pub(super) id: JobId,
}

/// A job asks for its pool.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct PoolOf {
    pub(super) name: String,
    pub(super) job: Addr<JobActor>,
}

/// Something that no job can do without does not work, or works again. The reason, for people.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Cannot(pub(super) Option<String>);

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

/// What has changed on disk.
#[derive(Message)]
#[rtype(result = "()")]
struct Changed(Notices<watcher::Changed>);

/// One of the jobs that there are.
struct Known {
    actor: Addr<JobActor>,
    state: Option<State>,
    busy: bool,
    /// Somebody works on it, or is about to.
    inside: bool,
}

impl Known {
    /// Whether it runs in a pool, or is about to, or is to be run again if its worker is lost.
    fn runs(&self) -> bool {
        self.busy && self.inside && self.state != Some(State::Paused)
    }
}

/// The root.
pub(crate) struct Root {
    /// While the lock is ours, and there is one to be had. Before the lock, so that it goes first in any case.
    socket: Option<Server>,
    settings: Option<Parts>,
    store: Store,
    config: Config,
    idle_exit: Option<Duration>,
    watcher: Watcher,
    starts: Addr<Starts>,
    sweeper: Addr<Sweeper>,
    keeper: Addr<Keeper>,
    slots: Slots,
    /// The pools whose slots are watched, as somebody waits for one.
    awaited: BTreeSet<PoolName>,
    jobs: HashMap<JobId, Known>,
    /// How many of them it is to stay for.
    busy: usize,
    /// How many of those run.
    running: usize,
    pools: BTreeMap<PoolName, Addr<PoolActor>>,
    /// What somebody made of the pools.
    made: BTreeMap<PoolName, record::Pool>,
    /// The pools of which that cannot be read now.
    unreadable: HashSet<PoolName>,
    /// Who waits for the end of whom.
    dependants: HashMap<JobId, HashSet<JobId>>,
    /// What those come after that have not ended.
    comes_after: HashMap<JobId, Vec<JobId>>,
    phase: Phase,
    draining: bool,
    trouble: Option<String>,
    subscribers: Subscribers,
    idle: Option<SpawnHandle>,
    scans: u32,
    lock_look: LockLook,
    _vigil: Vigil,
}

/// Whether the lock is being looked at: each look has a descriptor of its own, and thousands of jobs can go at once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LockLook {
    No,
    Yes,
    /// And there was a reason to look since it began.
    Again,
}

/// How far the supervisor is.
enum Phase {
    /// Who is there is not known yet, but of these it was told meanwhile, and has not seen them.
    Scanning(HashSet<JobId>),
    /// These were there, or have come since, and were not seen yet.
    Seeing(HashSet<JobId>),
    /// Everybody was seen.
    Ready,
}

impl Phase {
    fn unseen(&mut self) -> Option<&mut HashSet<JobId>> {
        match self {
            Phase::Scanning(unseen) | Phase::Seeing(unseen) => Some(unseen),
            Phase::Ready => None,
        }
    }
}

/// What is handed on at the end.
struct Parts {
    lock: LockFile,
    ready: Option<oneshot::Sender<()>>,
    ended: oneshot::Sender<()>,
}

impl Root {
    /// Within a system of actors: bring everything up.
    pub(crate) fn start(
        settings: Settings,
        watcher: Watcher,
        mailbox: Mailbox<watcher::Changed>,
    ) -> Addr<Root> {
        let slots = settings.store.slots(&settings.launcher);
        let keeper = Keeper::new(slots.clone()).start();
        let source = Source {
            store: settings.store.clone(),
            launcher: settings.launcher,
            open_files: settings.open_files,
        };
        let starts = Starts::new(source).start();
        let sweeper = Sweeper::new(settings.store.clone(), settings.config.clone()).start();
        let root = Root {
            store: settings.store,
            config: settings.config,
            idle_exit: settings.idle_exit,
            settings: Some(Parts {
                lock: settings.lock,
                ready: Some(settings.ready),
                ended: settings.ended,
            }),
            watcher,
            starts: starts.clone(),
            sweeper,
            keeper,
            slots,
            awaited: BTreeSet::new(),
            jobs: HashMap::new(),
            busy: 0,
            running: 0,
            pools: BTreeMap::new(),
            made: BTreeMap::new(),
            unreadable: HashSet::new(),
            dependants: HashMap::new(),
            comes_after: HashMap::new(),
            phase: Phase::Scanning(HashSet::new()),
            draining: false,
            trouble: None,
            subscribers: Subscribers::new(),
            socket: None,
            idle: None,
            scans: 0,
            lock_look: LockLook::No,
            _vigil: Vigil,
        }
        .start();
        starts.do_send(Serve(root.clone()));
        let notified = root.clone();
        Arbiter::current().spawn(pass_notices_on(mailbox, notified));
        Arbiter::current().spawn(pass_clock_on(root.clone()));
        root
    }

    /// Look at the whole store: who is there, and how the pools are set up.
    fn scan(&mut self, ctx: &mut Context<Root>) {
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
    fn see_that_the_lock_stands(&mut self, ctx: &mut Context<Root>) {
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

    /// See how the pools are set up now.
    fn read_pools(&mut self, ctx: &mut Context<Root>) {
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

    /// Have somebody look at a job.
    fn look_at(&mut self, id: JobId, ctx: &mut Context<Root>) {
        if let Some(known) = self.jobs.get(&id) {
            known.actor.do_send(Look);
            return;
        }
        if let Some(unseen) = self.phase.unseen() {
            unseen.insert(id.clone());
        }
        // The watch stands before the first look, so that nothing falls in between.
        self.watcher.watch(&id);
        let job = self.store.job(&id);
        let actor = JobActor::new(job, ctx.address(), self.starts.clone()).start();
        let known = Known {
            actor,
            state: None,
            busy: true,
            inside: false,
        };
        self.jobs.insert(id, known);
        self.busy += 1;
        self.see_whether_idle(ctx);
    }

    /// Set the pools up: those that are configured, and what somebody made of them.
    fn set_up_pools(&mut self, made: MadePools) {
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
    fn setup(&self, name: &PoolName) -> (u32, bool) {
        if self.unreadable.contains(name) && !self.made.contains_key(name) {
            return (0, true);
        }
        match self.config.pool(name, self.made.get(name)) {
            None => (0, false),
            Some(setup) => (setup.slots.unwrap_or_else(processors), setup.paused),
        }
    }

    fn pool(&mut self, name: &PoolName) -> Addr<PoolActor> {
        if let Some(pool) = self.pools.get(name) {
            return pool.clone();
        }
        let (slots, paused) = self.setup(name);
        let admits = self.is_ready() && !self.draining;
        let pool = PoolActor::new(name.clone(), slots, paused, admits, self.starts.clone()).start();
        self.pools.insert(name.clone(), pool.clone());
        pool
    }

    /// Tell a pool how its slots are, as one of them may have been given back. Where nobody waits for that, they are watched no
    /// more.
    fn see_slots(&mut self, name: PoolName, twice: bool, ctx: &mut Context<Root>) {
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

    fn seen(&mut self, id: &JobId, ctx: &mut Context<Root>) {
        if let Some(unseen) = self.phase.unseen() {
            unseen.remove(id);
            self.is_ready_if_all_are_seen(ctx);
        }
    }

    fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready)
    }

    /// Nothing is admitted before everybody who is inside is known (R20).
    fn is_ready_if_all_are_seen(&mut self, ctx: &mut Context<Root>) {
        if !matches!(&self.phase, Phase::Seeing(unseen) if unseen.is_empty()) {
            return;
        }
        self.phase = Phase::Ready;
        tracing::info!(jobs = self.jobs.len(), pools = self.pools.len(), "ready");
        for pool in self.pools.values() {
            pool.do_send(Admit(!self.draining));
        }
        if let Some(ready) = self.settings.as_mut().and_then(|parts| parts.ready.take()) {
            // Nobody need be waiting for it.
            let _ = ready.send(());
        }
        self.sweeper.do_send(Keep(self.config.clone()));
        self.keeper.do_send(SetUp);
        self.see_whether_idle(ctx);
    }

    fn see_whether_idle(&mut self, ctx: &mut Context<Root>) {
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
    fn leave(&mut self, ctx: &mut Context<Root>) {
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
    fn end(&mut self, ctx: &mut Context<Root>) {
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

/// What a look at the whole store brings.
struct Scanned {
    unfinished: Vec<JobId>,
    pools: MadePools,
}

/// What somebody made of pools, or why that cannot be read.
type MadePools = BTreeMap<PoolName, Result<record::Pool>>;

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

async fn pass_notices_on(mut mailbox: Mailbox<watcher::Changed>, root: Addr<Root>) {
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

async fn pass_clock_on(root: Addr<Root>) {
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

impl Actor for Root {
    type Context = Context<Root>;

    fn started(&mut self, ctx: &mut Context<Root>) {
        ctx.set_mailbox_capacity(1 << 16);
        self.socket = socket::serve(&self.store, ctx.address());
        self.scan(ctx);
        // What no notice tells of, for whatever reason, is seen then.
        ctx.run_interval(RECONCILE, |actor, ctx| {
            actor.see_that_the_lock_stands(ctx);
            actor.scan(ctx);
        });
    }

    fn stopped(&mut self, _: &mut Context<Root>) {
        System::current().stop();
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

impl Handler<AwaitSlots> for Root {
    type Result = ();

    fn handle(&mut self, AwaitSlots(pool): AwaitSlots, ctx: &mut Context<Root>) {
        // What is given back before they are watched is seen by the second look.
        let is_first = self.awaited.insert(pool.clone());
        self.see_slots(pool, is_first, ctx);
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::{Config as Started, Supervisor};

    /// What nobody says but a test.
    #[derive(Message)]
    #[rtype(result = "()")]
    struct Panic;

    impl Handler<Panic> for Root {
        type Result = ();

        fn handle(&mut self, _: Panic, _: &mut Context<Root>) {
            panic!("as asked");
        }
    }

    #[test]
    fn an_actor_that_panics_ends_the_supervisor_and_whoever_waits_is_told() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let store = Store::open(dir.path().join("store")).expect("a store");
        let started = Started {
            launcher: Launcher::outlive_at("/bin/true"),
            idle_exit: None,
        };
        let mut supervisor = Supervisor::start(store.clone(), started).expect("it starts");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            supervisor.ready().await;
            assert!(store.is_supervised().expect("it can be asked"));
            supervisor.root().do_send(Panic);
            assert!(supervisor.ended().await.is_err());
        });
        drop(supervisor);
        assert!(!store.is_supervised().expect("it can be asked"));
    }
}
