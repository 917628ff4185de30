//! A worker: claim, take over, see that nobody asked for something else, see that the tree is free, record running,
//! start the command, honour what is asked, record the end, and say that what was asked is answered. What it records
//! goes through the shipped book, which keeps what the disk does not let it write (R13).

use state_machine::control::Request;
use state_machine::id::JobId;
use state_machine::job::State;
use state_machine::protocol::book::Book;
use state_machine::protocol::claim::{Claim, Tree, claim, claim_tree, tree_is_free};
use state_machine::protocol::create::Durable;
use state_machine::protocol::hold::{Holder, Recorded, TakeOver, take_over};
use state_machine::protocol::request::{Took, answered, discard, take};
use state_machine::protocol::settle::{LetGo, Searched, Settled, let_go, settle};
use state_machine::record::{Exit, Status};

use super::{CREATED_AT_MS, Outcome, Part};
use crate::effect::{Search, Until, Wake};
use crate::stage::{News, Stage};

/// Run the job, if it waits to be run and nobody else does.
pub(super) fn work<D: Stage>(disk: &mut D, part: &Part) -> Result<Outcome, D::Fault> {
    let id = &part.job;
    let lock = match claim(disk, id)? {
        Claim::Mine(lock) => lock,
        Claim::Owned => return Ok(Outcome::Held),
        Claim::Gone => return Ok(Outcome::Gone),
    };
    disk.tell(News::Holds(id.clone()));
    let holder = match take_over(disk, id, lock, CREATED_AT_MS, part.now_ms)? {
        TakeOver::Holder(holder) => holder,
        TakeOver::Damaged(_) => {
            disk.tell(News::LetsGo);
            return Ok(Outcome::Damaged);
        }
    };
    if part.asks_first && !disk.is_wanted()? {
        // Whoever supervises now may have given the slot to another: it was seen that nobody held this job.
        leave(disk, holder, part.now_ms)?;
        return Ok(Outcome::NotRun);
    }
    if holder.status().attempt > 0 && !holder.status().state.is_terminal() {
        // Whoever hands a job to a worker ends what the last one left (R11).
        end_leftovers(disk, id)?;
    }
    match holder.status().state {
        State::Queued | State::Interrupted => run(disk, part, holder),
        other => {
            leave(disk, holder, part.now_ms)?;
            Ok(Outcome::NothingToDo(other))
        }
    }
}

/// Run a job that is held, and let it go.
pub(super) fn run<D: Stage>(
    disk: &mut D,
    part: &Part,
    holder: Holder<D::Handle>,
) -> Result<Outcome, D::Fault> {
    let mut course = Course {
        id: holder.id().clone(),
        book: Book::new(holder),
        part,
    };
    let outcome = course.run(disk)?;
    leave(disk, course.book.into_holder(), part.now_ms)?;
    Ok(outcome)
}

/// One job, from its start to its end.
struct Course<'a, H> {
    id: JobId,
    book: Book<H>,
    part: &'a Part,
}

