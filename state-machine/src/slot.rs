//! The states of a slot, the one table of its transitions, and what its record comes to: when its holder has died, and
//! when it is due for maintenance. Who holds it is what locks say, and they are tried elsewhere.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::record::{Claim, Outcome, Slot};
use crate::stamp;

/// The state of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Free to be claimed.
    Idle,
    /// Held by one job or one session (R14).
    Claimed,
    /// Held by one run of the maintenance command (R14, R15).
    Maintaining,
    /// Not usable until it is mended; the record says what is wrong.
    Broken,
}

/// What can happen to a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A job or a session takes it.
    Claimed,
    /// Its holder gives it back, or died and was found dead (R16).
    Released,
    /// A maintenance run takes it.
    MaintenanceStarted,
    /// The maintenance command ended, however it ended (R17).
    MaintenanceEnded,
    /// Something was found wrong with it.
    FoundBroken,
    /// It was mended.
    Repaired,
}

/// A step that the table does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a slot that is {state:?} cannot take the step {event:?}")]
pub struct Illegal {
    /// The state that the slot was in.
    pub state: State,
    /// The step that was tried.
    pub event: Event,
}

/// The transition table of a slot: only an idle slot can be taken, by one holder (R14).
pub fn next(state: State, event: Event) -> Result<State, Illegal> {
    match (state, event) {
        (State::Idle, Event::Claimed) => Ok(State::Claimed),
        (State::Claimed, Event::Released) => Ok(State::Idle),
        (State::Idle, Event::MaintenanceStarted) => Ok(State::Maintaining),
        (State::Maintaining, Event::MaintenanceEnded) => Ok(State::Idle),
        (State::Idle | State::Claimed | State::Maintaining, Event::FoundBroken) => {
            Ok(State::Broken)
        }
        (State::Broken, Event::Repaired) => Ok(State::Idle),
        _ => Err(Illegal { state, event }),
    }
}

/// The record of a slot that nobody holds, whatever it says: the claim of whoever died in it falls (R16), and a maintenance
/// that he was running was interrupted (R17). What was not given back is not taken for clean.
pub fn without_the_dead(mut slot: Slot) -> Slot {
    if slot.state == State::Maintaining
        && let Some(started) = slot.attempt_started.take()
    {
        slot.last_maintained = Some(started);
        slot.last_outcome = Some(Outcome::Interrupted);
    }
    if slot.claim.take().is_some() || slot.state != State::Idle {
        slot.returned = false;
    }
    if slot.state != State::Broken {
        slot.state = State::Idle;
    }
    slot
}

/// The record of a slot that was idle, once this claim has it.
///
/// # Errors
///
/// Where the table does not have that.
pub fn claimed(mut slot: Slot, claim: Claim) -> Result<Slot, Illegal> {
    slot.state = next(slot.state, Event::Claimed)?;
    slot.claim = Some(claim);
    slot.returned = false;
    Ok(slot)
}

/// The record of a slot that was idle, once this claim maintains it: the attempt is noted before the command starts, so that
/// one that is cut off is one as well (R17).
///
/// # Errors
///
/// Where the table does not have that.
pub fn maintained_by(mut slot: Slot, claim: Claim) -> Result<Slot, Illegal> {
    slot.state = next(slot.state, Event::MaintenanceStarted)?;
    slot.attempt_started = Some(claim.since.clone());
    slot.claim = Some(claim);
    slot.returned = false;
    Ok(slot)
}

/// The record of a slot whose maintenance command has ended so: the attempt is recorded whatever came of it (R17).
///
/// # Errors
///
/// Where the table does not have that.
pub fn maintained(mut slot: Slot, outcome: Outcome, now: &str) -> Result<Slot, Illegal> {
    slot.state = next(slot.state, Event::MaintenanceEnded)?;
    slot.claim = None;
    slot.attempt_started = None;
    slot.last_maintained = Some(now.to_owned());
    slot.last_outcome = Some(outcome);
    if outcome == Outcome::Succeeded {
        slot.last_succeeded = Some(now.to_owned());
    }
    slot.returned = true;
    Ok(slot)
}

/// The record of a slot that is given back, by its holder or by whoever saw to what a dead one left.
///
/// # Errors
///
/// Where the table does not have that.
pub fn returned(mut slot: Slot) -> Result<Slot, Illegal> {
    if slot.state != State::Idle {
        slot.state = next(slot.state, Event::Released)?;
    }
    slot.claim = None;
    slot.returned = true;
    Ok(slot)
}

