//! A glance at a workspace that was sound when it was given back: whether it is still there, still what it was, and as new as its
//! source. What is in its files is not looked at, as nobody was handed it since.

use std::fs;

use super::place::{Standing, repository};
use super::{Hands, Judgement, Trouble, Workspace};

/// What a glance has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Glance {
    /// Whether it is as a fresh one would be; else it is to be reset.
    pub(crate) is_current: bool,
}

impl Workspace {
    /// Glance at it.
    ///
    /// # Errors
    ///
    /// [`Trouble::Kept`] when it is not what it was.
    pub(crate) fn glance(&self, hands: &mut Hands<'_>) -> Result<Glance, Trouble> {
        if self.unfinished()?.is_some() {
            return Ok(Glance { is_current: false });
        }
        let Some(source) = self.repository_dir() else {
            return match self.judge(hands) {
                Judgement::Sound => Ok(Glance { is_current: true }),
                other => Err(Trouble::Kept(other)),
            };
        };
        let repository = repository(&mut self.git(hands), source)?;
        let entry = match self.standing(&repository)? {
            Standing::Agrees(entry) => entry,
            Standing::Differs(how) => return Err(Trouble::Kept(Judgement::Broken(how))),
        };
        self.clear_locks(&entry)?;
        let broken = |why: String| Err(Trouble::Kept(Judgement::Broken(why)));
        let Ok(head) = fs::read(entry.path.join("HEAD")) else {
            return broken(format!("the HEAD of {} is gone", self.dir().display()));
        };
        if fs::symlink_metadata(entry.path.join("index")).is_err() {
            return broken(format!("the index of {} is gone", self.dir().display()));
        }
        Ok(Glance {
            is_current: head.trim_ascii() == repository.head.as_bytes(),
        })
    }
}
