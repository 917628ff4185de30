//! The modelled file system against the real one. It is the one part of the model that no protocol checks, and whatever it
//! gets wrong makes every proof that rests on it worthless. So random scripts of effects run on both, the answers are
//! compared one by one, and at the end the trees: names, contents, which names are one file, and who has locks.
//!
//! It is done on the file system of the temporary directory and on a tmpfs, 100,000 scripts each; `OUTLIVE_TEST_ROUNDS`
//! sets another number. A sync changes nothing that can be seen, and a disk takes its time for it: outside of a tmpfs only
//! one script in 1,000 has any.

mod answer;
mod compare;
mod lies;
mod script;
mod sides;

use std::collections::BTreeSet;
use std::path::Path;

use outlive_model::filesystem::Filesystem;
use outlive_tests::{Dice, rounds};
use state_machine::disk::{Dir, Name, Place};
use state_machine::id::{JobId, PoolName, Ticket, Token};

use compare::{Difference, Met, random, shrink};
use sides::Real;

/// How many scripts are run on each file system.
const SCRIPTS: usize = 100_000;
/// From so many on, everything that can be met must be.
const ENOUGH: usize = 20_000;
/// In how many directories a thread works by turns.
const ROOTS: usize = 32;

/// Every kind of effect with every kind of answer that it can have. All of them must be met, and no other may be.
const ANSWERS: &[(&str, &[&str])] = &[
    ("open shared", &["opened", "absent"]),
    ("open exclusive", &["opened", "absent", "denied"]),
    ("create", &["created", "exists", "absent"]),
    ("lock shared", &["yes", "no"]),
    ("lock exclusive", &["yes", "no"]),
    ("stands", &["yes", "no"]),
    ("close", &["done"]),
    ("release", &["done"]),
    ("exists", &["yes", "no"]),
    ("read descriptor", &["value", "absent", "damaged"]),
    ("read status", &["value", "absent", "damaged"]),
    ("read history", &["nothing", "lines", "undecodable", "torn"]),
    ("read control", &["absent", "request", "empty", "unknown"]),
    ("read pointer", &["value", "absent", "damaged"]),
    ("read pool", &["value", "absent", "damaged"]),
    ("read slot", &["value", "absent", "damaged"]),
    ("read session", &["value", "absent", "damaged"]),
    ("write", &["done", "absent", "fault"]),
    ("fill", &["done", "no room", "absent"]),
    ("append", &["done", "absent", "fault"]),
    ("sync", &["done", "absent", "not a directory"]),
    ("sync all", &["done"]),
    (
        "rename",
        &["done", "absent", "not empty", "not a directory", "fault"],
    ),
    (
        "rename new",
        &["done", "absent", "exists", "not a directory", "fault"],
    ),
    (
        "link",
        &["done", "absent", "exists", "not a directory", "fault"],
    ),
    (
        "unlink",
        &["done", "absent", "not empty", "not a directory"],
    ),
    ("mkdir", &["done", "exists", "absent", "not a directory"]),
    ("rmdir", &["done", "absent", "not empty", "not a directory"]),
    ("list", &["names", "empty", "absent"]),
    ("hand open", &["opened", "absent"]),
    ("hand write", &["done"]),
];

/// The place of a path, where it can be one.
fn place_of(path: &[u8]) -> Option<Place> {
    let path = std::str::from_utf8(path).ok()?;
    let words: Vec<_> = path.split('/').collect();
    let dir = |parent: &str, word: &str| {
        Some(match parent {
            "jobs" => Dir::Job(JobId::parse(word).ok()?),
            "staging" => Dir::Staged(Ticket::parse(word).ok()?),
            "trash" => Dir::Trashed(Ticket::parse(word).ok()?),
            "spares" => Dir::Spare(word.parse().ok()?),
            "pools" => Dir::Pool(PoolName::parse(word).ok()?),
            _ => return None,
        })
    };
    match words[..] {
        ["staging", word] => Some(Dir::Staging.at(Name::Request(Ticket::parse(word).ok()?))),
        [".", "supervisor.lock"] => Some(Dir::Root.at(Name::SupervisorLock)),
        ["sessions", word] => {
            let token = Token::parse(word.strip_suffix(".json")?).ok()?;
            Some(Dir::Sessions.at(Name::Session(token)))
        }
        ["pools", pool, "slots"] => Some(Place::Dir(Dir::Slots(PoolName::parse(pool).ok()?))),
        ["pools", pool, "slots", number] => {
            let pool = PoolName::parse(pool).ok()?;
            Some(Place::Dir(Dir::Slot(pool, number.parse().ok()?)))
        }
        ["pools", pool, "slots", number, name] => {
            let pool = PoolName::parse(pool).ok()?;
            Some(Dir::Slot(pool, number.parse().ok()?).at(name_of(name)))
        }
        [parent, word] => Some(Place::Dir(dir(parent, word)?)),
        [parent, word, name] => Some(dir(parent, word)?.at(name_of(name))),
        _ => None,
    }
}

