//! One protocol in one scene: the store is made, the protocol runs on a disk that a meddler has its hand in, and
//! afterwards a fresh process puts the store in order and everything must be as it should.

use std::fs;
use std::path::{Path, PathBuf};

use outlive::DiskError;
use outlive::disk::{FsDisk, LockFile};
use outlive_tests::disks::{Meddled, Meddler};
use state_machine::control::Request;
use state_machine::disk::{Dir, Disk};
use state_machine::id::JobId;
use state_machine::job::State;
use state_machine::protocol::look::{Look, look};
use state_machine::protocol::recover::{Recovered, collect, recover_job};
use state_machine::protocol::settle::{LetGo, Searched, Settled, let_go, settle};

use crate::act::{Act, Told};
use crate::legal::{Expected, faults, wait_for_locks};
use crate::scene::{GARBAGE, MADE_MS, Scene, job, ticket};

/// A protocol in a scene.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial {
    pub(crate) act: Act,
    pub(crate) scene: Scene,
}

impl Trial {
    /// Every protocol in every scene in which it can be called.
    pub(crate) fn all() -> impl Iterator<Item = Trial> {
        Act::ALL.into_iter().flat_map(|act| {
            let fitting = Scene::ALL.into_iter().filter(move |scene| act.fits(*scene));
            fitting.map(move |scene| Trial { act, scene })
        })
    }

    /// Make the store in `root`, which is emptied. What others have open in it is handed back, to be dropped when they
    /// are gone too.
    pub(crate) fn set(self, root: &Path) -> Option<LockFile> {
        let _ = fs::remove_dir_all(root);
        fs::create_dir(root).expect("the scratch directory is ours");
        self.scene.make(root)
    }

    /// Run the protocol on the store.
    pub(crate) fn run<M: Meddler>(self, root: &Path, meddler: M) -> (Result<Told, DiskError>, M) {
        self.run_under(root, meddler, || ())
    }

    /// Run the protocol on the store while what `begin` hands back lives.
    pub(crate) fn run_under<M: Meddler, G>(
        self,
        root: &Path,
        meddler: M,
        begin: impl FnOnce() -> G,
    ) -> (Result<Told, DiskError>, M) {
        let mut disk = FsDisk::new(root.to_owned());
        let ready = self.act.prepare(&mut disk);
        let mut meddled = Meddled::new(disk, root, meddler);
        let lasting = begin();
        let told = self.act.perform(&mut meddled, ready);
        drop(lasting);
        (told, meddled.meddler)
    }

    /// Put the store in order as a fresh process does, and say what is wrong with it then. `told` is what the caller was
    /// told, `None` where it was told nothing: it may have happened or not.
    pub(crate) fn aftermath(self, root: &Path, told: Option<&Told>) -> Vec<String> {
        wait_for_locks(root);
        let kept = self.ends(root);
        if let Err(fault) = put_in_order(root) {
            return vec![format!("the store cannot be put in order: {fault}")];
        }
        let expected = Expected {
            rest: self.may_rest(told),
            made: told.map_or_else(Vec::new, |told| {
                told.made.iter().map(|id| id.as_str().to_owned()).collect()
            }),
            pool: self.may_be_of_pool(told),
            kept,
            may_ask: self.scene == Scene::EmptyControl,
            odd_spare: self.scene.odd_spare(),
        };
        let mut wrong = faults(root, job().as_str(), &expected);
        // Done once, there is nothing left to do.
        let before = snapshot(root);
        if let Err(fault) = put_in_order(root) {
            wrong.push(format!("the second time: {fault}"));
        }
        if snapshot(root) != before {
            wrong.push("putting it in order twice changes something".into());
        }
        wrong
    }

    /// The files of the job that must stay as they are: those of one that has ended.
    fn ends(self, root: &Path) -> Vec<(String, Vec<u8>)> {
        let file = format!("jobs/{}/status.json", job());
        let ended = self.scene.rest() == Some(State::Done);
        let bytes = fs::read(root.join(&file)).ok().filter(|_| ended);
        bytes.map(|bytes| (file, bytes)).into_iter().collect()
    }

