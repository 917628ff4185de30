//! The modelled machine: the file system, and the trees of processes that workers have started. A tree does
//! nothing but live, holding the lock that it inherited, until it ends or is ended.

use state_machine::disk::{Name, Place};
use state_machine::id::JobId;

use crate::effect::{Effect, Reply, Wake};
use crate::filesystem::{Filesystem, Owner};

/// A tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tree {
    /// The lane whose process started it.
    pub lane: u8,
    /// Its job.
    pub job: JobId,
}

/// Files and trees.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Machine {
    /// The files.
    pub files: Filesystem,
    /// The trees that live, by lane.
    trees: Vec<Tree>,
}

impl Machine {
    /// Whether the process of `lane` sleeps.
    pub fn is_asleep(&self, lane: u8, effect: &Effect) -> bool {
        matches!(effect, Effect::Wake(id) if self.wake(lane, id).is_none())
    }

    /// Let an effect of the process of `lane` happen.
    ///
    /// # Panics
    ///
    /// Where the process sleeps, and where it is one that no process may ask for.
    pub fn apply(&mut self, lane: u8, effect: &Effect) -> Reply {
        match effect {
            Effect::Spawn(job, handle) => {
                let job = job.clone();
                assert!(
                    self.tree_of(lane).is_none(),
                    "a worker has one tree at a time"
                );
                self.trees.push(Tree { lane, job });
                self.trees.sort_by_key(|tree| tree.lane);
                self.files
                    .inherit(Owner::Process(lane), *handle, Owner::Tree(lane));
                Reply::Done
            }
            Effect::Wake(id) => Reply::Woke(self.wake(lane, id).expect("it sleeps")),
            Effect::EndTrees(id) => {
                for tree in self.trees_of(id) {
                    self.end_tree(tree.lane);
                }
                Reply::Done
            }
            disk => self.files.apply(Owner::Process(lane), disk),
        }
    }

    fn wake(&self, lane: u8, id: &JobId) -> Option<Wake> {
        if self.tree_of(lane).is_none() {
            Some(Wake::TreeEnded)
        } else if self.files.has(&Place::of_job(id, Name::Control)) {
            Some(Wake::Asked)
        } else {
            None
        }
    }

    /// The trees that live.
    pub fn trees(&self) -> &[Tree] {
        &self.trees
    }

    /// The tree that the process of `lane` started, if it lives.
    pub fn tree_of(&self, lane: u8) -> Option<&Tree> {
        self.trees.iter().find(|tree| tree.lane == lane)
    }

    /// The trees of a job that live.
    pub fn trees_of(&self, id: &JobId) -> Vec<Tree> {
        let of_job = self.trees.iter().filter(|tree| tree.job == *id);
        of_job.cloned().collect()
    }

    /// The tree of a lane has ended.
    pub fn end_tree(&mut self, lane: u8) {
        self.trees.retain(|tree| tree.lane != lane);
        self.files.close_all(Owner::Tree(lane));
    }

    /// The process of a lane is gone; its tree is not.
    pub fn end_process(&mut self, lane: u8) {
        self.files.close_all(Owner::Process(lane));
    }
}
