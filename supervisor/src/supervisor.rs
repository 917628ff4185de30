//! The supervisor, as an embedding program and the command line start it: a thread with a system of actors on it. Starting,
//! stopping and asking; what it does is in `actors/`.

mod signature;

use std::io;
use std::thread::JoinHandle;
use std::time::Duration;

use actix::prelude::*;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use state_machine::protocol::supervise::{Supervision, claim_supervision, is_supervised};
use tokio::sync::oneshot;

use self::signature::{Lingering, sign};
use crate::actors::{Drain, Reload, Root, Settings, Shutdown, Status};
use crate::disk::LockFile;
use crate::error::{Error, Result};
use crate::store::Store;
use crate::watcher::Watcher;
use crate::worker::Launcher;

pub(crate) use self::signature::holder;
pub use crate::socket::{PoolReport, StatusReport};

/// How a supervisor is to be.
#[derive(Clone, Debug)]
pub struct Config {
    /// How it starts workers: see [`Launcher::this_program`].
    pub launcher: Launcher,
    /// How long it stays with nothing to do; for ever where `None`.
    pub idle_exit: Option<Duration>,
}

impl Default for Config {
    /// One that stays, and whose workers are this program.
    fn default() -> Config {
        Config {
            launcher: Launcher::this_program(),
            idle_exit: None,
        }
    }
}

/// How many threads at most do for it what blocks. Looking at jobs is shared out among few of them; the rest is for what
/// may take as long as the grace of a job.
const BLOCKING_THREADS: usize = 64;
/// How long such a thread stays with nothing to do.
const THREAD_STAYS: Duration = Duration::from_secs(5);
/// How many different notices wait at most before they become one that says "look at everything".
const NOTICES: usize = 4096;
/// A supervisor that runs in this process. It ends when this is dropped; the jobs run on.
///
/// ```no_run
/// use outlive::supervisor::{Config, Supervisor};
/// use outlive::{JobSpec, Store};
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     // First thing: this very program is executed again for its workers.
///     outlive::worker_if_asked();
///     let runtime = tokio::runtime::Builder::new_current_thread()
///         .enable_all()
///         .build()?;
///     runtime.block_on(async {
///         let store = Store::open_default()?;
///         let mut supervisor = Supervisor::start(store.clone(), Config::default())?;
///         supervisor.ready().await;
///         let (job, _) = store.queue(JobSpec::command(["make", "-j2"]))?;
///         println!("{}", job.wait_async(None).await?.state);
///         Ok(())
///     })
/// }
/// ```
#[derive(Debug)]
pub struct Supervisor {
    root: Addr<Root>,
    store: Store,
    ready: Option<oneshot::Receiver<()>>,
    ended: Option<oneshot::Receiver<()>>,
    lost: bool,
    thread: Option<JoinHandle<()>>,
}

impl Supervisor {
    /// Become the supervisor of the store, on a thread of its own. When this returns the store has no other; jobs are
    /// admitted once everything that is there is known ([`Supervisor::ready`]).
    ///
    /// # Errors
    ///
    /// [`Error::Supervised`] when somebody else is the supervisor of the store; when the configuration cannot be read, or
    /// the system has no thread or no descriptor to give.
    pub fn start(store: Store, config: Config) -> Result<Supervisor> {
        let lock = claim(&store)?;
        let settings = store.config()?;
        sign(&store);
        let open_files = raise_open_files();
        let idle_exit = config.idle_exit;
        let (ready_sender, ready) = oneshot::channel();
        let (ended_sender, ended) = oneshot::channel();
        let (started, starts) = std::sync::mpsc::channel();
        let settings = Settings {
            store: store.clone(),
            launcher: config.launcher,
            open_files,
            idle_exit,
            lock,
            config: settings,
            ready: ready_sender,
            ended: ended_sender,
        };
        let thread = std::thread::Builder::new()
            .name("outlive-supervisor".into())
            .spawn(move || run(settings, &started))
            .map_err(|error| cannot_start(&error))?;
        let root = match starts.recv() {
            Ok(started) => started?,
            Err(_) => return Err(cannot_start(&"it was lost")),
        };
        Ok(Supervisor {
            root,
            store,
            ready: Some(ready),
            ended: Some(ended),
            lost: false,
            thread: Some(thread),
        })
    }

    /// Wait until everything that is there is known, and jobs are admitted.
    pub async fn ready(&mut self) {
        // Taken only once it has come: who gives up waiting may wait again.
        if let Some(ready) = &mut self.ready {
            // Where it has ended instead, there is nothing to wait for.
            let _ = ready.await;
            self.ready = None;
        }
    }

