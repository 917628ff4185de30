//! `outlive-model check` runs configurations to their end and fails on a broken rule; `outlive-model explore`
//! shows one in a browser.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use outlive_model::mutant::table;
use outlive_model::world::World;
use outlive_model::{config, golden, trace};
use stateright::{Checker, Expectation, HasDiscoveries, Model};

const USAGE: &str = "\
usage: outlive-model check [--config NAME] [--all] [--threads N] [--bless]
       outlive-model mutants [--show NAME] [--threads N]
       outlive-model explore --config NAME [--address HOST:PORT]

check    without a name: every configuration but the large ones, and every mutant, which must be caught;
         --all takes the large ones too; --bless writes the numbers of states down in states.golden
mutants  get one effect of the protocols wrong at a time and see that a rule breaks; --show prints the way there
explore  serve one configuration to a browser, at localhost:3000 unless said otherwise";

/// What was asked for on the command line.
struct Asked {
    config: Option<String>,
    show: Option<String>,
    all: bool,
    threads: usize,
    bless: bool,
    address: String,
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let verb = words.next().unwrap_or_default();
    let asked = match parse(words) {
        Ok(asked) => asked,
        Err(why) => return misused(&why),
    };
    match verb.as_str() {
        "check" => check(&asked),
        "mutants" => mutants(&asked),
        "explore" => explore(&asked),
        "help" | "--help" => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        other => misused(&format!("no such verb: '{other}'")),
    }
}

fn misused(why: &str) -> ExitCode {
    eprintln!("outlive-model: {why}\n{USAGE}");
    ExitCode::from(2)
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut asked = Asked {
        config: None,
        show: None,
        all: false,
        threads: std::thread::available_parallelism().map_or(1, |threads| threads.get()),
        bless: false,
        address: "localhost:3000".into(),
    };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--config" => asked.config = Some(value()?),
            "--show" => asked.show = Some(value()?),
            "--threads" => {
                let threads = value()?;
                asked.threads = threads
                    .parse()
                    .ok()
                    .filter(|&threads| threads > 0)
                    .ok_or(format!("not a number of threads: {threads}"))?;
            }
            "--address" => asked.address = value()?,
            "--all" => asked.all = true,
            "--bless" => asked.bless = true,
            other => return Err(format!("no such option: {other}")),
        }
    }
    Ok(asked)
}

fn check(asked: &Asked) -> ExitCode {
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
    println!(
        "{:<24} {:>12} {:>12} {:>6} {:>10}  verdict",
        "configuration", "states", "distinct", "depth", "distinct/s"
    );
    let mut good = true;
    for world in chosen {
        good &= if world.breaks.is_some() {
            catch(world, asked.config.is_some())
        } else {
            run(world, asked)
        };
    }
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Run a configuration to its end. Whether every rule holds, everything was seen, and it is as big as written
/// down.
fn run(world: World, asked: &Asked) -> bool {
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
    let mut wrong = wrong_with(&checker);
    if wrong.is_empty() && asked.bless {
        wrong.extend(
            golden::write(name, distinct)
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
        Some(seconds),
        if wrong.is_empty() { "holds" } else { "BROKEN" },
    );
    for what in &wrong {
        println!("\n{what}");
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

/// Run a mutant until it is caught, breadth first with one thread, so that the path is a shortest one.
fn catch(world: World, show: bool) -> bool {
    let (name, rule) = (world.name, world.breaks);
    let checker = world
        .checker()
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let caught = checker.discoveries().into_values().find(|path| {
        let broken = &path.last_state().broken;
        broken.iter().any(|broken| Some(broken.rule) == rule)
    });
    let steps = caught.clone().map(|path| path.into_actions().len());
    let verdict = match (steps, rule) {
        (Some(steps), Some(rule)) => format!("caught in {steps} steps: {rule:?}"),
        _ => "SURVIVES".into(),
    };
    row(&checker, name, None, &verdict);
    if let (true, Some(path)) = (show, caught) {
        println!("\n{}", trace::lanes(checker.model(), path));
    }
    steps.is_some()
}

fn row(checker: &impl Checker<World>, name: &str, seconds: Option<f64>, verdict: &str) {
    let distinct = checker.unique_state_count();
    let rate = seconds.map_or(String::new(), |seconds| {
        format!("{:.0}", distinct as f64 / seconds)
    });
    println!(
        "{name:<24} {:>12} {distinct:>12} {:>6} {rate:>10}  {verdict}",
        checker.state_count(),
        checker.max_depth(),
    );
}

fn explore(asked: &Asked) -> ExitCode {
    let Some(name) = &asked.config else {
        return misused("explore needs --config NAME");
    };
    let Some(world) = config::named(name) else {
        return misused(&unknown(name));
    };
    println!("{name} is at http://{}", asked.address);
    world.checker().serve(asked.address.as_str());
    ExitCode::SUCCESS
}

fn unknown(name: &str) -> String {
    let names: Vec<_> = config::every().map(|world| world.name).collect();
    format!(
        "no such configuration: {name}; there are {}",
        names.join(", ")
    )
}

/// Try every mutant, as many at a time as there are threads.
fn mutants(asked: &Asked) -> ExitCode {
    let edits: Vec<_> = table::edits()
        .into_iter()
        .filter(|edit| {
            asked
                .show
                .as_ref()
                .is_none_or(|name| *name == edit.to_string())
        })
        .collect();
    let stages = table::stages();
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..asked.threads {
            scope.spawn(|| {
                while let Some(&edit) = edits.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let caught = table::catch(edit, &stages);
                    found.lock().expect("no thread panics").push((edit, caught));
                }
            });
        }
    });
    let mut found = found.into_inner().expect("no thread panics");
    found.sort_by_key(|(edit, _)| edits.iter().position(|known| known == edit));
    let mut good = true;
    for (edit, caught) in &found {
        let name = edit.to_string();
        match (caught, table::why_harmless(&name)) {
            (Some(caught), None) => println!("{name:<48} {caught}"),
            (None, Some(why)) => println!("{name:<48} harmless: {why}"),
            (Some(_), Some(_)) => {
                good = false;
                println!("{name:<48} CAUGHT, and said to be harmless");
            }
            (None, None) => {
                good = false;
                println!("{name:<48} SURVIVES");
            }
        }
        if let (Some(_), Some(caught)) = (&asked.show, caught) {
            println!("{}", caught.lanes);
        }
    }
    let caught = found.iter().filter(|(_, caught)| caught.is_some()).count();
    println!("{caught} of {} mutants are caught", found.len());
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
