//! The project that a command is given in: the nearest directory, from the working directory up, that holds an
//! `outlive.toml`.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use state_machine::protocol::look::View;

use crate::error::{Error, Result};
use crate::project::{Tasks, root_above};

/// Which jobs a verb means that was given no name.
#[derive(Debug)]
pub(super) enum Scope {
    /// Those of this project.
    Project(PathBuf),
    /// Everyone's.
    All,
}

/// The tasks of the project that the working directory is in.
///
/// # Errors
///
/// [`Error::Usage`] outside of any, and where something in its file is wrong.
pub(super) fn tasks_here() -> Result<Tasks> {
    match Scope::here(false) {
        Scope::Project(root) => Tasks::read(&root),
        Scope::All => Err(Error::Usage(
            "this is not inside a project: no directory from here up has an outlive.toml".into(),
        )),
    }
}

impl Scope {
    /// The project that the working directory is in, unless `all` are asked for.
    pub(super) fn here(all: bool) -> Scope {
        let project = std::env::current_dir()
            .ok()
            .filter(|_| !all)
            .and_then(|dir| root_above(&dir));
        project.map_or(Scope::All, Scope::Project)
    }

    /// Whether the job is meant.
    pub(super) fn holds(&self, view: &View) -> bool {
        match self {
            Scope::All => true,
            Scope::Project(root) => view
                .descriptor
                .project
                .as_ref()
                .is_some_and(|project| project.0 == root.as_os_str().as_bytes()),
        }
    }
}
