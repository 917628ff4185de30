//! Which answers every effect was ever given, over all states of all worlds that share one account. It is no part of a
//! state, so counting changes nothing.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex};

use crate::effect::Reply;
use crate::mutant::site::{SITES, Site};
use crate::replay::Wanted;

/// The kinds of replies, one bit each.
const KINDS: [&str; 17] = [
    "handle",
    "value",
    "broken",
    "absent",
    "denied",
    "exists",
    "yes",
    "no",
    "done",
    "no room",
    "not empty",
    "not a directory",
    "ended",
    "ended badly",
    "asked",
    "renewed",
    "failed",
];

thread_local! {
    /// What this thread has noted already, by account and place.
    static NOTED: RefCell<HashMap<(usize, usize), u32>> = RefCell::default();
}

/// An account that worlds share.
#[derive(Clone, Default)]
pub struct Coverage(Arc<Mutex<Account>>);

#[derive(Default)]
struct Account {
    /// By the place where the effect is asked for: its kind, and the kinds of its replies.
    replies: HashMap<crate::replay::At, (&'static str, u32)>,
}

impl Coverage {
    /// Note one reply.
    pub fn note(&self, wanted: &Wanted, reply: &Reply) {
        let bit = KINDS.iter().position(|kind| *kind == reply.kind());
        let bit = 1u32 << bit.expect("every kind of reply is in the table");
        // Nearly always it is nothing new, and the account need not be locked for that.
        let key = (
            Arc::as_ptr(&self.0) as usize,
            std::ptr::from_ref(wanted.at) as usize,
        );
        let known = NOTED.with_borrow_mut(|noted| {
            let mask = noted.entry(key).or_insert(0u32);
            let known = *mask & bit != 0;
            *mask |= bit;
            known
        });
        if known {
            return;
        }
        let mut account = self.0.lock().expect("nobody panics while counting");
        let entry = account
            .replies
            .entry(wanted.at)
            .or_insert((wanted.effect.kind(), 0));
        entry.1 |= bit;
    }

    /// The (effect, reply) pairs that were seen: for each effect the kinds of its replies.
    pub fn pairs(&self) -> BTreeMap<&'static str, Vec<&'static str>> {
        let account = self.0.lock().expect("nobody panics while counting");
        let mut masks: BTreeMap<&'static str, u32> = BTreeMap::new();
        for &(kind, mask) in account.replies.values() {
            *masks.entry(kind).or_default() |= mask;
        }
        masks
            .into_iter()
            .map(|(kind, mask)| {
                let seen = (0..KINDS.len()).filter(|bit| mask & (1 << bit) != 0);
                (kind, seen.map(|bit| KINDS[bit]).collect())
            })
            .collect()
    }

    /// The places in the protocols that were never reached.
    pub fn unreached(&self) -> Vec<&'static Site> {
        let account = self.0.lock().expect("nobody panics while counting");
        SITES
            .iter()
            .filter(|site| !account.replies.keys().any(|at| site.is(at)))
            .collect()
    }

    /// How many (place, reply) pairs were seen.
    pub fn count(&self) -> u32 {
        let account = self.0.lock().expect("nobody panics while counting");
        account
            .replies
            .values()
            .map(|(_, mask)| mask.count_ones())
            .sum()
    }
}

impl fmt::Debug for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pairs", self.count())
    }
}