/// A name in a directory that comes and goes: that of a pool can come to be anywhere.
fn name_of(name: &str) -> Name {
    match name {
        "pool.json" => Name::Pool,
        "pool.json.new" => Name::NewPool,
        "placement.lock" => Name::PlacementLock,
        "maintain.lock" => Name::MaintainLock,
        "slot.json" => Name::Slot,
        "slot.json.new" => Name::NewSlot,
        "occupancy" => Name::Occupancy,
        other => Name::in_job(other.as_bytes()),
    }
}

/// Run scripts in `parent`, shared out among threads, and see that everything was met.
fn compare_in(parent: &Path, threads: usize) {
    let scratch = tempfile::Builder::new()
        .prefix("outlive-compare-")
        .tempdir_in(parent)
        .expect("a scratch directory can be made");
    spread(scratch.path());
    let dice = Dice::new();
    let scripts = rounds(SCRIPTS);
    let met = std::thread::scope(|scope| {
        let share = |thread| {
            let (dice, scratch) = (&dice, scratch.path());
            move || run(scratch, dice, (thread..scripts).step_by(threads))
        };
        let running: Vec<_> = (0..threads).map(|nth| scope.spawn(share(nth))).collect();
        let mut all = Met::default();
        for one in running {
            let met = one
                .join()
                .unwrap_or_else(|failed| std::panic::resume_unwind(failed));
            all.add(met);
        }
        all
    });
    println!(
        "{scripts} scripts, {} effects in {}, which is {}",
        met.effects,
        parent.display(),
        kind_of(parent)
    );
    if scripts >= ENOUGH {
        see_that_all_was_met(&met, kind_of(parent) == TMPFS);
    }
}

/// Run the scripts of these numbers.
fn run(scratch: &Path, dice: &Dice, numbers: impl Iterator<Item = usize>) -> Met {
    let always_syncs = kind_of(scratch) == TMPFS;
    let mut roots: Vec<_> = (0..ROOTS)
        .map(|_| {
            let root = tempfile::tempdir_in(scratch).expect("the scratch directory is ours");
            // It goes with the scratch directory.
            Real::new(&root.keep())
        })
        .collect();
    let mut met = Met::default();
    for (nth, number) in numbers.enumerate() {
        let syncs = always_syncs || number % 1000 == 0;
        let real = &mut roots[nth % ROOTS];
        let own = dice.nth(number as u64);
        if let Err(course) = random(real, Filesystem::apply, own, syncs, &mut met) {
            let differ = shrink(real, Filesystem::apply, course);
            let at = scratch.display();
            panic!(
                "script {number} in {at}: the disks differ:\n{}",
                differ.told
            );
        }
    }
    met
}

fn see_that_all_was_met(met: &Met, on_tmpfs: bool) {
    let expected: BTreeSet<_> = ANSWERS
        .iter()
        .flat_map(|(kind, classes)| classes.iter().map(move |class| (*kind, *class)))
        .collect();
    let lacking: Vec<_> = expected
        .difference(&met.answers)
        // Elsewhere there are few syncs.
        .filter(|(kind, _)| on_tmpfs || !kind.starts_with("sync"))
        .collect();
    let surprising: Vec<_> = met.answers.difference(&expected).collect();
    assert!(lacking.is_empty(), "never met: {lacking:?}");
    assert!(surprising.is_empty(), "not in the table: {surprising:?}");
    assert!(
        met.differences.iter().eq(&Difference::ALL),
        "only these of the known differences were met, so the others are none: {:?}",
        met.differences
    );
}

/// Ask the file system to put the directories in `dir` far apart. Ext4 looks at every inode near by that was freed within
/// the last five seconds before it takes one, so that scripts in one place would spend half their time on that. Where it
/// cannot be had, the scripts only take longer.
fn spread(dir: &Path) {
    use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};
    if let Ok(opened) = std::fs::File::open(dir)
        && let Ok(flags) = ioctl_getflags(&opened)
    {
        let _ = ioctl_setflags(&opened, flags | IFlags::TOPDIR);
    }
}

const TMPFS: &str = "a tmpfs";

/// The file system of a directory, in words.
fn kind_of(dir: &Path) -> &'static str {
    match rustix::fs::statfs(dir).map(|stat| stat.f_type) {
        Ok(0x0102_1994) => TMPFS,
        Ok(0xef53) => "ext4",
        _ => "neither ext4 nor a tmpfs",
    }
}

#[test]
fn the_model_and_the_disk_agree_in_the_temporary_directory() {
    // Two, as these scripts take longer than those of the other test, which has the rest of the machine.
    compare_in(&std::env::temp_dir(), 2);
}

#[test]
fn the_model_and_the_disk_agree_on_a_tmpfs() {
    let dir = Path::new("/dev/shm");
    if kind_of(dir) != TMPFS {
        eprintln!("NOT COMPARED ON A TMPFS: {} is none", dir.display());
        return;
    }
    compare_in(dir, 1);
}
