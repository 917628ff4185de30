//! Watching the tree of an attempt until its command has ended, or until nothing of it is left, and honouring what is asked
//! meanwhile.

use super::{Course, Show, Until, Why, Woke, Worker, Written};
use crate::control::Request;
use crate::job::State;
use crate::pull::word::Word;
use crate::record::{Account, PauseMode, REGISTERING, Status};

/// A command that was started, and what is being done about it.
pub(super) struct Attempt<T> {
    pub(super) tree: T,
    /// Why it is being ended, if it is.
    pub(super) why: Option<Why>,
    /// What has changed, where that is why.
    pub(super) renewed: Option<String>,
    /// Whether a pause has frozen it.
    pub(super) frozen: bool,
    /// Whether a transfer may register what it has fetched.
    registering: Registering,
    /// What earlier attempts of a transfer have cost, and how far they have got, in bytes.
    before: Account,
    pub(super) done_before: u64,
}

/// Whether a transfer may register what it has fetched.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Registering {
    /// It has not got that far.
    No,
    /// It waits to be let.
    Asked,
    /// It may, and everybody can see so: it is past stopping.
    Granted,
}

impl<T> Attempt<T> {
    pub(super) fn new(tree: T, status: &Status) -> Attempt<T> {
        Attempt {
            tree,
            why: None,
            renewed: None,
            frozen: false,
            registering: Registering::No,
            before: status.account.as_deref().copied().unwrap_or_default(),
            done_before: status.progress.done_bytes,
        }
    }
}

