//! What is wrong with a workspace, as far as it can be seen from outside: without git, and without having it to oneself.

use std::io;

use super::place::{Entry, Occupant, occupant};
use super::{Source, Trouble, Workspace};

impl Workspace {
    /// What is wrong with one that was whole before; `None` where nothing is, or that cannot be told now: something is under way in
    /// it, or it leads to a repository that is away.
    pub(crate) fn seen_from_outside(&self) -> Result<Option<String>, Trouble> {
        if self.unfinished()?.is_some() {
            return Ok(None);
        }
        self.amiss()
    }

    /// The same for one that somebody has, whatever is unfinished: a close that ended half way took nothing away.
    pub(crate) fn amiss(&self) -> Result<Option<String>, Trouble> {
        let dir = self.dir().display();
        let repository = match &self.source {
            Source::Git { repository } => Some(repository),
            Source::Nothing => None,
        };
        Ok(match (occupant(self.dir())?, repository) {
            (Occupant::Nothing, _) => Some(format!("{dir} is missing")),
            (Occupant::Symlink, _) => Some(format!("a symbolic link stands at {dir}")),
            (Occupant::Other, _) => Some(format!("{dir} is not a directory")),
            (_, None) => None,
            (Occupant::Plain, _) => Some(format!("the .git of {dir} is gone")),
            (Occupant::Repository, _) => Some(format!("a repository of its own stands at {dir}")),
            (_, Some(repository)) if !repository.is_dir() => None,
            (Occupant::Linked(entry), _) => match entry.symlink_metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    Some(format!("{dir} is not registered at {}", entry.display()))
                }
                _ => match Entry::read(entry.clone()).gitdir {
                    Some(named) if named == self.real_dir().join(".git") => None,
                    Some(named) => {
                        Some(format!("{dir} is registered as one at {}", named.display()))
                    }
                    None => Some(format!(
                        "the registration of {dir} names no place ({})",
                        entry.display()
                    )),
                },
            },
        })
    }
}
