//! One large file through everything at once: a server that cuts every answer short, a worker that is killed, a job that is
//! paused and resumed. It must be right to the byte, and what was fetched twice must be no more than what was on its way.
//!
//! `OUTLIVE_TEST_MEGABYTES` says how long the file is. How many kills and pauses there are does not depend on it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use outlive_tests::{Bench, Dice, Job, Reply, Request, Served, Server, bench, until};
use rustix::fs::{FallocateFlags, fallocate};
use serde_json::Value;

use super::pull::{begin, nothing_is_left, progress_is_whole, staged};

/// How long the file is, in millions of bytes.
const MEGABYTES: u64 = 200;
/// After how many bytes the server hangs up.
const CUT: u64 = 3_000_000;
const KILLS: usize = 10;
const PAUSES: usize = 5;
/// How much more the server sends when it is time to strike, so that bytes are on their way, and not so many that all is over.
const MEANWHILE: u64 = 3_000_000;
/// How many connections there are.
const CONNECTIONS: u64 = 4;
/// What a killed fetcher may not have recorded of a file, in bytes, and what may come while it is being recorded.
const UNRECORDED: u64 = 5 << 20;

/// Lets the server send so much and no more, until it is opened anew or shut. Who was sending by then ends.
#[derive(Default)]
struct Gate {
    leg: Mutex<Leg>,
    opened: Condvar,
}

#[derive(Default)]
struct Leg {
    number: usize,
    /// What may still be sent, in bytes.
    left: u64,
    is_open: bool,
}

impl Gate {
    fn open(&self, bytes: u64) {
        let mut leg = self.leg.lock().unwrap();
        (leg.number, leg.left, leg.is_open) = (leg.number + 1, bytes, true);
        self.opened.notify_all();
    }

    fn shut(&self) {
        self.leg.lock().unwrap().is_open = false;
        self.opened.notify_all();
    }

    fn leg(&self) -> usize {
        self.leg.lock().unwrap().number
    }

    /// Wait until so many bytes may be sent; whether they ever may.
    fn passes(&self, number: usize, bytes: u64) -> bool {
        let is_of = |leg: &Leg| leg.is_open && leg.number == number;
        let leg = self.leg.lock().unwrap();
        let waits = |leg: &mut Leg| is_of(leg) && leg.left < bytes;
        let mut leg = self.opened.wait_while(leg, waits).unwrap();
        let passes = is_of(&leg);
        leg.left -= if passes { bytes } else { 0 };
        passes
    }
}

/// What one answer has sent.
struct Sent {
    leg: usize,
    from: u64,
    bytes: u64,
}

/// A server of a file, and what it has sent of it.
struct Cutting {
    server: Server,
    gate: Arc<Gate>,
    sent: Arc<Mutex<Vec<Sent>>>,
    busy: Arc<AtomicUsize>,
}

impl Cutting {
    fn new(file: Served) -> Cutting {
        let gate = Arc::new(Gate::default());
        let sent = Arc::new(Mutex::new(Vec::new()));
        let busy = Arc::new(AtomicUsize::new(0));
        let (its_gate, kept, counted) = (gate.clone(), sent.clone(), busy.clone());
        let server = Server::new(move |request, reply| {
            counted.fetch_add(1, Ordering::SeqCst);
            kept.lock()
                .unwrap()
                .push(send(&file, &its_gate, request, reply));
            counted.fetch_sub(1, Ordering::SeqCst);
        });
        Cutting {
            server,
            gate,
            sent,
            busy,
        }
    }

    /// Nothing is sent any more, and what was is counted.
    fn shut(&self) {
        self.gate.shut();
        until("nobody is answered", || {
            self.busy.load(Ordering::SeqCst) == 0
        });
    }
}

/// Answer with so much as may be sent in one answer.
fn send(file: &Served, gate: &Gate, request: &Request, reply: &mut Reply) -> Sent {
    let leg = gate.leg();
    let (status, headers, body) = file.honest(request);
    let length = body.len().to_string();
    let mut all = vec![("Content-Length", length.as_str())];
    all.extend(
        headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str())),
    );
    reply.head(status, &all);
    let limit = body.len().min(CUT as usize);
    let mut bytes = 0;
    for chunk in body[..limit].chunks(64 << 10) {
        if !gate.passes(leg, chunk.len() as u64) || !reply.body(chunk) {
            break;
        }
        bytes += chunk.len() as u64;
    }
    Sent {
        leg,
        from: request.range().map_or(0, |range| range.0),
        bytes,
    }
}

/// What is on the disk of the file while nobody fetches it.
struct Held {
    /// By its record.
    recorded: u64,
    /// By the blocks that it has.
    written: u64,
}

