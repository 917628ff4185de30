//! The states of a job and the one table of its transitions. Who writes a state, and under which lock, is the
//! business of the protocols; this file only says which step is legal.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The state of a job as it is recorded or, for [`State::Interrupted`], as readers conclude it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Created, and waiting for a worker.
    Queued,
    /// A worker holds the job.
    Running,
    /// Stopped by a request, with something worth keeping.
    Paused,
    /// Stopped because its worker was lost, with something worth keeping.
    Interrupted,
    /// Ended well.
    Done,
    /// Ended badly: a failing command, a timeout, or a command that could not be started.
    Failed,
    /// Ended by a request, after its tree was proven empty.
    Cancelled,
}

impl State {
    /// Every state, in the order of the design's table.
    pub const ALL: [State; 7] = [
        State::Queued,
        State::Running,
        State::Paused,
        State::Interrupted,
        State::Done,
        State::Failed,
        State::Cancelled,
    ];

    /// The job has ended; its state never changes again (R7).
    pub fn is_terminal(self) -> bool {
        matches!(self, State::Done | State::Failed | State::Cancelled)
    }

    /// The job was stopped and can go on.
    pub fn is_resumable(self) -> bool {
        matches!(self, State::Paused | State::Interrupted)
    }

    /// The job runs or is about to.
    pub fn is_live(self) -> bool {
        matches!(self, State::Queued | State::Running)
    }

    /// The word that records and listings use.
    pub fn word(self) -> &'static str {
        match self {
            State::Queued => "queued",
            State::Running => "running",
            State::Paused => "paused",
            State::Interrupted => "interrupted",
            State::Done => "done",
            State::Failed => "failed",
            State::Cancelled => "cancelled",
        }
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.word())
    }
}

/// What can happen to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A worker took the lock and is about to start the work.
    Claimed,
    /// The command succeeded, or the transfer was registered.
    Succeeded,
    /// The command or transfer failed for good, timed out, or could not be started.
    Failed,
    /// An attempt failed and another one is due.
    Retried,
    /// A pause was honoured.
    Paused,
    /// A resume was honoured. `held` says that the worker is still there with a frozen tree.
    Resumed {
        /// Whether a worker holds the job.
        held: bool,
    },
    /// A cancel was honoured.
    Cancelled,
    /// Nobody holds the lock of a job whose record says that somebody must.
    Abandoned,
    /// A job that this one comes after can no longer end as this one needs it to.
    Unmet,
}

impl Event {
    /// Every event, for tests that walk the whole table.
    pub const ALL: [Event; 10] = [
        Event::Claimed,
        Event::Succeeded,
        Event::Failed,
        Event::Retried,
        Event::Paused,
        Event::Resumed { held: true },
        Event::Resumed { held: false },
        Event::Cancelled,
        Event::Abandoned,
        Event::Unmet,
    ];
}

/// A step that the table does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a job that is {state} cannot take the step {event:?}")]
pub struct Illegal {
    /// The state that the job was in.
    pub state: State,
    /// The step that was tried.
    pub event: Event,
}

/// The transition table of a job. Terminal states refuse everything (R7).
///
/// A queued job can be abandoned too: one that was to start at once is nobody's when its starter died
/// before its worker wrote a word.
pub fn next(state: State, event: Event) -> Result<State, Illegal> {
    match (state, event) {
        (State::Queued | State::Paused | State::Interrupted, Event::Claimed) => Ok(State::Running),
        (State::Running, Event::Succeeded) => Ok(State::Done),
        (State::Running, Event::Failed) | (State::Queued, Event::Unmet) => Ok(State::Failed),
        (State::Running, Event::Retried) => Ok(State::Running),
        (State::Queued | State::Running | State::Interrupted, Event::Paused) => Ok(State::Paused),
        (State::Running | State::Paused, Event::Resumed { held: true }) => Ok(State::Running),
        (State::Paused | State::Interrupted, Event::Resumed { held: false }) => Ok(State::Queued),
        (State::Queued | State::Running | State::Paused | State::Interrupted, Event::Cancelled) => {
            Ok(State::Cancelled)
        }
        // A frozen job is paused and held; when its worker is lost it stays paused, so nothing to abandon.
        (State::Queued | State::Running, Event::Abandoned) => Ok(State::Interrupted),
        _ => Err(Illegal { state, event }),
    }
}

/// Whether the history may go from `from` straight to `to` (R7).
pub fn follows(from: State, to: State) -> bool {
    Event::ALL.iter().any(|&event| next(from, event) == Ok(to))
}

/// The shortest legal way from `from` to `to`, without `from` itself: what a history lacks when a crash fell
/// between two records (R7). `None` where there is none; empty where they are the same.
pub fn path(from: State, to: State) -> Option<Vec<State>> {
    let mut ways = vec![vec![from]];
    let mut seen = vec![from];
    while !ways.is_empty() {
        if let Some(way) = ways.iter().find(|way| way.last() == Some(&to)) {
            return Some(way[1..].to_vec());
        }
        let mut longer = Vec::new();
        for way in ways {
            for next in State::ALL {
                if way.last().is_some_and(|&last| follows(last, next)) && !seen.contains(&next) {
                    seen.push(next);
                    longer.push([way.as_slice(), &[next]].concat());
                }
            }
        }
        ways = longer;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_runs_pauses_resumes_and_ends() {
        let path = [
            (Event::Claimed, State::Running),
            (Event::Paused, State::Paused),
            (Event::Resumed { held: true }, State::Running),
            (Event::Abandoned, State::Interrupted),
            (Event::Resumed { held: false }, State::Queued),
            (Event::Claimed, State::Running),
            (Event::Cancelled, State::Cancelled),
        ];
        let mut state = State::Queued;
        for (event, expected) in path {
            state = next(state, event).unwrap();
            assert_eq!(state, expected);
        }
    }

    #[test]
    fn terminal_is_final() {
        for state in State::ALL.into_iter().filter(|state| state.is_terminal()) {
            for event in Event::ALL {
                assert_eq!(next(state, event), Err(Illegal { state, event }));
            }
        }
    }

    #[test]
    fn every_state_is_exactly_one_of_terminal_resumable_live() {
        for state in State::ALL {
            let kinds = [state.is_terminal(), state.is_resumable(), state.is_live()];
            assert_eq!(kinds.into_iter().filter(|&kind| kind).count(), 1, "{state}");
        }
    }

    #[test]
    fn every_unfinished_state_can_be_cancelled_and_no_step_leads_back_to_creation_but_resume() {
        for state in State::ALL {
            assert_eq!(next(state, Event::Cancelled).is_ok(), !state.is_terminal());
            for event in Event::ALL {
                if next(state, event) == Ok(State::Queued) {
                    assert_eq!(event, Event::Resumed { held: false });
                }
            }
        }
    }

    #[test]
    fn a_path_is_legal_and_there_is_none_out_of_an_end() {
        for from in State::ALL {
            for to in State::ALL {
                match path(from, to) {
                    None => assert!(from.is_terminal() && from != to),
                    Some(steps) => {
                        let mut at = from;
                        for step in steps {
                            assert!(follows(at, step), "{at} {step}");
                            at = step;
                        }
                        assert_eq!(at, to);
                    }
                }
            }
        }
        assert_eq!(
            path(State::Running, State::Queued),
            Some(vec![State::Paused, State::Queued])
        );
    }

    #[test]
    fn words_are_what_serde_writes() {
        for state in State::ALL {
            let json = serde_json::to_string(&state).unwrap();
            assert_eq!(json, format!("\"{state}\""));
        }
    }
}
