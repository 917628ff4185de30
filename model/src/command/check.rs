//! Running configurations to their end.

use std::process::ExitCode;
use std::time::Instant;

use outlive_model::coverage::Coverage;
use outlive_model::mutant::table;
use outlive_model::world::World;
use outlive_model::{config, golden, trace};
use stateright::{Checker, Expectation, HasDiscoveries, Model};

use super::{Asked, unknown};
use crate::misused;

pub(crate) fn check(asked: &Asked) -> ExitCode {
    let chosen: Vec<World> = match &asked.config {
        None => config::every()
            .filter(|world| asked.all || !world.large)
            .collect(),
        Some(name) => match config::named(name) {
            Some(world) => vec![world],
            None => return misused(&unknown(name)),
        },
    };
    if cfg!(panic = "abort") {
        eprintln!(
            "outlive-model: built to abort on a panic: one in checked code will have no trace"
        );
    }
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
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
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
