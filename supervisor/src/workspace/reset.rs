//! Bringing a workspace that holds no work to a fresh state: that of one just cut, apart from what git ignores, which is kept and is
//! what makes a slot warm.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::erase::soften;
use super::git::{Does, Git};
use super::judge::Examined;
use super::place::{Repository, lstat, repository};
use super::settings::{base, remember_base};
use super::status::{ARGUMENTS, Status};
use super::tracked::Tracked;
use super::unfinished::Unfinished;
use super::work::filled;
use super::{Chore, Hands, Judgement, Trouble, Workspace};
use crate::process::Ran;

/// What may be lost on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Force {
    /// Nothing: git refuses where it would have to.
    No,
    /// Everything: it is nobody's, or was given up.
    Yes,
}

impl Workspace {
    /// Reset it, and then run the pool's own command, if there is one; how that went. A reset that was interrupted goes on.
    ///
    /// # Errors
    ///
    /// [`Trouble::Kept`] when it is not sound, before anything is touched, or when it is not sound afterwards, by the command's doing.
    /// After any other failure it is [`Judgement::Unfinished`].
    pub(crate) fn reset(
        &self,
        hands: &mut Hands<'_>,
        command: Option<&Chore<'_>>,
    ) -> Result<Option<Ran>, Trouble> {
        let force = match self.unfinished()? {
            None => Force::No,
            // Whatever is in it, nobody had it since it was sound.
            Some(Unfinished::Reset) => Force::Yes,
            Some(other) => return Err(Trouble::Kept(Judgement::Unfinished(other))),
        };
        let Some(source) = self.repository_dir() else {
            return self.reset_directory(hands, command);
        };
        let mut git = self.git(hands);
        let repository = repository(&mut git, source)?;
        let examined = self.examine_worktree(&mut git, &repository)?;
        match examined.judgement {
            Judgement::Sound => {}
            Judgement::Work(_) if force == Force::Yes => {}
            other => return Err(Trouble::Kept(other)),
        }
        let was_base = examined.entry.as_ref().map(base).transpose()?.flatten();
        self.begin(Unfinished::Reset)?;
        if let Err(trouble) = self.refresh(&mut git, &repository, &examined, force) {
            if matches!(trouble, Trouble::Git { .. }) && force == Force::No {
                // Where this fails as well, the reset stays unfinished.
                let _ = self.take_back(&mut git, &examined, was_base);
            }
            return Err(trouble);
        }
        let ran = command
            .map(|command| git.chore("reset", self.dir(), command))
            .transpose()?;
        // Also what git does not report a failure of: the proof is in the tree.
        match self.examine_worktree(&mut git, &repository)?.judgement {
            Judgement::Sound => self.finish()?,
            other => return Err(Trouble::Kept(other)),
        }
        Ok(ran)
    }

    /// Take back what a reset has done half way that git has refused: the tree was sound before it, and is to be found so, and not
    /// with half of another one in it.
    fn take_back(
        &self,
        git: &mut Git<'_, '_>,
        examined: &Examined,
        base: Option<String>,
    ) -> Result<(), Trouble> {
        git.change(self.dir(), &["reset", "--hard", "--quiet"])?;
        git.change(self.dir(), &["clean", "-d", "--quiet", "-f"])?;
        if let (Some(entry), Some(base)) = (&examined.entry, base) {
            remember_base(entry, &base)?;
        }
        self.disown_reset()
    }

    fn reset_directory(
        &self,
        hands: &mut Hands<'_>,
        command: Option<&Chore<'_>>,
    ) -> Result<Option<Ran>, Trouble> {
        match self.examine(hands)? {
            Judgement::Sound => {}
            other => return Err(Trouble::Kept(other)),
        }
        let Some(command) = command else {
            self.finish()?;
            return Ok(None);
        };
        self.begin(Unfinished::Reset)?;
        let ran = self.git(hands).chore("reset", self.dir(), command)?;
        self.finish()?;
        Ok(Some(ran))
    }

    /// Make the tree that of the repository's HEAD.
    pub(super) fn refresh(
        &self,
        git: &mut Git<'_, '_>,
        repository: &Repository,
        examined: &Examined,
        force: Force,
    ) -> Result<(), Trouble> {
        let dir = self.dir();
        let all = &examined.tracked;
        if let Some(entry) = &examined.entry {
            self.restore_settings(git, entry)?;
            // A reset that is interrupted from here on is unfinished, and not judged by this.
            remember_base(entry, &repository.head)?;
        }
        restore_rights(dir, all)?;
        let had_flags = clear_flags(git, dir, all)?;
        // What was left out behind git's back is put back only where it may overwrite; nothing of it is changed.
        let forced = force == Force::Yes || had_flags;
        let mut checkout = vec!["checkout", "--quiet", "--detach"];
        checkout.extend(forced.then_some("--force"));
        checkout.extend([repository.head.as_str(), "--"]);
        self.change_or_soften(git, &checkout)?;
        let f = if force == Force::Yes { "-ff" } else { "-f" };
        self.change_or_soften(git, &["clean", "-d", "--quiet", f])?;
        update_submodules(git, dir, all)?;
        delete_own_refs(git, dir)
    }

