//! What is on disk and on the path: files to be compared, locked and executed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{FlockOperation, flock};

/// Every file below a directory, by its path from there, without the entries of these names at its top.
///
/// # Panics
///
/// When it cannot be read.
pub fn tree_of(dir: &Path, without: &[&str]) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(at) = dirs.pop() {
        for entry in fs::read_dir(&at).into_iter().flatten().flatten() {
            let is_top = at == dir;
            if is_top
                && without
                    .iter()
                    .any(|name| OsStr::new(name) == entry.file_name())
            {
                continue;
            }
            let path = entry.path();
            if entry.file_type().expect("it is there").is_dir() {
                dirs.push(path);
                continue;
            }
            let name = path
                .strip_prefix(dir)
                .expect("it is below")
                .as_os_str()
                .as_bytes();
            let bytes = fs::read(&path).expect("it can be read");
            files.insert(String::from_utf8_lossy(name).into_owned(), bytes);
        }
    }
    files
}

/// Whether this lock is to be had. It is given back at once, by name: a child that another test starts at this moment has the
/// description too until it has executed something, and to close the file would leave the lock with that.
pub fn could_lock(file: &File, operation: FlockOperation) -> bool {
    let is_free = flock(file, operation).is_ok();
    if is_free {
        flock(file, FlockOperation::Unlock).expect("it is locked");
    }
    is_free
}

/// A copy of a program, to be executed. Another process makes it: what this one has open for writing, a child that another
/// test starts at this moment has open too until it has executed something, and no such file can be executed.
///
/// # Panics
///
/// When it cannot be made.
pub fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-p").arg(from).arg(to).status();
    assert!(copied.is_ok_and(|status| status.success()), "{from:?}");
}

/// Where a program is that a test needs and can do without; what is left out is said.
pub fn program_at(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    dirs.extend(["/usr/bin", "/usr/sbin", "/usr/local/bin"].map(PathBuf::from));
    let found = dirs
        .iter()
        .map(|dir| dir.join(name))
        .find(|path| path.is_file());
    if found.is_none() {
        eprintln!("left out: there is no {name} here");
    }
    found
}
