//! Any record there can be, with bytes that are no text and numbers at their ends. Nothing here knows how a record
//! is written.

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use state_machine::id::{JobId, Name, Token, slug};
use state_machine::job::State;
use state_machine::record::{
    Account, After, AfterWhen, Bytes, Claim, Command, Descriptor, Environment, Exit, Failure,
    Holder, Kind, Limits, Line, OnInterrupt, Outcome, Output, PauseMode, Progress, Pull, Slot,
    Status, Stopping, What,
};
use state_machine::retry::Retry;
use state_machine::slot;

/// What Unix takes as an argument, a path or a value: any bytes but NUL.
pub(crate) fn bytes() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        "[a-z/=]{0,8}".prop_map(String::into_bytes),
        "[^\\x00]{0,8}".prop_map(String::into_bytes),
        vec(1..=255u8, 0..8),
    ]
    .prop_map(Bytes)
}

/// An environment, with doubles, empty names and names that are no text.
pub(crate) fn environment() -> impl Strategy<Value = Environment> {
    vec((bytes(), bytes()), 0..5).prop_map(Environment)
}

/// A number, at its ends more often than elsewhere.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(u64::MAX), any::<u64>(), 0..100u64]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z ]{0,8}", "(?s).{0,8}"]
}

fn token() -> impl Strategy<Value = Token> {
    (number(), text()).prop_map(|(at, text)| {
        Token::parse(&format!("{at}-{}", slug(&text))).expect("it is a word")
    })
}

fn id() -> impl Strategy<Value = JobId> {
    (number(), text(), 1..=64u32).prop_map(|(at, text, nth)| JobId::new(at, &slug(&text), nth))
}

/// Any state of a job.
pub(crate) fn state() -> impl Strategy<Value = State> {
    proptest::sample::select(State::ALL.to_vec())
}

fn kind() -> impl Strategy<Value = Kind> {
    let command = (vec(bytes(), 0..4), bytes(), environment(), of(any::<u32>())).prop_map(
        |(argv, cwd, env, umask)| {
            Kind::Command(Command {
                argv,
                cwd,
                env,
                umask,
            })
        },
    );
    let what = (text(), text(), bytes(), of(text()), of(text()));
    let how = (
        vec(text(), 0..3),
        vec(text(), 0..3),
        of(any::<u32>()),
        of(number()),
        of(any::<u32>()),
        environment(),
    );
    let pull = (what, how).prop_map(|(what, how)| {
        let (provider, reference, destination, revision, digest) = what;
        let (include, exclude, connections, idle_ms, umask, env) = how;
        Kind::Pull(Pull {
            provider,
            reference,
            destination,
            revision,
            digest,
            include,
            exclude,
            connections,
            idle_ms,
            umask,
            env,
        })
    });
    prop_oneof![command, pull]
}

fn after() -> impl Strategy<Value = After> {
    let when =
        proptest::sample::select(vec![AfterWhen::Success, AfterWhen::Failure, AfterWhen::End]);
    (id(), when).prop_map(|(job, when)| After { job, when })
}

fn retry() -> impl Strategy<Value = Retry> {
    let numbers = (any::<u32>(), number(), number(), number());
    (numbers, any::<bool>(), any::<bool>()).prop_map(
        |((max_attempts, backoff_ms, max_backoff_ms, healthy_after_ms), in_a_row, always)| Retry {
            max_attempts,
            in_a_row,
            always,
            backoff_ms,
            max_backoff_ms,
            healthy_after_ms,
        },
    )
}

/// Any descriptor.
pub(crate) fn descriptor() -> impl Strategy<Value = Descriptor> {
    let names = (
        id(),
        kind(),
        text(),
        of((text(), any::<u64>())),
        of(text()),
        of(bytes()),
        of(text()),
    );
    let times = (
        any::<i32>(),
        vec(after(), 0..3),
        of(number()),
        retry(),
        any::<bool>(),
        number(),
        of(number()),
        number(),
    );
    let rest = (
        (of(number()), of(any::<u32>()), any::<bool>()),
        of(bytes()),
        vec(any::<u8>(), 0..3),
        of(vec(bytes(), 0..3)),
        of(number()),
        of(id()),
        (any::<u32>(), any::<u32>(), of(number()), any::<bool>()),
        (
            of(vec(bytes(), 0..3)),
            vec(text(), 0..3),
            any::<bool>(),
            (of(number()), of(any::<u32>())),
        ),
    );
    (names, times, rest).prop_map(|(names, times, rest)| {
        let (id, kind, display_name, name, task, project, pool) = names;
        let (priority, after, timeout_ms, retry, stop, grace_ms, not_before_ms, created_at_ms) =
            times;
        let (output, stdin, success_codes, on_end, total_bytes, previous, queue, service) = rest;
        let (max_bytes, keep, split) = output;
        let (on_failure, watch, notify, (memory_bytes, cpu_percent)) = service;
        let (slots, order, delay_ms, resumes) = queue;
        Descriptor {
            id,
            kind,
            display_name,
            name: name.and_then(|(task, nth)| Name::of_task(&task, nth).ok()),
            task,
            project,
            pool,
            slots,
            order,
            priority,
            after,
            timeout_ms,
            retry,
            pause: if stop {
                PauseMode::Stop
            } else {
                PauseMode::Freeze
            },
            grace_ms,
            output: Output {
                max_bytes,
                keep,
                split,
            },
            stdin,
            success_codes,
            not_before_ms,
            delay_ms,
            on_interrupt: if resumes {
                OnInterrupt::Resume
            } else {
                OnInterrupt::Leave
            },
            on_end,
            on_failure,
            watch,
            notify,
            limits: Limits {
                memory_bytes,
                cpu_percent,
            },
            total_bytes,
            previous,
            created_at_ms,
        }
    })
}

