//! The mark of something that has begun and not come to its end: an empty file beside the workspace, whose name says what. As long
//! as it is there, nothing in the workspace is anybody's work, as nobody was handed it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::{Trouble, Workspace};
use crate::error::DiskError;

/// What has not come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfinished {
    /// Making it.
    Cut,
    /// Bringing it to a fresh state.
    Reset,
    /// Taking it away.
    Removal,
}

impl Unfinished {
    const ALL: [Unfinished; 3] = [Unfinished::Cut, Unfinished::Reset, Unfinished::Removal];

    fn suffix(self) -> &'static str {
        match self {
            Unfinished::Cut => ".cutting",
            Unfinished::Reset => ".resetting",
            Unfinished::Removal => ".removing",
        }
    }

    /// As a sentence names it.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Unfinished::Cut => "making it",
            Unfinished::Reset => "its reset",
            Unfinished::Removal => "its removal",
        }
    }
}

impl Workspace {
    fn mark(&self, what: Unfinished) -> PathBuf {
        let mut name = self.dir.file_name().map_or(OsString::new(), OsString::from);
        name.push(what.suffix());
        self.dir.with_file_name(name)
    }

    /// What has not come to its end. Of several the strongest: a removal that began after a reset had begun is a removal.
    pub(super) fn unfinished(&self) -> Result<Option<Unfinished>, Trouble> {
        for what in Unfinished::ALL.into_iter().rev() {
            if super::place::lstat(&self.mark(what))?.is_some() {
                return Ok(Some(what));
            }
        }
        Ok(None)
    }

    /// Whether something was begun that has not come to its end.
    pub(crate) fn is_begun(&self) -> bool {
        matches!(self.unfinished(), Ok(Some(_)))
    }

    /// Mark the beginning of something. When this returns, the mark survives a loss of power: what follows may reach the disk in
    /// any order.
    pub(super) fn begin(&self, what: Unfinished) -> Result<(), Trouble> {
        let mark = self.mark(what);
        File::create(&mark).map_err(|error| DiskError::new("make", &mark, error))?;
        let parent = self.dir.parent().unwrap_or(Path::new("/"));
        let synced = File::open(parent).and_then(|parent| parent.sync_all());
        synced.map_err(|error| DiskError::new("sync", parent, error))?;
        Ok(())
    }

    /// Take the mark of a reset away, as somebody has the workspace still: what is in it may be his, and is judged.
    pub(crate) fn disown_reset(&self) -> Result<(), Trouble> {
        self.unmark(Unfinished::Reset)
    }

    /// Take every mark away.
    pub(super) fn finish(&self) -> Result<(), Trouble> {
        Unfinished::ALL
            .into_iter()
            .try_for_each(|what| self.unmark(what))
    }

    fn unmark(&self, what: Unfinished) -> Result<(), Trouble> {
        let mark = self.mark(what);
        match fs::remove_file(&mark) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(DiskError::new("remove", &mark, error).into())
            }
            _ => Ok(()),
        }
    }
}
