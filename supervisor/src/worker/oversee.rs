//! Watching the tree of an attempt until there is something to decide: exits, timers, output, the stages of a stop.

use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::Duration;

use state_machine::course::{Show, Until, Woke};

use super::driver::Driver;
use super::fetcher::Fetcher;
use super::notices::Notices;
use super::sources::Sources;
use super::tree::{Stage, Stop, TERM, Tree};
use crate::output::Carrier;
use crate::store::os_string;
use crate::{clock, process};

/// A stop that takes no longer than this is not recorded on its own: the end is recorded in the same moment.
const SHOWN_AFTER: Duration = Duration::from_millis(20);
/// The first wait between two looks at what was killed, and the longest.
const FIRST_LOOK: Duration = Duration::from_millis(2);
const LONGEST_LOOK: Duration = Duration::from_secs(1);
/// What still lives so long after it was killed is named in the record.
const NAMED_AFTER: Duration = Duration::from_secs(2);
/// How often a request that waits is looked at while a stop is under way.
const STOPPING_LOOK: Duration = Duration::from_millis(250);

impl Driver<'_> {
    /// Sleep over the tree, and go on with what is being done about it, until there is something to decide.
    pub(super) fn watch_tree(&mut self, tree: &mut Tree, until: Until) -> std::io::Result<Woke> {
        let over = is_over(tree, until)?;
        // What it said last is said before its end.
        if let Some(word) = tree.fetcher.as_mut().and_then(Fetcher::hear) {
            return Ok(Woke::Show(Show::Said(word)));
        }
        if let Some(notice) = self.notices.as_ref().and_then(Notices::hear) {
            return Ok(Woke::Show(Show::Notified(notice)));
        }
        if over {
            return Ok(Woke::Over);
        }
        if tree.stop.is_none() && self.told_to_end {
            return Ok(Woke::ToldToEnd);
        }
        if is_late(tree) {
            return Ok(Woke::Late);
        }
        if sees_changes(tree, until)
            && let Some(path) = self.sources.as_mut().and_then(Sources::take)
        {
            return Ok(Woke::Renewed(format!("{path} has changed")));
        }
        if let Some(show) = self.advance(tree)?.or_else(|| self.carry(tree)) {
            return Ok(Woke::Show(show));
        }
        self.sleep(tree, until)?;
        Ok(
            if tree.fetcher.is_none() && self.notices.is_none() && is_over(tree, until)? {
                Woke::Over
            } else {
                Woke::Look
            },
        )
    }

    fn sleep(&mut self, tree: &Tree, until: Until) -> std::io::Result<()> {
        let sources_seen = self.sources.as_ref().filter(|_| sees_changes(tree, until));
        let deadline = [
            self.book.next_try(),
            self.empty_look(),
            next_stage(tree),
            // Writing over a request that waits is no notice; while it must wait, it is looked at.
            tree.stop.map(|_| clock::since_boot() + STOPPING_LOOK),
            deadline(tree),
            sources_seen.and_then(Sources::due),
        ];
        let mut sources: Vec<BorrowedFd<'_>> = Vec::with_capacity(4);
        // An exit that was seen already must not wake us again and again.
        if tree.exit.is_none()
            && let Some(leader) = &tree.leader
        {
            sources.push(leader.pidfd());
        }
        sources.extend(tree.fetcher.as_ref().and_then(Fetcher::fd));
        sources.extend(tree.carriers.iter().map(Carrier::fd));
        sources.extend(sources_seen.map(Sources::fd));
        sources.extend(self.notices.as_ref().map(Notices::fd));
        let woken = self
            .wake
            .sleep(deadline.into_iter().flatten().min(), &sources)?;
        self.note_waking(woken);
        Ok(())
    }

    /// Watch what the command is made of from here on; what has changed before its start is in it.
    pub(super) fn look_at_sources(&mut self) {
        if self.descriptor.watch.is_empty() {
            return;
        }
        match &mut self.sources {
            Some(sources) => sources.forget(),
            None => {
                let root = self.descriptor.project.as_ref().map(os_string);
                let root = PathBuf::from(root.unwrap_or_else(|| "/".into()));
                match Sources::new(&root, &self.descriptor.watch) {
                    Ok(sources) => self.sources = Some(sources),
                    Err(why) => self.book.note(why),
                }
            }
        }
        if let Some(gap) = self.sources.as_mut().and_then(Sources::take_gap) {
            self.book.note(gap);
        }
    }

    /// Move the output that has a limit; a stream that nobody writes to any more is done with.
    pub(super) fn carry(&mut self, tree: &mut Tree) -> Option<Show> {
        let before = self.dropped();
        let mut of_ended = 0;
        tree.carriers.retain_mut(|carrier| {
            let goes_on = carrier.carry().is_ok_and(|carried| !carried.ended);
            if !goes_on {
                of_ended += carrier.dropped_bytes();
            }
            goes_on
        });
        tree.dropped_of_ended += of_ended;
        self.count_dropped(tree);
        // That something is missing is worth a record at once; how much, at the end.
        let dropped = self.dropped().filter(|_| before.is_none());
        dropped.map(Show::Dropped)
    }

    /// Count what the limits have cost on this tree since it was last counted.
    pub(super) fn count_dropped(&mut self, tree: &mut Tree) {
        let dropped = tree.dropped_bytes();
        self.dropped_bytes += dropped.saturating_sub(tree.dropped_counted);
        tree.dropped_counted = dropped;
    }

    /// Deliver the stop signal. A command that has ended by itself just now is not stopped: its own end is what
    /// happened.
    pub(super) fn begin_stop(&mut self, tree: &mut Tree) -> std::io::Result<bool> {
        if tree.exit.is_none() {
            tree.look()?;
            if tree.exit.is_some() {
                return Ok(false);
            }
        }
        let since = clock::since_boot();
        let lone = tree.signal_lone(TERM)?;
        tree.stop = Some(Stop {
            stage: Stage::Asked(since + self.grace),
            since,
            since_ms: clock::now_ms(),
            lone,
            is_shown: false,
            is_named: false,
        });
        if !lone {
            tree.signal(TERM)?;
        }
        Ok(true)
    }

    /// Go on with the stop that is under way: force it, look again, say what does not die, and how it stands.
    fn advance(&mut self, tree: &mut Tree) -> std::io::Result<Option<Show>> {
        let now = clock::since_boot();
        let Some(mut stop) = tree.stop else {
            return Ok(None);
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
                stop.is_shown = false;
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
        let mut show = None;
        if stop.forced() && !stop.is_named && late > self.grace + NAMED_AFTER {
            stop.is_named = true;
            let names = process::name_all(&process::survivors()?);
            show = Some(Show::Surviving(names));
        } else if !stop.is_shown && late >= SHOWN_AFTER {
            stop.is_shown = true;
            show = Some(Show::Stopping(stop.shown()));
        }
        tree.stop = Some(stop);
        Ok(show)
    }
}

