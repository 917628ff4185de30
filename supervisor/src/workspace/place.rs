//! What stands at the path of a workspace, and what the repository has registered for that path. Removing or resetting what does
//! not agree with its registration has cost others a repository that had been moved there (S13, S14).
//!
//! Only looks, and reads what git documents of a linked worktree (gitrepository-layout): the file `.git` in it names its directory
//! `worktrees/ID` in the repository, where `gitdir` names that file, `commondir` the repository, and `locked`, if there is one,
//! why nobody may remove it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::git::{Does, Git, path_of};
use super::{Source, Trouble, Workspace};
use crate::error::DiskError;

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Occupant {
    Nothing,
    Symlink,
    /// Something that is neither a directory nor a link.
    Other,
    /// A directory without a `.git`.
    Plain,
    /// A directory with a repository of its own.
    Repository,
    /// A directory whose `.git` names this directory.
    Linked(PathBuf),
}

/// See what stands at `dir`.
pub(super) fn occupant(dir: &Path) -> Result<Occupant, Trouble> {
    let Some(found) = lstat(dir)? else {
        return Ok(Occupant::Nothing);
    };
    if found.is_symlink() {
        return Ok(Occupant::Symlink);
    }
    if !found.is_dir() {
        return Ok(Occupant::Other);
    }
    let dot_git = dir.join(".git");
    let Some(found) = lstat(&dot_git)? else {
        return Ok(Occupant::Plain);
    };
    if !found.is_file() {
        return Ok(Occupant::Repository);
    }
    let text = fs::read(&dot_git).map_err(|error| DiskError::new("read", &dot_git, error))?;
    // One that names nothing leads nowhere; it is told apart from a directory that never had one.
    let named = text.strip_prefix(b"gitdir:").unwrap_or_default();
    Ok(Occupant::Linked(resolve(dir, named)))
}

/// The directory of a linked worktree in its repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) path: PathBuf,
    /// The `.git` of the worktree that it is for; none where that is not written, or cannot be read.
    pub(super) gitdir: Option<PathBuf>,
    /// Why it is locked.
    pub(super) locked: Option<Vec<u8>>,
}

impl Entry {
    pub(super) fn read(path: PathBuf) -> Entry {
        let gitdir = fs::read(path.join("gitdir")).ok();
        Entry {
            gitdir: gitdir
                .filter(|text| !text.is_empty())
                .map(|text| resolve(&path, &text)),
            locked: fs::read(path.join("locked")).ok(),
            path,
        }
    }

    /// Whether it is locked by somebody else than [`Workspace::lock_reason`] says.
    pub(super) fn is_locked_by_others(&self, ours: &[u8]) -> Option<String> {
        let reason = self.locked.as_deref()?.trim_ascii();
        (reason != ours).then(|| String::from_utf8_lossy(reason).into_owned())
    }
}

/// The repository that a workspace is cut from, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Repository {
    /// What all its worktrees share.
    pub(super) common: PathBuf,
    /// What its HEAD is at.
    pub(super) head: String,
}

/// Ask git for the repository at `source`.
pub(super) fn repository(git: &mut Git<'_, '_>, source: &Path) -> Result<Repository, Trouble> {
    if !source.is_dir() {
        let why = format!("its source {} is not there", source.display());
        return Err(Trouble::NotNow(why));
    }
    let arguments = [
        "rev-parse",
        "--path-format=absolute",
        "--git-common-dir",
        "HEAD^{commit}",
        "--",
    ];
    let said = git.call(source, Does::Look, &arguments, None, &[])?;
    // The path is printed before HEAD is looked for, and may have any byte in it; what is behind it has none of its own.
    let text = said.output.strip_suffix(b"--\n").unwrap_or(&said.output);
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let split = text.iter().rposition(|&byte| byte == b'\n');
    match split.and_then(|at| Some((text.get(..at)?, text.get(at + 1..)?))) {
        Some((common, head)) if said.succeeded() => Ok(Repository {
            common: path_of(common),
            head: String::from_utf8_lossy(head).into_owned(),
        }),
        _ if text.is_empty() => Err(Trouble::Git {
            what: "rev-parse".to_owned(),
            said: said.complaints,
        }),
        _ => Err(Trouble::NotNow(format!(
            "its source {} has no commit to begin with",
            source.display()
        ))),
    }
}

impl Repository {
    /// Where worktrees are registered.
    pub(super) fn worktrees(&self) -> PathBuf {
        self.common.join("worktrees")
    }

