//! What a queued job waits for, in words. Only for people: nothing is decided by it, and no supervisor is asked.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};

use state_machine::config::PoolSetup;
use state_machine::id::{JobId, PoolName};
use state_machine::job::State;
use state_machine::protocol::look::View;
use state_machine::record::{After, AfterWhen};

use super::print;
use crate::clock;
use crate::store::{Store, slots_of};

/// What is known of the store, looked up when it is first asked for.
pub(super) struct Waiting<'a> {
    store: &'a Store,
    /// The jobs that were listed anyway.
    states: HashMap<JobId, State>,
    pools: OnceCell<Option<BTreeMap<PoolName, PoolSetup>>>,
    supervised: OnceCell<bool>,
}

/// Whether a job waits in a pool, so that there may be more to say of it than that it is queued.
pub(super) fn waits(view: &View) -> bool {
    view.state == State::Queued && !view.held && view.descriptor.pool.is_some()
}

impl<'a> Waiting<'a> {
    /// For jobs of this store, of some of which the state is known.
    pub(super) fn new(store: &'a Store, states: HashMap<JobId, State>) -> Waiting<'a> {
        Waiting {
            store,
            states,
            pools: OnceCell::new(),
            supervised: OnceCell::new(),
        }
    }

    /// How a job is, and what it waits for where it is queued.
    pub(super) fn condition(&self, view: &View) -> String {
        match self.what(view) {
            Some(what) => format!("{} ({what})", print::condition(view)),
            None => print::condition(view),
        }
    }

    /// What keeps a queued job from being started, where it is more than that others are before it.
    fn what(&self, view: &View) -> Option<String> {
        if !waits(view) {
            return None;
        }
        let pool = view.descriptor.pool.as_deref()?;
        let has_run = view.status.attempt > 0;
        let not_yet = (!has_run).then(|| self.until(view)).flatten();
        not_yet
            .or_else(|| self.of_pool(pool, view.descriptor.slots))
            .or_else(|| (!self.is_supervised()).then(|| "there is no supervisor".to_owned()))
    }

    /// The jobs or the time that it waits for.
    fn until(&self, view: &View) -> Option<String> {
        let open = |after: &&After| !self.state(&after.job).is_some_and(State::is_terminal);
        let mut open = view.descriptor.after.iter().filter(open);
        if let Some(first) = open.next() {
            let how = match first.when {
                AfterWhen::Success => "",
                AfterWhen::Failure => " to fail",
                AfterWhen::End => " to end",
            };
            let others = match open.count() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            return Some(format!("waits for {}{how}{others}", first.job));
        }
        let due = view.descriptor.not_before_ms?;
        (due > clock::now_ms()).then(|| format!("waits until {}", print::instant(due)))
    }

    /// The state of a job; `None` where it is gone or cannot be read.
    fn state(&self, id: &JobId) -> Option<State> {
        let known = self.states.get(id).copied();
        known.or_else(|| Some(self.store.job(id).look().ok()?.state))
    }

    /// What is the matter with the pool.
    fn of_pool(&self, word: &str, wanted: u32) -> Option<String> {
        let pools = self.pools.get_or_init(|| self.store.pools().ok());
        let Some(pools) = pools else {
            return Some("its pool cannot be read".to_owned());
        };
        let setup = PoolName::parse(word).ok().and_then(|name| pools.get(&name));
        match setup {
            None => Some(format!("there is no pool {word}")),
            Some(setup) if setup.paused => Some(format!("the pool {word} is paused")),
            Some(setup) if slots_of(setup) < wanted => Some(format!(
                "takes {wanted} slots, and the pool {word} has {}",
                slots_of(setup)
            )),
            Some(_) => None,
        }
    }

    fn is_supervised(&self) -> bool {
        let ask = || self.store.is_supervised().unwrap_or(true);
        *self.supervised.get_or_init(ask)
    }
}