impl<H> Course<'_, H> {
    fn run<D: Stage<Handle = H>>(&mut self, disk: &mut D) -> Result<Outcome, D::Fault> {
        if let Some(outcome) = self.is_asked_away(disk)? {
            return Ok(outcome);
        }
        let Some(tree) = self.take_tree(disk)? else {
            return self.cannot_start(disk);
        };
        self.mean(Durable::No, |status| {
            status.state = State::Running;
            status.attempt = status.attempt.max(1);
        });
        match self.book.write(disk) {
            Ok(Recorded::Done) => {}
            Ok(Recorded::Gone) => {
                disk.close(tree)?;
                return Ok(Outcome::Gone);
            }
            Err(fault) => {
                // What cannot be recorded is not run.
                disk.survive(fault)?;
                disk.close(tree)?;
                return Ok(Outcome::NotRun);
            }
        }
        let id = self.id.clone();
        disk.spawn(&id, &tree)?;
        disk.close(tree)?;
        let end = self.oversee(disk)?;
        if end != State::Done {
            disk.end_trees(&id, Search::Own)?;
        }
        disk.tell(News::Ended(id, end));
        let left = disk.has_left()?;
        self.finish(disk, |status| {
            status.state = end;
            status.exit = (end == State::Done).then_some(Exit::Code(0));
            status.leftovers = left.then_some(1);
        })?;
        if left {
            self.linger(disk)?;
        }
        self.answer(disk)?;
        Ok(Outcome::Brought(end))
    }

    /// Whether something was asked before the command was started that keeps it from being started.
    fn is_asked_away<D: Stage<Handle = H>>(
        &mut self,
        disk: &mut D,
    ) -> Result<Option<Outcome>, D::Fault> {
        let state = match self.take(disk)? {
            Some(Request::Cancel) => State::Cancelled,
            Some(Request::Pause) => State::Paused,
            Some(Request::Resume) => {
                self.answer(disk)?;
                return Ok(None);
            }
            None => return Ok(None),
        };
        self.finish(disk, |status| status.state = state)?;
        self.answer(disk)?;
        Ok(Some(Outcome::Brought(state)))
    }

    /// Take the tree lock, ending whatever an earlier attempt has left (R11).
    fn take_tree<D: Stage<Handle = H>>(&mut self, disk: &mut D) -> Result<Option<H>, D::Fault> {
        let id = self.id.clone();
        for _ in 0..2 {
            if self.book.status().attempt > 0 {
                disk.end_trees(&id, Search::Marked)?;
            }
            match claim_tree(disk, &id) {
                Ok(Tree::Mine(tree)) => return Ok(Some(tree)),
                Ok(Tree::Gone) => return Ok(None),
                Ok(Tree::Leftovers) => disk.end_trees(&id, Search::Holding)?,
                Err(fault) => {
                    disk.survive(fault)?;
                    return Ok(None);
                }
            }
        }
        Ok(None)
    }

    fn cannot_start<D: Stage<Handle = H>>(&mut self, disk: &mut D) -> Result<Outcome, D::Fault> {
        if self.book.status().state != State::Running {
            // Only what runs can fail; this one ran for no time.
            self.mean(Durable::No, |status| {
                status.state = State::Running;
                status.attempt = status.attempt.max(1);
            });
            if let Err(fault) = self.book.write(disk) {
                disk.survive(fault)?;
            }
        }
        self.finish(disk, |status| status.state = State::Failed)?;
        self.answer(disk)?;
        Ok(Outcome::Brought(State::Failed))
    }

    /// Watch the command to its end, or to the request that ends it. Says the state that comes of it.
    fn oversee<D: Stage<Handle = H>>(&mut self, disk: &mut D) -> Result<State, D::Fault> {
        let id = self.id.clone();
        loop {
            if disk.wake(&id, Until::CommandEnds)? == Wake::Ended {
                return Ok(State::Done);
            }
            match self.take(disk)? {
                Some(Request::Cancel) => return Ok(State::Cancelled),
                Some(Request::Pause) if !self.part.freezes => return Ok(State::Paused),
                Some(Request::Pause) => self.hold_still(disk, State::Paused)?,
                Some(Request::Resume) => self.hold_still(disk, State::Running)?,
                None => {}
            }
        }
    }

    /// The tree was frozen, or thawed: record it.
    fn hold_still<D: Stage<Handle = H>>(
        &mut self,
        disk: &mut D,
        state: State,
    ) -> Result<(), D::Fault> {
        if self.book.status().state != state {
            self.mean(Durable::No, |status| status.state = state);
            if let Err(fault) = self.book.write(disk) {
                disk.survive(fault)?;
            }
        }
        self.answer(disk)
    }

    /// The command has ended and something of its tree is left: stay until it ends, or a stop ends it.
    fn linger<D: Stage<Handle = H>>(&mut self, disk: &mut D) -> Result<(), D::Fault> {
        let id = self.id.clone();
        while disk.wake(&id, Until::TreeIsEmpty)? == Wake::Asked {
            match self.take(disk)? {
                Some(Request::Cancel) => disk.end_trees(&id, Search::Own)?,
                Some(Request::Pause | Request::Resume) => self.answer(disk)?,
                None => {}
            }
        }
        self.finish(disk, |status| status.leftovers = None)
    }

    fn mean(&mut self, durable: Durable, change: impl FnOnce(&mut Status)) {
        let mut status = self.book.status().clone();
        change(&mut status);
        status.updated_at_ms = self.part.now_ms;
        self.book.mean(status, Vec::new(), durable);
    }

    /// Record an end or a pause, however often the disk does not let us (R13).
    fn finish<D: Stage<Handle = H>>(
        &mut self,
        disk: &mut D,
        change: impl FnOnce(&mut Status),
    ) -> Result<(), D::Fault> {
        let now_ms = self.part.now_ms;
        self.mean(Durable::Yes, |status| {
            change(status);
            if status.state.is_terminal() {
                status.ended_at_ms.get_or_insert(now_ms);
            }
        });
        while let Err(fault) = self.book.write(disk) {
            disk.survive(fault)?;
        }
        disk.tell(News::Recorded(self.id.clone(), self.book.status().state));
        Ok(())
    }

    /// Take what is asked. A disk that cannot be read now is read again at the next notice.
    fn take<D: Stage<Handle = H>>(&mut self, disk: &mut D) -> Result<Option<Request>, D::Fault> {
        match take(disk, &self.id) {
            Ok(Took::Empty) => {
                // One that stays empty for as long as any hand may take.
                disk.wait_for_hands()?;
                let discarded = discard(disk, &self.id);
                self.taken(disk, discarded)
            }
            taken => self.taken(disk, taken),
        }
    }

    fn taken<D: Stage<Handle = H>>(
        &mut self,
        disk: &mut D,
        taken: Result<Took, D::Fault>,
    ) -> Result<Option<Request>, D::Fault> {
        match taken {
            Ok(Took::Asked(request)) => return Ok(Some(request)),
            Ok(Took::Unknown(_)) => self.answer(disk)?,
            Ok(Took::Nothing | Took::Empty) => {}
            Err(fault) => disk.survive(fault)?,
        }
        Ok(None)
    }

    /// Let the request go whose effect is recorded. One whose effect the disk did not let us record stays (R6).
    fn answer<D: Stage<Handle = H>>(&mut self, disk: &mut D) -> Result<(), D::Fault> {
        if self.book.is_clean()
            && let Err(fault) = answered(disk, &self.id)
        {
            disk.survive(fault)?;
        }
        Ok(())
    }
}