/// Whether what the tree is watched for has come.
fn is_over(tree: &mut Tree, until: Until) -> std::io::Result<bool> {
    tree.look()?;
    if tree.exit.is_none() {
        return Ok(false);
    }
    if until == Until::CommandEnds && tree.stop.is_none() {
        return Ok(true);
    }
    tree.is_empty()
}

/// Whether a change of what the command is made of means anything now: not to one that stands frozen or is being ended.
fn sees_changes(tree: &Tree, until: Until) -> bool {
    until == Until::CommandEnds
        && tree.stop.is_none()
        && tree.frozen.is_none()
        && tree.exit.is_none()
}

/// Whether the command has run too long, and nothing is done about it yet.
fn is_late(tree: &Tree) -> bool {
    deadline(tree).is_some_and(|deadline| deadline <= clock::since_boot())
}

/// When the command will have run too long; not while it stands frozen or is being ended.
fn deadline(tree: &Tree) -> Option<Duration> {
    tree.deadline
        .filter(|_| tree.frozen.is_none() && tree.stop.is_none() && tree.exit.is_none())
}

/// When the stop that is under way has something to do next.
fn next_stage(tree: &Tree) -> Option<Duration> {
    let stop = tree.stop.as_ref()?;
    let step = match stop.stage {
        Stage::Asked(until) => until,
        Stage::Forced { next_look, .. } => next_look,
    };
    let show = (!stop.is_shown).then_some(stop.since + SHOWN_AFTER);
    Some(show.map_or(step, |show| show.min(step)))
}