/// The record of a slot in which this was found wrong.
///
/// # Errors
///
/// Where the table does not have that.
pub fn broken(mut slot: Slot, why: String) -> Result<Slot, Illegal> {
    if slot.state != State::Broken {
        slot.state = next(slot.state, Event::FoundBroken)?;
    }
    slot.claim = None;
    slot.returned = false;
    slot.broken = Some(why);
    Ok(slot)
}

/// The record of a slot that was broken and is mended.
///
/// # Errors
///
/// Where the table does not have that.
pub fn repaired(mut slot: Slot) -> Result<Slot, Illegal> {
    slot.state = next(slot.state, Event::Repaired)?;
    slot.broken = None;
    slot.returned = true;
    Ok(slot)
}

/// Whether a slot is due for maintenance: it was not maintained within the last `older_than_ms`, however that went (R17). A
/// stamp in the future counts as within any span, as clocks are set; one that names no instant counts as due.
pub fn is_due(slot: &Slot, older_than_ms: Option<u64>, now_ms: u64) -> bool {
    let (Some(span), Some(last)) = (older_than_ms, &slot.last_maintained) else {
        return true;
    };
    stamp::to_ms(last).is_none_or(|last| now_ms.saturating_sub(last) >= span && last <= now_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot() -> Slot {
        Slot::new(1)
    }

    fn claim() -> Claim {
        Claim {
            token: crate::id::Token::parse("t").expect("it is a word"),
            holder: crate::record::Holder::Maintenance,
            pid: 7,
            started: 1,
            boot_id: "b".into(),
            since: "2026-11-18T11:06:40Z".into(),
        }
    }

    #[test]
    fn an_attempt_that_was_cut_off_is_recorded_by_whoever_finds_it() {
        let cut_off = without_the_dead(maintained_by(slot(), claim()).expect("it is idle"));
        assert_eq!(cut_off.state, State::Idle);
        assert_eq!(cut_off.last_outcome, Some(Outcome::Interrupted));
        assert_eq!(cut_off.last_maintained, Some(claim().since));
        assert_eq!((cut_off.attempt_started, cut_off.claim), (None, None));
        assert!(!cut_off.returned, "nobody knows what it left");
    }

    #[test]
    fn a_slot_that_was_given_back_stays_so_when_nobody_claimed_it() {
        let idle = returned(claimed(slot(), claim()).expect("it is idle")).expect("it was claimed");
        assert_eq!(without_the_dead(idle.clone()), idle);
        let dead = without_the_dead(claimed(slot(), claim()).expect("it is idle"));
        assert_eq!((dead.state, dead.returned), (State::Idle, false));
    }

    #[test]
    fn only_a_success_moves_the_stamp_of_success_and_every_end_the_other() {
        for outcome in [
            Outcome::Succeeded,
            Outcome::Failed { exit: None },
            Outcome::TimedOut,
        ] {
            let running = maintained_by(slot(), claim()).expect("it is idle");
            let ended = maintained(running, outcome, "2026-11-19T00:00:00Z").expect("it runs");
            assert_eq!(ended.last_outcome, Some(outcome));
            assert!(ended.last_maintained.is_some());
            assert_eq!(
                ended.last_succeeded.is_some(),
                outcome == Outcome::Succeeded
            );
            assert_eq!(ended.attempt_started, None);
        }
    }

    #[test]
    fn due_is_what_was_not_tried_within_the_span() {
        let at = stamp::to_ms("2026-11-18T11:06:40Z").expect("it is one");
        let mut slot = slot();
        assert!(is_due(&slot, Some(10), at), "it never was");
        slot.last_maintained = Some("2026-11-18T11:06:40Z".into());
        assert!(is_due(&slot, None, at), "without a span it always is");
        assert!(!is_due(&slot, Some(10_000), at + 9_999));
        assert!(is_due(&slot, Some(10_000), at + 10_000));
        assert!(!is_due(&slot, Some(0), at - 1), "a stamp in the future");
        slot.last_maintained = Some("some time ago".into());
        assert!(is_due(&slot, Some(u64::MAX), at));
    }

    #[test]
    fn only_an_idle_slot_can_be_taken() {
        for state in [
            State::Idle,
            State::Claimed,
            State::Maintaining,
            State::Broken,
        ] {
            let takeable = state == State::Idle;
            assert_eq!(next(state, Event::Claimed).is_ok(), takeable);
            assert_eq!(next(state, Event::MaintenanceStarted).is_ok(), takeable);
        }
    }

    #[test]
    fn a_broken_slot_leaves_only_by_repair() {
        assert_eq!(next(State::Broken, Event::Repaired), Ok(State::Idle));
        for event in [
            Event::Claimed,
            Event::Released,
            Event::MaintenanceStarted,
            Event::MaintenanceEnded,
            Event::FoundBroken,
        ] {
            assert!(next(State::Broken, event).is_err());
        }
    }
}
