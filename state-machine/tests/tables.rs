//! Random walks over the two transition tables, and a dumb twin of the search for the shortest way.

use proptest::prelude::*;
use state_machine::job::{Event, State, follows, next, path};
use state_machine::record::{History, Line};
use state_machine::slot;

fn events() -> impl Strategy<Value = Vec<Event>> {
    proptest::collection::vec(proptest::sample::select(Event::ALL.to_vec()), 0..40)
}

/// How many steps the shortest way from `from` to `to` has, by trying every way of every length.
fn steps_of_twin(from: State, to: State) -> Option<usize> {
    let mut reached = vec![from];
    for steps in 0..=State::ALL.len() {
        if reached.contains(&to) {
            return Some(steps);
        }
        reached = State::ALL
            .into_iter()
            .filter(|&state| reached.iter().any(|&before| follows(before, state)))
            .collect();
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_a_walk_records_is_always_a_path_and_an_end_is_final(events in events()) {
        let mut state = State::Queued;
        let mut bytes = Line::state(0, state).encode();
        for (at_ms, event) in (1..).zip(events) {
            match next(state, event) {
                Ok(entered) => {
                    prop_assert!(!state.is_terminal(), "{state} was left by {event:?}");
                    state = entered;
                    bytes.extend(Line::state(at_ms, state).encode());
                }
                Err(illegal) => prop_assert_eq!((illegal.state, illegal.event), (state, event)),
            }
        }
        let history = History::decode(&bytes);
        let states: Vec<State> = history.states().collect();
        for pair in states.windows(2) {
            prop_assert!(follows(pair[0], pair[1]), "{} -> {}", pair[0], pair[1]);
        }
        for &passed in &states[..states.len() - 1] {
            prop_assert!(!passed.is_terminal(), "{passed} was not the last");
        }
        prop_assert_eq!(history.last_state(), Some(state));
        for &passed in &states {
            prop_assert!(path(passed, state).is_some(), "no way from {passed} to {state}");
        }
    }

    #[test]
    fn a_slot_is_held_by_one_until_it_is_given_back(steps in proptest::collection::vec(0..6usize, 0..40)) {
        use slot::Event::*;
        let all = [Claimed, Released, MaintenanceStarted, MaintenanceEnded, FoundBroken, Repaired];
        let mut state = slot::State::Idle;
        let mut holders = 0;
        for step in steps {
            let event = all[step];
            let Ok(entered) = slot::next(state, event) else { continue };
            holders += i32::from(matches!(event, Claimed | MaintenanceStarted));
            holders -= i32::from(matches!(event, Released | MaintenanceEnded));
            if event == FoundBroken {
                holders = 0;
            }
            let held = matches!(entered, slot::State::Claimed | slot::State::Maintaining);
            prop_assert_eq!(holders, i32::from(held), "{:?} after {:?}", entered, event);
            state = entered;
        }
    }
}

#[test]
fn the_shortest_way_is_the_shortest_and_every_step_of_it_is_legal() {
    for from in State::ALL {
        for to in State::ALL {
            let way = path(from, to);
            assert_eq!(
                way.as_ref().map(Vec::len),
                steps_of_twin(from, to),
                "{from} {to}"
            );
            let whole = [vec![from], way.clone().unwrap_or_default()].concat();
            assert!(whole.windows(2).all(|pair| follows(pair[0], pair[1])));
            assert!(way.is_none() || whole.last() == Some(&to));
        }
    }
}
