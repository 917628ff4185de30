//! What is shown, and what keys make of it. Pure: it is told what is so, and says what is to be done. What must never be here: the
//! store, the terminal, and a clock.

use std::sync::Arc;

use state_machine::id::JobId;
use state_machine::job::State;
use state_machine::protocol::look::View;

use super::keys::Key;
use crate::cli::print;
use crate::cli::scope::Scope;
use crate::slots::PoolSlots;
use crate::store::PoolStanding;

/// What somebody wants to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Do {
    /// Leave.
    Quit,
    /// Let the shell have the terminal for a while.
    Suspend,
    /// Other jobs are meant: tell them again.
    Choose,
    /// Ask this of a job.
    Ask(Ask, JobId),
}

/// What can be asked of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// To pause.
    Pause,
    /// To go on.
    Resume,
    /// To be ended.
    Stop,
    /// To be run again.
    Restart,
}

impl Ask {
    /// The verb of the command line.
    pub(super) fn verb(self) -> &'static str {
        match self {
            Ask::Pause => "pause",
            Ask::Resume => "resume",
            Ask::Stop => "stop",
            Ask::Restart => "restart",
        }
    }
}

/// What keys are for now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Going about.
    Browse,
    /// Writing a filter; what it was before.
    Filter(String),
    /// Saying whether this is really meant.
    Confirm(Ask, JobId),
}

/// What is shown below the jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Panel {
    /// What the job printed last.
    Output,
    /// The slots of the pools.
    Slots,
}

/// Everything that is shown.
#[derive(Debug)]
pub(super) struct App {
    scope: Scope,
    /// Whether everyone's jobs are meant, and not only those of the scope.
    pub(super) everyone: bool,
    /// The jobs that are meant, in the order in which they are shown.
    pub(super) jobs: Vec<Arc<View>>,
    /// How many there are in each state, in the order of [`State::ALL`], whatever the filter.
    pub(super) counts: [usize; State::ALL.len()],
    /// The job that keys are about.
    pub(super) chosen: Option<JobId>,
    /// Where it is among the jobs.
    pub(super) at: usize,
    /// The first job that is seen.
    pub(super) top: usize,
    /// How many are.
    rows: usize,
    pub(super) filter: String,
    pub(super) mode: Mode,
    pub(super) panel: Panel,
    /// Whether standard error is shown, of a job whose output is split.
    pub(super) errors: bool,
    /// The end of what the chosen job has printed, line by line.
    pub(super) output: Vec<String>,
    pub(super) pools: Vec<PoolStanding>,
    pub(super) slots: Vec<PoolSlots>,
    /// What cannot be read.
    pub(super) damaged: Vec<String>,
    /// What is to be told, until the next key.
    pub(super) said: Option<String>,
}

impl App {
    /// For the jobs of this scope, if not for everyone's.
    pub(super) fn new(scope: Scope, everyone: bool) -> App {
        App {
            everyone: everyone || matches!(scope, Scope::All),
            scope,
            jobs: Vec::new(),
            counts: Default::default(),
            chosen: None,
            at: 0,
            top: 0,
            rows: 1,
            filter: String::new(),
            mode: Mode::Browse,
            panel: Panel::Output,
            errors: false,
            output: Vec::new(),
            pools: Vec::new(),
            slots: Vec::new(),
            damaged: Vec::new(),
            said: None,
        }
    }

    /// Whose jobs are shown.
    pub(super) fn whose(&self) -> String {
        match &self.scope {
            Scope::Project(root) if !self.everyone => root.display().to_string(),
            _ => "everyone's jobs".to_owned(),
        }
    }

