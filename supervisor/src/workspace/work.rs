//! The work in a workspace that is landed nowhere: what a reset or a removal would destroy.
//!
//! Branches, tags, remote branches and stashes are the repository's and outlive every worktree, so that what they hold is no matter
//! here. What git ignores is a cache by the repository's own word.

use std::fmt;
use std::path::{Path, PathBuf};

use super::git::{Does, Git, path_of};
use super::place::{Entry, Repository, lstat};
use super::settings::base;
use super::status::{ARGUMENTS, Status};
use super::tracked::{Tracked, tracked};
use super::{Trouble, Workspace};
use crate::error::DiskError;

/// How many paths or commits are named.
const NAMED: usize = 20;

/// How deep submodules within submodules are looked into.
const DEEPEST: usize = 8;

/// What is not landed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A merge, rebase, cherry-pick, revert, `am` or bisect is under way.
    UnderWay,
    /// Files have conflicts.
    Conflicted,
    /// Changes are staged and not committed.
    Staged,
    /// Tracked files are changed.
    Changed,
    /// Files are neither tracked nor ignored.
    Untracked,
    /// Files are changed that git was told not to look at.
    Hidden,
    /// Commits are on no branch, tag or remote branch.
    Commits,
    /// A submodule has commits or stashes that no remote has, or cannot be looked into.
    Submodule,
}

/// Work of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unlanded {
    /// Of which kind.
    pub(crate) kind: Kind,
    /// What it is, for people.
    pub(crate) sentence: String,
    /// The first few by path, or by hash and subject.
    pub(crate) named: Vec<String>,
    /// Whether there are more.
    pub(crate) more: bool,
}

/// As `2 files are changed (a.txt, b.txt)`.
impl fmt::Display for Unlanded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.sentence)?;
        if self.named.is_empty() {
            return Ok(());
        }
        let more = if self.more { ", …" } else { "" };
        write!(f, " ({}{more})", self.named.join(", "))
    }
}

impl Unlanded {
    fn files(kind: Kind, paths: &[PathBuf], are: &str) -> Option<Unlanded> {
        let count = paths.len();
        let (files, are) = match count {
            0 => return None,
            1 => ("file", are.replacen("are", "is", 1)),
            _ => ("files", are.to_owned()),
        };
        Some(Unlanded {
            kind,
            sentence: format!("{count} {files} {are}"),
            named: paths
                .iter()
                .take(NAMED)
                .map(|path| path.display().to_string())
                .collect(),
            more: count > NAMED,
        })
    }

    fn commits(kind: Kind, mut commits: Vec<String>, what: &str) -> Option<Unlanded> {
        let more = commits.len() > NAMED;
        commits.truncate(NAMED);
        let sentence = match commits.len() {
            0 => return None,
            1 => format!("1 commit {}", what.replacen("are", "is", 1)),
            count if more => format!("more than {count} commits {what}"),
            count => format!("{count} commits {what}"),
        };
        Some(Unlanded {
            kind,
            sentence,
            named: commits,
            more,
        })
    }
}

/// What git says of a worktree beside what is not landed in it.
pub(super) struct Findings {
    pub(super) unlanded: Vec<Unlanded>,
    pub(super) tracked: Vec<Tracked>,
}

impl Workspace {
    /// Find all of it.
    pub(super) fn find_work(
        &self,
        git: &mut Git<'_, '_>,
        repository: &Repository,
        entry: &Entry,
    ) -> Result<Findings, Trouble> {
        let dir = self.dir();
        let status = Status::parse(&git.read(dir, &ARGUMENTS)?);
        let tracked = tracked(git, dir)?;
        let mut unlanded: Vec<Unlanded> = operations(entry)?;
        unlanded.extend(
            [
                Unlanded::files(Kind::Conflicted, &status.conflicted, "are in conflict"),
                Unlanded::files(Kind::Staged, &status.staged, "are staged and not committed"),
                Unlanded::files(Kind::Changed, &status.changed, "are changed"),
                Unlanded::files(
                    Kind::Untracked,
                    &status.untracked,
                    "are neither tracked nor ignored",
                ),
            ]
            .into_iter()
            .flatten(),
        );
        let hidden = hidden(git, dir, entry, &tracked)?;
        let are = "are changed behind git's back (assume-unchanged or skip-worktree)";
        unlanded.extend(Unlanded::files(Kind::Hidden, &hidden, are));
        let known = [Some(repository.head.clone()), base(entry)?];
        let commits = commits(git, dir, status.is_unborn, &known)?;
        let are = "are on no branch, tag or remote branch";
        unlanded.extend(Unlanded::commits(Kind::Commits, commits, are));
        submodules(git, dir, &tracked, DEEPEST, &mut unlanded)?;
        Ok(Findings { unlanded, tracked })
    }
}

/// What git has begun and not finished, by what it has left in the worktree's directory.
const OPERATIONS: [(&str, &str); 9] = [
    ("MERGE_HEAD", "a merge is under way"),
    ("MERGE_AUTOSTASH", "a merge has put changes aside"),
    ("rebase-merge", "a rebase is under way"),
    ("rebase-apply", "a rebase or am is under way"),
    ("CHERRY_PICK_HEAD", "a cherry-pick is under way"),
    ("REVERT_HEAD", "a revert is under way"),
    ("sequencer", "a cherry-pick or revert is under way"),
    ("BISECT_LOG", "a bisect is under way"),
    ("BISECT_START", "a bisect is under way"),
];

