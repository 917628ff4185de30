//! Watching the tree of an attempt until its command has ended, or until nothing of it is left: exits, requests, timers,
//! the stages of a stop.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::process::Signal;
use state_machine::control::Request;
use state_machine::job::State;
use state_machine::protocol::create::Durable;
use state_machine::protocol::request::{Took, answered, discard, take};
use state_machine::record::{PauseMode, Stopping};

use super::book::Written;
use super::course::Course;
use super::tree::{Stage, Stop, Tree, Why};
use crate::output::Carrier;
use crate::{clock, process};

const TERM: i32 = Signal::TERM.as_raw();
const KILL: i32 = Signal::KILL.as_raw();

/// A stop that takes no longer than this is not recorded on its own: the end is recorded in the same moment.
const SHOWN_AFTER: Duration = Duration::from_millis(20);
/// The first wait between two looks at what was killed, and the longest.
const FIRST_LOOK: Duration = Duration::from_millis(2);
const LONGEST_LOOK: Duration = Duration::from_secs(1);
/// What still lives so long after it was killed is named in the record.
const NAMED_AFTER: Duration = Duration::from_secs(2);
/// A control file that stays empty so long is thrown away.
const EMPTY_LIMIT: Duration = Duration::from_secs(1);
/// How often an empty control file is looked at.
const EMPTY_LOOK: Duration = Duration::from_millis(20);

/// How often a request that waits is looked at while a stop is under way.
const STOPPING_LOOK: Duration = Duration::from_millis(250);

/// How long a tree is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// Until its command has ended by itself, or a stop has left nothing.
    CommandEnds,
    /// Until nothing is left.
    Empty,
}

