//! The real thing against a plain reference: after every command, exactly those jobs run that a scheduler of thirty lines says
//! are to run. Where several jobs get into the line at once, whoever is there first may be admitted first, so the reference
//! tries every order; for those that are in the line there is one answer.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};

use outlive_tests::{Bench, Dice, bench, rounds};

/// How long the real thing may take to come to where the reference is.
const PATIENCE: Duration = Duration::from_secs(20);

/// How a job stands in the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Waits,
    Rests,
    Runs,
    Done,
    Failed,
    Cancelled,
}

impl State {
    fn has_ended(self) -> bool {
        matches!(self, State::Done | State::Failed | State::Cancelled)
    }

    fn word(self) -> &'static str {
        match self {
            State::Waits => "queued",
            State::Rests => "paused",
            State::Runs => "running",
            State::Done => "done",
            State::Failed => "failed",
            State::Cancelled => "cancelled",
        }
    }
}

/// A job of the reference. The order in which they are made is that of their age.
#[derive(Clone, Debug)]
struct Planned {
    id: String,
    priority: i32,
    slots: u32,
    after: Vec<(usize, &'static str)>,
    state: State,
    /// Whether it has got into the line, and not only to where it may.
    in_line: bool,
}

/// The reference: one pool, looked at from the start after every change.
#[derive(Clone, Debug)]
struct Reference {
    slots: u32,
    paused: bool,
    jobs: Vec<Planned>,
}

impl Reference {
    /// Whether what this job comes after lets it start: `None` where it is still to be waited for.
    fn is_met(&self, job: &Planned) -> Option<bool> {
        let mut all = Some(true);
        for (on, when) in &job.after {
            let state = self.jobs[*on].state;
            let met = match *when {
                "success" => state == State::Done,
                "failure" => state == State::Failed,
                _ => true,
            };
            if !state.has_ended() {
                all = None;
            } else if !met {
                return Some(false);
            }
        }
        all
    }

    /// Let everything happen that is to happen by itself, in every order: what can come of it.
    fn outcomes(self) -> Vec<Reference> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        let mut open = vec![self];
        while let Some(mut reference) = open.pop() {
            reference.fail_hopeless();
            reference.admit();
            let key: Vec<(State, bool)> = reference
                .jobs
                .iter()
                .map(|job| (job.state, job.in_line))
                .collect();
            if !seen.insert(key) {
                continue;
            }
            let coming: Vec<usize> = reference
                .with(State::Waits)
                .filter(|&n| !reference.jobs[n].in_line)
                .filter(|&n| reference.is_met(&reference.jobs[n]) == Some(true))
                .collect();
            if coming.is_empty() {
                found.push(reference);
                continue;
            }
            for next in coming {
                let mut later = reference.clone();
                later.jobs[next].in_line = true;
                open.push(later);
            }
        }
        found
    }

    fn fail_hopeless(&mut self) {
        while let Some(hopeless) = (0..self.jobs.len()).find(|&n| {
            self.jobs[n].state == State::Waits && self.is_met(&self.jobs[n]) == Some(false)
        }) {
            self.jobs[hopeless].state = State::Failed;
        }
    }

    fn admit(&mut self) {
        while !self.paused {
            let taken: u32 = self.with(State::Runs).map(|n| self.jobs[n].slots).sum();
            let next = self
                .with(State::Waits)
                .filter(|&n| self.jobs[n].in_line && self.jobs[n].slots <= self.slots)
                .max_by_key(|&n| (self.jobs[n].priority, std::cmp::Reverse(n)));
            match next {
                Some(next) if taken + self.jobs[next].slots <= self.slots => {
                    self.jobs[next].state = State::Runs;
                }
                _ => break,
            }
        }
    }

    fn words(&self) -> Vec<&'static str> {
        self.jobs.iter().map(|job| job.state.word()).collect()
    }

    fn with(&self, state: State) -> impl Iterator<Item = usize> {
        (0..self.jobs.len()).filter(move |&n| self.jobs[n].state == state)
    }

    fn any(&self, state: State, dice: &mut Dice) -> Option<usize> {
        let all: Vec<usize> = self.with(state).collect();
        (!all.is_empty()).then(|| *dice.pick(&all))
    }
}

/// One case, and what was done in it so far.
struct Case<'a> {
    bench: &'a Bench,
    reference: Reference,
    story: String,
}

