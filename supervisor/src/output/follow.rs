//! Following a stream: printing what is kept and going on with what comes, over rotations,
//! truncations and whatever else happens to the file, until the job has ended.
//!
//! A file is held open from the moment it is known, so that a rotation between two looks takes
//! nothing away, unless it was so many rotations that a file came and went unseen. What cannot be
//! seen by anyone: a file that was truncated and has grown past the old place before the next look
//! is read on from there.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use super::kept::{AtPlace, Kept, at_place, open_all};
use super::open::{FileId, open_dir};
use super::read::{Start, copy, position, quiet_on_closed};
use crate::watch::Watch;

/// How long to sleep at most before asking whether the job has ended.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Something that a person following should be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The file is shorter than what was printed of it: following goes on from its start.
    Truncated,
    /// Files were rotated away before they were seen: some output may be missing here.
    Missed,
    /// The file was removed or moved away. What is still written to it is shown as long as it can
    /// be.
    Removed,
    /// Another file was put in its place, and is followed from its start.
    Replaced,
    /// Something that is not a regular file was put in its place (a symbolic link, say), and is not
    /// followed.
    NotAFile,
}

/// Prints the stream `name` of the job directory `dir` from `start` on, and goes on until `ended`
/// says that the job has ended and everything that was written by then is printed. A file that is
/// not there yet is waited for. A reader of `out` that has gone away ends it quietly.
///
/// `ended` is asked after each change and at least once a second. Idle, it costs next to nothing.
///
/// # Errors
/// The directory or a file cannot be read, or `out` cannot be written.
pub(crate) fn follow(
    dir: &Path,
    name: &str,
    start: Start,
    out: &mut dyn Write,
    notices: &mut dyn FnMut(Notice),
    ended: &mut dyn FnMut() -> bool,
) -> io::Result<()> {
    let watch = Watch::new(dir);
    quiet_on_closed(follow_with(watch, dir, name, start, out, notices, ended))
}

fn follow_with(
    mut watch: Watch,
    dir: &Path,
    name: &str,
    start: Start,
    out: &mut dyn Write,
    notices: &mut dyn FnMut(Notice),
    ended: &mut dyn FnMut() -> bool,
) -> io::Result<()> {
    let mut follower = Follower::new(dir, name, start)?;
    loop {
        // Asked before reading: what was written before the end is then read after it.
        let over = ended();
        let more = follower.catch_up(over, out, notices)?;
        out.flush()?;
        if over {
            return Ok(());
        }
        if !more {
            watch.wait(Some(ASK_AGAIN))?;
        }
    }
}

struct Follower<'a> {
    dir: OwnedFd,
    name: &'a str,
    /// The files from the one being read to the newest known, all held open.
    known: VecDeque<Known>,
    /// How much of the first of them was printed, in bytes.
    offset: u64,
    /// Files that need no more printing and were still kept when last looked for. Held open, so
    /// that they are known again for certain (F19); let go of when they are rotated away.
    done: Vec<Kept>,
    /// What was last told about the place of the file, so that it is told once.
    told: Option<Notice>,
}

struct Known {
    kept: Kept,
    /// What is to be told before this file is read.
    before: Option<Notice>,
}