fn operations(entry: &Entry) -> Result<Vec<Unlanded>, Trouble> {
    let mut found: Vec<Unlanded> = Vec::new();
    for (name, sentence) in OPERATIONS {
        let is_known = found.iter().any(|known| known.sentence == sentence);
        if !is_known && lstat(&entry.path.join(name))?.is_some() {
            found.push(Unlanded {
                kind: Kind::UnderWay,
                sentence: sentence.to_owned(),
                named: Vec::new(),
                more: false,
            });
        }
    }
    Ok(found)
}

/// What is changed among the files that git was told not to look at. It looks at them in a copy of its index.
fn hidden(
    git: &mut Git<'_, '_>,
    dir: &Path,
    entry: &Entry,
    tracked: &[Tracked],
) -> Result<Vec<PathBuf>, Trouble> {
    let mut there = Vec::new();
    for one in tracked.iter().filter(|one| !one.is_plain()) {
        if lstat(&dir.join(&one.path))?.is_some() {
            there.push(one);
        }
    }
    if there.is_empty() {
        return Ok(Vec::new());
    }
    let index = entry.path.join("index");
    let copy = entry.path.join("outlive-index");
    std::fs::copy(&index, &copy).map_err(|error| DiskError::new("copy", &index, error))?;
    let changed = changed_in(git, dir, &copy, &super::reset::list(&there));
    std::fs::remove_file(&copy).map_err(|error| DiskError::new("remove", &copy, error))?;
    let mut changed = changed?;
    // The others are told of already.
    changed.retain(|path| there.iter().any(|one| one.path == *path));
    Ok(changed)
}

fn changed_in(
    git: &mut Git<'_, '_>,
    dir: &Path,
    index: &Path,
    paths: &[u8],
) -> Result<Vec<PathBuf>, Trouble> {
    let variable = [("GIT_INDEX_FILE", index.as_os_str())];
    let mut call = |arguments: &[&str], input: Option<&[u8]>| {
        git.call(dir, Does::Change, arguments, input, &variable)
    };
    for flag in ["--no-assume-unchanged", "--no-skip-worktree"] {
        call(&["update-index", flag, "-z", "--stdin"], Some(paths))?;
    }
    // It fails when there are changes, which is what is asked next.
    call(&["update-index", "-q", "--refresh"], None)?;
    let said = call(&["diff-files", "-z", "--name-only"], None)?;
    if !said.succeeded() {
        return Err(Trouble::Git {
            what: "diff-files".to_owned(),
            said: said.complaints,
        });
    }
    let names = said.output.split(|&byte| byte == 0);
    Ok(names.filter(|name| !name.is_empty()).map(path_of).collect())
}

/// What a listing of commits begins with.
const LOG: [&str; 4] = ["log", "-z", "--no-show-signature", "--format=%H %s"];

/// Commits that only this worktree has, on its detached HEAD or on a ref of its own, and that it was not brought to.
fn commits(
    git: &mut Git<'_, '_>,
    dir: &Path,
    is_unborn: bool,
    known: &[Option<String>],
) -> Result<Vec<String>, Trouble> {
    let most = format!("--max-count={}", NAMED + 1);
    let mut arguments = LOG.to_vec();
    arguments.push(&most);
    if !is_unborn {
        arguments.push("HEAD");
    }
    arguments.extend([
        "--glob=refs/worktree/*",
        "--not",
        "--exclude=refs/worktree/*",
        "--exclude=refs/bisect/*",
        "--exclude=refs/rewritten/*",
        "--exclude=refs/stash",
        "--glob=refs/*",
        "--ignore-missing",
    ]);
    arguments.extend(known.iter().flatten().map(String::as_str));
    arguments.push("--");
    Ok(lines(&git.read(dir, &arguments)?))
}

fn lines(text: &[u8]) -> Vec<String> {
    text.split(|&byte| byte == 0)
        .filter(|line| !line.is_empty())
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect()
}

/// The submodules that are filled. Their repositories are the worktree's own and go with it, branches and all.
pub(super) fn filled<'t>(dir: &Path, tracked: &'t [Tracked]) -> Result<Vec<&'t Tracked>, Trouble> {
    let mut found = Vec::new();
    for one in tracked.iter().filter(|one| one.is_submodule) {
        if lstat(&dir.join(&one.path).join(".git"))?.is_some() {
            found.push(one);
        }
    }
    Ok(found)
}

/// What is in submodules and on none of their remotes.
fn submodules(
    git: &mut Git<'_, '_>,
    dir: &Path,
    all: &[Tracked],
    deeper: usize,
    unlanded: &mut Vec<Unlanded>,
) -> Result<(), Trouble> {
    for one in filled(dir, all)? {
        let path = dir.join(&one.path);
        let most = format!("--max-count={}", NAMED + 1);
        let mut arguments = LOG.to_vec();
        arguments.extend([most.as_str(), "HEAD", "--branches", "--glob=refs/stash"]);
        arguments.extend(["--not", "--remotes", "--tags", "--"]);
        let said = git.call(&path, Does::Look, &arguments, None, &[])?;
        if !said.succeeded() || deeper == 0 {
            unlanded.push(Unlanded {
                kind: Kind::Submodule,
                sentence: format!(
                    "the submodule {} cannot be looked into: {}",
                    one.path.display(),
                    said.complaints
                ),
                named: Vec::new(),
                more: false,
            });
            continue;
        }
        let are = format!("of the submodule {} are on no remote", one.path.display());
        let commits = lines(&said.output);
        unlanded.extend(Unlanded::commits(Kind::Submodule, commits, &are));
        let within = tracked(git, &path)?;
        submodules(git, &path, &within, deeper - 1, unlanded)?;
    }
    Ok(())
}
