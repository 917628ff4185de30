//! The protocols that ship, on a disk that fails and on one that kills: every protocol, in every scene in which somebody can
//! come to call it, with a fault at every effect, with every error that the effect can end in ([`outlive_tests::disks`]
//! has the table), once, half way, and for ever; and with a death before and in every effect.
//!
//! And with errors that the kernel itself makes, for want of space, of inodes, of descriptors, and of room in a file.
//!
//! Afterwards a fresh process looks, recovers and collects, on a disk that works, and the store must be legal: told from
//! the files alone, and from what the caller was told. A fault must come back as an error that names the path and the
//! operation, and never as a panic or as a success.
//!
//! It is done on a tmpfs where there is one: a sync changes nothing that can be seen here, and takes its time.

mod act;
mod legal;
mod scene;
mod trial;

mod failing;
mod found_out;
mod killing;
mod lacking;

use std::path::{Path, PathBuf};
use std::sync::RwLock;

/// Written by whoever starts a process, read by whoever works with locks: a child that has not executed its program yet
/// has every description, and so every lock, of its parent (F8).
static STARTING: RwLock<()> = RwLock::new(());

/// A scratch directory, gone when it is dropped.
fn scratch() -> tempfile::TempDir {
    let shm = Path::new("/dev/shm");
    let on_tmpfs = rustix::fs::statfs(shm).is_ok_and(|stat| stat.f_type == 0x0102_1994);
    let parent = if on_tmpfs {
        shm.to_owned()
    } else {
        std::env::temp_dir()
    };
    tempfile::Builder::new()
        .prefix("outlive-faults-")
        .tempdir_in(parent)
        .expect("a scratch directory can be made")
}

/// Share work out among as many threads as there are processors, each with a directory of its own, and gather what each
/// came to.
fn in_parallel<T: Send, W: Send>(
    work: impl Iterator<Item = W>,
    each: impl Fn(&PathBuf, Vec<W>) -> T + Sync,
) -> Vec<T> {
    let scratch = scratch();
    let threads = std::thread::available_parallelism().map_or(2, |count| count.get());
    let mut shares: Vec<Vec<W>> = (0..threads).map(|_| Vec::new()).collect();
    for (nth, one) in work.enumerate() {
        shares[nth % threads].push(one);
    }
    std::thread::scope(|scope| {
        let running: Vec<_> = shares
            .into_iter()
            .enumerate()
            .map(|(nth, share)| {
                let root = scratch.path().join(nth.to_string());
                let each = &each;
                scope.spawn(move || each(&root, share))
            })
            .collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, T>| {
            thread
                .join()
                .unwrap_or_else(|failed| std::panic::resume_unwind(failed))
        };
        running.into_iter().map(join).collect()
    })
}

/// Say everything that was found, the first of it in full.
fn see_that_nothing_was_found(found: &[String]) {
    let shown = found
        .iter()
        .take(25)
        .cloned()
        .collect::<Vec<_>>()
        .join("\n");
    assert!(found.is_empty(), "{} findings:\n{shown}", found.len());
}
