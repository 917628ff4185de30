//! One browser that is told of changes, as server-sent events: first everything, newest first and a few at a time, then what changes. The
//! next piece is made when the connection has room for it, of what is so by then; so a browser that does not read costs a piece, and names.

use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::Bytes;
use serde::Serialize;
use serde_json::json;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::house::{House, Listener};
use super::jobs::{BATCH, PIECE, json_of};
use crate::live::Live;

/// How often something is said in any case: whoever is gone is noticed by it.
const HEARTBEAT: Duration = Duration::from_secs(30);
/// How long a browser waits before it asks again, in ms.
const RETRY_MS: u32 = 1000;

/// What one browser is told.
#[derive(Debug)]
pub(super) struct Stream {
    house: Rc<House>,
    number: u64,
    begun: bool,
    heartbeat: Interval,
}

impl Stream {
    /// For one more; nothing where there are too many. Within a runtime.
    pub(super) fn new(house: &Rc<House>) -> Option<Stream> {
        let number = house.admit()?;
        let mut heartbeat = interval(HEARTBEAT);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first is at once, and there is something to say then.
        heartbeat.reset();
        Some(Stream {
            house: house.clone(),
            number,
            begun: false,
            heartbeat,
        })
    }

    /// The next piece, if there is anything to be told.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let live = self.house.live();
        let mut text = String::new();
        if !std::mem::replace(&mut self.begun, true) {
            text.push_str(&format!("retry: {RETRY_MS}\n"));
            let hello = json!({
                "stream": self.number,
                "version": env!("CARGO_PKG_VERSION"),
                "root": self.house.store.root().to_string_lossy(),
                "changes": self.house.secret.is_some(),
            });
            add(&mut text, "hello", &hello);
        }
        let is_there = self.house.with(self.number, |listener| {
            tell(&self.house, &live, listener, &mut text);
            listener.waker = Some(context.waker().clone());
        });
        if is_there.is_none() {
            return Poll::Ready(None);
        }
        if text.is_empty() {
            if self.heartbeat.poll_tick(context).is_pending() {
                return Poll::Pending;
            }
            text.push_str(":\n\n");
        } else {
            self.heartbeat.reset();
        }
        Poll::Ready(Some(text.into()))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.house.dismiss(self.number);
    }
}

/// Tell what has not been told, as much of it as goes into one piece.
fn tell(house: &House, live: &Live, listener: &mut Listener, text: &mut String) {
    if std::mem::take(&mut listener.anew) {
        add(text, "reset", &json!({ "jobs": listener.jobs.len() }));
    }
    tell_of_jobs(house, live, listener, text);
    if std::mem::take(&mut listener.pools) {
        let pools = json!({
            "pools": live.pools(),
            "slots": live.slots(),
            "supervised": house.store.is_supervised().unwrap_or(false),
        });
        add(text, "pools", &pools);
    }
    if std::mem::take(&mut listener.damaged) {
        add(text, "damaged", &live.damaged().collect::<Vec<_>>());
    }
    if listener.incomplete && listener.jobs.is_empty() {
        listener.incomplete = false;
        add(text, "ready", &json!({}));
    }
    if std::mem::take(&mut listener.printed)
        && let Some(job) = &listener.follows
    {
        add(text, "output", &json!({ "job": job }));
    }
}

fn tell_of_jobs(house: &House, live: &Live, listener: &mut Listener, text: &mut String) {
    let mut jobs = Vec::new();
    let mut gone = Vec::new();
    let mut length = 0;
    for _ in 0..BATCH {
        if length >= PIECE {
            break;
        }
        // The newest first.
        let Some(id) = listener.jobs.pop_last() else {
            break;
        };
        match live.job(&id) {
            Some(view) => {
                let job = json_of(&house.store, view);
                length += job.len();
                jobs.push(job);
            }
            None => gone.push(id),
        }
    }
    if !jobs.is_empty() {
        add_json(text, "jobs", &format!("[{}]", jobs.join(",")));
    }
    if !gone.is_empty() {
        add(text, "gone", &gone);
    }
}

fn add<T: Serialize>(text: &mut String, event: &str, value: &T) {
    // Nothing that is told has a key that is not text.
    let json = serde_json::to_string(value).unwrap_or_else(|_| "null".into());
    add_json(text, event, &json);
}

/// An event. JSON has no line end in it.
fn add_json(text: &mut String, event: &str, json: &str) {
    for part in ["event: ", event, "\ndata: ", json, "\n\n"] {
        text.push_str(part);
    }
}
