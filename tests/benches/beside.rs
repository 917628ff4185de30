//! How long the commonest things take, beside other tools in the same run: `cargo bench -p outlive-tests`.
//!
//! Only ratios mean anything: each round takes one sample of every tool, so that noise hits all alike. A tool that is not
//! installed is left out. Nothing is asserted here.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Samples of each thing.
const ROUNDS: usize = 50;
/// Jobs in the store that is listed.
const LISTED: usize = 1_000;
/// Bytes that the chatty job prints.
const PRINTED: u64 = 200_000_000;

fn main() {
    // `cargo test --benches` only wants to know that it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let bench = Bench::new();
    bench.starts();
    bench.turnarounds();
    bench.stops();
    bench.output();
    bench.lists();
}

/// A scratch directory, and the tools.
struct Bench {
    dir: tempfile::TempDir,
    outlive: PathBuf,
}

/// The samples of one tool.
struct Samples {
    name: &'static str,
    taken: Vec<Duration>,
}

impl Samples {
    fn of(name: &'static str) -> Samples {
        Samples {
            name,
            taken: Vec::new(),
        }
    }

    fn median(&self) -> Option<Duration> {
        let mut taken = self.taken.clone();
        taken.sort();
        taken.get(taken.len() / 2).copied()
    }
}

/// Print the medians, each also as a multiple of the last one that was measured.
fn report(what: &str, samples: &[Samples]) {
    println!("{what}");
    let base = samples.iter().rev().find_map(Samples::median);
    for sample in samples {
        let Some(median) = sample.median() else {
            println!("  {:<24} not installed", sample.name);
            continue;
        };
        let times = base.map_or(1.0, |base| median.as_secs_f64() / base.as_secs_f64());
        let ms = median.as_secs_f64() * 1e3;
        println!("  {:<24} {ms:>8.2} ms  {times:>5.2} x", sample.name);
    }
}

impl Bench {
    fn new() -> Bench {
        let dir = tempfile::tempdir().expect("a scratch directory can be made");
        Bench {
            dir,
            outlive: env!("CARGO_BIN_EXE_outlive-under-test").into(),
        }
    }

    /// Run a command to its end, quietly, with everything that it keeps in the scratch directory.
    fn run<S: AsRef<std::ffi::OsStr>>(&self, program: impl AsRef<Path>, arguments: &[S]) -> String {
        let output = Command::new(program.as_ref())
            .args(arguments)
            .env("OUTLIVE_ROOT", self.dir.path().join("store"))
            .env("OUTLIVE_TAPE", "")
            .env("NQDIR", self.dir.path())
            .env("TS_SOCKET", self.dir.path().join("tsp"))
            .env("TMPDIR", self.dir.path())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .unwrap_or_else(|error| panic!("{}: {error}", program.as_ref().display()));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn time<S: AsRef<std::ffi::OsStr>>(
        &self,
        program: impl AsRef<Path>,
        arguments: &[S],
    ) -> Duration {
        let started = Instant::now();
        self.run(program, arguments);
        started.elapsed()
    }

    fn starts(&self) {
        let mut samples = [
            Samples::of("true"),
            Samples::of("outlive run"),
            Samples::of("nq"),
        ];
        for _ in 0..ROUNDS {
            samples[0].taken.push(self.time("true", &[] as &[&str]));
            samples[1]
                .taken
                .push(self.time(&self.outlive, &["run", "--", "true"]));
            if is_installed("nq") {
                samples[2].taken.push(self.time("nq", &["true"]));
            }
        }
        report("start of `true`, until the command returns", &samples);
    }

    fn turnarounds(&self) {
        let mut samples = [
            Samples::of("outlive run --wait"),
            Samples::of("tsp; tsp -w"),
        ];
        for _ in 0..ROUNDS {
            samples[0]
                .taken
                .push(self.time(&self.outlive, &["run", "--wait", "--", "true"]));
            if is_installed("tsp") {
                let started = Instant::now();
                let id = self.run("tsp", &["true"]);
                self.run("tsp", &["-w", &id]);
                samples[1].taken.push(started.elapsed());
            }
        }
        if is_installed("tsp") {
            self.run("tsp", &["-K"]);
        }
        report("start of `true`, until its end is recorded", &samples);
    }

    fn stops(&self) {
        let mut samples = [Samples::of("outlive stop")];
        for _ in 0..ROUNDS {
            let id = self.run(&self.outlive, &["run", "--", "sleep", "600"]);
            samples[0]
                .taken
                .push(self.time(&self.outlive, &["stop", &id]));
        }
        report(
            "stop of a sleeping job, until it is recorded and told",
            &samples,
        );
    }

    fn output(&self) {
        let print = format!("yes 0123456789 | head -c {PRINTED}");
        let file = self.dir.path().join("redirected");
        let redirect = format!("{print} > {}", file.display());
        let mut samples = [
            Samples::of("outlive run --wait"),
            Samples::of("... --log-max 10M"),
            Samples::of("sh -c '... > file'"),
        ];
        for _ in 0..ROUNDS / 10 {
            let plain = ["run", "--wait", "--", "sh", "-c", &print];
            samples[0].taken.push(self.time(&self.outlive, &plain));
            let limited = [
                "run",
                "--wait",
                "--log-max",
                "10M",
                "--",
                "sh",
                "-c",
                &print,
            ];
            samples[1].taken.push(self.time(&self.outlive, &limited));
            samples[2].taken.push(self.time("sh", &["-c", &redirect]));
            self.run(&self.outlive, &["clean", "--all"]);
            let _ = std::fs::remove_file(&file);
        }
        report("a job that prints 200 MB", &samples);
    }

    fn lists(&self) {
        self.run(&self.outlive, &["clean", "--all"]);
        for _ in 0..LISTED {
            self.run(&self.outlive, &["run", "--wait", "--", "true"]);
        }
        let id = self.run(&self.outlive, &["run", "--wait", "--", "true"]);
        let mut samples = [
            Samples::of("outlive list"),
            Samples::of("outlive list --json"),
            Samples::of("outlive status ID"),
        ];
        for _ in 0..ROUNDS / 5 {
            samples[0].taken.push(self.time(&self.outlive, &["list"]));
            samples[1]
                .taken
                .push(self.time(&self.outlive, &["list", "--json"]));
            samples[2]
                .taken
                .push(self.time(&self.outlive, &["status", &id]));
        }
        report("1,000 ended jobs", &samples);
    }
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}