/// Let the job go, ending what is left of its trees where a request needs that.
pub(super) fn leave<D: Stage>(
    disk: &mut D,
    holder: Holder<D::Handle>,
    now_ms: u64,
) -> Result<(), D::Fault> {
    let id = holder.id().clone();
    disk.tell(News::LetsGo);
    let mut holder = holder;
    while let LetGo::LeftoversFirst(again) = let_go(disk, holder, CREATED_AT_MS, now_ms)? {
        holder = again;
        settle_without_leftovers(disk, &mut holder, &id, now_ms)?;
    }
    Ok(())
}

/// Settle what was asked; where that needs an empty tree, make it empty first (R11).
pub(super) fn settle_without_leftovers<D: Stage>(
    disk: &mut D,
    holder: &mut Holder<D::Handle>,
    id: &JobId,
    now_ms: u64,
) -> Result<(), D::Fault> {
    let mut searched = Searched::No;
    while let Settled::LeftoversFirst(_) = settle(disk, holder, searched, now_ms)? {
        end_leftovers(disk, id)?;
        searched = Searched::Yes;
    }
    Ok(())
}

/// End what a dead worker has left of the job, found by what there is to go by.
fn end_leftovers<D: Stage>(disk: &mut D, id: &JobId) -> Result<(), D::Fault> {
    let search = if tree_is_free(disk, id)? {
        Search::Marked
    } else {
        Search::Holding
    };
    disk.end_trees(id, search)
}
