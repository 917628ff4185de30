//! What a slot's directory holds: cutting it, judging whether it can be used again, bringing it to a fresh state, giving up what
//! is in it, and removing it.
//!
//! A workspace of a git repository is a *linked worktree* of it (docs/pools.md says why). Anything else is a directory that a
//! command prepares.
//!
//! | file | what it is for |
//! |---|---|
//! | `git` | one call of git, within bounds and without anything that it could inherit |
//! | `place` | what stands at the path of a workspace, and what the repository has registered for it |
//! | `unfinished` | the mark of a cut, a reset or a removal that has not come to its end |
//! | `cut` | making one |
//! | `glance`, `outside` | whether one that was given back is still what it was; what of that is seen without git |
//! | `judge`, `work` | whether one can be used again; the work in it that is landed nowhere |
//! | `status`, `tracked` | what two calls of git say |
//! | `lock` | locks that a killed git has left |
//! | `reset`, `settings`, `discard` | the state of one just cut, and what git has configured for it; giving up what is in it |
//! | `remove`, `erase`, `mend` | taking it away; deleting a tree; repairing what only points to the wrong place |
//!
//! Nothing here knows a record, a claim or a lock of ours: the caller has the slot to itself, and sees to it that no process works
//! inside ([`census`](crate::process::census)). What is destroyed here was judged in the same call, or was given up by name.

mod cut;
mod discard;
mod erase;
mod git;
mod glance;
mod judge;
mod lock;
mod mend;
mod outside;
mod place;
mod remove;
mod reset;
mod settings;
mod status;
mod tracked;
mod trouble;
mod unfinished;
mod work;

use std::ffi::{OsStr, OsString};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) use self::erase::erase;
pub(crate) use self::git::{CEILING, environment};
pub(crate) use self::judge::Judgement;
pub(crate) use self::lock::clear_maintenance_lock;
pub(crate) use self::trouble::Trouble;
use crate::process::Minder;

/// What a workspace is a copy of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// This git repository: its working tree, its `.git`, or a bare one.
    Git {
        /// Where it is.
        repository: PathBuf,
    },
    /// Nothing that is known here: it begins as an empty directory.
    Nothing,
}

/// A directory that is a workspace, or is to be one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Workspace {
    source: Source,
    dir: PathBuf,
}

/// What is needed to do something to a workspace.
#[derive(Debug)]
pub(crate) struct Hands<'a> {
    /// Who runs the commands.
    pub(crate) minder: &'a mut Minder,
    /// What every command inherits: the slot's occupancy lock, so that the slot is not idle while one lives.
    pub(crate) held: Option<BorrowedFd<'a>>,
    /// Readable when what is under way is to be cut short.
    pub(crate) stop: Option<BorrowedFd<'a>>,
    /// How long all of git's work in one operation may take.
    pub(crate) within: Duration,
    /// How long a command has between being asked to end and being killed.
    pub(crate) grace: Duration,
}

/// A command of the pool's owner: what prepares a workspace, or resets it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chore<'a> {
    /// Program and arguments.
    pub(crate) argv: &'a [OsString],
    /// What it has in its environment beside the rest: the name and the value.
    pub(crate) mark: (&'a str, &'a OsStr),
    /// How long it may take.
    pub(crate) timeout: Duration,
    /// A file, open for appending, for all that it writes.
    pub(crate) log: BorrowedFd<'a>,
}

impl Workspace {
    /// The workspace at `dir`, an absolute path whose parent is there. Beside `dir`, names that begin with its name and a dot are
    /// this one's too.
    pub(crate) fn new(source: Source, dir: PathBuf) -> Workspace {
        Workspace { source, dir }
    }

    /// Where it is.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }
}

#[cfg(test)]
mod tests;