    /// What is registered for the workspace at `dir`: entries that name it, and those that were made for it and name nothing yet.
    pub(super) fn entries_for(&self, workspace: &Workspace) -> Result<Vec<Entry>, Trouble> {
        let worktrees = self.worktrees();
        let entries = match fs::read_dir(&worktrees) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(DiskError::new("read", &worktrees, error).into()),
        };
        let dot_git = workspace.real_dir().join(".git");
        let reason = workspace.lock_reason();
        let is_ours = |entry: &Entry| match &entry.gitdir {
            Some(gitdir) => *gitdir == dot_git,
            None => entry.locked.as_deref().map(<[u8]>::trim_ascii) == Some(&reason),
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| DiskError::new("read", &worktrees, error))?;
            found.push(Entry::read(entry.path()));
        }
        found.retain(is_ours);
        Ok(found)
    }

    /// Whether `path` is, or would be, one of the entries of this repository.
    pub(super) fn has_entry(&self, path: &Path) -> bool {
        let parent = path.parent().map(real);
        parent.is_some_and(|parent| parent == real(&self.worktrees()))
    }
}

impl Repository {
    /// Whether the entry that a workspace leads to is that of a worktree which is in its place: then this one is a copy of that,
    /// and has no registration of its own.
    pub(super) fn is_in_use_elsewhere(&self, workspace: &Workspace) -> Result<bool, Trouble> {
        let Occupant::Linked(entry) = occupant(workspace.dir())? else {
            return Ok(false);
        };
        let Some(id) = entry.file_name() else {
            return Ok(false);
        };
        let entry = self.worktrees().join(id);
        let Some(gitdir) = Entry::read(entry.clone()).gitdir else {
            return Ok(false);
        };
        let Some(place) = gitdir.parent() else {
            return Ok(false);
        };
        if place == workspace.real_dir() {
            return Ok(false);
        }
        // Also one that leads to where the repository was before.
        Ok(matches!(occupant(place)?, Occupant::Linked(other) if other.file_name() == Some(id)))
    }
}

/// How the path of a workspace and its registration stand to each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// They agree.
    Agrees(Entry),
    /// They do not; this is how.
    Differs(String),
}

impl Workspace {
    /// The path without links.
    pub(super) fn real_dir(&self) -> PathBuf {
        match (self.dir.parent(), self.dir.file_name()) {
            (Some(parent), Some(name)) => real(parent).join(name),
            _ => self.dir.clone(),
        }
    }

    /// What the registration of this workspace is locked with, so that neither a `git worktree prune` nor a `remove` of somebody
    /// else takes it, also while the disk that it is on is away.
    pub(super) fn lock_reason(&self) -> Vec<u8> {
        let mut reason = b"a slot of outlive: ".to_vec();
        reason.extend(self.real_dir().as_os_str().as_bytes());
        reason.trim_ascii().to_vec()
    }

    /// See whether what stands there is what is registered.
    pub(super) fn standing(&self, repository: &Repository) -> Result<Standing, Trouble> {
        let dir = self.dir.display();
        let differs = |how: String| Ok(Standing::Differs(how));
        let entry = match occupant(&self.dir)? {
            Occupant::Nothing => return differs(format!("{dir} is missing")),
            Occupant::Symlink => return differs(format!("a symbolic link stands at {dir}")),
            Occupant::Other => return differs(format!("{dir} is not a directory")),
            Occupant::Plain => return differs(format!("the .git of {dir} is gone")),
            Occupant::Repository => {
                return differs(format!("a repository of its own stands at {dir}"));
            }
            Occupant::Linked(entry) => entry,
        };
        if !repository.has_entry(&entry) {
            return differs(format!(
                "{dir} belongs to another repository ({})",
                entry.display()
            ));
        }
        if !entry.is_dir() {
            return differs(format!(
                "{dir} is not registered any more with {}",
                repository.common.display()
            ));
        }
        let entry = Entry::read(entry);
        match &entry.gitdir {
            Some(gitdir) if *gitdir == self.real_dir().join(".git") => Ok(Standing::Agrees(entry)),
            Some(gitdir) => differs(format!(
                "{dir} is registered with {} for another place ({})",
                repository.common.display(),
                gitdir.display()
            )),
            None => differs(format!(
                "the registration of {dir} names no place ({})",
                entry.path.display()
            )),
        }
    }

    /// The repository that this is cut from; none if it is cut from none.
    pub(super) fn repository_dir(&self) -> Option<&Path> {
        match &self.source {
            Source::Git { repository } => Some(repository),
            Source::Nothing => None,
        }
    }
}

/// What a path in one of git's files means, read in `dir`.
fn resolve(dir: &Path, text: &[u8]) -> PathBuf {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let text = text.strip_prefix(b" ").unwrap_or(text);
    let path = PathBuf::from(OsString::from_vec(text.to_vec()));
    let path = if path.is_absolute() {
        path
    } else {
        dir.join(path)
    };
    // The last name is kept: it is `.git`, or an entry that may be gone.
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => path,
    }
}

/// The path without links, where it is there.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// What is at a path, itself and not where it leads; none if nothing is.
pub(super) fn lstat(path: &Path) -> Result<Option<fs::Metadata>, Trouble> {
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(DiskError::new("look at", path, error).into()),
    }
}
