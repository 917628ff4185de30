//! STAND-IN until the real one is merged: looks at everything now and then.
use crate::store::Store;
use outlive_mailbox::{Notice, Poster};
use state_machine::id::JobId;
use std::io;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    Job(JobId),
    Pools,
}

pub(crate) struct Watcher;

impl Watcher {
    pub(crate) fn start(_store: &Store, poster: Poster<Subject>) -> io::Result<Watcher> {
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(Duration::from_millis(20));
                if poster.post(Notice::Everything).is_err() {
                    return;
                }
            }
        });
        Ok(Watcher)
    }
    pub(crate) fn watch(&self, _id: &JobId) {}
    pub(crate) fn forget(&self, _id: &JobId) {}
}
