//! The mailbox as its users see it, on real threads. What every order of events comes to is in `loom.rs`.
#![cfg(not(loom))]

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use outlive_mailbox::{Closed, Drained, Mailbox, Notice, Notices, mailbox};

/// Counts how often it is called, and unparks the thread that made it.
struct Bell {
    sleeper: Thread,
    rung: AtomicUsize,
}

impl Bell {
    fn new() -> Arc<Bell> {
        Arc::new(Bell {
            sleeper: thread::current(),
            rung: AtomicUsize::new(0),
        })
    }

    fn rung(&self) -> usize {
        self.rung.load(Ordering::SeqCst)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Bell>) {
        self.rung.fetch_add(1, Ordering::SeqCst);
        self.sleeper.unpark();
    }
}

fn poll<K>(mailbox: &mut Mailbox<K>, bell: &Arc<Bell>) -> Poll<Drained<K>> {
    mailbox.poll_next(&mut Context::from_waker(&Waker::from(bell.clone())))
}

fn block_on<F: Future>(future: F, bell: &Arc<Bell>) -> F::Output {
    let waker = Waker::from(bell.clone());
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}

#[test]
fn a_sleeper_is_woken_once_however_much_comes() {
    let (poster, mut mailbox) = mailbox(10);
    let bell = Bell::new();
    for drain in 1..=3 {
        assert_eq!(poll(&mut mailbox, &bell), Poll::Pending);
        for key in [3, 1, 3, 2] {
            poster.post(Notice::Of(key)).unwrap();
        }
        assert_eq!(bell.rung(), drain);
        let all = Drained::Notices(Notices::Of([1, 2, 3].into()));
        assert_eq!(poll(&mut mailbox, &bell), Poll::Ready(all));
    }
}

#[test]
fn nobody_is_woken_who_does_not_sleep() {
    let (poster, mut mailbox) = mailbox(10);
    let bell = Bell::new();
    poster.post(Notice::Of(1)).unwrap();
    assert!(poll(&mut mailbox, &bell).is_ready());
    poster.post(Notice::Of(2)).unwrap();
    assert_eq!(mailbox.take(), Notices::Of([2].into()));
    assert_eq!(mailbox.take(), Notices::NONE);
    drop(poster);
    assert_eq!(bell.rung(), 0);
}

#[test]
fn the_last_of_several_bells_is_rung() {
    let (poster, mut mailbox) = mailbox(10);
    let (first, second) = (Bell::new(), Bell::new());
    assert_eq!(poll(&mut mailbox, &first), Poll::Pending);
    assert_eq!(poll(&mut mailbox, &second), Poll::Pending);
    poster.post(Notice::Of(1)).unwrap();
    assert_eq!((first.rung(), second.rung()), (0, 1));
}

#[test]
fn a_wait_that_is_given_up_loses_nothing() {
    let (poster, mut mailbox) = mailbox(10);
    let bell = Bell::new();
    let waker = Waker::from(bell.clone());
    {
        let mut given_up = pin!(mailbox.next());
        let mut context = Context::from_waker(&waker);
        assert!(given_up.as_mut().poll(&mut context).is_pending());
        poster.post(Notice::Of(1)).unwrap();
    }
    let one = Drained::Notices(Notices::Of([1].into()));
    assert_eq!(block_on(mailbox.next(), &bell), one);
}

#[test]
fn gone_is_said_after_the_last_notice_and_again() {
    let (poster, mut mailbox) = mailbox::<u8>(10);
    let bell = Bell::new();
    let second = poster.clone();
    assert_eq!(poll(&mut mailbox, &bell), Poll::Pending);
    drop(poster);
    assert_eq!(bell.rung(), 0);
    drop(second);
    assert_eq!(bell.rung(), 1);
    assert_eq!(poll(&mut mailbox, &bell), Poll::Ready(Drained::Gone));
    assert_eq!(poll(&mut mailbox, &bell), Poll::Ready(Drained::Gone));

    let (poster, mut mailbox) = outlive_mailbox::mailbox(10);
    poster.post(Notice::Of(1)).unwrap();
    drop(poster);
    let one = Drained::Notices(Notices::Of([1].into()));
    assert_eq!(poll(&mut mailbox, &bell), Poll::Ready(one));
    assert_eq!(poll(&mut mailbox, &bell), Poll::Ready(Drained::Gone));
}

#[test]
fn what_a_closed_mailbox_does_not_take_comes_back() {
    let (poster, mailbox) = mailbox(10);
    poster.post(Notice::Of(1)).unwrap();
    assert_eq!(mailbox.close(), Notices::Of([1].into()));
    assert_eq!(poster.post(Notice::Of(2)), Err(Closed(Notice::Of(2))));
    assert_eq!(
        poster.clone().post(Notice::Everything),
        Err(Closed(Notice::Everything))
    );

    let (poster, mailbox) = outlive_mailbox::mailbox(10);
    drop(mailbox);
    assert_eq!(poster.post(Notice::Of(1)), Err(Closed(Notice::Of(1))));
}

#[test]
fn ten_thousand_notices_of_four_threads_all_arrive() {
    const EACH: usize = 10_000;
    let (poster, mut mailbox) = mailbox(4 * EACH);
    let threads: Vec<_> = (0..4)
        .map(|nth| {
            let poster = poster.clone();
            thread::spawn(move || {
                for key in 0..EACH {
                    poster.post(Notice::Of(nth * EACH + key)).unwrap();
                }
            })
        })
        .collect();
    drop(poster);

    let bell = Bell::new();
    let mut seen = BTreeSet::new();
    let mut drains = 1;
    while let Drained::Notices(Notices::Of(mut keys)) = block_on(mailbox.next(), &bell) {
        assert!(!keys.is_empty());
        drains += 1;
        seen.append(&mut keys);
    }
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(seen.len(), 4 * EACH);
    assert!(bell.rung() <= drains, "{} > {drains}", bell.rung());
}
