//! Keys: whether each job under way that has a name or a destination is found by it, and by no other (R12).

use std::collections::BTreeMap;

use state_machine::disk::{Dir, Disk, Name, Place, Pointer, Read};
use state_machine::id::{JobId, Key};
use state_machine::protocol::look::View;
use state_machine::record::{Descriptor, Kind};

use super::root::of_lock;
use super::{Finding, Mend, kind, modes, names, or_unreadable, stray, unreadable};
use crate::error::Result;
use crate::store::Store;

/// Everything worth saying about the keys, and about the jobs under way that bear them.
pub(super) fn examine(store: &Store, jobs: &[Box<View>]) -> Result<Vec<Finding>> {
    let mut findings = of_files(store)?;
    for (key, bearers) in borne(jobs) {
        findings.extend(or_unreadable(of_bearers(store, &key, &bearers)));
    }
    Ok(findings)
}

/// The key that a job bears as long as it is under way. One of the numbered jobs of a task bears none: every start of those is
/// a new job.
pub(super) fn key_of(descriptor: &Descriptor) -> Option<Key> {
    if let Kind::Pull(pull) = &descriptor.kind {
        return Some(Key::of_destination(&pull.target()));
    }
    let name = descriptor
        .name
        .as_ref()
        .filter(|_| !is_numbered(descriptor));
    let project = descriptor.project.clone().unwrap_or_default();
    name.map(|name| Key::of_name(&project.0, name))
}

/// The key that a job was numbered under, and its number.
pub(super) fn number_of(descriptor: &Descriptor) -> Option<(Key, u64)> {
    let task = descriptor.task.as_ref()?;
    let (_, number) = descriptor.name.as_ref()?.as_str().rsplit_once('-')?;
    let project = descriptor.project.clone().unwrap_or_default();
    Some((Key::of_task(&project.0, task), number.parse().ok()?))
}

/// The name of a numbered job holds a dash, which no given name does.
fn is_numbered(descriptor: &Descriptor) -> bool {
    let name = descriptor.name.as_ref();
    name.is_some_and(|name| name.as_str().contains('-'))
}

/// The jobs under way by the key that each bears, oldest first.
fn borne(jobs: &[Box<View>]) -> BTreeMap<Key, Vec<JobId>> {
    let mut borne: BTreeMap<Key, Vec<JobId>> = BTreeMap::new();
    for view in jobs {
        if let Some(key) = key_of(&view.descriptor) {
            let bearers = borne.entry(key).or_default();
            bearers.push(view.descriptor.id.clone());
        }
    }
    borne
}

fn of_bearers(store: &Store, key: &Key, bearers: &[JobId]) -> Result<Vec<Finding>> {
    let mut disk = store.disk();
    let path = disk.path(&Dir::Keys.at(Name::Pointer(key.clone())));
    let pointed = match disk.read_pointer(key)? {
        Read::Value(pointer) => Some(pointer.job),
        Read::Absent => None,
        // Said of the file.
        Read::Damaged(_) => return Ok(Vec::new()),
    };
    // One that has ended since was rightly followed by another.
    let under_way: Vec<&JobId> = bearers
        .iter()
        .filter(|id| {
            let look = store.job(id).look();
            look.is_ok_and(|view| !view.state.is_terminal())
        })
        .collect();
    let finding = |kind, what: String, advice: String, id: &JobId| {
        Finding::new(kind, what, advice).at(&path).of(id)
    };
    Ok(match under_way.as_slice() {
        [one] if pointed.as_ref() != Some(one) => vec![
            finding(
                kind::KEY_ASTRAY,
                format!(
                    "keys/{}.json does not name it, so that another job of its name or destination could start beside it",
                    key.as_str()
                ),
                "'outlive doctor --fix' has it named".into(),
                one,
            )
            .mended_by(Mend::Point(key.clone())),
        ],
        [first, others @ ..] => others
            .iter()
            .map(|other| {
                finding(
                    kind::KEY_SHARED,
                    format!("it bears the same name or destination as {first}"),
                    format!("stop the one that is not wanted: outlive stop {other}"),
                    other,
                )
            })
            .collect(),
        [] => Vec::new(),
    })
}

fn of_files(store: &Store) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut stale = 0;
    let dir = store.root().join("keys");
    let mut disk = store.disk();
    for name in names(&dir)? {
        let (path, shown) = (dir.join(&name), format!("keys/{}", name.display()));
        let text = name.to_str().unwrap_or_default();
        // The next pointer of a start that was killed is written over by the next start.
        if text.ends_with(".lock") || text.ends_with(".json.new") {
            findings.extend(modes::of_entry(&path, &shown));
            if text.ends_with(".lock") {
                findings.extend(of_lock(&path, &shown));
            }
            continue;
        }
        let key = text
            .strip_suffix(".json")
            .and_then(|word| Key::parse(word).ok());
        let Some(key) = key else {
            findings.push(stray(&path, &shown));
            continue;
        };
        findings.extend(modes::of_entry(&path, &shown));
        let read = match disk.read_pointer(&key) {
            Ok(read) => read,
            Err(error) => {
                findings.push(unreadable(&error.into()));
                continue;
            }
        };
        match read {
            Read::Value(Pointer { job, .. }) => {
                // Where that cannot be seen it is said of the jobs.
                let there = disk.exists(&Place::Dir(Dir::Job(job))).unwrap_or(true);
                stale += usize::from(!there);
            }
            Read::Absent => {}
            Read::Damaged(why) => findings.push(
                Finding::new(
                    kind::KEY_GARBAGE,
                    format!("{shown} cannot be read: {why}"),
                    "no job can be started under that name or to that destination; 'outlive doctor --fix' mends it",
                )
                .at(&path)
                .mended_by(Mend::Point(key)),
            ),
        }
    }
    if stale > 0 {
        let what = format!("{stale} names were last used by jobs that are cleaned");
        let advice = "harmless; they number the next jobs of a task";
        findings.push(Finding::new(kind::KEY_STALE, what, advice).at(dir));
    }
    Ok(findings)
}
