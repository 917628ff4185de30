//! The exit code that stands for how a job ended, as a shell or a script reads it (docs/cli.md).

use state_machine::job::State;
use state_machine::record::{Exit, Failure, Status};

/// Cancelled before it had a status of its own: what a shell gives for SIGTERM.
const CANCELLED: u8 = 143;
/// Interrupted: it may be resumed (EX_TEMPFAIL of sysexits.h).
const INTERRUPTED: u8 = 75;
/// Ended by its own timeout, as timeout(1) has it.
const TIMED_OUT: u8 = 124;
/// Not executable, and not found, as the shell has them.
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// The code for a job that has ended or that nobody works on any more.
pub fn exit_code(state: State, status: &Status) -> u8 {
    let own = status.exit.map(Exit::shell_code);
    match (state, status.failure) {
        // An exit code that the submitter called a success is one.
        (State::Done, _) => 0,
        (State::Failed, Some(Failure::Timeout)) => TIMED_OUT,
        (State::Failed, Some(Failure::Missing)) => NOT_FOUND,
        // It never ran, so there is nothing else to tell.
        (State::Failed, Some(Failure::Dependency)) => 1,
        // What the fetcher exits with is its worker's business.
        (State::Failed, Some(Failure::Transfer)) => 1,
        (State::Failed, Some(_)) => NOT_EXECUTABLE,
        // A code of 0 that was not to count as success must not look like one.
        (State::Failed, None) => own.filter(|code| *code != 0).unwrap_or(1),
        (State::Cancelled, _) => own.filter(|code| *code != 0).unwrap_or(CANCELLED),
        (State::Queued | State::Running | State::Paused | State::Interrupted, _) => INTERRUPTED,
    }
}
