//! The modelled machine: the file system, and the trees of processes that workers have started. A tree does
//! nothing but live, with what it inherited, until it ends or is ended.

use state_machine::disk::{Name, Place};
use state_machine::id::JobId;

use crate::effect::{Effect, Reply, Search, Until, Wake};
use crate::errand::{Errand, Glimpse};
use crate::filesystem::{Filesystem, Owner};
use crate::role::slot::place_of;

/// What the trees of a world are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Nature {
    /// They keep the environment that they were started with, and so the job's mark.
    pub marked: bool,
    /// They keep the descriptors that they were started with, and so the tree lock.
    pub holding: bool,
    /// Something of them lives on when the command has ended.
    pub lingering: bool,
}

impl Default for Nature {
    fn default() -> Self {
        Nature {
            marked: true,
            holding: true,
            lingering: false,
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
    /// What its trees are like.
    pub nature: Nature,
    /// The trees that live, by lane.
    trees: Vec<Tree>,
    /// The errands of workers that were forked, by lane.
    errands: Vec<Errand>,
    /// The lanes of workers that can be forked. Sorted.
    spare_workers: Vec<u8>,
}

impl Machine {
    /// Whether the process of `lane` sleeps.
    pub fn is_asleep(&self, lane: u8, effect: &Effect) -> bool {
        match effect {
            Effect::Wake(id, until) => self.wake(lane, id, *until).is_none(),
            Effect::AwaitErrand => self.errand_of(lane).is_none(),
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
            Effect::Wake(id, until) => Reply::Woke(self.wake(lane, id, *until).expect("it sleeps")),
            Effect::WaitForHands => Reply::Done,
            Effect::AwaitErrand => {
                Reply::Errand(self.errand_of(lane).expect("it sleeps").job.clone())
            }
            Effect::IsWanted => Reply::Is(self.errand_of(lane).is_none_or(|own| own.by.is_some())),
            Effect::Fork(job) => Reply::Forked(self.fork(lane, job)),
            Effect::Sleep(memory, _) => Reply::Slept(memory.without_the_gone(&self.errands)),
            Effect::HasLeft => Reply::Is(self.tree_of(lane).is_some()),
            Effect::WorksIn(number) => Reply::Is(self.works_in(*number)),
            Effect::EndTrees(id, search) => {
                for lane in self.found(lane, id, *search) {
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

    fn wake(&self, lane: u8, id: &JobId, until: Until) -> Option<Wake> {
        let goes_on = self.tree_of(lane).is_some_and(|tree| match until {
            Until::CommandEnds => tree.command,
            Until::TreeIsEmpty => true,
        });
        if !goes_on {
            Some(Wake::Ended)
        } else if self.files.has(&Place::of_job(id, Name::Control)) {
            Some(Wake::Asked)
        } else {
            None
        }
    }

    /// The lanes of the trees that are found so.
    fn found(&self, lane: u8, id: &JobId, search: Search) -> Vec<u8> {
        let is_found = |tree: &Tree| match search {
            Search::Own => tree.lane == lane,
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

    /// The tree of a lane has ended.
    pub fn end_tree(&mut self, lane: u8) {
        self.trees.retain(|tree| tree.lane != lane);
        self.files.close_all(Owner::Tree(lane));
    }

    /// The process of a lane is gone; its tree is not, and nor are the workers that it forked.
    pub fn end_process(&mut self, lane: u8) {
        self.files.close_all(Owner::Process(lane));
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
            nature: self.nature,
            trees: Vec::new(),
            errands: Vec::new(),
            spare_workers: self.spare_workers.clone(),
        }
    }
}