    /// Have git change the tree; should directories be in the way that nobody may write to, they are made writable.
    fn change_or_soften(&self, git: &mut Git<'_, '_>, arguments: &[&str]) -> Result<(), Trouble> {
        match git.change(self.dir(), arguments) {
            Err(first @ Trouble::Git { .. }) => {
                soften(self.dir());
                match git.change(self.dir(), arguments) {
                    // The second may only complain of what the first has done half way.
                    Err(Trouble::Git { .. }) => Err(first),
                    other => other,
                }
            }
            other => other,
        }
    }
}

/// Paths as git reads them with `-z --stdin`.
pub(super) fn list(paths: &[&Tracked]) -> Vec<u8> {
    let mut text = Vec::new();
    for one in paths {
        text.extend_from_slice(one.path.as_os_str().as_bytes());
        text.push(0);
    }
    text
}

/// Have git look at every tracked file again; whether there was one that it did not look at. Where the repository itself is checked
/// out in part, what is left out of it stays left out.
fn clear_flags(git: &mut Git<'_, '_>, dir: &Path, all: &[Tracked]) -> Result<bool, Trouble> {
    let mut flagged = Vec::new();
    for one in all.iter().filter(|one| !one.is_plain()) {
        if one.assumed_unchanged || lstat(&dir.join(&one.path))?.is_some() || !is_sparse(git, dir)?
        {
            flagged.push(one);
        }
    }
    if flagged.is_empty() {
        return Ok(false);
    }
    let paths = list(&flagged);
    for flag in ["--no-assume-unchanged", "--no-skip-worktree"] {
        git.change_with(dir, &["update-index", flag, "-z", "--stdin"], &paths)?;
    }
    Ok(true)
}

fn is_sparse(git: &mut Git<'_, '_>, dir: &Path) -> Result<bool, Trouble> {
    let arguments = ["config", "--type=bool", "core.sparseCheckout"];
    let said = git.call(dir, Does::Look, &arguments, None, &[])?;
    Ok(said.output.trim_ascii() == b"true")
}

/// Give the owner back the rights to tracked files, and to the directories they are in, that git does not look at.
fn restore_rights(dir: &Path, all: &[Tracked]) -> Result<(), Trouble> {
    let mut known: Option<PathBuf> = None;
    for one in all.iter().filter(|one| !one.is_submodule) {
        let parent = one.path.parent().unwrap_or(Path::new(""));
        // Paths come sorted, so that a directory comes once, or a few times.
        if known.as_deref() != Some(parent) {
            let mut at = dir.to_owned();
            grant(&at, 0o700)?;
            for name in parent.components() {
                at.push(name);
                grant(&at, 0o700)?;
            }
            known = Some(parent.to_owned());
        }
        grant(&dir.join(&one.path), 0o600)?;
    }
    Ok(())
}

/// Give the owner these rights to a file or directory of this kind, if there is one.
fn grant(path: &Path, rights: u32) -> Result<(), Trouble> {
    let Some(found) = lstat(path)? else {
        return Ok(());
    };
    let is_meant = if rights == 0o700 {
        found.is_dir()
    } else {
        found.is_file()
    };
    let mode = found.permissions().mode() & 0o7777;
    if is_meant && mode & rights != rights {
        // Not ours to change: whatever fails for it is told of then.
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(mode | rights));
    }
    Ok(())
}

/// Bring the submodules that are filled to the commits that are recorded for them. Those that are not stay empty, as in a worktree
/// just cut.
fn update_submodules(git: &mut Git<'_, '_>, dir: &Path, before: &[Tracked]) -> Result<(), Trouble> {
    if filled(dir, before)?.is_empty() {
        return Ok(());
    }
    let changed = Status::parse(&git.read(dir, &ARGUMENTS)?).submodules;
    if changed.is_empty() {
        return Ok(());
    }
    let mut update: Vec<&std::ffi::OsStr> = ["submodule", "update", "--recursive", "--force", "--"]
        .iter()
        .map(std::ffi::OsStr::new)
        .collect();
    update.extend(changed.iter().map(|path| path.as_os_str()));
    git.change(dir, &update)
}

/// Delete the refs that only this worktree has.
fn delete_own_refs(git: &mut Git<'_, '_>, dir: &Path) -> Result<(), Trouble> {
    let own = ["refs/worktree", "refs/bisect", "refs/rewritten"];
    let mut arguments = vec!["for-each-ref", "--format=%(refname)"];
    arguments.extend(own);
    let refs = git.read(dir, &arguments)?;
    for name in String::from_utf8_lossy(&refs).lines() {
        git.change(dir, &["update-ref", "-d", "--no-deref", name])?;
    }
    Ok(())
}
