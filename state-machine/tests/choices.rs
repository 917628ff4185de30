//! What is decided from lists and numbers (resolve, retention, retry, control), each against a dumb twin written
//! from the sentence that says what is to be true.

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use state_machine::control::{Control, Request};
use state_machine::id::JobId;
use state_machine::resolve::{Candidate, Unresolved, resolve};
use state_machine::retention::{Ended, Retention};
use state_machine::retry::Retry;

/// Jobs whose ids, names and references are often the beginning of one another.
fn candidates() -> impl Strategy<Value = Vec<Candidate>> {
    let word = "[12][2aA-]{0,3}";
    vec((word, of(word), of(word), of(word), any::<bool>()), 0..6).prop_map(|jobs| {
        let mut seen = Vec::new();
        jobs.into_iter()
            .map(|(id, name, reference, task, ended)| Candidate {
                task,
                id: JobId::parse(&id).expect("no separator and no dot"),
                name,
                reference,
                ended,
            })
            .filter(|job| {
                let new = !seen.contains(&job.id);
                seen.push(job.id.clone());
                new
            })
            .collect()
    })
}

/// "JOB is an exact id; else a name or a reference (ignoring case), and where several match the one still going; else a task, where
/// all that match are of it: the one still going, or the newest where none is; else a prefix of one id only; else an error that
/// lists them."
fn resolve_twin(query: &str, jobs: &[Candidate]) -> Result<JobId, Vec<JobId>> {
    let (mut named, mut begun) = (Vec::new(), Vec::new());
    for job in jobs {
        if job.id.as_str() == query {
            return Ok(job.id.clone());
        }
        let name = job.name.iter().any(|name| name == query);
        let reference = job
            .reference
            .iter()
            .any(|word| word.eq_ignore_ascii_case(query));
        if !query.is_empty() && (name || reference) {
            named.push(job);
        }
        if !query.is_empty() && job.id.as_str().get(..query.len()) == Some(query) {
            begun.push(job);
        }
    }
    let going: Vec<_> = named.iter().filter(|job| !job.ended).collect();
    if going.len() == 1 {
        return Ok(going[0].id.clone());
    }
    let mut of_task: Vec<_> = jobs.iter().collect();
    of_task.retain(|job| job.task.as_deref() == Some(query));
    of_task.sort_by_key(|job| (!job.ended, job.id.clone()));
    let others = named.iter().any(|job| job.task.as_deref() != Some(query));
    let matches = match of_task.last() {
        Some(last) if !others && last.ended => vec![*last],
        Some(_) if !others => of_task.into_iter().filter(|job| !job.ended).collect(),
        _ if named.is_empty() => begun,
        _ => named,
    };
    if matches.len() == 1 {
        return Ok(matches[0].id.clone());
    }
    let mut ids: Vec<JobId> = matches.iter().map(|job| job.id.clone()).collect();
    ids.sort();
    Err(ids)
}

fn ended() -> impl Strategy<Value = Vec<Ended>> {
    vec(prop_oneof![0..30u64, any::<u64>()], 0..12).prop_map(|ends| {
        (0..)
            .zip(ends)
            .map(|(nth, ended_at_ms)| Ended {
                // The id says nothing about the end: a job that was made first can end last.
                id: JobId::new(100 - nth, "x", 1),
                ended_at_ms,
            })
            .collect()
    })
}

fn retention() -> impl Strategy<Value = Retention> {
    let older_than_ms = of(prop_oneof![0..30u64, Just(u64::MAX)]);
    (of(0..14usize), older_than_ms).prop_map(|(keep, older_than_ms)| Retention {
        keep,
        older_than_ms,
    })
}

/// "A job goes only when every limit that is set lets it go."
fn goes_twin(rule: &Retention, job: &Ended, all: &[Ended], now_ms: u64) -> bool {
    let newer = all
        .iter()
        .filter(|other| (other.ended_at_ms, &other.id) > (job.ended_at_ms, &job.id))
        .count();
    let too_many = rule.keep.is_none_or(|keep| newer >= keep);
    let age = i128::from(now_ms) - i128::from(job.ended_at_ms);
    let too_old = rule
        .older_than_ms
        .is_none_or(|limit| age > i128::from(limit));
    too_many && too_old
}

