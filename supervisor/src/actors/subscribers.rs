//! Who is told of changes, and of which. One who is too far behind is let go: he looks for himself, as he would have to
//! anyway.

use std::collections::HashMap;

use actix::prelude::*;
use state_machine::id::JobId;
use state_machine::wire::{Interest, Notice};
use tokio::sync::mpsc;

/// How many notices somebody may be behind who wants to hear of every job.
const BACKLOG: usize = 1024;
/// And one who wants to hear of a few.
const SHORT_BACKLOG: usize = 64;
/// How many may have gone away without our knowing.
const UNKNOWN: usize = 64;

/// Be told of changes. When the receiver ends before its supervisor does, not everything was told.
#[derive(Message)]
#[rtype(result = "mpsc::Receiver<Notice>")]
pub(crate) struct Subscribe(pub(crate) Interest);

/// Somebody who is told.
struct Subscriber {
    sender: mpsc::Sender<Notice>,
    interest: Interest,
}

/// Everybody who is told.
pub(super) struct Subscribers {
    next: u64,
    everybody: HashMap<u64, Subscriber>,
    /// Who hears of every job.
    of_all: Vec<u64>,
    /// Who hears of this job, beside those.
    of_one: HashMap<JobId, Vec<u64>>,
    /// With so many it is worth looking who has gone away.
    enough: usize,
}

impl Subscribers {
    pub(super) fn new() -> Subscribers {
        Subscribers {
            next: 0,
            everybody: HashMap::new(),
            of_all: Vec::new(),
            of_one: HashMap::new(),
            enough: UNKNOWN,
        }
    }

    pub(super) fn add(&mut self, interest: Interest) -> mpsc::Receiver<Notice> {
        self.forget_those_who_left();
        let few = interest.jobs.is_some();
        let (sender, receiver) = mpsc::channel(if few { SHORT_BACKLOG } else { BACKLOG });
        let number = self.next;
        self.next += 1;
        match &interest.jobs {
            None => self.of_all.push(number),
            Some(jobs) => {
                for job in jobs {
                    self.of_one.entry(job.clone()).or_default().push(number);
                }
            }
        }
        self.everybody
            .insert(number, Subscriber { sender, interest });
        receiver
    }

    /// Tell whom it concerns.
    pub(super) fn tell(&mut self, notice: &Notice) {
        if self.everybody.is_empty() {
            return;
        }
        let concerned: Vec<u64> = match notice {
            Notice::State(job, _) | Notice::Changed(Some(job)) => {
                let of_one = self.of_one.get(job).into_iter().flatten();
                self.of_all.iter().chain(of_one).copied().collect()
            }
            // Then anything may have changed.
            Notice::Changed(None) | Notice::Lagged => self.everybody.keys().copied().collect(),
        };
        for number in concerned {
            let told = self.everybody.get(&number).is_none_or(|subscriber| {
                let wanted =
                    subscriber.interest.every || !matches!(notice, Notice::Changed(Some(_)));
                !wanted || subscriber.sender.try_send(notice.clone()).is_ok()
            });
            if !told {
                self.forget(number);
            }
        }
    }

    fn forget(&mut self, number: u64) {
        let Some(gone) = self.everybody.remove(&number) else {
            return;
        };
        match gone.interest.jobs {
            None => self.of_all.retain(|known| *known != number),
            Some(jobs) => {
                for job in jobs {
                    if let Some(known) = self.of_one.get_mut(&job) {
                        known.retain(|known| *known != number);
                        if known.is_empty() {
                            self.of_one.remove(&job);
                        }
                    }
                }
            }
        }
    }

    fn forget_those_who_left(&mut self) {
        if self.everybody.len() < self.enough {
            return;
        }
        let left = self.everybody.iter();
        let left: Vec<u64> = left
            .filter(|(_, subscriber)| subscriber.sender.is_closed())
            .map(|(number, _)| *number)
            .collect();
        for number in left {
            self.forget(number);
        }
        self.enough = 2 * self.everybody.len() + UNKNOWN;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use state_machine::job::State;

    fn id(word: &str) -> JobId {
        JobId::parse(word).unwrap()
    }

    fn of(jobs: &[&str], every: bool) -> Interest {
        Interest {
            jobs: Some(jobs.iter().map(|word| id(word)).collect()),
            every,
        }
    }

    fn runs(word: &str) -> Notice {
        Notice::State(id(word), Some(State::Running))
    }

    fn heard(receiver: &mut mpsc::Receiver<Notice>) -> Vec<Notice> {
        std::iter::from_fn(|| receiver.try_recv().ok()).collect()
    }

    #[test]
    fn everybody_hears_what_concerns_him() {
        let mut subscribers = Subscribers::new();
        let mut all = subscribers.add(Interest::default());
        let mut a = subscribers.add(of(&["1-a", "2-b"], false));
        let mut every = subscribers.add(of(&["1-a"], true));
        let changed = Notice::Changed(Some(id("1-a")));
        for notice in [runs("1-a"), runs("3-c"), changed.clone()] {
            subscribers.tell(&notice);
        }
        subscribers.tell(&Notice::Changed(None));
        let anything = Notice::Changed(None);
        assert_eq!(
            heard(&mut all),
            [runs("1-a"), runs("3-c"), anything.clone()]
        );
        assert_eq!(heard(&mut a), [runs("1-a"), anything.clone()]);
        assert_eq!(heard(&mut every), [runs("1-a"), changed, anything]);
    }

    #[test]
    fn one_who_does_not_listen_is_let_go() {
        let mut subscribers = Subscribers::new();
        let mut slow = subscribers.add(of(&["1-a", "2-b"], false));
        for _ in 0..=SHORT_BACKLOG {
            subscribers.tell(&runs("1-a"));
        }
        assert_eq!(heard(&mut slow).len(), SHORT_BACKLOG);
        assert!(matches!(
            slow.try_recv(),
            Err(mpsc::error::TryRecvError::Disconnected)
        ));
        assert!(subscribers.of_one.is_empty());
    }

    #[test]
    fn those_who_have_left_are_not_remembered() {
        let mut subscribers = Subscribers::new();
        for _ in 0..10_000 {
            drop(subscribers.add(of(&["1-a"], false)));
            drop(subscribers.add(Interest::default()));
        }
        assert!(subscribers.everybody.len() <= 2 * UNKNOWN);
        assert!(subscribers.of_all.len() <= 2 * UNKNOWN);
    }
}