impl<'a> Follower<'a> {
    fn new(dir: &Path, name: &'a str, start: Start) -> io::Result<Follower<'a>> {
        let dir = open_dir(dir)?;
        let kept = open_all(dir.as_fd(), name)?;
        let from = position(&kept, start)?;
        let mut done = kept;
        let known = done.split_off(from.file);
        let known = known
            .into_iter()
            .map(|kept| Known { kept, before: None })
            .collect();
        Ok(Follower {
            dir,
            name,
            known,
            offset: from.offset,
            done,
            told: None,
        })
    }

    /// Prints what there is to print: whether there is more by now. When it is `over`, newer files
    /// are looked for only once, so that a process left behind by the job cannot keep us here.
    fn catch_up(
        &mut self,
        over: bool,
        out: &mut dyn Write,
        notices: &mut dyn FnMut(Notice),
    ) -> io::Result<bool> {
        let mut looked = false;
        loop {
            // A file that has a successor is read to its end after the successor was seen, and only
            // then left.
            let has_successor = self.known.len() > 1;
            let more = self.print_first(out, notices)?;
            if has_successor {
                self.leave_first(notices);
                continue;
            }
            if (looked && over) || !self.find_newer(notices)? {
                return Ok(more);
            }
            looked = true;
        }
    }

    /// Prints the first file up to the size it has now: whether it has grown meanwhile.
    fn print_first(
        &mut self,
        out: &mut dyn Write,
        notices: &mut dyn FnMut(Notice),
    ) -> io::Result<bool> {
        let Some(first) = self.known.front() else {
            return Ok(false);
        };
        let size = first.kept.size_now()?;
        if size < self.offset {
            notices(Notice::Truncated);
            self.offset = 0;
        }
        self.offset = copy(&first.kept, self.offset, size, out)?;
        Ok(first.kept.size_now()? != self.offset)
    }

    fn leave_first(&mut self, notices: &mut dyn FnMut(Notice)) {
        self.done
            .extend(self.known.pop_front().map(|first| first.kept));
        self.offset = 0;
        if let Some(notice) = self.known.front().and_then(|next| next.before) {
            notices(notice);
        }
    }

    /// Looks for files newer than those known: whether there are any.
    fn find_newer(&mut self, notices: &mut dyn FnMut(Notice)) -> io::Result<bool> {
        let place = at_place(self.dir.as_fd(), self.name)?;
        if let (AtPlace::File(id), Some(newest)) = (place, self.newest())
            && id == newest
        {
            self.told = None;
            return Ok(false);
        }
        let mut kept = open_all(self.dir.as_fd(), self.name)?;
        self.done
            .retain(|done| kept.iter().any(|kept| kept.id == done.id));
        let continues = kept.iter().any(|kept| Some(kept.id) == self.newest());
        let newer = match kept.iter().rposition(|kept| self.knows(kept.id)) {
            Some(last_known) => kept.split_off(last_known + 1),
            None => kept,
        };
        if newer.is_empty() {
            // The two looks are not one: a file that is there by now was being rotated in between them.
            let was_there = matches!(place, AtPlace::File(_));
            let is_back = matches!(at_place(self.dir.as_fd(), self.name)?, AtPlace::File(_));
            if is_back && !was_there && !continues {
                return Ok(true);
            }
            self.tell_of_place(place, continues, notices);
            return Ok(false);
        }
        let mut before = if continues {
            None
        } else {
            self.break_before()?
        };
        self.told = None;
        for kept in newer {
            self.known.push_back(Known {
                kept,
                before: before.take(),
            });
        }
        Ok(true)
    }

    fn knows(&self, id: FileId) -> bool {
        let known = self.known.iter().map(|known| &known.kept);
        known.chain(&self.done).any(|kept| kept.id == id)
    }

    fn newest(&self) -> Option<FileId> {
        self.known.back().map(|newest| newest.kept.id)
    }

    /// What is to be told where the files found do not continue those known.
    fn break_before(&self) -> io::Result<Option<Notice>> {
        let Some(newest) = self.known.back() else {
            return Ok(None);
        };
        // A rotation deletes; whoever moves a file elsewhere, or said so before, has replaced it.
        let rotated_away = newest.kept.is_unlinked()? && self.told.is_none();
        Ok(Some(if rotated_away {
            Notice::Missed
        } else {
            Notice::Replaced
        }))
    }

    /// The file is not at its place and nothing newer is there.
    fn tell_of_place(&mut self, place: AtPlace, rotating: bool, notices: &mut dyn FnMut(Notice)) {
        let notice = match place {
            AtPlace::Foreign => Notice::NotAFile,
            // Not there yet, or between two steps of a rotation.
            _ if self.known.is_empty() || rotating => return,
            _ => Notice::Removed,
        };
        if self.told != Some(notice) {
            self.told = Some(notice);
            notices(notice);
        }
    }
}

#[cfg(test)]
mod tests;
