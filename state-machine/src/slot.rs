//! The states of a slot and the one table of its transitions. Which claim is alive, and which slot is due for
//! maintenance, is decided elsewhere; this file only says which step is legal.

use serde::{Deserialize, Serialize};
use thiserror::Error;

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

#[cfg(test)]
mod tests {
    use super::*;

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
