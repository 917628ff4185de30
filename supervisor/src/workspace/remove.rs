//! Taking a workspace away: its directory goes to where it can be deleted at leisure, and exactly its own registration goes from
//! the repository. Never by `git worktree prune`, which takes that of every worktree that is only absent (S13).

use std::fs;
use std::io;
use std::path::Path;

use super::place::{Entry, Occupant, Repository, Standing, occupant, repository};
use super::unfinished::Unfinished;
use super::{Hands, Judgement, Trouble, Workspace, erase};
use crate::error::DiskError;

/// What a removal has left to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removed {
    /// The directory is where it was to be put, to be erased.
    ToErase,
    /// There is no directory.
    Nothing,
}

impl Workspace {
    /// Take it away: the directory is renamed to `trash`, which is on the same file system and not there yet, and its registration
    /// deleted. One that was interrupted goes on.
    ///
    /// By `force`, one is taken too that holds work, is missing or broken, or whose source is not there any more. What is not its own is never taken: a directory that
    /// belongs to another repository or is registered for another place, and a link.
    ///
    /// # Errors
    ///
    /// [`Trouble::Kept`] when it is not sound and not forced, [`Trouble::Refused`] when what is there is not this workspace, or when
    /// somebody else has locked the worktree.
    pub(crate) fn remove(
        &self,
        hands: &mut Hands<'_>,
        trash: &Path,
        force: bool,
    ) -> Result<Removed, Trouble> {
        let is_under_way = self.unfinished()?;
        if is_under_way.is_none() && self.is_nothing(hands)? {
            return Ok(Removed::Nothing);
        }
        if !force && is_under_way.is_none() {
            match self.examine(hands)? {
                Judgement::Sound => {}
                other => return Err(Trouble::Kept(other)),
            }
        }
        let repository = self.repository_or_none(hands, force)?;
        let goes = self.is_to_go(repository.as_ref(), force || is_under_way.is_some())?;
        self.begin(Unfinished::Removal)?;
        if goes {
            fs::rename(self.dir(), trash)
                .map_err(|error| DiskError::new("move", self.dir(), error))?;
        }
        if let Some(repository) = &repository {
            self.unregister(repository)?;
        }
        self.finish()?;
        Ok(if goes {
            Removed::ToErase
        } else {
            Removed::Nothing
        })
    }

    /// Whether a removal by force would take it.
    ///
    /// # Errors
    ///
    /// [`Trouble::Refused`] when it would not, as what is there is not this workspace.
    pub(crate) fn can_go(&self, hands: &mut Hands<'_>) -> Result<(), Trouble> {
        let repository = self.repository_or_none(hands, true)?;
        self.is_to_go(repository.as_ref(), true).map(drop)
    }

    /// The repository that it is cut from; by force none, where that is not there any more.
    fn repository_or_none(
        &self,
        hands: &mut Hands<'_>,
        force: bool,
    ) -> Result<Option<Repository>, Trouble> {
        let source = self.repository_dir();
        match source.map(|source| repository(&mut self.git(hands), source)) {
            // It may be gone for good, and with it all that it has registered.
            Some(Err(Trouble::NotNow(_))) if force && self.is_left_by_its_source()? => Ok(None),
            repository => repository.transpose(),
        }
    }

    /// Whether there is nothing at its path and nothing is registered for it, so that nothing can be lost.
    fn is_nothing(&self, hands: &mut Hands<'_>) -> Result<bool, Trouble> {
        if occupant(self.dir())? != Occupant::Nothing {
            return Ok(false);
        }
        let Some(source) = self.repository_dir() else {
            return Ok(true);
        };
        match repository(&mut self.git(hands), source) {
            Ok(repository) => Ok(repository.entries_for(self)?.is_empty()),
            // Whoever goes on finds out the same.
            Err(_) => Ok(false),
        }
    }

    /// Whether its source is not there, and what stands at its path is a worktree of that or nothing.
    fn is_left_by_its_source(&self) -> Result<bool, Trouble> {
        let is_there = |path: &Path| path.symlink_metadata().is_ok();
        let Some(source) = self.repository_dir().filter(|source| !is_there(source)) else {
            return Ok(false);
        };
        Ok(match occupant(self.dir())? {
            Occupant::Nothing => true,
            Occupant::Linked(entry) => entry.starts_with(source),
            _ => false,
        })
    }

    /// Whether there is a directory that is to be moved away. One that is not this workspace's is refused.
    fn is_to_go(&self, repository: Option<&Repository>, may_differ: bool) -> Result<bool, Trouble> {
        let refused = |how: String| Err(Trouble::Refused(format!("{how}; it was left as it is")));
        let occupant = occupant(self.dir())?;
        let Some(repository) = repository else {
            return match occupant {
                Occupant::Nothing => Ok(false),
                Occupant::Plain | Occupant::Repository | Occupant::Linked(_) => Ok(true),
                Occupant::Symlink | Occupant::Other => {
                    refused(format!("{} is not a directory", self.dir().display()))
                }
            };
        };
        for entry in repository.entries_for(self)? {
            if let Some(why) = entry.is_locked_by_others(&self.lock_reason()) {
                let dir = self.dir().display();
                return refused(format!("{dir} is locked by somebody else: {why}"));
            }
        }
        match (self.standing(repository)?, occupant) {
            (Standing::Agrees(_), _) => Ok(true),
            (Standing::Differs(how), _) if !may_differ => refused(how),
            (Standing::Differs(_), Occupant::Nothing) => Ok(false),
            // Its .git was deleted. It is ours if that is what is registered for this path.
            (Standing::Differs(how), Occupant::Plain) => {
                if repository.entries_for(self)?.is_empty() {
                    refused(how)
                } else {
                    Ok(true)
                }
            }
            // It was ours, and its registration is gone.
            (Standing::Differs(how), Occupant::Linked(entry)) => {
                if repository.has_entry(&entry) && !entry.exists() {
                    Ok(true)
                } else {
                    refused(how)
                }
            }
            (Standing::Differs(how), _) => refused(how),
        }
    }

    /// Delete what the repository has registered for this workspace, and nothing else, as `git worktree remove` does.
    pub(super) fn unregister(&self, repository: &Repository) -> Result<(), Trouble> {
        for entry in repository.entries_for(self)? {
            delete(&entry)?;
        }
        // As git does, so that a repository without worktrees is as it was.
        let _ = fs::remove_dir(repository.worktrees());
        Ok(())
    }
}

/// Delete a registration, what says whose it is last: should this be interrupted, it is found again.
fn delete(entry: &Entry) -> Result<(), Trouble> {
    let failed = |error| DiskError::new("remove", &entry.path, error);
    for below in fs::read_dir(&entry.path).map_err(failed)? {
        let below = below.map_err(failed)?;
        if below.file_name() != "locked" {
            erase(&below.path())?;
        }
    }
    match fs::remove_file(entry.path.join("locked")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error).into()),
        _ => {}
    }
    fs::remove_dir(&entry.path).map_err(failed)?;
    Ok(())
}