impl Case<'_> {
    fn verb(&mut self, arguments: &[&str]) -> String {
        writeln!(self.story, "{}", arguments.join(" ")).unwrap();
        self.bench.run(arguments).expect(0).text()
    }

    /// Queue between one and three jobs at once.
    fn queue(&mut self, dice: &mut Dice) {
        let first = self.reference.jobs.len();
        let mut lines = String::new();
        for n in first..=first + dice.below(3) as usize {
            let slots = 1 + dice.below(u64::from(self.reference.slots).min(3)) as u32;
            let priority = dice.below(3) as i32 - 1;
            let mut after = Vec::new();
            while n > 0 && after.len() < 2 && dice.chance(35) {
                let on = dice.below(n as u64) as usize;
                after.push((on, *dice.pick(&["success", "failure", "end"])));
            }
            let on: Vec<String> = after
                .iter()
                .map(|(on, when)| match self.reference.jobs.get(*on) {
                    Some(there) if *on < first => format!("{}:{when}", there.id),
                    _ => format!("n{on}:{when}"),
                })
                .collect();
            let script = format!("while [ ! -e end{n} ]; do sleep 0.02; done; exit $(cat end{n})");
            let line = serde_json::json!({
                "argv": ["sh", "-c", script], "label": format!("n{n}"),
                "slots": slots, "priority": priority, "after": on,
            });
            writeln!(lines, "{line}").unwrap();
            self.reference.jobs.push(Planned {
                id: String::new(),
                priority,
                slots,
                after,
                state: State::Waits,
                in_line: false,
            });
        }
        self.story.push_str(&lines);
        fs::write(self.bench.file("lines"), lines).unwrap();
        let ids = self.verb(&["queue", "--pool", "p", "--from", "lines"]);
        for (job, id) in self.reference.jobs[first..].iter_mut().zip(ids.lines()) {
            job.id = id.to_owned();
        }
    }

    /// Let a job that runs come to its end.
    fn end(&mut self, n: usize, code: u8) {
        writeln!(self.story, "{n} exits {code}").unwrap();
        let new = self.bench.file("end.new");
        fs::write(&new, code.to_string()).unwrap();
        fs::rename(new, self.bench.file(&format!("end{n}"))).unwrap();
        self.reference.jobs[n].state = if code == 0 {
            State::Done
        } else {
            State::Failed
        };
    }

    fn on_one_that(&mut self, is: State, verb: &str, becomes: State, dice: &mut Dice) {
        if let Some(n) = self.reference.any(is, dice) {
            let id = self.reference.jobs[n].id.clone();
            self.verb(&[verb, &id]);
            self.reference.jobs[n].state = becomes;
            self.reference.jobs[n].in_line = false;
        }
    }

    fn step(&mut self, dice: &mut Dice) {
        match dice.below(12) {
            0..=2 if self.reference.jobs.len() < 14 => self.queue(dice),
            0..=5 => {
                if let Some(n) = self.reference.any(State::Runs, dice) {
                    self.end(n, u8::from(dice.chance(30)));
                }
            }
            6 => {
                self.reference.slots = 1 + dice.below(4) as u32;
                let slots = self.reference.slots.to_string();
                self.verb(&["pool", "set", "p", "--slots", &slots]);
            }
            7 => {
                self.reference.paused = !self.reference.paused;
                let verb = if self.reference.paused {
                    "pause"
                } else {
                    "resume"
                };
                self.verb(&["pool", verb, "p"]);
            }
            8 => self.on_one_that(State::Waits, "stop", State::Cancelled, dice),
            9 => self.on_one_that(State::Waits, "pause", State::Rests, dice),
            10 => self.on_one_that(State::Rests, "resume", State::Waits, dice),
            _ => {
                self.story.push_str("the supervisor is killed\n");
                self.bench.kill_supervisor();
                // Whoever needs one next starts it.
                self.pass_through();
            }
        }
    }

    /// Have a job of another pool started and ended: whatever was to be started before it has been.
    fn pass_through(&self) {
        self.bench.run(["queue", "--wait", "--", "true"]).expect(0);
    }

    fn there(&self) -> Vec<String> {
        let jobs = self.reference.jobs.iter();
        jobs.map(|job| self.bench.job(&job.id).recorded()).collect()
    }

    /// See that the real thing comes to where the reference is.
    fn compare(&mut self) {
        let outcomes = self.reference.clone().outcomes();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut there = self.there();
            let mut found = outcomes.iter().find(|outcome| outcome.words() == there);
            if found.is_some() && outcomes.len() > 1 {
                // One outcome can be on the way to another.
                self.pass_through();
                there = self.there();
                found = outcomes.iter().find(|outcome| outcome.words() == there);
            }
            if let Some(found) = found {
                self.reference = found.clone();
                return;
            }
            assert!(
                Instant::now() < deadline,
                "{}\nexpected {:?}\nthere    {there:?}\n{}",
                self.story,
                outcomes.iter().map(Reference::words).collect::<Vec<_>>(),
                fs::read_to_string(self.bench.root().join("supervisor.log")).unwrap_or_default()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Let everything end that still can.
    fn finish(&mut self, dice: &mut Dice) {
        if self.reference.paused {
            self.reference.paused = false;
            self.verb(&["pool", "resume", "p"]);
            self.compare();
        }
        self.reference.slots = 3;
        self.verb(&["pool", "set", "p", "--slots", "3"]);
        self.compare();
        while self.reference.any(State::Rests, dice).is_some() {
            self.on_one_that(State::Rests, "resume", State::Waits, dice);
            self.compare();
        }
        while let Some(n) = self.reference.any(State::Runs, dice) {
            self.end(n, u8::from(dice.chance(30)));
            self.compare();
        }
        let left: Vec<usize> = self.reference.with(State::Waits).collect();
        assert!(
            left.is_empty(),
            "{}\n{left:?} were never started",
            self.story
        );
    }
}

#[test]
fn exactly_those_run_that_are_to_run() {
    let dice = Dice::new();
    for round in 0..rounds(4) {
        let mut dice = dice.nth(round as u64);
        let bench = bench!();
        bench.crashes();
        bench.run(["pool", "add", "p", "--slots", "2"]).expect(0);
        let mut case = Case {
            bench: &bench,
            reference: Reference {
                slots: 2,
                paused: false,
                jobs: Vec::new(),
            },
            story: String::new(),
        };
        for _ in 0..24 {
            case.step(&mut dice);
            case.compare();
        }
        case.finish(&mut dice);
        bench.audit();
    }
}
