//! A path through the space as people read it: one line for each step, one column for each process.

use std::fmt::Write;

use stateright::Path;

use crate::world::{Action, State, World};

/// What an action does to a state, in words: the effect and what it comes to.
pub fn describe(state: &State, action: &Action) -> String {
    let wanted = action
        .lane()
        .and_then(|lane| Some((lane, state.processes.get(usize::from(lane))?.wants()?)));
    match (action, wanted) {
        (Action::ServerChanges, _) => "(the server has another version)".into(),
        (Action::SourcesChange, _) => "(what commands are made of changes)".into(),
        (Action::Cut(_), Some((_, effect))) => format!("{effect} -> cut"),
        (Action::LosePower(outcome), _) => format!("(power is lost, outcome {outcome})"),
        (Action::TreeEnds(_), _) => "(its tree ends)".into(),
        (Action::CommandFails(_), _) => "(its command fails)".into(),
        (Action::Step(_), Some((lane, effect))) => {
            let reply = state.machine.clone().apply(lane, effect);
            format!("{effect} -> {reply}")
        }
        (Action::Fail(_), Some((_, effect))) => format!("{effect} -> FAILS"),
        (Action::FailHalfway(_), Some((_, effect))) => format!("{effect} -> FAILS half way"),
        (Action::Deny(_), Some((_, effect))) => format!("{effect} -> denied"),
        (Action::DieHalfway(_), Some((_, effect))) => format!("DIES IN: {effect}"),
        (Action::Die(_) | Action::DieHalfway(_), _) => "DIES".into(),
        (_, None) => "nothing".into(),
    }
}

/// The whole path, one lane per process, and what was broken at its end.
pub fn lanes(world: &World, path: Path<State, Action>) -> String {
    let steps = path.into_vec();
    let cells: Vec<(usize, String)> = steps
        .iter()
        .filter_map(|(state, action)| Some((state, action.as_ref()?)))
        .map(|(state, action)| {
            let lane = action.lane().map_or(world.parts.len(), usize::from);
            let lane = lane.min(world.parts.len());
            (lane, describe(state, action))
        })
        .collect();
    let heads = (0u8..)
        .zip(&world.parts)
        .map(|(lane, part)| format!("{lane} {}", part.role.word()))
        .chain(["the machine".to_owned()]);
    let columns: Vec<(usize, String, usize)> = heads
        .enumerate()
        .filter_map(|(lane, head)| {
            let own = cells.iter().filter(|cell| cell.0 == lane);
            let widest = own.map(|cell| cell.1.chars().count()).max()?;
            let width = widest.max(head.chars().count());
            Some((lane, head, width))
        })
        .collect();
    let mut text = String::from("    ");
    for (_, head, width) in &columns {
        // Writing to a string cannot fail, here and below.
        let _ = write!(text, "  {head:<width$}");
    }
    for (number, (who, what)) in (1..).zip(&cells) {
        let mut line = format!("{number:>4}");
        for (lane, _, width) in &columns {
            let cell = if lane == who { what.as_str() } else { "" };
            let _ = write!(line, "  {cell:<width$}");
        }
        let _ = write!(text, "\n{}", line.trim_end());
    }
    text.push('\n');
    if let Some((last, _)) = steps.last() {
        for broken in &last.broken {
            let _ = writeln!(text, "  => {:?}: {}", broken.rule, broken.how);
        }
    }
    text
}
