//! What the jobs that a job comes after say about its start. Only the rule: how those jobs stand is looked up by whoever
//! asks.

use crate::job::State;
use crate::record::{After, AfterWhen};

/// How a job that another comes after stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Seen {
    /// It is in this state.
    State(State),
    /// There is no such job any more.
    Gone,
    /// Its record cannot be read: nothing is concluded from that (R21).
    Damaged,
}

/// Whether a job may start, as far as those go that it comes after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dependency {
    /// All of them have ended as they must.
    Met,
    /// Some have not ended.
    Waits,
    /// One of them has ended otherwise: the job can never start. The reason, for people.
    Never(String),
}

/// What all of `after` come to. One that can never be met outweighs any that is still waited for.
pub fn dependency(after: &[After], seen: impl FnMut(&After) -> Seen) -> Dependency {
    match waited_for(after, seen) {
        Ok(open) if open.is_empty() => Dependency::Met,
        Ok(_) => Dependency::Waits,
        Err(why) => Dependency::Never(why),
    }
}

/// Those of `after` that are still waited for. What is met stays so, as an end is final: nobody need look at it again.
///
/// # Errors
///
/// When one of them has ended otherwise, so that the job can never start: the reason, for people.
pub fn waited_for(
    after: &[After],
    mut seen: impl FnMut(&After) -> Seen,
) -> Result<Vec<After>, String> {
    let mut open = Vec::new();
    for one in after {
        match standing(one, seen(one)) {
            Dependency::Met => {}
            Dependency::Waits => open.push(one.clone()),
            Dependency::Never(why) => return Err(why),
        }
    }
    Ok(open)
}

fn standing(after: &After, seen: Seen) -> Dependency {
    let job = &after.job;
    match seen {
        Seen::Damaged => Dependency::Waits,
        Seen::State(state) if !state.is_terminal() => Dependency::Waits,
        Seen::State(state) if is_met(after.when, state) => Dependency::Met,
        Seen::State(state) => Dependency::Never(format!("{job} is {state}")),
        // Only what has ended is ever forgotten (R9).
        Seen::Gone if after.when == AfterWhen::End => Dependency::Met,
        Seen::Gone => {
            Dependency::Never(format!("{job} was forgotten, so nobody knows how it ended"))
        }
    }
}

/// Whether a job that has ended so is what was waited for. A cancelled one neither succeeded nor failed.
fn is_met(when: AfterWhen, state: State) -> bool {
    match when {
        AfterWhen::Success => state == State::Done,
        AfterWhen::Failure => state == State::Failed,
        AfterWhen::End => state.is_terminal(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::JobId;

    fn after(when: AfterWhen) -> Vec<After> {
        vec![After {
            job: JobId::new(7, "a", 1),
            when,
        }]
    }

    #[test]
    fn what_has_not_ended_is_waited_for_and_what_ended_otherwise_never_comes() {
        for when in [AfterWhen::Success, AfterWhen::Failure, AfterWhen::End] {
            for state in State::ALL {
                let comes_to = dependency(&after(when), |_| Seen::State(state));
                match (state.is_terminal(), is_met(when, state)) {
                    (false, _) => assert_eq!(comes_to, Dependency::Waits),
                    (true, true) => assert_eq!(comes_to, Dependency::Met),
                    (true, false) => assert!(matches!(comes_to, Dependency::Never(_))),
                }
            }
        }
    }

    #[test]
    fn one_that_is_forgotten_has_ended_and_nobody_knows_how() {
        let gone = |when| dependency(&after(when), |_| Seen::Gone);
        assert_eq!(gone(AfterWhen::End), Dependency::Met);
        assert!(matches!(gone(AfterWhen::Success), Dependency::Never(_)));
        let damaged = dependency(&after(AfterWhen::Success), |_| Seen::Damaged);
        assert_eq!(damaged, Dependency::Waits);
    }

    #[test]
    fn one_that_never_comes_outweighs_one_that_is_waited_for() {
        let mut both = after(AfterWhen::End);
        both.extend(after(AfterWhen::Success));
        let comes_to = dependency(&both, |one| match one.when {
            AfterWhen::End => Seen::State(State::Running),
            _ => Seen::State(State::Failed),
        });
        assert!(matches!(comes_to, Dependency::Never(why) if why == "7-a is failed"));
        assert_eq!(dependency(&[], |_| Seen::Gone), Dependency::Met);
    }
}
