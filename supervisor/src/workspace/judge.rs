//! Whether a workspace can be used again.

use std::fmt;

use super::git::Git;
use super::place::{Entry, Occupant, Repository, Standing, occupant, repository};
use super::tracked::Tracked;
use super::unfinished::Unfinished;
use super::work::Unlanded;
use super::{Hands, Trouble, Workspace};

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// It is as it must be, and holds nothing that is not landed.
    Sound,
    /// It holds work that is landed nowhere.
    Work(Vec<Unlanded>),
    /// A cut, a reset or a removal has not come to its end. Nothing in it is anybody's work, and the same again, or a removal,
    /// brings it to an end.
    Unfinished(Unfinished),
    /// It is not what it must be, and does not become that by itself. What is there was left as it is.
    Broken(String),
    /// It could not be judged now: git took too long, is not there, or works inside; or the repository that it is cut from is away.
    Unclear(String),
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Judgement::Sound => f.write_str("it is sound"),
            Judgement::Work(work) => {
                let all: Vec<String> = work.iter().map(Unlanded::to_string).collect();
                write!(
                    f,
                    "it holds work that is landed nowhere: {}",
                    all.join("; ")
                )
            }
            Judgement::Unfinished(what) => {
                write!(f, "{} has not come to its end", what.describe())
            }
            Judgement::Broken(why) => f.write_str(why),
            Judgement::Unclear(why) => write!(f, "it cannot be judged now: {why}"),
        }
    }
}

/// What an examination has found out beside its result.
pub(super) struct Examined {
    pub(super) judgement: Judgement,
    /// Everything tracked, where it came so far.
    pub(super) tracked: Vec<Tracked>,
    /// Its registration, where that agrees.
    pub(super) entry: Option<Entry>,
}

impl From<Judgement> for Examined {
    fn from(judgement: Judgement) -> Examined {
        Examined {
            judgement,
            tracked: Vec::new(),
            entry: None,
        }
    }
}

impl Workspace {
    /// Judge it. Changes nothing but that locks which a dead git has left are removed.
    pub(crate) fn judge(&self, hands: &mut Hands<'_>) -> Judgement {
        let judged = match self.unfinished() {
            Ok(Some(what)) => return Judgement::Unfinished(what),
            Ok(None) => self.examine(hands),
            Err(trouble) => Err(trouble),
        };
        judged.unwrap_or_else(|trouble| Judgement::Unclear(trouble.to_string()))
    }

    /// As [`Workspace::judge`], whatever is unfinished.
    pub(super) fn examine(&self, hands: &mut Hands<'_>) -> Result<Judgement, Trouble> {
        let Some(source) = self.repository_dir() else {
            return self.examine_directory();
        };
        let mut git = self.git(hands);
        // What stands there is told of also when the repository is away.
        if occupant(self.dir())? == Occupant::Nothing {
            let why = format!("{} is missing", self.dir().display());
            return Ok(Judgement::Broken(why));
        }
        let repository = repository(&mut git, source)?;
        Ok(self.examine_worktree(&mut git, &repository)?.judgement)
    }

    /// Examine a worktree of this repository.
    pub(super) fn examine_worktree(
        &self,
        git: &mut Git<'_, '_>,
        repository: &Repository,
    ) -> Result<Examined, Trouble> {
        let entry = match self.standing(repository)? {
            Standing::Agrees(entry) => entry,
            Standing::Differs(how) => return Ok(Judgement::Broken(how).into()),
        };
        self.clear_locks(&entry)?;
        match self.find_work(git, repository, &entry) {
            Ok(findings) => Ok(Examined {
                judgement: if findings.unlanded.is_empty() {
                    Judgement::Sound
                } else {
                    Judgement::Work(findings.unlanded)
                },
                tracked: findings.tracked,
                entry: Some(entry),
            }),
            Err(Trouble::Git { what, said }) if !is_about_its_owner(&said) => {
                Ok(Judgement::Broken(format!("git {what} fails in it: {said}")).into())
            }
            Err(other) => Err(other),
        }
    }

    /// Of a directory that no repository knows, nobody can tell what is work.
    fn examine_directory(&self) -> Result<Judgement, Trouble> {
        let dir = self.dir().display();
        Ok(match occupant(self.dir())? {
            Occupant::Nothing => Judgement::Broken(format!("{dir} is missing")),
            Occupant::Symlink => Judgement::Broken(format!("a symbolic link stands at {dir}")),
            Occupant::Other => Judgement::Broken(format!("{dir} is not a directory")),
            Occupant::Plain | Occupant::Repository | Occupant::Linked(_) => Judgement::Sound,
        })
    }
}

/// git refuses a repository of somebody else: a matter of configuration, and of no slot.
fn is_about_its_owner(said: &str) -> bool {
    said.contains("dubious ownership")
}
