//! Every fault at every effect.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use outlive_tests::disks::{Failing, Lasting, Outcome, errnos};
use rustix::io::Errno;

use crate::trial::Trial;
use crate::{STARTING, in_parallel, see_that_nothing_was_found};

/// So many combinations of protocol, scene, effect, error and duration are tried at least.
const AT_LEAST: usize = 45_000;

#[derive(Default)]
struct Share {
    tried: usize,
    found: Vec<String>,
}

#[test]
fn a_disk_that_fails_anywhere_leaves_a_legal_store() {
    let shares = in_parallel(Trial::all(), |root, trials| {
        let mut share = Share::default();
        for trial in trials {
            every_fault(trial, root, &mut share);
        }
        share
    });
    let tried: usize = shares.iter().map(|share| share.tried).sum();
    println!("{tried} combinations of protocol, scene, effect, error and duration");
    let found: Vec<_> = shares.into_iter().flat_map(|share| share.found).collect();
    see_that_nothing_was_found(&found);
    assert!(tried >= AT_LEAST, "only {tried} were tried");
}

fn every_fault(trial: Trial, root: &Path, share: &mut Share) {
    let nobody_starts = STARTING.read();
    let others = trial.set(root);
    let (told, never) = trial.run(root, Failing::never());
    drop(others);
    let effects = never.seen;
    let wrong = trial.aftermath(root, told.as_ref().ok());
    drop(nobody_starts);
    let also = told
        .err()
        .map(|fault| format!("a disk that works: {fault}"));
    let whole = wrong.into_iter().chain(also);
    share
        .found
        .extend(whole.map(|why| format!("{trial:?}, no fault: {why}")));
    for (at, &kind) in effects.iter().enumerate() {
        for &(errno, outcome) in errnos(kind) {
            for lasting in [Lasting::Once, Lasting::OnceHalfWay, Lasting::ForEver] {
                if lasting == Lasting::OnceHalfWay && !has_halves(kind, errno) {
                    continue;
                }
                share.tried += 1;
                let failing = Failing::new(at, errno, lasting);
                let wrong = one_fault(trial, root, failing, outcome);
                let case = format!("{trial:?}, {lasting:?} {errno} at effect {at}, {kind:?}");
                share
                    .found
                    .extend(wrong.into_iter().map(|why| format!("{case}: {why}")));
            }
        }
    }
}

/// Whether an effect can end in this error when half of it has happened.
fn has_halves(kind: outlive_tests::disks::Kind, errno: Errno) -> bool {
    use outlive_tests::disks::Kind;
    matches!(kind, Kind::Write | Kind::Fill | Kind::Append)
        && matches!(errno, Errno::NOSPC | Errno::DQUOT | Errno::FBIG | Errno::IO)
}

fn one_fault(trial: Trial, root: &Path, failing: Failing, outcome: Outcome) -> Vec<String> {
    let _nobody_starts = STARTING.read();
    let others = trial.set(root);
    let errno = failing.errno;
    let ran = catch_unwind(AssertUnwindSafe(|| trial.run(root, failing)));
    drop(others);
    let Ok((told, _)) = ran else {
        return vec!["it panics".into()];
    };
    let mut wrong = Vec::new();
    match (&told, outcome) {
        (Err(fault), _) => {
            let text = fault.to_string();
            let names_all = text.contains(fault.operation)
                && text.contains(&*fault.path.to_string_lossy())
                && fault.path.starts_with(root);
            if !names_all || fault.source.raw_os_error() != Some(errno.raw_os_error()) {
                wrong.push(format!("the error says too little: {text}"));
            }
        }
        (Ok(_), Outcome::Denied) => {}
        (Ok(_), Outcome::Fault) => wrong.push("the fault was swallowed".into()),
    }
    wrong.extend(trial.aftermath(root, told.as_ref().ok()));
    wrong
}
