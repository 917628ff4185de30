//! Waiting for something to happen in a few directories: by inotify, or by being told by a supervisor.
//!
//! An event is a hint to look again and never the message (F54): nothing of it is read but that
//! there was one. Where the machine has no inotify left (F52), the same calls wait for a short
//! while instead and say "look again"; where a supervisor that told is lost, inotify takes its place.
//! No caller needs to know. What must never be here:
//! what is in the directories.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::dial::{Heard, Subscription, Teller};
use crate::inotify::{Buffer, Instance};

pub(crate) use crate::inotify::Interest;

/// How often to look where nothing tells us.
const BLIND: Duration = Duration::from_millis(200);
/// How often to look at the latest where something does: events can be lost (F53).
const BACKSTOP: Duration = Duration::from_secs(5);

/// Why a wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// Something may have changed: look.
    Changed,
    /// The time is over.
    TimedOut,
}

/// A wait for changes in directories.
#[derive(Debug)]
pub(crate) struct Watch {
    interest: Interest,
    /// `None` where the user has no instance left.
    inotify: Option<Instance>,
    /// A directory could not be watched: all are looked at on a timer.
    blind: bool,
    /// Over this we are told of changes, and need no inotify.
    told: Option<Subscription>,
    /// Who tells, and the directories that are watched while he does not.
    teller: Option<(Teller, Vec<PathBuf>)>,
}

impl Watch {
    /// A watch on everything in `dir`. Never fails: what cannot be watched is looked at often.
    ///
    /// Begin to watch *before* the first look, so that nothing falls in between.
    pub(crate) fn new(dir: &Path) -> Watch {
        let mut watch = Watch::with(Interest::Output);
        watch.add(dir);
        watch
    }

    /// A watch on nothing yet.
    pub(crate) fn with(interest: Interest) -> Watch {
        let inotify = Instance::new().ok();
        Watch {
            interest,
            blind: inotify.is_none(),
            inotify,
            told: None,
            teller: None,
        }
    }

    /// A watch that a supervisor tells what has changed, where there is one. As long as it does, no inotify is taken.
    pub(crate) fn told_by(mut teller: Teller, interest: Interest) -> Watch {
        match teller.ask() {
            None => Watch::with(interest),
            Some(told) => Watch {
                interest,
                inotify: None,
                blind: false,
                told: Some(told),
                teller: Some((teller, Vec::new())),
            },
        }
    }

    /// Watches `dir` too. A directory that is deleted later needs no removal: it only falls silent.
    pub(crate) fn add(&mut self, dir: &Path) {
        if let Some((_, dirs)) = &mut self.teller {
            dirs.push(dir.to_owned());
        }
        if self.told.is_none() {
            self.watch(dir);
        }
    }

    fn watch(&mut self, dir: &Path) {
        let watched = self
            .inotify
            .as_ref()
            .is_some_and(|inotify| inotify.add(dir, self.interest).is_ok());
        self.blind |= !watched;
    }

    /// Whether a supervisor tells what has changed. Of what is appended to a file he does not.
    pub(crate) fn is_told(&self) -> bool {
        self.told.is_some()
    }

    /// Whether changes are looked for on a timer (every 200 ms) for want of inotify.
    #[cfg(test)]
    pub(crate) fn is_blind(&self) -> bool {
        self.blind
    }

