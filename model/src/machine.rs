//! The modelled machine: the file system, and the trees of processes that workers have started. A tree does
//! nothing but live, with what it inherited, until it ends or is ended.

use state_machine::control::Control;
use state_machine::disk::{Name, Place};
use state_machine::id::JobId;

use crate::effect::{Effect, Known, Reply, Search, Stopping, Until, Wake};
use crate::errand::{Errand, Glimpse};
use crate::filesystem::{Filesystem, Owner};
use crate::role::slot::place_of;
use crate::web::Web;

/// What the trees of a world are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Nature {
    /// They keep the environment that they were started with, and so the job's mark.
    pub marked: bool,
    /// They keep the descriptors that they were started with, and so the tree lock.
    pub holding: bool,
    /// Something of them lives on when the command has ended.
    pub lingering: bool,
    /// Their commands may fail.
    pub failing: bool,
    /// They take their time to end when they are told to.
    pub slow: bool,
    /// What their commands are made of may change, once.
    pub renewing: bool,
}

/// What commands are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sources {
    /// It does not change any more.
    #[default]
    Still,
    /// It may change.
    MayChange,
    /// It has changed, and no worker has seen it.
    Changed,
}

impl Default for Nature {
    fn default() -> Self {
        Nature {
            marked: true,
            holding: true,
            lingering: false,
            failing: false,
            slow: false,
            renewing: false,
        }
    }
}

/// A tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tree {
    /// The lane whose process started it.
    pub lane: u8,
    /// Its job.
    pub job: JobId,
    /// Whether its command still runs, and not only what that has left.
    pub command: bool,
}

/// Files and trees.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Machine {
    /// The files.
    pub files: Filesystem,
    /// The server that files are fetched from.
    pub web: Web,
    /// How often it was booted after a loss of power.
    pub boot: u8,
    /// What its trees are like.
    pub nature: Nature,
    /// What commands are made of.
    pub sources: Sources,
    /// The trees that live, by lane.
    trees: Vec<Tree>,
    /// The lanes whose command has failed, and their workers have not seen it. Sorted.
    failed: Vec<u8>,
    /// The errands of workers that were forked, by lane.
    errands: Vec<Errand>,
    /// The lanes of workers that can be forked. Sorted.
    spare_workers: Vec<u8>,
}

impl Machine {
    /// Whether the process of `lane` sleeps.
    pub fn is_asleep(&self, lane: u8, effect: &Effect) -> bool {
        match effect {
            Effect::Wake(id, until, stopping) => self.wake(lane, id, *until, *stopping).is_none(),
            Effect::AwaitErrand => self.errand_of(lane).is_none(),
            Effect::InTurn(handle) => !self.files.may_lock(Owner::Process(lane), *handle),
            Effect::Fork(_) => self.spare_workers.is_empty(),
            Effect::Sleep(memory, saw) => {
                saw.as_ref() == Some(&Glimpse::all(&self.files))
                    && memory.without_the_gone(&self.errands) == *memory
            }
            _ => false,
        }
    }

    /// Let an effect of the process of `lane` happen.
    ///
    /// # Panics
    ///
    /// Where the process sleeps, and where it is one that no process may ask for.
    pub fn apply(&mut self, lane: u8, effect: &Effect) -> Reply {
        match effect {
            Effect::Spawn(job, handle) => {
                self.spawn(lane, job, *handle);
                Reply::Done
            }
            Effect::Wake(id, until, stopping) => {
                let woke = self.wake(lane, id, *until, *stopping).expect("it sleeps");
                match woke {
                    Wake::Asked => {}
                    Wake::Renewed => self.sources = Sources::Still,
                    Wake::Ended | Wake::Failed => self.failed.retain(|failed| *failed != lane),
                }
                Reply::Woke(woke)
            }
            Effect::Stop(known) => Reply::Is(self.stop(lane, *known)),
            Effect::BackOff(id) => Reply::Woke(if self.is_asked(id) {
                Wake::Asked
            } else {
                Wake::Ended
            }),
            Effect::WaitForHands => Reply::Done,
            Effect::AwaitErrand => {
                Reply::Errand(self.errand_of(lane).expect("it sleeps").job.clone())
            }
            Effect::IsWanted => Reply::Is(self.errand_of(lane).is_none_or(|own| own.by.is_some())),
            Effect::Fork(job) => Reply::Forked(self.fork(lane, job)),
            Effect::Sleep(memory, _) => Reply::Slept(memory.without_the_gone(&self.errands)),
            Effect::Boot => Reply::Counted(usize::from(self.boot)),
            Effect::Ask(_) => Reply::Counted(usize::from(self.web.answer())),
            Effect::HasLeft => Reply::Is(self.tree_of(lane).is_some()),
            Effect::WorksIn(number) => Reply::Is(self.works_in(*number)),
            Effect::EndTrees(id, search) => {
                for lane in self.found(id, *search) {
                    self.end_tree(lane);
                }
                Reply::Done
            }
            disk => self.files.apply(Owner::Process(lane), disk),
        }
    }

    fn spawn(&mut self, lane: u8, job: &JobId, handle: crate::effect::Handle) {
        assert!(
            self.tree_of(lane).is_none(),
            "a worker has one tree at a time"
        );
        self.trees.push(Tree {
            lane,
            job: job.clone(),
            command: true,
        });
        self.trees.sort_by_key(|tree| tree.lane);
        if self.nature.holding {
            self.files
                .inherit(Owner::Process(lane), handle, Owner::Tree(lane));
        }
    }

