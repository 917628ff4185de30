//! Every order in which posters and the consumer can meet.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p outlive-mailbox --profile model --test loom`, best with a `CARGO_TARGET_DIR` of its own. A
//! consumer that sleeps and is not woken is a deadlock, which loom reports. To see that these tests see something,
//! `--cfg 'mutant="…"'` gets one thing wrong; `.ci/run` knows their names and wants each to be found.
#![cfg(loom)]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use loom::sync::Notify;
use loom::thread;
use outlive_mailbox::{Closed, Drained, Mailbox, Notice, Notices, Poster, mailbox};

/// What wakes a thread of loom. How often it was called is asked for when all threads have ended, so that this count is
/// no business of loom's.
struct Bell {
    sleeper: Notify,
    rung: AtomicUsize,
}

impl Wake for Bell {
    fn wake(self: Arc<Bell>) {
        self.rung.fetch_add(1, Ordering::SeqCst);
        self.sleeper.notify();
    }
}

/// A consumer in the place of a task.
struct Consumer {
    mailbox: Mailbox<u8>,
    bell: Arc<Bell>,
    /// How often it was told to wait.
    waits: usize,
}

impl Consumer {
    fn new(mailbox: Mailbox<u8>) -> Consumer {
        Consumer {
            mailbox,
            bell: bell(),
            waits: 0,
        }
    }

    fn poll(&mut self) -> Poll<Drained<u8>> {
        let waker = Waker::from(self.bell.clone());
        let poll = self.mailbox.poll_next(&mut Context::from_waker(&waker));
        self.waits += usize::from(poll.is_pending());
        poll
    }

    fn next(&mut self) -> Drained<u8> {
        loop {
            if let Poll::Ready(drained) = self.poll() {
                return drained;
            }
            self.bell.sleeper.wait();
        }
    }

    /// All that comes until nobody is left to post.
    fn drain_to_the_end(&mut self) -> Notices<u8> {
        let mut all = Notices::NONE;
        while let Drained::Notices(notices) = self.next() {
            assert!(!notices.is_empty());
            all = both(all, notices);
        }
        all
    }

    /// To be asked when every poster's thread has ended.
    fn assert_woken_once_a_wait(&self) {
        let rung = self.bell.rung.load(Ordering::SeqCst);
        assert!(rung <= self.waits, "woken {rung}, {} waits", self.waits);
    }
}

fn bell() -> Arc<Bell> {
    Arc::new(Bell {
        sleeper: Notify::new(),
        rung: AtomicUsize::new(0),
    })
}

fn both(one: Notices<u8>, other: Notices<u8>) -> Notices<u8> {
    match (one, other) {
        (Notices::Of(one), Notices::Of(other)) => Notices::Of(&one | &other),
        _ => Notices::Everything,
    }
}

/// A thread that posts these and is gone.
fn post(poster: Poster<u8>, keys: &'static [u8]) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        for key in keys {
            poster.post(Notice::Of(*key)).unwrap();
        }
    })
}

/// Every order there is.
fn every_order(run: impl Fn() + Sync + Send + 'static) {
    loom::model(run);
}

/// Every order in which threads are interrupted `times` at most where they do not wait by themselves. All orders of three
/// threads that do much would take hours.
fn interrupted(times: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(times);
    builder.check(run);
}

fn join<const N: usize>(threads: [thread::JoinHandle<()>; N]) {
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn a_sleeper_hears_every_notice_of_two_posters_and_then_that_they_are_gone() {
    interrupted(3, || {
        let (poster, mailbox) = mailbox(3);
        let threads = [post(poster.clone(), &[1, 2]), post(poster, &[2, 3])];
        let mut consumer = Consumer::new(mailbox);
        assert_eq!(consumer.drain_to_the_end(), Notices::Of([1, 2, 3].into()));
        join(threads);
        consumer.assert_woken_once_a_wait();
    });
}

#[test]
fn too_many_are_everything_whoever_drains_in_between() {
    interrupted(3, || {
        let (poster, mailbox) = mailbox(1);
        let threads = [post(poster.clone(), &[1]), post(poster, &[2])];
        let mut consumer = Consumer::new(mailbox);
        let all = consumer.drain_to_the_end();
        assert!(all == Notices::Everything || all == Notices::Of([1, 2].into()));
        join(threads);
    });
}

#[test]
fn a_notice_that_a_look_in_between_takes_is_not_waited_for() {
    every_order(|| {
        let (poster, mailbox) = mailbox(3);
        let thread = post(poster, &[1, 2]);
        let mut consumer = Consumer::new(mailbox);
        let first = match consumer.poll() {
            Poll::Ready(Drained::Notices(notices)) => notices,
            Poll::Ready(Drained::Gone) => unreachable!("two were posted"),
            Poll::Pending => Notices::NONE,
        };
        let second = consumer.mailbox.take();
        let rest = consumer.drain_to_the_end();
        let all = both(both(first, second), rest);
        assert_eq!(all, Notices::Of([1, 2].into()));
        thread.join().unwrap();
        consumer.assert_woken_once_a_wait();
    });
}

#[test]
fn a_consumer_that_moves_to_another_task_is_woken_there() {
    every_order(|| {
        let (poster, mailbox) = mailbox(3);
        let thread = post(poster, &[1]);
        let mut consumer = Consumer::new(mailbox);
        let early = match consumer.poll() {
            Poll::Ready(Drained::Notices(notices)) => notices,
            Poll::Ready(Drained::Gone) => unreachable!("one was posted"),
            Poll::Pending => Notices::NONE,
        };
        consumer.bell = bell();
        let rest = consumer.drain_to_the_end();
        assert_eq!(both(early, rest), Notices::Of([1].into()));
        thread.join().unwrap();
    });
}

#[test]
fn whatever_a_close_meets_every_notice_is_in_somebodys_hands() {
    interrupted(5, || {
        let (poster, mailbox) = mailbox(3);
        let threads: Vec<_> = [(poster.clone(), [1, 2]), (poster, [3, 3])]
            .into_iter()
            .map(|(poster, keys)| {
                thread::spawn(move || {
                    let posts = keys.map(|key| poster.post(Notice::Of(key)));
                    posts.into_iter().filter_map(Result::err).collect()
                })
            })
            .collect();
        let mut consumer = Consumer::new(mailbox);
        let drained = match consumer.poll() {
            Poll::Ready(Drained::Notices(notices)) => notices,
            Poll::Ready(Drained::Gone) | Poll::Pending => Notices::NONE,
        };
        let bell = consumer.bell.clone();
        let waits = consumer.waits;
        let left = consumer.mailbox.close();
        let returned: Vec<Vec<Closed<u8>>> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect();

        let mut all = both(drained, left);
        for Closed(notice) in returned.into_iter().flatten() {
            let Notice::Of(key) = notice else {
                unreachable!("nobody posts everything")
            };
            all = both(all, Notices::Of(BTreeSet::from([key])));
        }
        assert_eq!(all, Notices::Of([1, 2, 3].into()));
        assert!(bell.rung.load(Ordering::SeqCst) <= waits);
    });
}

#[test]
fn posters_that_leave_while_the_consumer_falls_asleep_do_not_leave_it_there() {
    every_order(|| {
        let (poster, mailbox) = mailbox(3);
        let threads = [post(poster.clone(), &[]), post(poster, &[])];
        let mut consumer = Consumer::new(mailbox);
        assert_eq!(consumer.next(), Drained::Gone);
        assert_eq!(consumer.next(), Drained::Gone);
        join(threads);
        consumer.assert_woken_once_a_wait();
    });
}
