//! The actor that has the spawner: it passes on what is to be started, and to each job what is said about it. A spawner
//! that was lost is replaced; the workers that it forked live on, and whoever asked for one looks for himself.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use state_machine::id::JobId;
use tokio::io::unix::AsyncFd;

use super::job::{Heard, JobActor};
use super::root::{Cannot, Root};
use super::{Vigil, backoff, off_long};
use crate::clock;
use crate::error::Result;
use crate::reactor::readable;
use crate::spawner::{Answer, Spawner};
use crate::store::Store;
use crate::worker::Launcher;

/// A worker is wanted for a job.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Start {
    pub(super) id: JobId,
    pub(super) slot: Option<u32>,
    pub(super) job: Addr<JobActor>,
}

/// Who the root is.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Serve(pub(super) Addr<Root>);

/// How spawners are had.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) store: Store,
    pub(super) launcher: Launcher,
    /// The soft limit of open files that workers are to have.
    pub(super) open_files: Option<u64>,
}

impl Source {
    fn spawner(&self) -> Result<Spawner> {
        Spawner::start(&self.store, &self.launcher, self.open_files)
    }
}

pub(super) struct Starts {
    source: Source,
    root: Option<Addr<Root>>,
    spawner: Option<Arc<AsyncFd<Spawner>>>,
    /// What could not be asked yet, as the spawner has enough to do.
    waiting: VecDeque<(JobId, Option<u32>)>,
    /// Who wants to hear about which worker.
    jobs: HashMap<JobId, Addr<JobActor>>,
    /// How often in a row there was none, or one that did not live long.
    failures: u32,
    /// Since when there is one, in time since boot.
    since: Duration,
    _vigil: Vigil,
}

/// How long a spawner must have lived for its loss to be no failure of its start.
const HEALTHY: Duration = Duration::from_secs(10);

impl Starts {
    pub(super) fn new(source: Source) -> Starts {
        Starts {
            source,
            root: None,
            spawner: None,
            waiting: VecDeque::new(),
            jobs: HashMap::new(),
            failures: 0,
            since: Duration::ZERO,
            _vigil: Vigil,
        }
    }

    /// Have a spawner.
    fn begin(&mut self, ctx: &mut Context<Starts>) {
        let source = self.source.clone();
        off_long(move || source.spawner())
            .into_actor(self)
            .map(|spawner, actor, ctx| actor.has(spawner, ctx))
            .spawn(ctx);
    }

    fn has(&mut self, spawner: Result<Spawner>, ctx: &mut Context<Starts>) {
        let registered = spawner.and_then(|spawner| {
            let pid = spawner.pid();
            let ready = readable(spawner);
            ready.map(|fd| (pid, fd)).map_err(|error| {
                crate::Error::Worker(format!("the spawner cannot be heard: {error}"))
            })
        });
        match registered {
            Ok((pid, spawner)) => {
                tracing::debug!(pid, "the spawner is there");
                self.since = clock::since_boot();
                if let Some(root) = &self.root {
                    root.do_send(Cannot(None));
                }
                let spawner = Arc::new(spawner);
                self.spawner = Some(spawner.clone());
                self.listen(spawner, ctx);
                self.ask_waiting(ctx);
            }
            Err(error) => {
                self.failures += 1;
                tracing::error!(%error, "no job can be started");
                if let Some(root) = &self.root {
                    root.do_send(Cannot(Some(error.to_string())));
                }
                ctx.run_later(backoff(self.failures), |actor, ctx| actor.begin(ctx));
            }
        }
    }

    fn listen(&mut self, spawner: Arc<AsyncFd<Spawner>>, ctx: &mut Context<Starts>) {
        async move {
            let mut heard = Vec::new();
            let alive = hear(&spawner, &mut heard).await;
            (spawner, heard, alive)
        }
        .into_actor(self)
        .map(|(spawner, heard, alive), actor, ctx| {
            for answer in heard {
                actor.tell(answer);
            }
            if alive {
                actor.ask_waiting(ctx);
                actor.listen(spawner, ctx);
            } else {
                actor.lost(ctx);
            }
        })
        .spawn(ctx);
    }

    /// Pass an answer on to the job that it is about.
    fn tell(&mut self, answer: Answer) {
        let (id, is_last) = match &answer {
            Answer::Forked { job, .. } | Answer::Started { job, .. } | Answer::Vacated { job } => {
                (job, false)
            }
            Answer::Refused { job, .. } | Answer::Left { job, .. } => (job, true),
            Answer::Gone => return,
        };
        let id = id.clone();
        if let Some(job) = self.jobs.get(&id) {
            job.do_send(Heard(answer));
        }
        if is_last {
            self.jobs.remove(&id);
        }
    }

    fn lost(&mut self, ctx: &mut Context<Starts>) {
        tracing::warn!("the spawner was lost; its workers run on, and another is made");
        self.spawner = None;
        self.waiting.clear();
        for (_, job) in self.jobs.drain() {
            job.do_send(Heard(Answer::Gone));
        }
        if clock::since_boot().saturating_sub(self.since) >= HEALTHY {
            self.failures = 0;
            self.begin(ctx);
        } else {
            self.failures += 1;
            ctx.run_later(backoff(self.failures), |actor, ctx| actor.begin(ctx));
        }
    }

    fn ask_waiting(&mut self, ctx: &mut Context<Starts>) {
        let Some(spawner) = self.spawner.clone() else {
            return;
        };
        while let Some((id, slot)) = self.waiting.front() {
            match spawner.get_ref().ask(id, *slot) {
                Ok(()) => {
                    self.waiting.pop_front();
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    // It answers what it has first, and then there is room.
                    if self.jobs.len() == self.waiting.len() {
                        ctx.run_later(backoff(1), |actor, ctx| actor.ask_waiting(ctx));
                    }
                    return;
                }
                // Its end is heard.
                Err(_) => return,
            }
        }
    }
}

/// Hear all that is said now, and wait for it if that is nothing. `false` when the spawner is of no more use.
async fn hear(spawner: &AsyncFd<Spawner>, heard: &mut Vec<Answer>) -> bool {
    loop {
        let Ok(mut ready) = spawner.readable().await else {
            return false;
        };
        loop {
            match spawner.get_ref().receive() {
                Ok(Some(Answer::Gone)) => return false,
                Ok(Some(answer)) => heard.push(answer),
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(%error, "the spawner is not understood");
                    return false;
                }
            }
        }
        ready.clear_ready();
        if !heard.is_empty() {
            return true;
        }
    }
}

impl Actor for Starts {
    type Context = Context<Starts>;

    fn started(&mut self, ctx: &mut Context<Starts>) {
        self.begin(ctx);
    }
}

impl Handler<Serve> for Starts {
    type Result = ();

    fn handle(&mut self, Serve(root): Serve, _: &mut Context<Starts>) {
        self.root = Some(root);
    }
}

impl Handler<Start> for Starts {
    type Result = ();

    fn handle(&mut self, Start { id, slot, job }: Start, ctx: &mut Context<Starts>) {
        self.jobs.insert(id.clone(), job);
        self.waiting.push_back((id, slot));
        self.ask_waiting(ctx);
    }
}