    fn wake(&self, lane: u8, id: &JobId, until: Until, stopping: Stopping) -> Option<Wake> {
        let goes_on = self.tree_of(lane).is_some_and(|tree| match until {
            Until::CommandEnds => tree.command,
            Until::Empty => true,
        });
        if goes_on {
            let asked = match stopping {
                Stopping::No => self.is_asked(id),
                Stopping::Yes => self.is_asked_more(id),
            };
            let renewed = self.sources == Sources::Changed
                && (until, stopping) == (Until::CommandEnds, Stopping::No);
            return match asked {
                true => Some(Wake::Asked),
                false => renewed.then_some(Wake::Renewed),
            };
        }
        Some(if self.failed.contains(&lane) {
            Wake::Failed
        } else {
            Wake::Ended
        })
    }

    fn is_asked(&self, id: &JobId) -> bool {
        self.files.has(&Place::of_job(id, Name::Control))
    }

    /// Whether something is asked that need not wait for what is being honoured. A worker looks at what waits again and
    /// again, and a look that finds nothing new is left out.
    fn is_asked_more(&self, id: &JobId) -> bool {
        let asked = |name| match self.files.asked_of(id, name) {
            Some(Control::Asked(request)) => Some(request),
            _ => None,
        };
        match (asked(Name::Control), asked(Name::Taken)) {
            (Some(waiting), Some(honoured)) => waiting.outranks(honoured),
            (waiting, _) => waiting.is_some(),
        }
    }

    /// Whether the tree of a lane is ended, be it now or in its time: not where its command has ended by itself, and its
    /// worker does not know it.
    fn stop(&mut self, lane: u8, known: Known) -> bool {
        let runs = self.tree_of(lane).is_some_and(|tree| tree.command);
        let is_stopped = runs || known == Known::Ended;
        if is_stopped && !self.nature.slow {
            self.end_tree(lane);
        }
        is_stopped
    }

    /// The lanes of the trees that are found so.
    fn found(&self, id: &JobId, search: Search) -> Vec<u8> {
        let is_found = |tree: &Tree| match search {
            Search::Marked => tree.job == *id && self.nature.marked,
            Search::Holding => tree.job == *id && (self.nature.marked || self.nature.holding),
        };
        let found = self.trees.iter().filter(|tree| is_found(tree));
        found.map(|tree| tree.lane).collect()
    }

    /// The trees that live.
    pub fn trees(&self) -> &[Tree] {
        &self.trees
    }

    /// The tree that the process of `lane` started, if it lives.
    pub fn tree_of(&self, lane: u8) -> Option<&Tree> {
        self.trees.iter().find(|tree| tree.lane == lane)
    }

    /// Whether a tree works in the slot of this number.
    fn works_in(&self, number: u32) -> bool {
        let mut slots = self.trees.iter().filter_map(|tree| place_of(&tree.job));
        slots.any(|(at, _)| at == number)
    }

    /// Whether a tree of the job lives.
    pub fn has_tree(&self, id: &JobId) -> bool {
        self.trees.iter().any(|tree| tree.job == *id)
    }

    /// The command of a lane ends, and what it has left goes on; or all of the tree ends.
    pub fn end_command(&mut self, lane: u8) {
        let lingering = self.nature.lingering;
        let tree = self.trees.iter_mut().find(|tree| tree.lane == lane);
        match tree {
            Some(tree) if tree.command && lingering => tree.command = false,
            _ => self.end_tree(lane),
        }
    }

    /// The command of a lane fails.
    pub fn fail_command(&mut self, lane: u8) {
        self.end_command(lane);
        self.failed.push(lane);
        self.failed.sort_unstable();
    }

    /// The tree of a lane has ended.
    pub fn end_tree(&mut self, lane: u8) {
        self.trees.retain(|tree| tree.lane != lane);
        self.files.close_all(Owner::Tree(lane));
    }

    /// The process of a lane is gone; its tree is not, and nor are the workers that it forked.
    pub fn end_process(&mut self, lane: u8) {
        self.files.close_all(Owner::Process(lane));
        self.failed.retain(|failed| *failed != lane);
        self.errands.retain(|errand| errand.lane != lane);
        for errand in &mut self.errands {
            errand.by = errand.by.filter(|by| *by != lane);
        }
    }

    /// A worker can be forked in this lane from here on.
    pub fn offer_worker(&mut self, lane: u8) {
        self.spare_workers.push(lane);
        self.spare_workers.sort_unstable();
    }

    /// Let the process of `lane` fork a worker for a job. Says its lane.
    pub fn fork(&mut self, lane: u8, job: &JobId) -> u8 {
        let worker = self.spare_workers.remove(0);
        self.errands.push(Errand {
            lane: worker,
            job: job.clone(),
            by: Some(lane),
        });
        self.errands.sort_by_key(|errand| errand.lane);
        worker
    }

    /// Whether no worker can be forked, now or ever.
    pub fn has_no_workers(&self) -> bool {
        self.spare_workers.is_empty() && self.errands.is_empty()
    }

    /// The errand of the worker of a lane, where it was forked.
    pub fn errand_of(&self, lane: u8) -> Option<&Errand> {
        self.errands.iter().find(|errand| errand.lane == lane)
    }

    /// The same machine after a loss of power that has left these files: nothing runs any more.
    #[must_use]
    pub fn rebooted(&self, files: Filesystem) -> Machine {
        Machine {
            files,
            web: self.web,
            boot: self.boot + 1,
            nature: self.nature,
            sources: self.sources,
            trees: Vec::new(),
            failed: Vec::new(),
            errands: Vec::new(),
            spare_workers: self.spare_workers.clone(),
        }
    }
}
