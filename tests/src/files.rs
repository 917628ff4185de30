//! What is on disk and on the path, for tests that compare.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

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
