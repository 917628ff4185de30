//! Ending in order: a pause and a cancel end this process by SIGTERM, and what has arrived by then is recorded first. It is no
//! more than a courtesy: whoever kills it costs what arrived since the record was last written.

use std::collections::HashMap;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};

use super::crew::Crew;
use super::run::News;

/// No longer is waited for a record.
const PATIENCE: Duration = Duration::from_millis(500);
/// What a shell gives for a process that SIGTERM ended.
const TERMINATED: i32 = 143;

/// Who keeps the record of a part now.
#[derive(Default)]
pub(super) struct Leaving(Mutex<Open>);

#[derive(Default)]
struct Open {
    next: u64,
    keepers: HashMap<u64, Sender<News>>,
}

/// A part whose record is kept. Dropped, it is not any more.
pub(super) struct Opened<'a> {
    leaving: &'a Leaving,
    number: u64,
}

impl Leaving {
    /// Whoever hears this keeps the record of a part from here on.
    pub(super) fn opens(&self, keeper: Sender<News>) -> Opened<'_> {
        let mut open = self.lock();
        let number = open.next;
        open.next += 1;
        open.keepers.insert(number, keeper);
        Opened {
            leaving: self,
            number,
        }
    }

    /// Have every record written.
    fn leave(&self) {
        let (told, heard) = channel();
        for keeper in self.lock().keepers.values() {
            // Whoever is done has written it.
            let _ = keeper.send(News::Leave(told.clone()));
        }
        drop(told);
        // Nothing is ever sent: it ends when everybody has dropped what he was given.
        let _ = heard.recv_timeout(PATIENCE);
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        // It is whole between any two statements.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        self.leaving.lock().keepers.remove(&self.number);
    }
}

/// From here on SIGTERM ends this process once what has arrived is recorded. For a process that has no other thread yet.
pub(super) fn end_in_order(crew: &Arc<Crew>) {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    // Where it cannot be blocked it ends us at once, which loses no more than a kill.
    if signals.thread_block().is_err() {
        return;
    }
    let crew = Arc::clone(crew);
    std::thread::spawn(move || {
        if signals.wait().is_ok() {
            crew.leaving.leave();
            crew.voice.leaves();
            std::process::exit(TERMINATED);
        }
    });
}