    /// Wait until it has ended: it was told to, or had nothing to do for long enough.
    ///
    /// # Errors
    ///
    /// When it was lost to a fault of its own, which has been told. No job notices; start another one.
    pub async fn ended(&mut self) -> Result<()> {
        if let Some(ended) = &mut self.ended {
            // Taken only once it has come, as above.
            self.lost = ended.await.is_err();
            self.ended = None;
        }
        if self.lost {
            return Err(Error::Worker(
                "the supervisor was lost to a fault of its own; its jobs run on, and the next one takes them over".into(),
            ));
        }
        Ok(())
    }

    /// The actor that all others come from.
    #[cfg(test)]
    pub(crate) fn root(&self) -> &Addr<Root> {
        &self.root
    }

    /// Tell it to end. Workers run on, and the next supervisor takes them over (R20).
    pub fn shutdown(&self) {
        self.root.do_send(Shutdown);
    }

    /// Tell it to admit nothing any more, and to end once nothing runs in any pool.
    pub fn drain(&self) {
        self.root.do_send(Drain);
    }

    /// Have it read the configuration again.
    ///
    /// # Errors
    ///
    /// When that cannot be read: then everything stays as it was (R21).
    pub async fn reload(&self) -> Result<()> {
        self.root.send(Reload).await.unwrap_or_else(|_| Err(gone()))
    }

    /// How it stands.
    ///
    /// # Errors
    ///
    /// When it has ended.
    pub async fn status(&self) -> Result<StatusReport> {
        let status = self.root.send(Status).await.map_err(|_| gone())?;
        Ok(StatusReport::new(status))
    }

    /// The store that it is the supervisor of.
    pub fn store(&self) -> &Store {
        &self.store
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.shutdown();
        if let Some(thread) = self.thread.take() {
            // It ends in any case; a panic of it has been told.
            let _ = thread.join();
        }
    }
}

impl Store {
    /// Whether the store has a supervisor.
    ///
    /// # Errors
    ///
    /// When the lock cannot be asked.
    pub fn is_supervised(&self) -> Result<bool> {
        Ok(is_supervised(&mut self.disk())?)
    }
}

/// Become the supervisor of the store. A lock that is held by what is left of one is asked for again; one whose holder lives is refused
/// at once.
fn claim(store: &Store) -> Result<LockFile> {
    let lingering = Lingering::of(store);
    loop {
        if let Supervision::Ours(lock) = claim_supervision(&mut store.disk())? {
            return Ok(lock);
        }
        if !lingering.is_waited_for() {
            let pid = holder(store).filter(|_| !signature::is_gone(store));
            return Err(Error::Supervised { pid });
        }
    }
}

/// Whether the store has a supervisor that lives. One that was killed has its lock for a moment yet, and sees no job any more.
///
/// # Errors
///
/// When the lock cannot be asked.
pub(crate) fn has_living(store: &Store) -> Result<bool> {
    let lingering = Lingering::of(store);
    loop {
        if !store.is_supervised()? {
            return Ok(false);
        }
        if !lingering.is_waited_for() {
            return Ok(true);
        }
    }
}

/// Be the thread of a supervisor.
fn run(settings: Settings, started: &std::sync::mpsc::Sender<Result<Addr<Root>>>) {
    let runner = System::with_tokio_rt(|| {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(BLOCKING_THREADS)
            .thread_keep_alive(THREAD_STAYS)
            .build()
            .unwrap_or_else(|error| panic!("no supervisor without a runtime: {error}"))
    });
    runner.block_on(async move {
        let (poster, mailbox) = outlive_mailbox::mailbox(NOTICES);
        let store = settings.store.clone();
        let root = match Watcher::start(&store.jobs_dir(), poster) {
            Ok(watcher) => {
                watcher.watch_pools(&store.pools_dir());
                Root::start(settings, watcher, mailbox)
            }
            Err(error) => {
                let _ = started.send(Err(cannot_start(&error)));
                System::current().stop();
                return;
            }
        };
        let _ = started.send(Ok(root));
    });
    if let Err(error) = runner.run() {
        tracing::error!(%error, "the supervisor was lost");
    }
}

fn cannot_start(why: &dyn std::fmt::Display) -> Error {
    Error::Worker(format!("the supervisor cannot be started: {why}"))
}

fn gone() -> Error {
    Error::Worker("the supervisor has ended".into())
}

/// A supervisor may have thousands of jobs and clients. Says what the limit was, which workers and commands are to have.
fn raise_open_files() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.current,
        Err(error) => {
            let error = io::Error::from(error);
            tracing::debug!(%error, "the limit of open files stays");
            None
        }
    }
}