    /// What may be written down of the pool: what was, and what was wished.
    fn may_be_of_pool(self, told: Option<&Told>) -> Vec<Option<String>> {
        let before = match self.scene {
            Scene::Pooled => Some(r#"{"slots":3,"paused":false}"#.to_owned()),
            Scene::PoolDamaged => Some(GARBAGE.to_owned()),
            _ => None,
        };
        let wished = match (self.act, self.scene) {
            (Act::ForgetPool, Scene::Pooled) => None,
            (Act::PausePool, Scene::Pooled) => Some(r#"{"slots":3,"paused":true}"#.to_owned()),
            (Act::PausePool, Scene::Empty) => Some(r#"{"paused":true}"#.to_owned()),
            _ => before.clone(),
        };
        match told {
            None => vec![before, wished],
            Some(told) if told.changed => vec![wished],
            Some(_) => vec![before],
        }
    }

    /// The states that the job may have come to.
    fn may_rest(self, told: Option<&Told>) -> Vec<Option<String>> {
        let base = self.scene.rest();
        let word = |state: State| Some(state.to_string());
        let changed = match self.act {
            Act::RecordRunning if told.is_none_or(|told| told.recorded.is_some()) => {
                // A request that waits is honoured as for any other job that lost its worker.
                Some(after_running(self.scene))
            }
            Act::RecordDone if told.is_none_or(|told| told.recorded.is_some()) => {
                Some(word(State::Done))
            }
            Act::FailUnmet
                if self.scene != Scene::Held && told.is_none_or(|told| told.recorded.is_some()) =>
            {
                Some(word(State::Failed)).filter(|_| base.is_some())
            }
            Act::Ask(request) if told.is_none_or(|told| told.placed) => {
                base.map(|base| word(after(base, self.scene, request)))
            }
            // Where there is no job, it bears the id of the one that others have.
            Act::Create(_) | Act::CreateBatch if base.is_none() => Some(word(State::Queued)),
            Act::Forget if base == Some(State::Done) => match told {
                Some(told) if !told.forgotten => None,
                _ => Some(None),
            },
            _ => None,
        };
        // The worker that was prepared has been at it already.
        let base = match self.act {
            Act::RecordDone => after_running(self.scene),
            _ => base.and_then(word),
        };
        match (changed, told) {
            (Some(changed), Some(_)) => vec![changed],
            (Some(changed), None) => vec![changed, base],
            (None, _) => vec![base],
        }
    }
}

/// What a job comes to whose worker recorded that it runs and was lost.
fn after_running(scene: Scene) -> Option<String> {
    let state = match scene {
        Scene::QueuedPause | Scene::AbandonedTaken => State::Paused,
        Scene::PausedResume => State::Queued,
        Scene::AbandonedCancel => State::Cancelled,
        _ => State::Interrupted,
    };
    Some(state.to_string())
}

/// What a job comes to of which this is asked, when what it comes to otherwise is `rest`.
fn after(rest: State, scene: Scene, request: Request) -> State {
    match request {
        _ if rest.is_terminal() => rest,
        Request::Cancel => State::Cancelled,
        Request::Pause => State::Paused,
        // It says queued already, or goes there from a stop; a pause that was taken before comes first.
        Request::Resume if scene == Scene::QueuedPause => rest,
        Request::Resume => State::Queued,
    }
}

/// Look at every job, recover it, and collect.
fn put_in_order(root: &Path) -> Result<(), String> {
    let mut disk = FsDisk::new(root.to_owned());
    let say = |fault: DiskError| fault.to_string();
    let names = disk.list(&Dir::Jobs).map_err(say)?.unwrap_or_default();
    for name in names {
        let text = name.to_text().ok_or("a job has a name that is no text")?;
        let id = JobId::parse(&text).map_err(|why| format!("{text} {why}"))?;
        let seen = look(&mut disk, &id).map_err(say)?;
        if !matches!(seen, Look::Job(_)) {
            return Err(format!("{id} looks so: {seen:?}"));
        }
        recover(&mut disk, &id)?;
        let seen = look(&mut disk, &id).map_err(say)?;
        match seen {
            Look::Job(view) if view.state == view.status.state && !view.held => {}
            other => return Err(format!("{id} looks so afterwards: {other:?}")),
        }
    }
    let stubborn = collect(&mut disk, &ticket("fresh"), &mut |_| {}).map_err(say)?;
    if stubborn.is_empty() {
        Ok(())
    } else {
        Err(format!("left in the trash: {stubborn:?}"))
    }
}

/// Recover a job of whose processes none is left.
fn recover(disk: &mut FsDisk, id: &JobId) -> Result<(), String> {
    let say = |fault: DiskError| fault.to_string();
    let mut recovered = recover_job(disk, id, 4_000).map_err(say)?;
    for _ in 0..4 {
        let (mut holder, descriptor) = match recovered {
            Recovered::LeftoversFirst(holder, descriptor) => (holder, descriptor),
            Recovered::Quiet => return Ok(()),
            other => return Err(format!("{id}: recovering it comes to {other:?}")),
        };
        let settled = settle(disk, &mut holder, Searched::Yes, 4_000).map_err(say)?;
        recovered = match settled {
            Settled::LeftoversFirst(_) => return Err(format!("{id}: a process is left")),
            _ => match let_go(disk, holder, MADE_MS, 4_000).map_err(say)? {
                LetGo::Free => Recovered::Quiet,
                LetGo::LeftoversFirst(holder) => Recovered::LeftoversFirst(holder, descriptor),
            },
        };
    }
    Err(format!("{id}: it does not come to rest"))
}

/// Every file and what it holds.
fn snapshot(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut dirs = vec![root.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                let bytes = fs::read(&path).unwrap_or_default();
                found.push((path, bytes));
            }
        }
    }
    found.sort();
    found
}
