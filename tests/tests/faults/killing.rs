//! A death before every effect, and in the middle of those that have one: by SIGKILL, in a process of its own.
//!
//! That process is this test's own program, started again to run [`dies_where_it_is_told`] alone.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use outlive_tests::disks::{Failing, Killing, Kind};

use crate::trial::Trial;
use crate::{STARTING, in_parallel, see_that_nothing_was_found};

/// So many deaths are died at least.
const AT_LEAST: usize = 3_500;
/// What tells the child what to do: the store, the number of the trial, of the effect, and whether half way.
const ORDER: &str = "OUTLIVE_TEST_DIE";

#[derive(Default)]
struct Share {
    died: usize,
    found: Vec<String>,
}

#[test]
fn a_death_anywhere_leaves_a_legal_store() {
    if std::env::var_os(ORDER).is_some() {
        return;
    }
    let shares = in_parallel(Trial::all().enumerate(), |root, trials| {
        let mut share = Share::default();
        for (number, trial) in trials {
            every_death(number, trial, root, &mut share);
        }
        share
    });
    let died: usize = shares.iter().map(|share| share.died).sum();
    println!("{died} combinations of protocol, scene and effect, each with a death");
    let found: Vec<_> = shares.into_iter().flat_map(|share| share.found).collect();
    see_that_nothing_was_found(&found);
    assert!(died >= AT_LEAST, "only {died} died");
}

fn every_death(number: usize, trial: Trial, root: &Path, share: &mut Share) {
    let nobody_starts = STARTING.read();
    let others = trial.set(root);
    let (_, never) = trial.run(root, Failing::never());
    drop((others, nobody_starts));
    for (at, kind) in never.seen.into_iter().enumerate() {
        let halves = matches!(kind, Kind::Write | Kind::Fill | Kind::Append);
        for half_way in [false, true].into_iter().take(1 + usize::from(halves)) {
            let nobody_starts = STARTING.read();
            let others = trial.set(root);
            drop(nobody_starts);
            let mut wrong = Vec::new();
            if !die(root, number, at, half_way) {
                wrong.push("it did not die".into());
            }
            let nobody_starts = STARTING.read();
            drop(others);
            share.died += 1;
            wrong.extend(trial.aftermath(root, None));
            drop(nobody_starts);
            let how = if half_way { "in" } else { "before" };
            let case = format!("{trial:?}, dies {how} effect {at}, {kind:?}");
            share
                .found
                .extend(wrong.into_iter().map(|why| format!("{case}: {why}")));
        }
    }
}

/// Run the trial in a process that is killed. Whether it was.
fn die(root: &Path, number: usize, at: usize, half_way: bool) -> bool {
    let program = std::env::current_exe().expect("this program has a path");
    let order = format!("{number} {at} {half_way} {}", root.display());
    let alone = STARTING.write();
    let mut child = Command::new(program)
        .args([
            "--exact",
            "killing::dies_where_it_is_told",
            "--test-threads",
            "1",
        ])
        .env(ORDER, order)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("this program can be started again");
    // It has executed its program: that is what spawning waits for.
    drop(alone);
    let ended = child.wait().expect("it is our child");
    ended.signal() == Some(9)
}

/// Not a test by itself: what the process that is to be killed runs.
#[test]
fn dies_where_it_is_told() {
    let Ok(order) = std::env::var(ORDER) else {
        return;
    };
    let mut words = order.splitn(4, ' ');
    let mut word = || words.next().expect("an order has four words");
    let number: usize = word().parse().expect("a number");
    let at = word().parse().expect("a number");
    let half_way = word().parse().expect("true or false");
    let root = PathBuf::from(word());
    let trial = Trial::all().nth(number).expect("a trial of this number");
    let _ = trial.run(&root, Killing::new(at, half_way));
}
