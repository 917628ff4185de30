//! One run of a file, on the thread of a connection: it asks again for as long as that makes sense, and stops at what concerns the whole
//! file, which is for whoever keeps its record.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use state_machine::pull::part::Part;
use state_machine::pull::word::Cause;

use super::ask::{Opened, Refusal, ask};
use super::crew::Crew;
use super::keeper::EACH_BYTES;
use super::stream::{Ended, write};
use crate::pull::http::later;
use crate::pull::plan::Item;

/// So often in a row a connection asks for its run and gets nothing.
const IN_VAIN: u32 = 5;

/// What whoever keeps the record of a part hears.
pub(super) enum News {
    /// So much has arrived that the record should tell of it.
    Much,
    /// A run is over, well or not.
    Over(Option<Trouble>),
    /// This process is about to end. Whoever says so waits until this is dropped.
    Leave(Sender<()>),
}

/// What has ended the runs of a file.
pub(super) enum Trouble {
    /// The server does not give what was asked for.
    Refused(Refusal),
    /// It gives the whole instead.
    Whole(Box<Opened>),
    /// It was cut, for this reason, and nothing names the version that it is of.
    Nameless(String),
    /// The file cannot be written.
    Unwritten(io::Error),
}

impl Trouble {
    /// Whether it may concern the connection alone, and not what another one brings.
    pub(super) fn is_of_one_connection(&self) -> bool {
        matches!(
            self,
            Trouble::Refused(Refusal::Later(..) | Refusal::Never(_))
        )
    }
}

/// One run, on the thread of a connection.
pub(super) struct Streamed<'a> {
    pub(super) crew: &'a Crew,
    pub(super) item: &'a Item,
    /// The record as it was, and this run as it is.
    pub(super) asked: Part,
    pub(super) nth: usize,
    pub(super) file: &'a File,
    /// How far it is, for whoever keeps the record.
    pub(super) done: &'a AtomicU64,
    /// How much all runs of the file have brought.
    pub(super) brought: &'a AtomicU64,
    /// Whom to tell.
    pub(super) keeper: Sender<News>,
    /// Whether the others have met something that concerns it too.
    pub(super) enough: &'a AtomicBool,
}

impl Streamed<'_> {
    /// Fetch until nothing is missing, or something happens that concerns the whole file.
    pub(super) fn pour(mut self, mut first: Option<Opened>) -> Option<Trouble> {
        let mut in_vain = 0;
        while self.asked.missing_in(self.nth) != Some(0) && !self.enough.load(Ordering::Relaxed) {
            let run = self.asked.runs[self.nth];
            // Bytes are written where they belong, and nowhere else.
            let first = first.take().filter(|it| it.from == run.from + run.done);
            let opened = match first {
                Some(opened) => opened,
                None => match ask(&self.crew.http, self.item, &self.asked, self.nth, false) {
                    Ok(opened) if opened.whole => return Some(Trouble::Whole(Box::new(opened))),
                    Ok(opened) => opened,
                    // Others may get on, so that nobody loses patience for us.
                    Err(Refusal::Later(why, after_ms)) if in_vain >= IN_VAIN => {
                        let why = format!("{}: {why}", self.item.name());
                        let cause = Cause::Later { why, after_ms };
                        return Some(Trouble::Refused(Refusal::Never(cause)));
                    }
                    Err(Refusal::Later(why, after_ms)) => {
                        in_vain += 1;
                        match wait(self.crew, self.item, &why, after_ms) {
                            Ok(()) => continue,
                            Err(cause) => return Some(Trouble::Refused(Refusal::Never(cause))),
                        }
                    }
                    Err(refusal) => return Some(Trouble::Refused(refusal)),
                },
            };
            in_vain = 0;
            let why = match self.write(opened) {
                Ended::Enough => return None,
                Ended::Unwritten(error) => return Some(Trouble::Unwritten(error)),
                Ended::Well if self.asked.missing_in(self.nth).unwrap_or(0) == 0 => return None,
                Ended::Well => "the server sent less than it had announced".to_owned(),
                Ended::Cut(error) => format!("the connection was cut: {error}"),
            };
            if !has_name(&self.asked) {
                return Some(Trouble::Nameless(why));
            }
            if let Err(cause) = wait(self.crew, self.item, &why, 0) {
                return Some(Trouble::Refused(Refusal::Never(cause)));
            }
        }
        None
    }

    fn write(&mut self, mut opened: Opened) -> Ended {
        let (nth, limit) = (self.nth, self.asked.missing_in(self.nth));
        let at = self.asked.runs[nth].from + self.asked.runs[nth].done;
        let (asked, done, crew, enough) = (&mut self.asked, self.done, self.crew, self.enough);
        let (keeper, brought) = (&self.keeper, self.brought);
        write(opened.answer.body(), self.file, at, limit, |bytes| {
            asked.runs[nth].done += bytes;
            done.store(asked.runs[nth].done, Ordering::Relaxed);
            crew.voice.fetched(bytes);
            // Of all runs together, and of all answers: many short ones would never come to as much.
            let before = brought.fetch_add(bytes, Ordering::Relaxed);
            if before / EACH_BYTES != (before + bytes) / EACH_BYTES {
                // Whoever keeps the record stays for as long as we do.
                let _ = keeper.send(News::Much);
            }
            !enough.load(Ordering::Relaxed)
        })
    }
}

/// Wait before a request is made again; or why it is not, now.
pub(super) fn wait(crew: &Crew, item: &Item, why: &str, after_ms: u64) -> Result<(), Cause> {
    let why = format!("{}: {why}", item.name());
    if after_ms > 0 {
        // That is for the record, and may be longer than anybody keeps a process for.
        return Err(Cause::Later { why, after_ms });
    }
    let done = crew.voice.done_bytes();
    let pause = crew
        .patience
        .after_failure(done)
        .ok_or_else(|| later(why.clone()))?;
    crew.voice.retries(&why, pause);
    std::thread::sleep(pause);
    Ok(())
}

/// Whether something names the version that the bytes are of.
pub(super) fn has_name(record: &Part) -> bool {
    record.etag.is_some() || record.digest.is_some()
}
