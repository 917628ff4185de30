//! The project that a command is given in: the nearest directory, from the working directory up, that holds an
//! `outlive.toml`.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use state_machine::protocol::look::View;

/// The file that makes a directory the root of a project.
const PROJECT_FILE: &str = "outlive.toml";

/// The root of the project that `dir` is in.
pub(super) fn project_of(dir: &Path) -> Option<PathBuf> {
    dir.ancestors()
        .find(|dir| dir.join(PROJECT_FILE).is_file())
        .map(Path::to_owned)
}

/// Which jobs a verb means that was given no name.
#[derive(Debug)]
pub(super) enum Scope {
    /// Those of this project.
    Project(PathBuf),
    /// Everyone's.
    All,
}

impl Scope {
    /// The project that the working directory is in, unless `all` are asked for.
    pub(super) fn here(all: bool) -> Scope {
        let project = std::env::current_dir()
            .ok()
            .filter(|_| !all)
            .and_then(|dir| project_of(&dir));
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