impl<W: Worker> Course<'_, W> {
    /// Watch the tree. What is asked is looked at first: a notice of it may have been heard before.
    pub(super) fn oversee(
        &mut self,
        attempt: &mut Attempt<W::Tree>,
        until: Until,
    ) -> Result<(), W::Fault> {
        loop {
            if attempt.registering != Registering::Granted {
                self.honour(attempt)?;
                self.see_to_registering(attempt)?;
            }
            // What a full disk did not let us record is tried again.
            if self.worker.try_if_due()? == Written::Gone {
                self.end_if_let(attempt, Why::Shutdown)?;
            }
            match self.worker.watch(&mut attempt.tree, until)? {
                Woke::Over => return Ok(()),
                Woke::Look => {}
                Woke::Late => self.end_if_let(attempt, Why::Timeout)?,
                Woke::ToldToEnd => self.end_if_let(attempt, Why::Shutdown)?,
                // What has ended is not run anew.
                Woke::Renewed(_) if until == Until::Empty => {}
                Woke::Renewed(reason) => {
                    self.end_if_let(attempt, Why::Renew)?;
                    attempt.renewed = Some(reason);
                }
                Woke::Show(Show::Said(word)) => self.hear(attempt, word)?,
                Woke::Show(what) => self.show(what)?,
            }
        }
    }

    pub(super) fn show(&mut self, what: Show) -> Result<(), W::Fault> {
        let now_ms = self.worker.now_ms();
        self.note_down(|status| match what {
            Show::Stopping(stopping) => status.stopping = Some(stopping),
            Show::Surviving(names) => {
                status.message = Some(format!("cannot be ended yet: {names}"));
            }
            Show::Dropped(bytes) => status.dropped_bytes = Some(bytes),
            // Of one that has ended nobody waits for it to be ready.
            Show::Notified(_) if status.state.is_terminal() => {}
            Show::Notified(notice) => {
                if notice.ready {
                    status.ready_at_ms.get_or_insert(now_ms);
                }
                if let Some(line) = notice.status_line {
                    status.status_line = Some(line);
                }
            }
            // Nothing but a transfer that is overseen says anything.
            Show::Said(_) => {}
        })?;
        Ok(())
    }

    /// Record what a transfer says.
    fn hear(&mut self, attempt: &mut Attempt<W::Tree>, word: Word) -> Result<(), W::Fault> {
        match word {
            Word::Moved(progress, account) => {
                let account = attempt.before.and(account);
                self.note_down(|status| {
                    status.progress = progress;
                    status.account = Some(Box::new(account));
                })?;
            }
            // What it does last is for us to say.
            Word::Doing(_) if attempt.registering != Registering::No => {}
            Word::Doing(line) => {
                self.note_down(|status| status.status_line = line)?;
            }
            Word::Note(text) => self.worker.note(text)?,
            Word::Register if attempt.registering == Registering::No => {
                attempt.registering = Registering::Asked;
            }
            // Why it ends belongs to its end.
            Word::Register | Word::Cause(_) => {}
        }
        Ok(())
    }

    /// Let a transfer register, once everybody can see that it is past stopping. What was asked before that was honoured
    /// first; who asks after it is told that it is too late.
    fn see_to_registering(&mut self, attempt: &mut Attempt<W::Tree>) -> Result<(), W::Fault> {
        if attempt.registering != Registering::Asked || attempt.why.is_some() {
            return Ok(());
        }
        if !self.worker.status().is_past_stopping() {
            self.note_down(|status| status.status_line = Some(REGISTERING.to_owned()))?;
        }
        if self.worker.book().is_clean() {
            self.worker.let_register(&mut attempt.tree)?;
            attempt.registering = Registering::Granted;
        }
        Ok(())
    }

    /// Begin to end the tree, unless it is being ended.
    pub(super) fn end_if_let(
        &mut self,
        attempt: &mut Attempt<W::Tree>,
        why: Why,
    ) -> Result<(), W::Fault> {
        if attempt.why.is_none() && self.worker.stop(&mut attempt.tree)? {
            attempt.why = Some(why);
            attempt.frozen = false;
        }
        Ok(())
    }

    /// Honour what was asked, as far as that is possible now.
    fn honour(&mut self, attempt: &mut Attempt<W::Tree>) -> Result<(), W::Fault> {
        while let Some(asked) = self.take()? {
            if !self.honour_one(attempt, asked)? {
                break;
            }
        }
        Ok(())
    }

    /// Honour one request; `false` when it must wait for what is under way.
    fn honour_one(
        &mut self,
        attempt: &mut Attempt<W::Tree>,
        asked: Request,
    ) -> Result<bool, W::Fault> {
        let ended = self.worker.status().state.is_terminal();
        match asked {
            Request::Cancel => {
                match &mut attempt.why {
                    // Whatever the tree was being ended for, this is what gets recorded.
                    Some(why) => *why = Why::Cancel,
                    None => self.end_if_let(attempt, Why::Cancel)?,
                }
                Ok(false)
            }
            Request::Pause | Request::Resume if ended => self.answer(),
            Request::Pause | Request::Resume if attempt.why.is_some() => Ok(false),
            Request::Pause if self.worker.descriptor().pause == PauseMode::Stop => {
                self.end_if_let(attempt, Why::Pause)?;
                Ok(false)
            }
            Request::Pause => {
                if !attempt.frozen {
                    self.freeze(attempt)?;
                }
                self.answer()
            }
            Request::Resume => {
                if attempt.frozen {
                    self.thaw(attempt)?;
                }
                self.answer()
            }
        }
    }

    fn freeze(&mut self, attempt: &mut Attempt<W::Tree>) -> Result<(), W::Fault> {
        let running = self.worker.freeze(&mut attempt.tree)?;
        attempt.frozen = true;
        self.note_down(|status| {
            status.state = State::Paused;
            status.message = running.map(|names| format!("not stopped yet: {names}"));
        })?;
        Ok(())
    }

    pub(super) fn thaw(&mut self, attempt: &mut Attempt<W::Tree>) -> Result<(), W::Fault> {
        self.worker.thaw(&mut attempt.tree)?;
        attempt.frozen = false;
        self.note_down(|status| {
            status.state = State::Running;
            status.message = None;
        })?;
        Ok(())
    }
}
