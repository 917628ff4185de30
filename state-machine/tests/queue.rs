//! Which queued job is started when, against dumb twins written from the sentences that say what is to be true: the
//! admission of a pool, the time that a job waits for, and what the jobs come to that it comes after.

use std::cmp::Reverse;

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use state_machine::dependency::{Dependency, Seen, dependency};
use state_machine::id::JobId;
use state_machine::job::State;
use state_machine::record::{After, AfterWhen, Descriptor};
use state_machine::schedule::{Pool, Rank};
use state_machine::supervise::{Clocks, Readiness, readiness, resume_delay_ms};

const DESCRIPTOR: &[u8] = br#"{"id":"1-x","kind":{"command":{"argv":["true"],"cwd":"/","env":{}}},"display_name":"x","pool":"p","created_at_ms":100}"#;
const YEAR_MS: u64 = 365 * 24 * 3_600_000;

fn descriptor() -> Descriptor {
    Descriptor::decode(DESCRIPTOR).expect("it decodes")
}

/// The jobs that there are in all of a test.
const JOBS: usize = 8;

/// What happens to a pool.
#[derive(Clone, Debug)]
enum Step {
    Enqueue(usize),
    /// A job is found inside, with the number that its record has, if it has one.
    Occupy(usize, Option<u32>),
    Remove(usize),
    Configure(u32, bool),
    Admit,
}

/// How a job of the test is queued: its priority, when it was made, its place among those, and how many slots it takes.
type Job = (i32, u64, u32, u32);

fn job(nth: usize, (priority, created_at_ms, order, slots): Job) -> Descriptor {
    Descriptor {
        id: JobId::new(7, "x", nth as u32 + 1),
        priority,
        created_at_ms,
        order,
        slots,
        ..descriptor()
    }
}

/// "Highest priority first, the oldest first within, and of those made at once the one that was named first."
fn goes_first(job: &Descriptor) -> impl Ord + use<> {
    (
        Reverse(job.priority),
        job.created_at_ms,
        job.order,
        job.id.clone(),
    )
}

/// A pool that remembers nothing but two lists, and searches them anew at every question.
#[derive(Default)]
struct Twin {
    slots: u32,
    paused: bool,
    waiting: Vec<Descriptor>,
    inside: Vec<Descriptor>,
}

impl Twin {
    fn is_inside(&self, id: &JobId) -> bool {
        self.inside.iter().any(|job| job.id == *id)
    }

    fn remove(&mut self, id: &JobId) {
        self.waiting.retain(|job| job.id != *id);
        self.inside.retain(|job| job.id != *id);
    }

    fn taken(&self) -> u32 {
        self.inside.iter().map(|job| job.slots.max(1)).sum()
    }

