//! The root of the supervisor: it holds the lock, brings the other actors up in order, passes notices on, and takes
//! everything down again. What is asked of the supervisor as a whole is asked of it.

mod asked;
mod heard;
mod leave;
mod pools;
mod scan;
mod slots;
#[cfg(test)]
mod tests;
mod told;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use actix::prelude::*;
use outlive_mailbox::Mailbox;
use state_machine::config::Config;
use state_machine::id::{JobId, PoolName};
use state_machine::job::State;
use state_machine::record;
use tokio::sync::oneshot;

use self::heard::{pass_clock_on, pass_notices_on};
use super::Vigil;
use super::job::{JobActor, Look};
use super::keeper::{Keeper, SetUp};
use super::pool::{Admit, PoolActor};
use super::starts::{Serve, Source, Starts};
use super::subscribers::Subscribers;
use super::sweeper::{Keep, Sweeper};
use crate::disk::LockFile;
use crate::slots::Slots;
use crate::socket::{self, Server};
use crate::store::Store;
use crate::watcher::{self, Watcher};
use crate::worker::Launcher;

pub(crate) use self::asked::{Drain, Reload, Shutdown, Status, StatusOf};
pub(super) use self::slots::AwaitSlots;
pub(super) use self::told::{Await, Cannot, ComesAfter, Ended, PoolOf, Standing};

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
