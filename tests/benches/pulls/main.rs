//! How long pulls take, beside other tools in the same run: `cargo bench -p outlive-tests --bench pulls`.
//!
//! Only ratios mean anything: each round takes one sample of every tool, one after the other, so that noise hits all alike. What is
//! measured is the whole command, from nothing to its exit. A tool or a server that is not installed is left out, and said to be.
//! Nothing is asserted here but that every tool has fetched all of it.
//!
//! `OUTLIVE_TEST_ROUNDS` says how many samples, `OUTLIVE_TEST_MEGABYTES` how long the large file is, `TMPDIR` on which disk it is;
//! what is in memory is below `/dev/shm`. On a machine that does other things too, `chrt -f 10` before the command gives it all
//! processors, to the servers as to every tool.

mod large;
mod many;
mod memory;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use outlive_tests::rounds;

/// Samples of each tool.
const ROUNDS: usize = 5;

fn main() {
    // `cargo test --benches` only wants to know that it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    println!("load before: {}", load());
    large::compare();
    many::compare();
    println!("load after: {}", load());
}

/// How a tool is run in a directory: `None` where it is not installed.
type Run<'a> = Box<dyn Fn(&Path) -> Option<Command> + 'a>;

/// A tool.
struct Tool<'a> {
    name: &'a str,
    command: Run<'a>,
}

impl<'a> Tool<'a> {
    fn new(name: &'a str, command: impl Fn(&Path) -> Option<Command> + 'a) -> Tool<'a> {
        Tool {
            name,
            command: Box::new(command),
        }
    }
}

/// Run every tool in turn, each time in a directory of its own that is looked at and removed after it, and print the medians, each
/// also as a multiple of the first's.
fn compare(what: &str, within: &Path, tools: &[Tool<'_>], is_all_there: impl Fn(&Path) -> bool) {
    let mut samples: Vec<Vec<Duration>> = vec![Vec::new(); tools.len()];
    for round in 0..rounds(ROUNDS) {
        for (nth, tool) in tools.iter().enumerate() {
            let dir = within.join(format!("{round}-{nth}"));
            fs::create_dir(&dir).expect("a scratch directory is writable");
            if let Some(mut command) = (tool.command)(&dir) {
                command
                    .current_dir(&dir)
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null());
                let began = Instant::now();
                let ended = command.status().expect("it can be executed");
                let took = began.elapsed();
                assert!(
                    ended.success() && is_all_there(&dir),
                    "{} has failed",
                    tool.name
                );
                samples[nth].push(took);
            }
            fs::remove_dir_all(&dir).expect("a scratch directory can be removed");
            // What one has left to be written is not for the next to wait for.
            rustix::fs::sync();
        }
    }
    println!("{what}");
    let medians: Vec<Option<Duration>> = samples.iter_mut().map(|taken| median(taken)).collect();
    let first = medians.first().copied().flatten();
    for (tool, median) in tools.iter().zip(medians) {
        let (Some(median), Some(first)) = (median, first) else {
            println!("  {:<40} not installed", tool.name);
            continue;
        };
        let times = median.as_secs_f64() / first.as_secs_f64();
        println!(
            "  {:<40} {:>8.1} ms  {times:>6.2} x",
            tool.name,
            median.as_secs_f64() * 1e3
        );
    }
}

fn median(taken: &mut [Duration]) -> Option<Duration> {
    taken.sort();
    taken.get(taken.len() / 2).copied()
}

/// `outlive pull REF --wait`, with a store of its own in the directory.
fn outlive(dir: &Path, reference: &str) -> Command {
    let ours = || env!("CARGO_BIN_EXE_outlive-under-test").into();
    let mut command = Command::new(std::env::var_os("OUTLIVE_BENCHED").unwrap_or_else(ours));
    command
        .args(["pull", reference, "--wait"])
        .env("OUTLIVE_ROOT", dir.join("store"))
        .env("OUTLIVE_TAPE", "");
    command
}

/// Where there is a disk, and where there is memory.
fn places() -> Vec<(&'static str, PathBuf)> {
    let memory = Path::new("/dev/shm");
    let mut places = vec![("on a disk", std::env::temp_dir())];
    if memory.is_dir() {
        places.insert(0, ("in memory", memory.to_owned()));
    }
    places
}

/// How busy the machine is with other things.
fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').take(3).collect::<Vec<_>>().join(" ")
}
