//! The history of a job as it grows: each line once, none left out, and the last one only when it is whole.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use state_machine::disk::{Name, Place};
use state_machine::job::State;
use state_machine::protocol::claim::{Held, probe};
use state_machine::record::{Line, What};

use super::Job;
use crate::error::{DiskError, Error, Result};

/// A reader of one job's history that remembers how far it has come.
#[derive(Debug)]
pub(crate) struct Tail {
    job: Job,
    /// Kept open where `keep` says so: then a job that is forgotten right after its end loses no line.
    file: Option<File>,
    keep: bool,
    offset: u64,
    /// The beginning of a line whose end is not written yet.
    rest: Vec<u8>,
    /// How many lines of the history have been given, the one counted that is true before it is written.
    given: usize,
    /// Whether that one (the job is queued) was given and has not come by in the file yet.
    ahead: bool,
    ended: bool,
    over: bool,
}

impl Tail {
    /// A reader at the beginning of the history. One that may `keep` its file open holds a descriptor.
    pub(crate) fn new(job: Job, keep: bool) -> Tail {
        Tail {
            job,
            file: None,
            keep,
            offset: 0,
            rest: Vec::new(),
            given: 0,
            ahead: false,
            ended: false,
            over: false,
        }
    }

    /// The job.
    pub(crate) fn job(&self) -> &Job {
        &self.job
    }

    /// Whether the end of the job has been given.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether nothing can follow any more: the job has ended and nobody holds it, or it is gone.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// The lines that came since the last call.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] when a record of the job cannot be read; a job that is gone is no error, only over.
    pub(crate) fn more(&mut self) -> Result<Vec<Line>> {
        // What is open is read whatever becomes of the name.
        self.open()?;
        let view = match self.job.look() {
            Ok(view) => view,
            Err(Error::Gone(_)) => {
                self.ended = true;
                self.over = true;
                return self.read();
            }
            Err(error) => return Err(error),
        };
        // Asked before the history is read: what nobody holds then, nobody has added to since.
        self.over = view.state.is_terminal() && !self.is_held()?;
        let mut lines = self.read()?;
        if self.given == 0 {
            // True already, and the first line as soon as anybody writes one.
            lines.push(Line::state(view.descriptor.created_at_ms, State::Queued));
            self.given = 1;
            self.ahead = true;
        }
        if self.over && !self.ended {
            // Its holder died before the end was in the history.
            match self.job.events() {
                Ok(all) => lines.extend(all.into_iter().skip(self.given)),
                Err(Error::Gone(_)) => {}
                Err(error) => return Err(error),
            }
            self.ended = true;
        }
        if !self.keep {
            self.file = None;
        }
        Ok(lines)
    }

    /// What can be read of the history when the job cannot be.
    pub(crate) fn readable(&mut self) -> Vec<Line> {
        self.read().unwrap_or_default()
    }

    fn is_held(&self) -> Result<bool> {
        let place = Place::of_job(self.job.id(), Name::Lock);
        Ok(probe(&mut self.job.store().disk(), &place)? == Held::Yes)
    }

    fn open(&mut self) -> Result<()> {
        if self.file.is_some() {
            return Ok(());
        }
        let path = self.job.dir().join("events.jsonl");
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let failed = |error: Errno| DiskError::new("open", &path, error);
        match openat(CWD, &path, flags, Mode::empty()) {
            Ok(fd) => {
                let stat = fstat(&fd).map_err(failed)?;
                // What is no plain file holds no lines.
                if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
                    self.file = Some(File::from(fd));
                }
                Ok(())
            }
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(()),
            Err(error) => Err(failed(error).into()),
        }
    }

    /// What the file has more than at the last call, as far as it is whole lines.
    fn read(&mut self) -> Result<Vec<Line>> {
        if let Some(file) = &self.file {
            self.offset += read_from(file, self.offset, &mut self.rest).map_err(|error| {
                DiskError::new("read", &self.job.dir().join("events.jsonl"), error)
            })?;
        }
        let mut lines = whole_lines(&mut self.rest);
        if self.ahead && !lines.is_empty() {
            lines.remove(0);
            self.ahead = false;
        }
        self.given += lines.len();
        self.ended |= lines.iter().any(is_an_end);
        Ok(lines)
    }
}

fn is_an_end(line: &Line) -> bool {
    matches!(line.what, What::State { state } if state.is_terminal())
}

/// Add to `bytes` what the file holds from `offset` on; how much that was.
fn read_from(file: &File, offset: u64, bytes: &mut Vec<u8>) -> io::Result<u64> {
    let mut buffer = [0u8; 8 << 10];
    let mut length = 0;
    loop {
        match file.read_at(&mut buffer, offset + length) {
            Ok(0) => return Ok(length),
            Ok(more) => {
                bytes.extend(buffer.iter().take(more));
                length += more as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Take every line that has its end out of `bytes`; what does not decode is passed over.
fn whole_lines(bytes: &mut Vec<u8>) -> Vec<Line> {
    let whole = bytes
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |end| end + 1);
    let rest = bytes.split_off(whole);
    let lines = bytes
        .split(|&byte| byte == b'\n')
        .filter_map(Line::decode)
        .collect();
    *bytes = rest;
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{JobSpec, Store};
    use std::io::Write;

    #[test]
    fn a_line_is_given_once_and_only_when_it_is_whole() {
        let mut bytes = Line::state(1, State::Queued).encode();
        bytes.extend(b"rubbish\n{\"at_ms\":2,\"event\":\"sta");
        assert_eq!(whole_lines(&mut bytes), [Line::state(1, State::Queued)]);
        assert_eq!(whole_lines(&mut bytes), []);
        bytes.extend(b"te\",\"state\":\"running\"}\n");
        assert_eq!(whole_lines(&mut bytes), [Line::state(2, State::Running)]);
        assert!(bytes.is_empty());
    }

    fn append(job: &Job, line: &Line) {
        let file = job.dir().join("events.jsonl");
        let mut file = File::options()
            .append(true)
            .create(true)
            .open(file)
            .unwrap();
        file.write_all(&line.encode()).unwrap();
    }

    #[test]
    fn what_is_true_before_it_is_written_is_not_given_twice() {
        let root = tempfile::tempdir().unwrap();
        let store = Store::open(root.path().join("store")).unwrap();
        let job = store.create(JobSpec::command(["true"])).unwrap();
        let created = job.look().unwrap().descriptor.created_at_ms;
        let mut tail = Tail::new(job.clone(), true);
        let queued = Line::state(created, State::Queued);
        assert_eq!(tail.more().unwrap(), std::slice::from_ref(&queued));
        assert_eq!(tail.more().unwrap(), []);
        append(&job, &queued);
        let running = Line::state(created + 1, State::Running);
        append(&job, &running);
        assert_eq!(tail.more().unwrap(), [running]);
        assert!(!tail.has_ended() && !tail.is_over());
    }

    #[test]
    fn a_job_that_is_forgotten_after_its_end_loses_no_line() {
        let root = tempfile::tempdir().unwrap();
        let store = Store::open(root.path().join("store")).unwrap();
        let job = store.create(JobSpec::command(["true"])).unwrap();
        append(&job, &Line::state(1, State::Queued));
        let mut tail = Tail::new(job.clone(), true);
        assert_eq!(tail.more().unwrap().len(), 1);
        job.stop(None).unwrap();
        assert_eq!(
            store.forget(&[job.id().clone()]).unwrap().forgotten.len(),
            1
        );
        let lines = tail.more().unwrap();
        assert!(lines.iter().any(is_an_end), "{lines:?}");
        assert!(tail.has_ended() && tail.is_over());
    }
}
