//! Making a workspace. One that was not finished, as git was killed or the disk was full, is cleared away by whoever makes it again,
//! or removes it (S37).

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use super::git::Git;
use super::place::{Occupant, Repository, Standing, lstat, occupant, repository};
use super::settings::{remember, remember_base};
use super::unfinished::Unfinished;
use super::{Chore, Hands, Judgement, Trouble, Workspace, erase};
use crate::error::DiskError;

/// The pauses before a worktree is added again whose neighbour was in the way: they double, six times, 630 ms in all.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(320);

impl Workspace {
    /// Make it: a worktree at the commit that the repository's HEAD is at, detached, or an empty directory; then have it prepared.
    ///
    /// # Errors
    ///
    /// When something is at its path that is not from an earlier attempt, and when any of it fails: then nothing is left.
    pub(crate) fn cut(
        &self,
        hands: &mut Hands<'_>,
        prepare: Option<&Chore<'_>>,
    ) -> Result<(), Trouble> {
        let source = self.repository_dir();
        let mut git = self.git(hands);
        let repository = source
            .map(|source| repository(&mut git, source))
            .transpose()?;
        match self.unfinished()? {
            None => self.require_room(repository.as_ref())?,
            Some(Unfinished::Reset) => {
                return Err(Trouble::Kept(Judgement::Unfinished(Unfinished::Reset)));
            }
            Some(Unfinished::Cut | Unfinished::Removal) => {
                self.clear_away(repository.as_ref())?;
            }
        }
        self.begin(Unfinished::Cut)?;
        let made = self.make(&mut git, repository.as_ref(), prepare);
        let cleared = match &made {
            Ok(()) => Ok(()),
            // The mark stays where this fails, so that the next one goes on.
            Err(_) => self.clear_away(repository.as_ref()),
        };
        match (made, cleared) {
            (Ok(()), _) => self.finish(),
            (Err(trouble), Ok(())) => {
                self.finish()?;
                Err(trouble)
            }
            (Err(trouble), Err(_)) => Err(trouble),
        }
    }

    fn require_room(&self, repository: Option<&Repository>) -> Result<(), Trouble> {
        let dir = self.dir();
        if lstat(dir)?.is_some() {
            let why = format!("there is something at {} already", dir.display());
            return Err(Trouble::Refused(why));
        }
        let registered = repository.map(|it| it.entries_for(self)).transpose()?;
        if registered.is_some_and(|entries| !entries.is_empty()) {
            let why = format!("{} is registered as a worktree, and missing", dir.display());
            return Err(Trouble::Refused(why));
        }
        Ok(())
    }

    fn make(
        &self,
        git: &mut Git<'_, '_>,
        repository: Option<&Repository>,
        prepare: Option<&Chore<'_>>,
    ) -> Result<(), Trouble> {
        let dir = self.dir();
        match (repository, self.repository_dir()) {
            (Some(repository), Some(source)) => {
                self.add(git, source, repository)?;
                match self.standing(repository)? {
                    Standing::Agrees(entry) => {
                        remember(&entry)?;
                        remember_base(&entry, &repository.head)?;
                    }
                    Standing::Differs(how) => return Err(Trouble::Refused(how)),
                }
            }
            _ => fs::create_dir(dir).map_err(|error| DiskError::new("make", dir, error))?,
        }
        let Some(prepare) = prepare else {
            return Ok(());
        };
        git.chore("prepare", dir, prepare)?;
        let Some(repository) = repository else {
            return Ok(());
        };
        // What it leaves would be taken for somebody's work from now on.
        match self.examine_worktree(git, repository)?.judgement {
            Judgement::Sound => Ok(()),
            other => Err(Trouble::Kept(other)),
        }
    }

    /// Have git add the worktree. No lock keeps others from adding theirs at that moment, as writing the files may take long, and they
    /// may be a person's: where git has met one of theirs half made, it is asked again.
    fn add(
        &self,
        git: &mut Git<'_, '_>,
        source: &Path,
        repository: &Repository,
    ) -> Result<(), Trouble> {
        let reason = self.lock_reason();
        let add: [&OsStr; 9] = [
            "worktree".as_ref(),
            "add".as_ref(),
            "--detach".as_ref(),
            "--lock".as_ref(),
            "--reason".as_ref(),
            OsStr::from_bytes(&reason),
            "--".as_ref(),
            self.dir().as_os_str(),
            repository.head.as_ref(),
        ];
        let mut pause = FIRST_PAUSE;
        loop {
            match git.change(source, &add) {
                Err(trouble) if trouble.is_of_a_neighbour() && pause <= LONGEST_PAUSE => {
                    self.clear_away(Some(repository))?;
                    sleep(pause);
                    pause *= 2;
                }
                added => return added,
            }
        }
    }

    /// Clear away what an unfinished cut or removal has left: its registration, and the directory if it is not somebody else's.
    pub(super) fn clear_away(&self, repository: Option<&Repository>) -> Result<(), Trouble> {
        let is_ours = match (occupant(self.dir())?, repository) {
            (Occupant::Nothing, _) => false,
            (Occupant::Plain, _) => true,
            (Occupant::Linked(entry), Some(repository)) => repository.has_entry(&entry),
            (Occupant::Linked(_) | Occupant::Repository, None) => true,
            (_, _) => {
                return Err(Trouble::Refused(format!(
                    "what stands at {} was not made for this slot",
                    self.dir().display()
                )));
            }
        };
        if is_ours {
            erase(self.dir())?;
        }
        if let Some(repository) = repository {
            self.unregister(repository)?;
        }
        Ok(())
    }
}
