//! Running configurations to their end.

use std::process::ExitCode;
use std::time::Instant;

use outlive_model::coverage::Coverage;
use outlive_model::mutant::table;
use outlive_model::world::World;
use outlive_model::{config, golden, guard, trace};
use stateright::{Checker, Expectation, HasDiscoveries, Model};

use super::{Asked, UNWINDING, must_unwind, unknown};
use crate::misused;

pub(crate) fn check(asked: &Asked) -> ExitCode {
    let chosen: Vec<World> = match &asked.config {
        None => config::every()
            .filter(|world| asked.all || !world.large)
            .collect(),
        Some(name) => match config::named(name) {
            Some(world) if !can_run(&world, guard::UNWINDS) => {
                return must_unwind(name, &format!("check --config {name}"));
            }
            Some(world) => vec![world],
            None => return misused(&unknown(name)),
        },
    };
    let (chosen, left_out): (Vec<World>, Vec<World>) = chosen
        .into_iter()
        .partition(|world| can_run(world, guard::UNWINDS));
    say!(
        "{:<24} {:>12} {:>12} {:>6} {:>10}  verdict",
        "configuration",
        "states",
        "distinct",
        "depth",
        "distinct/s"
    );
    let (began, coverage) = (Instant::now(), Coverage::default());
    let mut good = true;
    let mut distinct = 0;
    for mut world in chosen {
        if world.breaks.is_some() {
            good &= catch(world, asked.config.is_some());
        } else {
            world.coverage = coverage.clone();
            good &= run(world, asked, &mut distinct);
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    say!(
        "\n{distinct} distinct states in {seconds:.0} s, {:.0} a second",
        distinct as f64 / seconds
    );
    if asked.config.is_none() {
        reached(&coverage);
    }
    if !left_out.is_empty() {
        say!("\n{}", why_left_out(&left_out));
    }
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Whether a build that unwinds, or one that does not, can run a world to its end.
fn can_run(world: &World, unwinds: bool) -> bool {
    unwinds || !world.panics
}

/// Which worlds this build cannot run, and which build can.
fn why_left_out(worlds: &[World]) -> String {
    let names: Vec<_> = worlds.iter().map(|world| world.name).collect();
    format!(
        "left out, as this build aborts on a panic: {}; {UNWINDING} runs them, too",
        names.join(", ")
    )
}

/// What was reached: the replies of every effect, and the places in the protocols that were never asked at.
fn reached(coverage: &Coverage) {
    say!("\neffect           replies that were given");
    for (effect, replies) in coverage.pairs() {
        say!("{effect:<16} {}", replies.join(", "));
    }
    say!("{} pairs of place and reply", coverage.count());
    for site in coverage.unreached() {
        say!("never reached: {site}");
    }
}

/// Run a configuration to its end. Whether every rule holds, everything was seen, and it is as big as written
/// down.
fn run(world: World, asked: &Asked, total: &mut usize) -> bool {
    let name = world.name;
    let began = Instant::now();
    let checker = world
        .checker()
        .threads(asked.threads)
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let seconds = began.elapsed().as_secs_f64();
    let distinct = checker.unique_state_count();
    *total += distinct;
    let mut wrong = wrong_with(&checker);
    if wrong.is_empty() && asked.bless {
        wrong.extend(
            golden::STATES
                .write(name, &distinct.to_string())
                .err()
                .map(|why| why.to_string()),
        );
    } else if wrong.is_empty() && golden::states(name) != Some(distinct) {
        let expected = golden::states(name).map_or("nothing".into(), |known| known.to_string());
        wrong.push(format!(
            "{distinct} distinct states, where {expected} is written down"
        ));
    }
    row(
        &checker,
        name,
        seconds,
        if wrong.is_empty() { "holds" } else { "BROKEN" },
    );
    for what in &wrong {
        say!("\n{what}");
    }
    wrong.is_empty()
}

/// The rules that were broken, each with a path, and what was never seen.
fn wrong_with(checker: &impl Checker<World>) -> Vec<String> {
    let world = checker.model();
    let mut found = checker.discoveries();
    let mut wrong = Vec::new();
    for property in world.properties() {
        match (property.expectation, found.remove(property.name)) {
            (Expectation::Always, Some(path)) => {
                wrong.push(format!("{}\n{}", property.name, trace::lanes(world, path)));
            }
            (Expectation::Sometimes, None) => {
                wrong.push(format!("never seen: {}", property.name));
            }
            _ => {}
        }
    }
    // A search that was stopped by a broken rule has not seen everything, and that says nothing.
    if wrong.iter().any(|what| !what.starts_with("never")) {
        wrong.retain(|what| !what.starts_with("never"));
    }
    wrong
}

/// Run a world in which something is wrong until that is found.
fn catch(world: World, show: bool) -> bool {
    let name = world.name;
    let caught = table::catch_in(world);
    match &caught {
        Some(caught) => say!("{name:<24} caught: {caught}"),
        None => say!("{name:<24} SURVIVES"),
    }
    if let (true, Some(caught)) = (show, &caught) {
        say!("\n{}", caught.lanes);
    }
    caught.is_some()
}

fn row(checker: &impl Checker<World>, name: &str, seconds: f64, verdict: &str) {
    let distinct = checker.unique_state_count();
    let rate = format!("{:.0}", distinct as f64 / seconds);
    say!(
        "{name:<24} {:>12} {distinct:>12} {:>6} {rate:>10}  {verdict}",
        checker.state_count(),
        checker.max_depth(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left_out(unwinds: bool) -> Vec<World> {
        config::every()
            .filter(|world| !can_run(world, unwinds))
            .collect()
    }

    #[test]
    fn a_build_that_unwinds_runs_everything() {
        assert!(left_out(true).is_empty());
    }

    #[test]
    fn a_build_that_aborts_says_what_it_leaves_out_and_that_is_no_difference() {
        let left_out = left_out(false);
        assert_eq!(
            why_left_out(&left_out),
            "left out, as this build aborts on a panic: skip-running, status-before-empty; --profile model runs them, too"
        );
        // Of what is left out no number is written down that a check could miss.
        assert!(
            left_out
                .iter()
                .all(|world| golden::states(world.name).is_none())
        );
    }
}
