//! Giving up the work in a workspace, by name: what `--force` does.

use std::ffi::OsStr;

use super::git::{Does, Git};
use super::place::{Entry, lstat, repository};
use super::reset::Force;
use super::unfinished::Unfinished;
use super::work::{Kind, filled};
use super::{Hands, Judgement, Trouble, Workspace, erase};

impl Workspace {
    /// Give up everything in it that is landed nowhere, and bring it to a fresh state; what was given up, a sentence each.
    ///
    /// Commits are named with their hashes: git keeps what nothing leads to for a while (two weeks, unless configured otherwise), and
    /// `git branch NAME HASH` in the repository brings it back. What was put aside by a rebase or merge is put into the stash.
    ///
    /// # Errors
    ///
    /// [`Trouble::Kept`] when it is broken or cannot be judged, or not sound afterwards. Then it may be given up in part, and the rest
    /// is still told of by a judgement.
    pub(crate) fn discard(&self, hands: &mut Hands<'_>) -> Result<Vec<String>, Trouble> {
        match self.unfinished()? {
            None | Some(Unfinished::Reset) => {}
            Some(other) => return Err(Trouble::Kept(Judgement::Unfinished(other))),
        }
        let Some(source) = self.repository_dir() else {
            return Ok(Vec::new());
        };
        let mut git = self.git(hands);
        let repository = repository(&mut git, source)?;
        let mut examined = self.examine_worktree(&mut git, &repository)?;
        let judgement = std::mem::replace(&mut examined.judgement, Judgement::Sound);
        let work = match (judgement, &examined.entry) {
            (Judgement::Sound, _) => return Ok(Vec::new()),
            (Judgement::Work(work), Some(entry)) => {
                quit(&mut git, self, entry)?;
                if work.iter().any(|one| one.kind == Kind::Submodule) {
                    self.empty_submodules(&examined.tracked, entry)?;
                }
                work
            }
            (other, _) => return Err(Trouble::Kept(other)),
        };
        self.refresh(&mut git, &repository, &examined, Force::Yes)?;
        match self.examine_worktree(&mut git, &repository)?.judgement {
            Judgement::Sound => {}
            other => return Err(Trouble::Kept(other)),
        }
        Ok(work.iter().map(ToString::to_string).collect())
    }

    /// Make every submodule as empty as it is in a worktree just cut, their repositories included.
    fn empty_submodules(
        &self,
        tracked: &[super::tracked::Tracked],
        entry: &Entry,
    ) -> Result<(), Trouble> {
        for one in filled(self.dir(), tracked)? {
            let path = self.dir().join(&one.path);
            erase(&path)?;
            std::fs::create_dir(&path)
                .map_err(|error| crate::error::DiskError::new("make", &path, error))?;
        }
        erase(&entry.path.join("modules"))
    }
}

/// Whoever has configured no name gives up what he has begun all the same: some of git's verbs want one before they do anything.
const SOMEBODY: [(&str, &str); 4] = [
    ("GIT_AUTHOR_NAME", "outlive"),
    ("GIT_AUTHOR_EMAIL", "outlive@localhost"),
    ("GIT_COMMITTER_NAME", "outlive"),
    ("GIT_COMMITTER_EMAIL", "outlive@localhost"),
];

/// Have git forget what it has begun, in the way that puts into the stash what it has put aside. One that fails is no matter:
/// what is left is overwritten, and judged afterwards.
fn quit(git: &mut Git<'_, '_>, workspace: &Workspace, entry: &Entry) -> Result<(), Trouble> {
    let is_am = lstat(&entry.path.join("rebase-apply/applying"))?.is_some();
    let apply = if is_am { "am" } else { "rebase" };
    let somebody = SOMEBODY.map(|(name, value)| (name, OsStr::new(value)));
    for (mark, arguments) in [
        ("rebase-merge", ["rebase", "--quit"].as_slice()),
        ("rebase-apply", &[apply, "--quit"]),
        ("sequencer", &["cherry-pick", "--quit"]),
        ("CHERRY_PICK_HEAD", &["cherry-pick", "--quit"]),
        ("REVERT_HEAD", &["revert", "--quit"]),
        ("MERGE_HEAD", &["merge", "--quit"]),
        ("MERGE_AUTOSTASH", &["merge", "--quit"]),
        ("BISECT_LOG", &["bisect", "reset", "HEAD"]),
        ("BISECT_START", &["bisect", "reset", "HEAD"]),
    ] {
        if lstat(&entry.path.join(mark))?.is_some() {
            git.call(workspace.dir(), Does::Change, arguments, None, &somebody)?;
        }
    }
    Ok(())
}