/// Any status.
pub(crate) fn status() -> impl Strategy<Value = Status> {
    let failures = vec![
        Failure::Timeout,
        Failure::Missing,
        Failure::NotExecutable,
        Failure::Files,
        Failure::TooLong,
        Failure::Start,
        Failure::Dependency,
        Failure::Transfer,
    ];
    let progress = (number(), of(number()), number(), of(number())).prop_map(
        |(done_bytes, total_bytes, files_done, files_total)| Progress {
            done_bytes,
            total_bytes,
            files_done,
            files_total,
        },
    );
    let account = (number(), number(), number(), number()).prop_map(
        |(fetched_bytes, reused_bytes, discarded_bytes, retries)| {
            Box::new(Account {
                fetched_bytes,
                reused_bytes,
                discarded_bytes,
                retries,
            })
        },
    );
    let exit = prop_oneof![
        any::<u8>().prop_map(Exit::Code),
        any::<u8>().prop_map(Exit::Signal)
    ];
    let stopping =
        (number(), any::<u8>(), any::<bool>()).prop_map(|(since_ms, signal, forced)| Stopping {
            since_ms,
            signal,
            forced,
        });
    let what = (
        state(),
        progress,
        of(account),
        of(text()),
        of(text()),
        of(proptest::sample::select(failures)),
        of(exit),
        of(stopping),
    );
    let numbers = (
        any::<u32>(),
        of(any::<u32>()),
        of(any::<u32>()),
        of(any::<u32>()),
    );
    let times = (
        of(number()),
        of(number()),
        of(number()),
        of(number()),
        of(number()),
        number(),
    );
    (what, numbers, times).prop_map(|(what, numbers, times)| {
        let (state, progress, account, status_line, message, failure, exit, stopping) = what;
        let (attempt, pid, slot, leftovers) = numbers;
        let steps = attempt % 9;
        let (
            next_attempt_at_ms,
            started_at_ms,
            ended_at_ms,
            ready_at_ms,
            dropped_bytes,
            updated_at_ms,
        ) = times;
        Status {
            state,
            steps,
            progress,
            account,
            status_line,
            attempt,
            next_attempt_at_ms,
            message,
            failure,
            pid,
            slot,
            exit,
            stopping,
            started_at_ms,
            ended_at_ms,
            ready_at_ms,
            leftovers,
            dropped_bytes,
            updated_at_ms,
            lost: false,
        }
    })
}

/// Any line of a history.
pub(crate) fn line() -> impl Strategy<Value = Line> {
    let what = prop_oneof![
        state().prop_map(|state| What::State { state }),
        text().prop_map(|text| What::Status { text }),
        (any::<u32>(), text(), number()).prop_map(|(attempt, reason, delay_ms)| What::Retry {
            attempt,
            reason,
            delay_ms
        }),
    ];
    (number(), what).prop_map(|(at_ms, what)| Line { at_ms, what })
}

/// Any record of a slot.
pub(crate) fn slot() -> impl Strategy<Value = Slot> {
    let states = vec![
        slot::State::Idle,
        slot::State::Claimed,
        slot::State::Maintaining,
        slot::State::Broken,
    ];
    let holder = prop_oneof![
        id().prop_map(Holder::Job),
        Just(Holder::Session),
        Just(Holder::Maintenance)
    ];
    let claim = (token(), holder, any::<u32>(), number(), text(), text()).prop_map(
        |(token, holder, pid, started, boot_id, since)| Claim {
            token,
            holder,
            pid,
            started,
            boot_id,
            since,
        },
    );
    let outcome = prop_oneof![
        Just(Outcome::Succeeded),
        Just(Outcome::TimedOut),
        Just(Outcome::Interrupted),
        of(any::<u8>()).prop_map(|exit| Outcome::Failed { exit }),
    ];
    let texts = (of(text()), of(text()), of(text()), of(text()));
    let head = (
        any::<u32>(),
        proptest::sample::select(states),
        any::<bool>(),
    );
    (head, of(claim), of(outcome), texts).prop_map(|(head, claim, last_outcome, texts)| {
        let (number, state, returned) = head;
        let (last_maintained, last_succeeded, attempt_started, broken) = texts;
        Slot {
            number,
            state,
            claim,
            last_maintained,
            last_outcome,
            last_succeeded,
            attempt_started,
            returned,
            broken,
        }
    })
}
