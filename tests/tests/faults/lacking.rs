//! Faults that the kernel makes itself, so that the disk's own handling of them is tried too, short writes among it: a limit
//! on the size of files, a limit on open descriptors, a file system without free inodes or free pages.
//!
//! Limits are those of a process, so this runs in one of its own: this test's own program, started again to run
//! [`lacks_what_it_is_told`] alone, with SIGXFSZ ignored.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use outlive_tests::TmpFs;
use outlive_tests::disks::Failing;
use rustix::fs::statvfs;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::trial::Trial;
use crate::{STARTING, scratch, see_that_nothing_was_found};

/// What tells the child where to work.
const ORDER: &str = "OUTLIVE_TEST_LACK";
/// So many combinations are tried at least by limits alone, which need no privilege.
const AT_LEAST: usize = 6_000;
/// And so many of them must have run into their limit.
const FAILED_AT_LEAST: usize = 2_000;

/// What there is too little of.
#[derive(Clone, Copy, Debug)]
enum Lack {
    /// No file may grow past so many bytes: what crosses it is cut short (EFBIG).
    FileSize(u64),
    /// So many more descriptors can be opened (EMFILE).
    Descriptors(u64),
    /// So many more files can be made (ENOSPC).
    Inodes(u64),
    /// So many more pages can be filled (ENOSPC).
    Pages(u64),
}

const LIMITS: &[Lack] = &[
    Lack::FileSize(0),
    Lack::FileSize(1),
    Lack::FileSize(5),
    Lack::FileSize(40),
    Lack::FileSize(70),
    Lack::FileSize(110),
    Lack::FileSize(150),
    Lack::FileSize(200),
    Lack::FileSize(270),
    Lack::FileSize(350),
    // Half the room of a spare: the whole descriptor, and not all of the blanks behind it.
    Lack::FileSize(4096),
    Lack::Descriptors(0),
    Lack::Descriptors(1),
    Lack::Descriptors(2),
];

const FULL: &[Lack] = &[
    Lack::Inodes(0),
    Lack::Inodes(1),
    Lack::Inodes(2),
    Lack::Inodes(3),
    Lack::Inodes(4),
    Lack::Pages(0),
    Lack::Pages(1),
    Lack::Pages(2),
];

/// Ends the lack when it is dropped.
enum Lasting {
    Limit(Resource, Rlimit),
    Filler(PathBuf),
}

impl Lack {
    fn begin(self, mount: &Path) -> Lasting {
        match self {
            Lack::FileSize(bytes) => limit(Resource::Fsize, bytes),
            Lack::Descriptors(more) => {
                let lowest = File::open("/dev/null").expect("there are descriptors left");
                limit(Resource::Nofile, lowest.as_raw_fd() as u64 + more)
            }
            Lack::Inodes(more) => {
                let filler = mount.join("filler");
                fs::create_dir(&filler).expect("there is room yet");
                let free = statvfs(mount).expect("it is mounted").f_ffree;
                for nth in more..free {
                    File::create(filler.join(nth.to_string())).expect("there is room yet");
                }
                Lasting::Filler(filler)
            }
            Lack::Pages(more) => {
                let filler = mount.join("filler");
                fs::create_dir(&filler).expect("there is room yet");
                let free = statvfs(mount).expect("it is mounted");
                let bytes = free.f_bavail.saturating_sub(more) * free.f_frsize;
                fs::write(filler.join("0"), vec![0; bytes as usize]).expect("there is room yet");
                Lasting::Filler(filler)
            }
        }
    }
}

fn limit(resource: Resource, current: u64) -> Lasting {
    let before = getrlimit(resource);
    let after = Rlimit {
        current: Some(current),
        maximum: before.maximum,
    };
    setrlimit(resource, after).expect("a limit can be lowered");
    Lasting::Limit(resource, before)
}

impl Drop for Lasting {
    fn drop(&mut self) {
        match self {
            Lasting::Limit(resource, before) => {
                let _ = setrlimit(*resource, *before);
            }
            Lasting::Filler(dir) => {
                let _ = fs::remove_dir_all(dir);
            }
        }
    }
}

#[test]
fn a_kernel_that_lacks_something_leaves_a_legal_store() {
    if std::env::var_os(ORDER).is_some() {
        return;
    }
    let scratch = scratch();
    let program = std::env::current_exe().expect("this program has a path");
    let alone = STARTING.write();
    let child = Command::new("sh")
        .args(["-c", r#"trap "" XFSZ; exec "$0" "$@""#])
        .arg(program)
        .args(["--exact", "lacking::lacks_what_it_is_told", "--nocapture"])
        .env(ORDER, scratch.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("this program can be started again");
    drop(alone);
    let ended = child.wait_with_output().expect("it is our child");
    let said = String::from_utf8_lossy(&ended.stdout);
    print!("{said}");
    let complaint = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{complaint}");
    assert!(
        said.contains("lacking something"),
        "it did what it was told"
    );
}

/// Not a test by itself: what the process with the limits runs.
#[test]
fn lacks_what_it_is_told() {
    let Some(order) = std::env::var_os(ORDER) else {
        return;
    };
    let scratch = PathBuf::from(order);
    let (tried, failed, mut found) = try_all(&scratch, LIMITS);
    println!("{tried} combinations of protocol, scene and limit, {failed} lacking something");
    if let Some(_mounted) = TmpFs::mount(&scratch.join("small"), "1m,nr_inodes=64") {
        let (tried, failed, more) = try_all(&scratch.join("small"), FULL);
        println!("{tried} with a full file system, {failed} lacking something");
        found.extend(more);
    }
    see_that_nothing_was_found(&found);
    assert!(tried >= AT_LEAST, "only {tried} were tried");
    assert!(failed >= FAILED_AT_LEAST, "only {failed} met their limit");
}

/// Try every protocol in every scene with each lack: how many, how many of them failed, and what was wrong.
fn try_all(parent: &Path, lacks: &[Lack]) -> (usize, usize, Vec<String>) {
    let root = parent.join("store");
    let (mut tried, mut failed, mut found) = (0, 0, Vec::new());
    for trial in Trial::all() {
        for lack in lacks {
            let others = trial.set(&root);
            let (told, _) = trial.run_under(&root, Failing::never(), || lack.begin(parent));
            drop(others);
            tried += 1;
            let mut wrong = trial.aftermath(&root, told.as_ref().ok());
            if let Err(fault) = told {
                failed += 1;
                let text = fault.to_string();
                let says = fault.path.starts_with(&root)
                    && text.contains(fault.operation)
                    && text.contains(&*fault.path.to_string_lossy());
                if !says {
                    wrong.push(format!("the error says too little: {text}"));
                }
            }
            let case = |why| format!("{trial:?}, {lack:?}: {why}");
            found.extend(wrong.into_iter().map(case));
        }
    }
    (tried, failed, found)
}
