//! Any one process may be killed at any moment, and every other one still reads the truth.

mod clients;
mod leftovers;
mod records;
mod stops;
mod worker;

use outlive_tests::{Bench, Process};

/// A command with children, one of them in a session of its own.
const TREE: &str = "echo $$ >> starts; setsid sleep 600 & sleep 600 & wait";

/// The processes of the jobs, the workers and verbs left out.
fn commands(bench: &Bench) -> Vec<Process> {
    let mut commands = bench.census();
    commands
        .retain(|process| process.title.contains("sleep") && !process.title.contains("outlive"));
    commands
}

fn starts(bench: &Bench) -> usize {
    std::fs::read_to_string(bench.file("starts"))
        .unwrap_or_default()
        .lines()
        .count()
}