fn retry() -> impl Strategy<Value = Retry> {
    let number = || prop_oneof![0..5_000u64, any::<u64>(), Just(u64::MAX)];
    (0..6u32, number(), number(), number()).prop_map(
        |(max_attempts, backoff_ms, max_backoff_ms, healthy_after_ms)| Retry {
            max_attempts,
            in_a_row: false,
            always: false,
            backoff_ms,
            max_backoff_ms,
            healthy_after_ms,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_query_names_what_the_sentence_says(jobs in candidates(), query in "[12]?[2aA-]{0,3}") {
        match (resolve(&query, &jobs), resolve_twin(&query, &jobs)) {
            (Ok(id), expected) => prop_assert_eq!(Ok(id), expected),
            (Err(Unresolved::Unknown { .. }), expected) => prop_assert_eq!(expected, Err(vec![])),
            (Err(Unresolved::Ambiguous { matches, .. }), expected) => {
                prop_assert!(matches.len() > 1);
                prop_assert_eq!(expected, Err(matches));
            }
        }
    }

    #[test]
    fn every_job_can_be_named_and_the_order_of_the_list_says_nothing(jobs in candidates(), query in "[12][2aA-]{0,3}") {
        for job in &jobs {
            prop_assert_eq!(resolve(job.id.as_str(), &jobs), Ok(job.id.clone()));
        }
        let backwards: Vec<Candidate> = jobs.iter().rev().cloned().collect();
        prop_assert_eq!(resolve(&query, &jobs), resolve(&query, &backwards));
    }

    #[test]
    fn any_query_is_answered(jobs in candidates(), query: String) {
        if let Err(error) = resolve(&query, &jobs) {
            prop_assert!(error.to_string().contains(&query));
        }
    }

    #[test]
    fn a_sweep_takes_what_every_limit_lets_go(rule in retention(), jobs in ended(), now_ms in 0..60u64) {
        let taken = rule.takes(jobs.clone(), now_ms);
        for job in &jobs {
            let expected = goes_twin(&rule, job, &jobs, now_ms);
            prop_assert_eq!(taken.contains(&job.id), expected, "{:?}", job);
        }
        let end_of = |id: &JobId| jobs.iter().find(|job| job.id == *id).map(|job| job.ended_at_ms);
        prop_assert!(taken.windows(2).all(|pair| end_of(&pair[0]) <= end_of(&pair[1])));
    }

    #[test]
    fn a_sweep_keeps_nothing_older_than_what_it_takes(rule in retention(), jobs in ended(), now_ms: u64) {
        let taken = rule.takes(jobs.clone(), now_ms);
        let (gone, kept): (Vec<_>, Vec<_>) = jobs.iter().partition(|job| taken.contains(&job.id));
        for gone in &gone {
            prop_assert!(kept.iter().all(|kept| kept.ended_at_ms >= gone.ended_at_ms));
        }
        // A second sweep finds nothing more, and the order of the list says nothing.
        let kept: Vec<Ended> = kept.into_iter().cloned().collect();
        prop_assert_eq!(rule.takes(kept, now_ms), Vec::<JobId>::new());
        prop_assert_eq!(rule.takes(jobs.into_iter().rev().collect(), now_ms), taken);
    }

    #[test]
    fn waits_grow_to_the_cap_and_jitter_stays_below_the_ceiling(
        retry in retry(), failures in prop_oneof![0..80u32, any::<u32>()], random: u64,
    ) {
        let ceiling = retry.ceiling_ms(failures);
        prop_assert!(ceiling <= retry.max_backoff_ms);
        prop_assert!(ceiling <= retry.ceiling_ms(failures.saturating_add(1)));
        let doubled = u128::from(retry.backoff_ms) << failures.saturating_sub(1).min(63);
        prop_assert_eq!(u128::from(ceiling), doubled.min(u128::from(retry.max_backoff_ms)));
        prop_assert!(retry.delay_ms(failures, random) <= ceiling);
        // Full jitter: both ends can be drawn.
        prop_assert_eq!(retry.delay_ms(failures, 0), 0);
        prop_assert_eq!(retry.delay_ms(failures, ceiling), ceiling);
    }

    #[test]
    fn a_job_is_tried_as_often_as_was_asked_and_at_least_once(retry in retry()) {
        let mut attempts = 1;
        while retry.allows_another(attempts, 1) {
            attempts += 1;
        }
        prop_assert_eq!(attempts, retry.max_attempts.max(1));
    }

    #[test]
    fn failures_are_counted_until_an_attempt_was_healthy(retry in retry(), before: u32, ran_ms: u64) {
        let counted = retry.failures_in_a_row(before, ran_ms);
        let healthy = ran_ms >= retry.healthy_after_ms;
        prop_assert_eq!(counted, if healthy { 1 } else { before.saturating_add(1) });
        prop_assert!(counted >= 1);
    }

    #[test]
    fn only_the_words_are_requests(
        bytes in prop_oneof![
            vec(any::<u8>(), 0..60),
            "[ \\t\\r\\n]{0,2}(pause|resume|cancel|stop|)[ \\t\\r\\n]{0,2}".prop_map(String::into_bytes),
            "(pause|resume|cancel|stop)?.{0,3}(pause|resume|cancel|stop)".prop_map(String::into_bytes),
        ],
    ) {
        let text = String::from_utf8_lossy(&bytes);
        let word = text.trim_matches([' ', '\t', '\n', '\r', '\x0c']);
        match Control::decode(&bytes) {
            Control::Asked(Request::Cancel) => prop_assert!(word == "cancel" || word == "stop"),
            Control::Asked(request) => prop_assert_eq!(word, request.word()),
            Control::Empty => prop_assert_eq!(word, ""),
            Control::Unknown(kept) => {
                prop_assert!(!["", "pause", "resume", "cancel", "stop"].contains(&word));
                prop_assert!(!kept.is_empty() && kept.chars().count() <= 40);
            }
        }
    }

    #[test]
    fn a_request_that_is_torn_is_no_other_request(at: proptest::sample::Index) {
        for request in Request::ALL {
            let bytes = Control::encode(request);
            let cut = at.index(bytes.len() - 1);
            let torn = Control::decode(&bytes[..cut]);
            prop_assert!(!matches!(torn, Control::Asked(_)), "{torn:?}");
        }
    }
}
