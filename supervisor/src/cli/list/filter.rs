//! Which jobs a listing is to have, by how they are and what they are called.

use std::collections::BTreeSet;

use clap::builder::PossibleValue;
use clap::{Arg, ArgAction, ArgMatches, builder::PossibleValuesParser};
use state_machine::job::State;
use state_machine::pattern::Pattern;
use state_machine::protocol::look::View;

use crate::cli::arguments::option;

/// Jobs that have not ended, as one word.
const ACTIVE: &str = "active";
/// Jobs that have.
const ENDED: &str = "ended";

/// Which jobs are meant. Whatever was not asked for counts as fulfilled.
#[derive(Debug, Default)]
pub(super) struct Filter {
    states: Option<BTreeSet<State>>,
    name: Option<Pattern>,
    task: Option<String>,
    pool: Option<String>,
}

/// The options.
pub(super) fn arguments() -> [Arg; 4] {
    [
        Arg::new("state")
            .long("state")
            .value_name("STATE")
            .num_args(1..)
            .value_delimiter(',')
            .action(ArgAction::Append)
            .value_parser(PossibleValuesParser::new(words()))
            .help("Only those in this state, or in one of these; 'active': not ended yet"),
        option(
            "name",
            "NAME",
            "Only those of this name, in which * stands for anything and ? for a character",
        ),
        option("task", "TASK", "Only those that run this task"),
        option("pool", "POOL", "Only those of this pool"),
    ]
}

fn words() -> impl Iterator<Item = PossibleValue> {
    let states = State::ALL.iter().map(|state| state.word());
    states.chain([ACTIVE, ENDED]).map(PossibleValue::new)
}

impl Filter {
    /// What the options say.
    pub(super) fn of(matches: &ArgMatches) -> Filter {
        let word = |name: &str| matches.get_one::<String>(name).cloned();
        let states = matches.get_many::<String>("state");
        Filter {
            states: states.map(|words| words.flat_map(|word| states_of(word)).collect()),
            name: word("name").map(|name| Pattern::new(&name)),
            task: word("task"),
            pool: word("pool"),
        }
    }

    /// Whether a job is meant.
    pub(super) fn holds(&self, view: &View) -> bool {
        let descriptor = &view.descriptor;
        let is = |wanted: &Option<String>, has: Option<&str>| {
            wanted.is_none() || wanted.as_deref() == has
        };
        let has_name = |pattern: &Pattern| {
            let name = descriptor.name.as_ref();
            name.is_some_and(|name| pattern.matches(name.as_str()))
        };
        self.states
            .as_ref()
            .is_none_or(|states| states.contains(&view.state))
            && self.name.as_ref().is_none_or(has_name)
            && is(&self.task, descriptor.task.as_deref())
            && is(&self.pool, descriptor.pool.as_deref())
    }
}

/// The states that a word stands for.
fn states_of(word: &str) -> impl Iterator<Item = State> {
    State::ALL.into_iter().filter(move |state| match word {
        ACTIVE => !state.is_terminal(),
        ENDED => state.is_terminal(),
        word => state.word() == word,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_is_in_one_of_the_two_groups() {
        let all = |word| states_of(word).collect::<Vec<_>>();
        assert_eq!(all("failed"), [State::Failed]);
        assert_eq!(all("active").len(), 4);
        assert_eq!(all("ended").len(), 3);
        assert_eq!(all("nothing"), []);
    }
}