/// See what is there; and take away what is not recorded, so that it is not counted again, and is missed by whoever relies on it.
fn held(bench: &Bench) -> Held {
    let staging = bench.work().join("file.bin.outlive-part");
    let record = staged(&staging, ".json").pop().expect("there is a record");
    let record: Value = serde_json::from_slice(&fs::read(record).unwrap()).unwrap();
    let runs: Vec<(u64, u64)> = record["runs"]
        .as_array()
        .expect("it has runs")
        .iter()
        .map(|run| (run["from"].as_u64().unwrap(), run["done"].as_u64().unwrap()))
        .collect();
    let part = staged(&staging, ".part").pop().expect("there is a part");
    let part = fs::File::options().write(true).open(part).unwrap();
    let found = part.metadata().unwrap();
    let ends = runs.iter().skip(1).map(|run| run.0).chain([found.len()]);
    for (run, end) in runs.iter().zip(ends) {
        let from = run.0 + run.1;
        if from < end {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(&part, hole, from, end - from).expect("this file system has holes");
        }
    }
    Held {
        recorded: runs.iter().map(|run| run.1).sum(),
        written: found.blocks() * 512,
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Strike {
    Kill,
    Pause,
}

/// What one blow has cost.
struct Cost {
    strike: Strike,
    /// Bytes that were written and not recorded.
    unrecorded: u64,
    /// Bytes that were sent and never read.
    unread: u64,
}

fn strike(bench: &Bench, job: &Job<'_>, strike: Strike) {
    match strike {
        Strike::Kill => job.kill_worker(),
        Strike::Pause => drop(bench.run(["pause", job.id()]).expect(0)),
    }
    until("no process is left", || bench.census().is_empty());
    let state = match strike {
        Strike::Kill => "interrupted",
        Strike::Pause => "paused",
    };
    assert_eq!(job.state(), state);
    assert!(!bench.file("file.bin").exists(), "nothing has landed");
}

fn shuffled(dice: &mut Dice) -> Vec<Strike> {
    let mut strikes = vec![Strike::Kill; KILLS];
    strikes.resize(KILLS + PAUSES, Strike::Pause);
    for last in (1..strikes.len()).rev() {
        strikes.swap(last, dice.below(last as u64 + 1) as usize);
    }
    strikes
}

/// P06, P07, P19, P29: ten kills and five pauses while every answer is cut.
#[test]
fn everything_at_once_costs_what_was_on_its_way() {
    let megabytes = std::env::var("OUTLIVE_TEST_MEGABYTES").ok();
    let length = megabytes.map_or(MEGABYTES, |text| text.parse().unwrap()) * 1_000_000;
    let mut dice = Dice::new();
    let bench = bench!();
    bench.crashes();
    let file = Served::of_length(length as usize, 50);
    let bytes = file.bytes.clone();
    let cutting = Cutting::new(file);
    let url = cutting.server.url("/file.bin");
    let (mut twice, mut recorded) = (0, 0);
    let mut costs: Vec<Cost> = Vec::new();
    let mut job = None;
    let strikes = shuffled(&mut dice);
    for (nth, &blow) in strikes.iter().enumerate() {
        let left = length - recorded;
        let share = 3 * left / 2 / (strikes.len() - nth + 1) as u64;
        // Never all of it.
        let after = (1 + dice.below(share)).min(left / 2);
        let due = cutting.server.sent() + after;
        cutting.gate.open(after + MEANWHILE.min(left / 4));
        let job = job.get_or_insert_with(|| begin(&bench, &url, &[]));
        if nth > 0 {
            bench.run(["resume", job.id()]).expect(0);
        }
        until("it is time", || cutting.server.sent() >= due);
        strike(&bench, job, blow);
        cutting.shut();
        let held = held(&bench);
        let cost = cutting.server.sent() - twice - held.recorded;
        let unrecorded = held.written.saturating_sub(held.recorded).min(cost);
        costs.push(Cost {
            strike: blow,
            unrecorded,
            unread: cost - unrecorded,
        });
        (twice, recorded) = (twice + cost, held.recorded);
    }
    let job = job.expect("it was begun");
    cutting.gate.open(u64::MAX);
    bench.run(["resume", job.id()]).expect(0);
    assert_eq!(job.wait(), 0);
    cutting.shut();
    assert!(fs::read(bench.file("file.bin")).unwrap() == *bytes);
    progress_is_whole(&job, length as usize);
    nothing_is_left(&bench.work());
    until("no process is left", || bench.census().is_empty());
    report(&cutting, &costs, length);
    bench.audit();
}

/// See that nothing was asked for twice that need not be, and say what was.
fn report(cutting: &Cutting, costs: &[Cost], length: u64) {
    let sent = cutting.sent.lock().unwrap();
    let cuts = sent.iter().filter(|it| it.bytes == CUT).count();
    println!(
        "{length} bytes in {} answers, {cuts} of them cut",
        sent.len()
    );
    assert_eq!(
        sent.iter().map(|it| it.bytes).sum::<u64>(),
        cutting.server.sent()
    );
    assert_eq!(of_cuts(&sent), 0, "a cut costs a request and no byte");
    for strike in [Strike::Kill, Strike::Pause] {
        let of: Vec<&Cost> = costs.iter().filter(|it| it.strike == strike).collect();
        let sum = |what: fn(&Cost) -> u64| of.iter().map(|it| what(it)).sum::<u64>();
        let most = |what: fn(&Cost) -> u64| of.iter().map(|it| what(it)).max().unwrap_or(0);
        println!(
            "{strike:?}: fetched again {} bytes each, {} at most: of that {} written and not recorded, {} on their way",
            sum(|it| it.unrecorded + it.unread) / of.len() as u64,
            most(|it| it.unrecorded + it.unread),
            sum(|it| it.unrecorded) / of.len() as u64,
            sum(|it| it.unread) / of.len() as u64,
        );
        // On its way is what was sent and not read: never more than an answer on each connection.
        assert!(most(|it| it.unread) <= CONNECTIONS * CUT);
        // On the average: whoever keeps the record may have to wait for a processor.
        assert!(sum(|it| it.unrecorded) <= UNRECORDED * of.len() as u64);
    }
}

/// How many bytes were sent again between one blow and the next: what is fetched twice only because answers were cut.
fn of_cuts(sent: &[Sent]) -> u64 {
    let mut ranges: Vec<(usize, u64, u64)> = sent
        .iter()
        .map(|it| (it.leg, it.from, it.from + it.bytes))
        .collect();
    ranges.sort_unstable();
    ranges
        .windows(2)
        .filter(|pair| pair[0].0 == pair[1].0)
        .map(|pair| pair[0].2.saturating_sub(pair[1].1))
        .sum()
}
