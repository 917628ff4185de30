//! What one job needs of a supervisor, from what is true about it: the same judgement when a supervisor starts and finds
//! it, and whenever a notice says that something may have changed (R18, R20). Nothing here is remembered: a supervisor that
//! died has lost nothing.

use crate::dependency::Dependency;
use crate::job::State;
use crate::liveness;
use crate::protocol::look::View;
use crate::record::{Descriptor, OnInterrupt};

/// What a job needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// Nothing any more: it has ended.
    Nothing,
    /// To be left alone while somebody works on it. It has its slots (R20).
    Room,
    /// That somebody takes its lock and writes down what is true: that its worker is gone, or the answer to what was
    /// asked of it (R4, R6).
    Settling,
    /// To be admitted to its pool, once it may start.
    Admission,
    /// To be run again, as it says about a worker that is lost; with no pool, at once.
    Resumption,
    /// To be let rest until somebody resumes it.
    Rest,
}

/// What the job of this view needs. `asked` says whether a request waits to be taken.
pub fn need(view: &View, asked: bool) -> Need {
    let ended = view.state.is_terminal();
    if view.held {
        return if ended { Need::Nothing } else { Need::Room };
    }
    if ended {
        // A stop of what it left behind is its sender's to complete, and a supervisor's where he died.
        let left = view.leftovers && asked;
        return if left { Need::Settling } else { Need::Nothing };
    }
    if asked || liveness::is_abandoned(&view.status) {
        return Need::Settling;
    }
    match view.state {
        State::Queued => Need::Admission,
        State::Interrupted if view.descriptor.on_interrupt == OnInterrupt::Resume => {
            Need::Resumption
        }
        _ => Need::Rest,
    }
}

/// Whether a supervisor has something to wait for here, and so is not to leave for want of work.
pub fn keeps_busy(need: Need, descriptor: &Descriptor) -> bool {
    match need {
        Need::Nothing | Need::Rest => false,
        // Its slot becomes idle when it ends, and it is run again where it says so.
        Need::Room => descriptor.pool.is_some() || descriptor.on_interrupt == OnInterrupt::Resume,
        Need::Settling | Need::Admission | Need::Resumption => true,
    }
}

/// When a job that waits to be admitted may start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Now.
    Now,
    /// In so many ms, unless the clock is set.
    In(u64),
    /// When those have ended that it comes after.
    Later,
    /// Never: the reason, for people.
    Never(String),
}

/// What time it is for whoever looks at a job that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// The wall clock, in ms since the epoch.
    pub now_ms: u64,
    /// What it said when the one who asks first saw the job wait.
    pub found_ms: u64,
    /// How long ago that was, in ms, by a clock that nobody can set.
    pub watched_ms: u64,
}

impl Clocks {
    /// For one who sees the job for the first time.
    pub fn at_first(now_ms: u64) -> Clocks {
        Clocks {
            now_ms,
            found_ms: now_ms,
            watched_ms: 0,
        }
    }
}

/// When the job may start, given what those come to that it comes after. One that ran before is not held back again.
///
/// A job that was to wait for so long waits for so long, however the clock is set while somebody watches. Where it was set while
/// nobody did, the job waits no longer than it was asked to once somebody does.
pub fn readiness(
    descriptor: &Descriptor,
    attempt: u32,
    dependency: Dependency,
    clocks: Clocks,
) -> Readiness {
    if attempt > 0 {
        return Readiness::Now;
    }
    match dependency {
        Dependency::Never(why) => Readiness::Never(why),
        Dependency::Waits => Readiness::Later,
        Dependency::Met => match remaining_ms(descriptor, clocks) {
            0 => Readiness::Now,
            ms => Readiness::In(ms),
        },
    }
}

/// How long the job is still to wait for its time, in ms.
fn remaining_ms(descriptor: &Descriptor, clocks: Clocks) -> u64 {
    let Some(due) = descriptor.not_before_ms else {
        return 0;
    };
    match descriptor.delay_ms {
        Some(delay) => due
            .saturating_sub(clocks.found_ms)
            .min(delay)
            .saturating_sub(clocks.watched_ms),
        None => due.saturating_sub(clocks.now_ms),
    }
}

/// How long after it was found interrupted for the `nth` time in a row (from 0) a job is run again, in ms: at once, and
/// then later and later, so that one which kills its own worker does not keep a machine busy.
pub fn resume_delay_ms(nth: u32) -> u64 {
    const FIRST_MS: u64 = 1_000;
    const LAST_MS: u64 = 300_000;
    match nth {
        0 => 0,
        nth => FIRST_MS.saturating_mul(1 << (nth - 1).min(20)).min(LAST_MS),
    }
}
