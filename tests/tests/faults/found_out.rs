//! Stores that are wrong in one thing each. What looks for faults must find each, or the other tests here show nothing.

use std::fs;
use std::path::Path;

use crate::legal::{Expected, faults};
use crate::scene::{Scene, job};
use crate::scratch;

/// What is wrong, in what was a legal store, and a word of what must be said about it.
type Wrong = (Scene, fn(&Path, &Path), &'static str);

const WRONG: &[Wrong] = &[
    (
        Scene::Queued,
        |root, _| fs::create_dir(root.join("staging/t")).unwrap(),
        "is left",
    ),
    (
        Scene::Queued,
        |root, _| fs::write(root.join("trash/t"), "").unwrap(),
        "is left",
    ),
    (
        Scene::Queued,
        |_, job| fs::remove_file(job.join("job.json")).unwrap(),
        "descriptor",
    ),
    (
        Scene::Queued,
        |_, job| fs::write(job.join("job.json"), r#"{"id":"another"}"#).unwrap(),
        "descriptor",
    ),
    (
        Scene::Queued,
        |_, job| fs::remove_file(job.join("lock")).unwrap(),
        "its lock",
    ),
    (
        Scene::Ended,
        |_, job| fs::write(job.join("status.json"), r#"{"state":"do"#).unwrap(),
        "cannot be read",
    ),
    (
        Scene::Ended,
        |_, job| append(job, r#"{"at_ms":1,"event":"state","state":"running"}"#),
        "goes from 'done' to running",
    ),
    (
        Scene::Ended,
        |_, job| fs::write(job.join("events.jsonl"), "").unwrap(),
        "its history",
    ),
    (
        Scene::Ended,
        |_, job| {
            let status = job.join("status.json");
            let text = fs::read_to_string(&status).unwrap();
            fs::write(status, text.replace(r#""code":0"#, r#""code":1"#)).unwrap();
        },
        "has changed",
    ),
    (Scene::Abandoned, |_, _| {}, "nobody runs it"),
    (Scene::Torn, |_, _| {}, "nobody runs it"),
    (Scene::QueuedPause, |_, _| {}, "unanswered"),
    (Scene::AbandonedTaken, |_, _| {}, "unanswered"),
    (Scene::WrongWord, |_, _| {}, "unanswered"),
    (
        Scene::Named,
        |root, _| fs::write(root.join("keys/name-web.json"), "{").unwrap(),
        "cannot be read",
    ),
    (
        Scene::Queued,
        |_, job| fs::remove_dir_all(job).unwrap(),
        "is not there",
    ),
    (
        Scene::Queued,
        |_, job| fs::remove_dir_all(job).unwrap(),
        "is None",
    ),
    (
        Scene::Queued,
        |_, job| fs::write(job.join("notes"), "").unwrap(),
        "notes is in it",
    ),
    (
        Scene::SpareQueued,
        |root, _| fs::write(root.join("spares/0/job.json"), half_filled()).unwrap(),
        "its job.json is not as it was laid in",
    ),
    (
        Scene::SpareQueued,
        |root, _| fs::write(root.join("spares/0/job.json"), "\n").unwrap(),
        "its job.json is not as it was laid in",
    ),
    (
        Scene::SpareQueued,
        |root, _| fs::write(root.join("spares/0/log"), "said\n").unwrap(),
        "its log is not as it was laid in",
    ),
    (
        Scene::SpareQueued,
        |root, _| fs::remove_file(root.join("spares/0/lock")).unwrap(),
        "its lock is not as it was laid in",
    ),
    (
        Scene::SpareQueued,
        |root, _| fs::write(root.join("spares/0/status.json"), "").unwrap(),
        "status.json is in it",
    ),
    (
        Scene::SpareQueued,
        |root, _| fs::rename(root.join("spares/0"), root.join("spares/4")).unwrap(),
        "there is no such number",
    ),
    (
        Scene::SpareOdd,
        |root, _| fs::write(root.join("spares/0/notes"), "not mine\n").unwrap(),
        "has changed",
    ),
];

/// The beginning of a descriptor in room for a whole one.
fn half_filled() -> Vec<u8> {
    let mut bytes = br#"{"id":"1000-x","ki"#.to_vec();
    bytes.resize((8 << 10) - 1, b' ');
    bytes.push(b'\n');
    bytes
}

fn append(job: &Path, line: &str) {
    let events = job.join("events.jsonl");
    let mut text = fs::read_to_string(&events).unwrap();
    text.push_str(line);
    fs::write(events, text).unwrap();
}

#[test]
fn a_store_that_is_wrong_is_found_out() {
    let scratch = scratch();
    for (nth, (scene, spoil, word)) in WRONG.iter().enumerate() {
        let root = scratch.path().join(nth.to_string());
        fs::create_dir(&root).expect("the scratch directory is ours");
        scene.make(&root);
        let dir = root.join("jobs").join(job().as_str());
        let status = format!("jobs/{}/status.json", job());
        let kept = fs::read(root.join(&status)).map(|bytes| (status, bytes));
        spoil(&root, &dir);
        let expected = Expected {
            rest: vec![scene.rest().map(|state| state.to_string())],
            made: vec![job().as_str().to_owned()],
            pool: Vec::new(),
            kept: kept.into_iter().collect(),
            may_ask: false,
            odd_spare: scene.odd_spare(),
        };
        let found = faults(&root, job().as_str(), &expected);
        assert!(
            found.iter().any(|why| why.contains(word)),
            "{scene:?}, number {nth}: '{word}' is not in {found:?}"
        );
    }
}

#[test]
fn a_lock_that_is_held_is_found_out() {
    let scratch = scratch();
    for (scene, word) in [
        (Scene::Held, "its lock is held"),
        (Scene::Orphaned, "its tree is held"),
        (Scene::SpareHeld, "spares/0: its lock is held"),
    ] {
        let root = scratch.path().join(format!("{scene:?}"));
        fs::create_dir(&root).expect("the scratch directory is ours");
        let held = scene.make(&root);
        let found = faults(&root, job().as_str(), &Expected::default());
        assert!(
            found.iter().any(|why| why.contains(word)),
            "{scene:?}: {found:?}"
        );
        drop(held);
    }
}