    /// "The first of those that could ever fit starts when it fits, and nobody before it."
    fn admit(&mut self) -> Option<JobId> {
        self.waiting.sort_by_key(goes_first);
        let could_fit = |job: &&Descriptor| job.slots.max(1) <= self.slots;
        let first = self.waiting.iter().find(could_fit)?.clone();
        if self.paused || self.taken() + first.slots.max(1) > self.slots {
            return None;
        }
        self.waiting.retain(|job| job.id != first.id);
        self.inside.push(first.clone());
        Some(first.id)
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let nth = || 0..JOBS;
    let step = prop_oneof![
        6 => nth().prop_map(Step::Enqueue),
        1 => (nth(), of(1..5u32)).prop_map(|(nth, number)| Step::Occupy(nth, number)),
        3 => nth().prop_map(Step::Remove),
        1 => (0..6u32, any::<bool>()).prop_map(|(slots, paused)| Step::Configure(slots, paused)),
        8 => Just(Step::Admit),
    ];
    vec(step, 1..80)
}

fn jobs() -> impl Strategy<Value = Vec<Job>> {
    vec((-1..2i32, 0..3u64, 0..3u32, 0..4u32), JOBS)
}

/// The numbers of those inside, where they are known.
fn numbers(pool: &Pool) -> Vec<u32> {
    let mut numbers: Vec<u32> = pool.inside().filter_map(|(_, number)| number).collect();
    numbers.sort_unstable();
    numbers
}

fn after() -> impl Strategy<Value = Vec<(AfterWhen, Seen)>> {
    let when = vec![AfterWhen::Success, AfterWhen::Failure, AfterWhen::End];
    let seen = prop_oneof![
        5 => proptest::sample::select(State::ALL.to_vec()).prop_map(Seen::State),
        1 => Just(Seen::Gone),
        1 => Just(Seen::Damaged),
    ];
    vec((proptest::sample::select(when), seen), 0..5)
}

/// What is known of how a job ended: `None` where it has not, or nobody can tell whether it has.
fn ended(seen: Seen) -> Option<Option<State>> {
    match seen {
        Seen::Damaged => None,
        Seen::Gone => Some(None),
        Seen::State(state) => state.is_terminal().then_some(Some(state)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_pool_admits_whom_a_list_would_that_is_searched_anew(jobs in jobs(), steps in steps()) {
        let mut pool = Pool::new(3, false);
        let mut twin = Twin { slots: 3, ..Twin::default() };
        // Numbers that were found are whatever others have given; those given here are never given twice.
        let mut found_any = false;
        for step in steps {
            match step {
                Step::Enqueue(nth) => {
                    let job = job(nth, jobs[nth]);
                    pool.enqueue(Rank::of(&job), job.slots);
                    if !twin.is_inside(&job.id) {
                        twin.remove(&job.id);
                        twin.waiting.push(job);
                    }
                }
                Step::Occupy(nth, number) => {
                    let job = job(nth, jobs[nth]);
                    let known = pool.inside().find(|(id, _)| **id == job.id);
                    let known = known.and_then(|(_, number)| number);
                    pool.occupy(&job.id, job.slots, number);
                    let now = pool.inside().find(|(id, _)| **id == job.id);
                    prop_assert_eq!(now.and_then(|(_, number)| number), known.or(number));
                    found_any = true;
                    if !twin.is_inside(&job.id) {
                        twin.remove(&job.id);
                        twin.inside.push(job);
                    }
                }
                Step::Remove(nth) => {
                    let id = job(nth, jobs[nth]).id;
                    pool.remove(&id);
                    twin.remove(&id);
                }
                Step::Configure(slots, paused) => {
                    pool.configure(slots, paused);
                    (twin.slots, twin.paused) = (slots, paused);
                }
                Step::Admit => {
                    let before = numbers(&pool);
                    let admitted = pool.admit();
                    prop_assert_eq!(admitted.as_ref().map(|admitted| admitted.id.clone()), twin.admit());
                    if let Some(admitted) = admitted {
                        prop_assert!(!before.contains(&admitted.slot), "{} twice", admitted.slot);
                        prop_assert!(pool.taken() <= pool.slots(), "more are inside than fit");
                        prop_assert!((1..=pool.slots()).contains(&admitted.slot));
                    }
                }
            }
            let mut inside: Vec<&JobId> = twin.inside.iter().map(|job| &job.id).collect();
            inside.sort();
            prop_assert_eq!(pool.inside().map(|(id, _)| id).collect::<Vec<_>>(), inside);
            prop_assert_eq!(pool.taken(), twin.taken());
            prop_assert_eq!(pool.idle(), twin.slots.saturating_sub(twin.taken()));
            prop_assert_eq!(pool.waiting(), twin.waiting.len());
            prop_assert_eq!(pool.is_idle(), twin.waiting.is_empty() && twin.inside.is_empty());
            let mut unique = numbers(&pool);
            unique.dedup();
            prop_assert!(found_any || unique == numbers(&pool), "a number is given twice");
        }
    }

    #[test]
    fn whoever_is_first_is_overtaken_by_nobody_however_many_slots_it_takes(jobs in jobs(), ends in vec(0..JOBS, 60)) {
        let mut pool = Pool::new(3, false);
        let mut waiting: Vec<Descriptor> = (0..JOBS).map(|nth| job(nth, jobs[nth])).collect();
        for job in &waiting {
            pool.enqueue(Rank::of(job), job.slots);
        }
        waiting.sort_by_key(goes_first);
        let mut waiting = waiting.into_iter();
        for nth in ends {
            while let Some(admitted) = pool.admit() {
                prop_assert_eq!(Some(admitted.id), waiting.next().map(|job| job.id));
            }
            let inside: Vec<JobId> = pool.inside().map(|(id, _)| id.clone()).collect();
            if let Some(ended) = inside.get(nth % inside.len().max(1)) {
                pool.remove(ended);
            }
        }
        prop_assert!(pool.is_idle(), "with all that have ended, all have started");
    }

    #[test]
    fn a_job_waits_for_its_time_however_the_clock_is_set(
        now in YEAR_MS..3 * YEAR_MS,
        delay_ms in of(0..1_000_000u64),
        at in of(0..4 * YEAR_MS),
        step in -(YEAR_MS as i64)..YEAR_MS as i64,
    ) {
        let mut job = descriptor();
        job.not_before_ms = delay_ms.map(|delay| now + delay).or(at);
        job.delay_ms = delay_ms;
        let stepped = now.saturating_add_signed(step);
        let at_once = Clocks::at_first(stepped);
        let asked = |dependency, clocks| readiness(&job, 0, dependency, clocks);
        match asked(Dependency::Met, at_once) {
            Readiness::Now => {
                let due = job.not_before_ms.is_none_or(|due| due <= stepped);
                prop_assert!(due || delay_ms == Some(0));
            }
            Readiness::In(ms) => {
                prop_assert!(ms > 0 && delay_ms.is_none_or(|delay| ms <= delay));
                // Whoever waits so long and looks again finds that it may start.
                let later = Clocks { now_ms: stepped + ms, watched_ms: ms, ..at_once };
                prop_assert_eq!(asked(Dependency::Met, later), Readiness::Now);
                // And where it was to wait for so long, neither earlier nor later, wherever the clock is set meanwhile.
                if delay_ms.is_some() {
                    for now_ms in [now - YEAR_MS, now + YEAR_MS] {
                        let soon = Clocks { now_ms, watched_ms: ms - 1, ..at_once };
                        prop_assert_eq!(asked(Dependency::Met, soon), Readiness::In(1));
                        let then = Clocks { now_ms, watched_ms: ms, ..at_once };
                        prop_assert_eq!(asked(Dependency::Met, then), Readiness::Now);
                    }
                }
            }
            other => prop_assert!(false, "{other:?}"),
        }
        prop_assert_eq!(readiness(&job, 1, Dependency::Waits, at_once), Readiness::Now);
        prop_assert_eq!(asked(Dependency::Waits, at_once), Readiness::Later);
        let never = asked(Dependency::Never("why".into()), at_once);
        prop_assert_eq!(never, Readiness::Never("why".into()));
    }

    /// "Met when all have ended as they must; never when one has ended otherwise, whatever the others do."
    #[test]
    fn a_job_starts_when_all_have_ended_as_they_must(after in after()) {
        let list: Vec<After> = (0..)
            .zip(&after)
            .map(|(nth, &(when, _))| After { job: JobId::new(nth, "x", 1), when })
            .collect();
        let seen = |one: &After| after[list.iter().position(|known| known == one).expect("it is listed")].1;
        let fits = |when: AfterWhen, end: Option<State>| match when {
            AfterWhen::End => true,
            AfterWhen::Success => end == Some(State::Done),
            AfterWhen::Failure => end == Some(State::Failed),
        };
        let all = || after.iter().map(|&(when, seen)| (when, ended(seen)));
        let otherwise = all().any(|(when, end)| end.is_some_and(|end| !fits(when, end)));
        let as_they_must = all().all(|(when, end)| end.is_some_and(|end| fits(when, end)));
        match dependency(&list, seen) {
            Dependency::Never(why) => prop_assert!(otherwise && !why.is_empty()),
            Dependency::Met => prop_assert!(as_they_must),
            Dependency::Waits => prop_assert!(!otherwise && !as_they_must),
        }
    }

    #[test]
    fn a_job_that_kills_its_worker_is_run_again_later_and_later(nth in 0..u32::MAX) {
        prop_assert!(resume_delay_ms(nth) <= resume_delay_ms(nth + 1));
        prop_assert!(resume_delay_ms(nth) <= 300_000);
    }
}