    /// These are all jobs, oldest first.
    pub(super) fn see<'a>(&mut self, all: impl Iterator<Item = &'a Arc<View>>) {
        self.counts = Default::default();
        self.jobs.clear();
        let filter = self.filter.to_lowercase();
        for view in all {
            if !self.everyone && !self.scope.holds(view) {
                continue;
            }
            let place = State::ALL.iter().position(|state| *state == view.state);
            self.counts[place.unwrap_or(0)] += 1;
            if filter.is_empty() || speaks_of(view, &filter) {
                self.jobs.push(view.clone());
            }
        }
        self.jobs.sort_by_key(|view| class(view));
        // Of those that have ended, the last comes first.
        let ended = self.jobs.partition_point(|view| class(view) < ENDED);
        self.jobs[ended..].sort_by_key(|view| std::cmp::Reverse(view.status.ended_at_ms));
        let found = |id: &JobId| self.jobs.iter().position(|view| view.descriptor.id == *id);
        match self.chosen.as_ref().and_then(found) {
            Some(at) => self.at = at,
            // It is gone, or not meant any more: whoever has its place is next.
            None => self.choose(self.at),
        }
        self.keep_in_sight();
    }

    /// The job that keys are about.
    pub(super) fn job(&self) -> Option<&Arc<View>> {
        self.jobs.get(self.at)
    }

    /// There is room for so many jobs.
    pub(super) fn have_rows(&mut self, rows: usize) {
        self.rows = rows.max(1);
        self.keep_in_sight();
    }

    /// The jobs that are seen.
    pub(super) fn seen(&self) -> &[Arc<View>] {
        let end = (self.top + self.rows).min(self.jobs.len());
        &self.jobs[self.top.min(end)..end]
    }

    fn choose(&mut self, at: usize) {
        self.at = at.min(self.jobs.len().saturating_sub(1));
        self.chosen = self.job().map(|view| view.descriptor.id.clone());
        self.keep_in_sight();
    }

    fn keep_in_sight(&mut self) {
        let last_top = self.jobs.len().saturating_sub(self.rows);
        let least = (self.at + 1).saturating_sub(self.rows);
        self.top = self
            .top
            .clamp(least, self.at.max(least))
            .min(last_top.max(least));
    }

    /// A key was pressed.
    pub(super) fn press(&mut self, key: Key) -> Option<Do> {
        if key == Key::Ctrl('c') {
            return Some(Do::Quit);
        }
        if key == Key::Ctrl('z') {
            return Some(Do::Suspend);
        }
        self.said = None;
        match std::mem::replace(&mut self.mode, Mode::Browse) {
            Mode::Browse => self.browse(key),
            Mode::Filter(before) => self.write_filter(key, before),
            Mode::Confirm(ask, id) if key == Key::Char('y') => Some(Do::Ask(ask, id)),
            Mode::Confirm(..) => None,
        }
    }

    fn browse(&mut self, key: Key) -> Option<Do> {
        let page = self.rows.saturating_sub(1).max(1);
        match key {
            Key::Up | Key::Char('k') => self.choose(self.at.saturating_sub(1)),
            Key::Down | Key::Char('j') => self.choose(self.at + 1),
            Key::PageUp | Key::Ctrl('b') => self.choose(self.at.saturating_sub(page)),
            Key::PageDown | Key::Ctrl('f') | Key::Char(' ') => self.choose(self.at + page),
            Key::Home | Key::Char('g') => self.choose(0),
            Key::End | Key::Char('G') => self.choose(usize::MAX),
            Key::Tab => {
                self.panel = match self.panel {
                    Panel::Output => Panel::Slots,
                    Panel::Slots => Panel::Output,
                };
            }
            Key::Char('e') => self.errors = !self.errors,
            Key::Char('a') => {
                self.everyone = !self.everyone || matches!(self.scope, Scope::All);
                return Some(Do::Choose);
            }
            Key::Char('/') => self.mode = Mode::Filter(self.filter.clone()),
            Key::Escape if !self.filter.is_empty() => {
                self.filter.clear();
                return Some(Do::Choose);
            }
            Key::Char('p') => return self.ask(Ask::Pause),
            Key::Char('r') => return self.ask(Ask::Resume),
            Key::Char('s') => return self.ask(Ask::Stop),
            Key::Char('R') => return self.ask(Ask::Restart),
            Key::Char('q') => return Some(Do::Quit),
            _ => {}
        }
        None
    }

    /// What ends something is asked for twice.
    fn ask(&mut self, ask: Ask) -> Option<Do> {
        let view = self.job()?;
        let id = view.descriptor.id.clone();
        let ends = match ask {
            Ask::Stop => true,
            Ask::Restart => !view.state.is_terminal(),
            Ask::Pause | Ask::Resume => false,
        };
        if ends {
            self.mode = Mode::Confirm(ask, id);
            return None;
        }
        Some(Do::Ask(ask, id))
    }

    fn write_filter(&mut self, key: Key, before: String) -> Option<Do> {
        match key {
            Key::Enter => return None,
            Key::Escape => {
                self.filter = before;
                return Some(Do::Choose);
            }
            Key::Backspace => {
                self.filter.pop();
            }
            Key::Ctrl('u') => self.filter.clear(),
            Key::Char(c) => self.filter.push(c),
            // Going about is possible meanwhile.
            other => {
                self.browse(other);
            }
        }
        self.mode = Mode::Filter(before);
        Some(Do::Choose)
    }
}

/// The class of jobs that have ended: they come last.
const ENDED: u8 = 2;

/// Jobs that something is to be seen of come first, and then those that wait.
fn class(view: &View) -> u8 {
    match view.state {
        State::Queued => 1,
        state if state.is_terminal() => ENDED,
        _ => 0,
    }
}

/// Whether what one sees of a job holds this text, in lower case.
fn speaks_of(view: &View, text: &str) -> bool {
    let descriptor = &view.descriptor;
    let holds = |word: &str| word.to_lowercase().contains(text);
    holds(descriptor.id.as_str())
        || descriptor
            .name
            .as_ref()
            .is_some_and(|name| holds(name.as_str()))
        || descriptor.task.as_deref().is_some_and(holds)
        || descriptor.pool.as_deref().is_some_and(holds)
        || holds(view.state.word())
        || holds(&print::work(view))
}