    /// Sleeps until something may have changed or `timeout` is over. Without a timeout, and where
    /// nothing tells of changes, it says [`Woken::Changed`] after a while all the same. A signal to
    /// this process ends the wait as [`Woken::Changed`].
    ///
    /// # Errors
    /// The kernel cannot poll, which is not expected to happen.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<Woken> {
        if self.blind {
            self.ask_again();
        }
        let look_again = if self.blind { BLIND } else { BACKSTOP };
        let patience = self.told.as_ref().and_then(Subscription::patience);
        let look_again = patience.map_or(look_again, |patience| patience.min(look_again));
        let (sleep, at_the_end) = match timeout {
            Some(timeout) if timeout <= look_again => (timeout, Woken::TimedOut),
            _ => (look_again, Woken::Changed),
        };
        let woken = self.sleep(sleep)?;
        if self.has_lost_who_told() {
            // What falls between him and the new watches is seen now.
            return Ok(Woken::Changed);
        }
        Ok(if woken { Woken::Changed } else { at_the_end })
    }

    /// Whether anything happened before `time` was over.
    fn sleep(&self, time: Duration) -> io::Result<bool> {
        let time = Timespec::try_from(time).map_err(|_| Errno::INVAL)?;
        let mut polled = [];
        let mut watched;
        let fds: &mut [PollFd<'_>] = match self.source() {
            Some(source) => {
                watched = [PollFd::from_borrowed_fd(source, PollFlags::IN)];
                &mut watched
            }
            None => &mut polled,
        };
        match rustix::event::poll(fds, Some(&time)) {
            Ok(0) => Ok(false),
            Ok(_) => {
                self.discard();
                Ok(true)
            }
            Err(Errno::INTR) => Ok(true),
            Err(errno) => Err(errno.into()),
        }
    }

    fn source(&self) -> Option<BorrowedFd<'_>> {
        match (&self.told, &self.inotify) {
            (Some(told), _) => Some(told.as_fd()),
            (None, Some(inotify)) => Some(inotify.as_fd()),
            (None, None) => None,
        }
    }

    /// Hears what was told. Where nobody tells any more, inotify takes his place.
    fn has_lost_who_told(&mut self) -> bool {
        if self
            .told
            .as_mut()
            .is_none_or(|told| told.hear() != Heard::Lost)
        {
            return false;
        }
        self.told = None;
        self.inotify = Instance::new().ok();
        self.blind = self.inotify.is_none();
        let teller = self.teller.take();
        for dir in teller.iter().flat_map(|(_, dirs)| dirs) {
            // One that is gone meanwhile has nothing to tell.
            if dir.exists() {
                self.watch(dir);
            }
        }
        self.teller = teller;
        true
    }

    /// Has another supervisor tell, where there is no inotify to be had.
    fn ask_again(&mut self) {
        let told = self.teller.as_mut().and_then(|(teller, _)| teller.ask());
        if told.is_some() {
            self.told = told;
            self.inotify = None;
            self.blind = false;
        }
    }

    /// Takes the events off the queue, one bufferful: what is left wakes the next wait at once.
    fn discard(&self) {
        let mut buffer: Buffer = [MaybeUninit::uninit(); _];
        if let Some(inotify) = &self.inotify {
            // Nothing to read is nothing to discard.
            let _ = inotify.read(&mut buffer, |_| ());
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::fs;
    use std::io::{Read, Write};
    use std::os::unix::net::{UnixListener, UnixStream};

    use state_machine::wire;

    use crate::dial;

    const LONG: Option<Duration> = Some(Duration::from_secs(4));
    const NOW: Option<Duration> = Some(Duration::ZERO);

    fn settle(watch: &mut Watch) {
        while watch.wait(NOW).unwrap() == Woken::Changed {}
    }

    impl Watch {
        /// As on a machine with nothing left.
        pub(crate) fn without_inotify(interest: Interest) -> Watch {
            Watch {
                interest,
                inotify: None,
                blind: true,
                told: None,
                teller: None,
            }
        }
    }

    #[test]
    fn a_waiter_for_records_is_woken_by_them_and_not_by_output() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = fs::File::create(dir.path().join("log")).unwrap();
        let lock = fs::File::create(dir.path().join("lock")).unwrap();
        let mut watch = Watch::with(Interest::Records);
        watch.add(dir.path());
        if watch.is_blind() {
            return; // other programs have used up what this machine has
        }
        log.write_all(b"line\n").unwrap();
        assert_eq!(fs::read(dir.path().join("log")).unwrap(), b"line\n");
        assert_eq!(watch.wait(NOW).unwrap(), Woken::TimedOut);

        fs::write(dir.path().join("status.tmp"), b"{}").unwrap();
        settle(&mut watch);
        fs::rename(
            dir.path().join("status.tmp"),
            dir.path().join("status.json"),
        )
        .unwrap();
        assert_eq!(watch.wait(LONG).unwrap(), Woken::Changed);
        settle(&mut watch);
        drop(lock);
        assert_eq!(watch.wait(LONG).unwrap(), Woken::Changed);
    }

    #[test]
    fn one_watch_serves_several_directories() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let mut watch = Watch::with(Interest::Output);
        dirs.iter().for_each(|dir| watch.add(dir.path()));
        settle_unless_blind(&mut watch);
        for dir in dirs {
            fs::write(dir.path().join("log"), b"x").unwrap();
            assert_eq!(watch.wait(LONG).unwrap(), Woken::Changed);
            settle_unless_blind(&mut watch);
            // Removing the whole directory wakes, and leaves the rest watched.
            drop(dir);
            assert_eq!(watch.wait(LONG).unwrap(), Woken::Changed);
            settle_unless_blind(&mut watch);
        }
    }

    fn settle_unless_blind(watch: &mut Watch) {
        if !watch.is_blind() {
            settle(watch);
        }
    }

    #[test]
    fn blind_it_says_look_again_and_still_keeps_time() {
        let dir = tempfile::tempdir().unwrap();
        let mut watch = Watch::without_inotify(Interest::Output);
        watch.add(dir.path());
        assert_eq!(watch.wait(None).unwrap(), Woken::Changed);
        assert_eq!(watch.wait(LONG).unwrap(), Woken::Changed);
        assert_eq!(
            watch.wait(Some(Duration::from_millis(10))).unwrap(),
            Woken::TimedOut
        );
    }

    /// Every instance that this user may still have; `None` on a machine with plenty.
    fn hoard() -> Option<Vec<Instance>> {
        let mut hoard = Vec::new();
        while hoard.len() < 600 {
            match Instance::new() {
                Ok(instance) => hoard.push(instance),
                Err(_) => return Some(hoard),
            }
        }
        None
    }

    #[test]
    fn exhausted_instances_make_it_blind_and_not_fail() {
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..200 {
            let Some(hoard) = hoard() else { return };
            let mut watch = Watch::new(dir.path());
            drop(hoard);
            // Another process of this user may have given one back just then.
            if watch.is_blind() {
                fs::write(dir.path().join("log"), b"x").unwrap();
                assert_eq!(watch.wait(LONG).unwrap(), Woken::Changed);
                return;
            }
        }
        panic!("it finds an instance where there is none");
    }

    /// A supervisor that agrees to tell.
    fn agree(listener: &UnixListener) -> UnixStream {
        let (mut stream, _) = listener.accept().unwrap();
        let mut ask = [0; 64];
        assert!(stream.read(&mut ask).unwrap() > 0);
        stream.write_all(b"{\"ok\":\"subscribed\"}\n").unwrap();
        stream
    }

    #[test]
    fn one_who_is_told_takes_inotify_once_he_is_not_and_is_told_again_where_there_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let listener = dial::listen(dir.path()).unwrap();
        listener.set_nonblocking(false).unwrap();
        let teller = Teller::new(dir.path(), wire::Interest::default());
        let mut watch = Watch::told_by(teller, Interest::Records);
        watch.add(dir.path());
        watch.add(&dir.path().join("gone"));
        let mut supervisor = agree(&listener);
        assert_eq!(watch.wait(LONG).unwrap(), Woken::Changed);
        fs::write(dir.path().join("status.json"), b"{}").unwrap();
        assert_eq!(watch.wait(NOW).unwrap(), Woken::TimedOut);
        supervisor.write_all(b"{\"changed\":null}\n").unwrap();
        assert_eq!(watch.wait(LONG).unwrap(), Woken::Changed);

        drop(supervisor);
        assert_eq!(watch.wait(LONG).unwrap(), Woken::Changed);
        assert!(!watch.is_told());
        settle_unless_blind(&mut watch);
        fs::write(dir.path().join("status.json"), b"{}").unwrap();
        assert_eq!(watch.wait(LONG).unwrap(), Woken::Changed);

        watch.inotify = None;
        watch.blind = true;
        std::thread::scope(|scope| {
            let supervisor = scope.spawn(|| agree(&listener));
            while !watch.is_told() {
                assert_eq!(watch.wait(LONG).unwrap(), Woken::Changed);
            }
            let _supervisor = supervisor.join().unwrap();
        });
        assert!(watch.is_told() && !watch.is_blind());
    }

    #[test]
    fn one_who_does_not_agree_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let _deaf = dial::listen(dir.path()).unwrap();
        let teller = Teller::new(dir.path(), wire::Interest::default());
        let mut watch = Watch::told_by(teller, Interest::Records);
        watch.add(dir.path());
        assert!(watch.is_told());
        assert_eq!(watch.wait(LONG).unwrap(), Woken::Changed);
        assert!(!watch.is_told());
        assert_eq!(watch.inotify.is_none(), watch.is_blind());
    }

    #[test]
    fn a_directory_that_is_not_there_is_looked_for() {
        let dir = tempfile::tempdir().unwrap();
        let watch = Watch::new(&dir.path().join("none"));
        assert!(watch.is_blind());
    }
}
