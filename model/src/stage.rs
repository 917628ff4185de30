//! What a role has beside the disk: it can start a tree of processes, sleep until something happens, end trees,
//! and say what it has come to believe, which the rules are about.
//!
//! What a role says is computed anew in every replay; it never reaches another process.

use state_machine::control::Request;
use state_machine::disk::Disk;
use state_machine::id::JobId;

use crate::effect::Wake;

/// The world around a role.
pub trait Stage: Disk {
    /// Say what the role believes from here on. No effect.
    fn tell(&mut self, news: News);

    /// Start the job's command: a tree that has the lock open too, as this process still has (F3).
    fn spawn(&mut self, id: &JobId, tree: &Self::Handle) -> Result<(), Self::Fault>;

    /// Sleep until the tree that this process started has ended or a control file is there.
    fn wake(&mut self, id: &JobId) -> Result<Wake, Self::Fault>;

    /// End every process of the job's trees and see them gone.
    fn end_trees(&mut self, id: &JobId) -> Result<(), Self::Fault>;
}

/// What a role has come to believe.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum News {
    /// The job is mine (R1).
    Holds(JobId),
    /// It is not any more, or will not be from the next effect on.
    LetsGo,
    /// The request to the job was accepted, as its client was told (R6).
    Accepted(JobId, Request),
}

/// What a process believes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Standing {
    /// The job that it believes to hold.
    pub holds: Option<JobId>,
    /// The request that it was told to be accepted. It stays when the process ends or dies.
    pub accepted: Option<(JobId, Request)>,
}

impl Standing {
    /// Take news in.
    pub fn hear(&mut self, news: News) {
        match news {
            News::Holds(id) => self.holds = Some(id),
            News::LetsGo => self.holds = None,
            News::Accepted(id, request) => self.accepted = Some((id, request)),
        }
    }
}
