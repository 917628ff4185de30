//! Jobs as JSON, in the shape of `list --json`, without ever holding all of them.

use std::sync::Arc;

use hyper::body::Bytes;
use state_machine::protocol::look::View;

use crate::store::{Report, Store};

/// How many jobs are made into text at a time.
pub(super) const BATCH: usize = 128;
/// How much text that may be, in bytes, until no further job is begun: a command alone can have two MB.
pub(super) const PIECE: usize = 256 << 10;

/// A job as JSON, in one line.
pub(super) fn json_of(store: &Store, view: &View) -> String {
    let report = Report::new(view, &store.job_dir(&view.descriptor.id));
    // It has no key that is not text.
    serde_json::to_string(&report).unwrap_or_else(|_| "null".into())
}

/// These jobs as an array, made as it is read.
#[derive(Debug)]
pub(super) struct AsArray {
    store: Store,
    views: std::vec::IntoIter<Arc<View>>,
    begun: bool,
    ended: bool,
}

impl AsArray {
    /// Of these.
    pub(super) fn new(store: Store, views: Vec<Arc<View>>) -> AsArray {
        AsArray {
            store,
            views: views.into_iter(),
            begun: false,
            ended: false,
        }
    }

    /// The next piece.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        let mut text = String::new();
        for view in self.views.by_ref().take(BATCH) {
            text.push(if self.begun { ',' } else { '[' });
            self.begun = true;
            text.push_str(&json_of(&self.store, &view));
            if text.len() >= PIECE {
                break;
            }
        }
        if self.views.len() == 0 {
            self.ended = true;
            text.push_str(if self.begun { "]\n" } else { "[]\n" });
        }
        Some(text.into())
    }
}