impl Course<'_> {
    /// Watch the tree.
    pub(super) fn oversee(&mut self, tree: &mut Tree, until: Until) -> std::io::Result<()> {
        loop {
            tree.look()?;
            if tree.exit.is_some() {
                if until == Until::CommandEnds && tree.stop.is_none() {
                    return Ok(());
                }
                if tree.is_empty()? {
                    return Ok(());
                }
            }
            self.check_time(tree)?;
            self.advance(tree)?;
            self.honour(tree)?;
            // What a full disk did not let us record is tried again.
            self.told_to_end |= self.book.try_if_due() == Written::Gone;
            self.carry(tree);
            self.sleep(tree)?;
        }
    }

    fn sleep(&mut self, tree: &Tree) -> std::io::Result<()> {
        let deadline = [
            self.book.next_try(),
            self.empty_look(),
            next_stage(tree),
            // Writing over a request that waits is no notice; while it must wait, it is looked at.
            tree.stop.map(|_| clock::since_boot() + STOPPING_LOOK),
            tree.deadline
                .filter(|_| tree.frozen.is_none() && tree.stop.is_none() && tree.exit.is_none()),
        ];
        let mut sources: Vec<BorrowedFd<'_>> = Vec::with_capacity(4);
        // An exit that was seen already must not wake us again and again.
        if tree.exit.is_none()
            && let Some(leader) = &tree.leader
        {
            sources.push(leader.pidfd());
        }
        sources.extend(tree.carriers.iter().map(Carrier::fd));
        let woken = self
            .wake
            .sleep(deadline.into_iter().flatten().min(), &sources)?;
        self.note_waking(woken);
        Ok(())
    }

    /// Move the output that has a limit; a stream that nobody writes to any more is done with.
    pub(super) fn carry(&mut self, tree: &mut Tree) {
        let before = self.dropped(tree);
        let mut of_ended = 0;
        tree.carriers.retain_mut(|carrier| {
            let goes_on = carrier.carry().is_ok_and(|carried| !carried.ended);
            if !goes_on {
                of_ended += carrier.dropped_bytes();
            }
            goes_on
        });
        self.dropped_bytes += of_ended;
        // That something is missing is worth a record at once; how much, at the end.
        let dropped = self.dropped(tree);
        if before.is_none() && dropped.is_some() {
            self.write(
                |status| status.dropped_bytes = dropped,
                Vec::new(),
                Durable::No,
            );
        }
    }

    /// End what runs too long, and everything when the worker is told to end.
    fn check_time(&mut self, tree: &mut Tree) -> std::io::Result<()> {
        if tree.stop.is_some() {
            return Ok(());
        }
        if self.told_to_end {
            return self.begin_stop(tree, Why::Shutdown);
        }
        let late = tree
            .deadline
            .is_some_and(|deadline| deadline <= clock::since_boot());
        if late && tree.frozen.is_none() && tree.exit.is_none() {
            return self.begin_stop(tree, Why::Timeout);
        }
        Ok(())
    }

    /// Deliver the stop signal. A command that has ended by itself just now is not stopped: its own end is what
    /// happened.
    pub(super) fn begin_stop(&mut self, tree: &mut Tree, why: Why) -> std::io::Result<()> {
        if tree.exit.is_none() {
            tree.look()?;
            if tree.exit.is_some() {
                return Ok(());
            }
        }
        let since = clock::since_boot();
        let lone = tree.signal_lone(TERM)?;
        tree.stop = Some(Stop {
            why,
            stage: Stage::Asked(since + self.grace),
            since,
            since_ms: clock::now_ms(),
            lone,
            shown: false,
            named: false,
        });
        if lone { Ok(()) } else { tree.signal(TERM) }
    }

    /// Go on with the stop that is under way: force it, look again, name what does not die, show it.
    fn advance(&mut self, tree: &mut Tree) -> std::io::Result<()> {
        let now = clock::since_boot();
        let Some(mut stop) = tree.stop else {
            return Ok(());
        };
        match stop.stage {
            Stage::Asked(until) if until > now => {
                if stop.lone && tree.exit.is_some() {
                    // It was forking as it got the signal: what it has left has not heard of it.
                    stop.lone = false;
                    tree.signal(TERM)?;
                }
            }
            Stage::Asked(_) => {
                tree.kill()?;
                stop.stage = Stage::Forced {
                    next_look: now + FIRST_LOOK,
                    wait: FIRST_LOOK,
                };
                // The record shows the signal that was sent last.
                stop.shown = false;
            }
            Stage::Forced { next_look, wait } => {
                tree.kill()?;
                if next_look <= now {
                    let wait = (wait * 2).min(LONGEST_LOOK);
                    stop.stage = Stage::Forced {
                        next_look: now + wait,
                        wait,
                    };
                }
            }
        }
        let late = now.saturating_sub(stop.since);
        if stop.forced() && !stop.named && late > self.grace + NAMED_AFTER {
            stop.named = true;
            let names = process::name_all(&process::survivors()?);
            self.write(
                |status| status.message = Some(format!("cannot be ended yet: {names}")),
                Vec::new(),
                Durable::No,
            );
        }
        if !stop.shown && late >= SHOWN_AFTER {
            stop.shown = true;
            self.write(
                |status| status.stopping = Some(stopping(&stop)),
                Vec::new(),
                Durable::No,
            );
        }
        tree.stop = Some(stop);
        Ok(())
    }

    /// Honour what was asked, as far as that is possible now.
    fn honour(&mut self, tree: &mut Tree) -> std::io::Result<()> {
        while let Some(asked) = self.take() {
            if !self.honour_one(tree, asked)? {
                break;
            }
        }
        Ok(())
    }

    /// Honour one request; `false` when it must wait for what is under way.
    fn honour_one(&mut self, tree: &mut Tree, asked: Request) -> std::io::Result<bool> {
        let ended = self.book.status().state.is_terminal();
        match asked {
            Request::Cancel => {
                match &mut tree.stop {
                    // Whatever the tree was being ended for, this is what gets recorded.
                    Some(stop) => stop.why = Why::Cancel,
                    None => self.begin_stop(tree, Why::Cancel)?,
                }
                Ok(false)
            }
            Request::Pause | Request::Resume if ended => Ok(self.answer()),
            Request::Pause | Request::Resume if tree.stop.is_some() => Ok(false),
            Request::Pause if self.descriptor.pause == PauseMode::Stop => {
                self.begin_stop(tree, Why::Pause)?;
                Ok(false)
            }
            Request::Pause => {
                if tree.frozen.is_none() {
                    self.freeze(tree)?;
                }
                Ok(self.answer())
            }
            Request::Resume => {
                if tree.frozen.is_some() {
                    self.thaw(tree)?;
                }
                Ok(self.answer())
            }
        }
    }

    fn freeze(&mut self, tree: &mut Tree) -> std::io::Result<()> {
        let frozen = tree.freeze(clock::since_boot())?;
        let message = (!frozen.is_whole())
            .then(|| format!("not stopped yet: {}", process::name_all(&frozen.running)));
        self.write(
            |status| {
                status.state = State::Paused;
                status.message = message;
            },
            Vec::new(),
            Durable::No,
        );
        Ok(())
    }

    pub(super) fn thaw(&mut self, tree: &mut Tree) -> std::io::Result<()> {
        tree.thaw(clock::since_boot())?;
        self.write(
            |status| {
                status.state = State::Running;
                status.message = None;
            },
            Vec::new(),
            Durable::No,
        );
        Ok(())
    }

    /// The request to honour next. One that is no request is said to be none, and one that is still being written is
    /// looked at again.
    pub(super) fn take(&mut self) -> Option<Request> {
        loop {
            let stays_empty = self
                .empty_since
                .is_some_and(|since| clock::since_boot() >= since + EMPTY_LIMIT);
            let taken = if stays_empty {
                discard(self.book.disk(), &self.id)
            } else {
                take(self.book.disk(), &self.id)
            };
            if matches!(taken, Ok(Took::Empty)) {
                self.empty_since.get_or_insert_with(clock::since_boot);
                return None;
            }
            self.empty_since = None;
            match taken {
                Ok(Took::Asked(request)) => return Some(request),
                Ok(Took::Unknown(word)) => {
                    self.book.note(format!("no such request: {word}"));
                    if !self.answer() {
                        return None;
                    }
                }
                // A disk that cannot be read now is read again at the next notice.
                Ok(Took::Nothing | Took::Empty) | Err(_) => return None,
            }
        }
    }

    /// Let the request go whose effect is recorded. One whose effect the disk did not let us record stays (R6).
    pub(super) fn answer(&mut self) -> bool {
        self.book.is_clean() && answered(self.book.disk(), &self.id).is_ok()
    }

    /// When an empty control file is to be looked at again.
    pub(super) fn empty_look(&self) -> Option<Duration> {
        self.empty_since.map(|_| clock::since_boot() + EMPTY_LOOK)
    }
}

/// When the stop that is under way has something to do next.
fn next_stage(tree: &Tree) -> Option<Duration> {
    let stop = tree.stop.as_ref()?;
    let step = match stop.stage {
        Stage::Asked(until) => until,
        Stage::Forced { next_look, .. } => next_look,
    };
    let show = (!stop.shown).then_some(stop.since + SHOWN_AFTER);
    Some(show.map_or(step, |show| show.min(step)))
}

/// A stop as the record shows it.
pub(super) fn stopping(stop: &Stop) -> Stopping {
    Stopping {
        since_ms: stop.since_ms,
        signal: if stop.forced() {
            KILL as u8
        } else {
            TERM as u8
        },
        forced: stop.forced(),
    }
}
