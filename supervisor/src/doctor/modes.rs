//! Who can read what: a job's environment and output are its owner's alone. And what stands in a place where it does
//! not belong.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use state_machine::disk::Name;

use super::{Finding, Mend};
use crate::output::is_output;
use crate::pull::is_of_fetcher;

/// The mode of a file.
const FILE: u32 = 0o600;
/// The mode of a directory.
const DIRECTORY: u32 = 0o700;

/// The directory of a job and what is in it.
pub(super) fn of_job(dir: &Path) -> Vec<Finding> {
    let mut findings: Vec<Finding> = of_entry(dir, ".").into_iter().collect();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let shown = name.display().to_string();
        let Ok(metadata) = entry.path().symlink_metadata() else {
            continue;
        };
        if !is_ours(&name) {
            findings.push(Finding::note(
                format!("{shown} is no file of a job"),
                "harmless; it goes when the job is cleaned",
            ));
        } else if !metadata.is_file() {
            findings.push(Finding::problem(
                format!("{shown} is no plain file"),
                "move it away; what it stands for is lost",
            ));
        } else if !is_by_hand(&name) {
            findings.extend(of_entry(&entry.path(), &shown));
        }
    }
    findings
}

/// A directory or plain file, by its owner and mode.
pub(super) fn of_entry(path: &Path, shown: &str) -> Option<Finding> {
    let metadata = path.symlink_metadata().ok()?;
    let shown = if shown == "." { "its directory" } else { shown };
    let user = rustix::process::geteuid().as_raw();
    if metadata.uid() != user {
        return Some(Finding::problem(
            format!("{shown} belongs to user {}", metadata.uid()),
            "give it back to the owner of the store",
        ));
    }
    let (mode, wanted) = (metadata.mode() & 0o7777, wanted(&metadata)?);
    (mode != wanted).then(|| {
        Finding::problem(
            format!("{shown} has mode {mode:04o} and not {wanted:04o}"),
            "'outlive doctor --fix' sets it",
        )
        .mended_by(Mend::Chmod(path.to_owned(), wanted))
    })
}

fn wanted(metadata: &Metadata) -> Option<u32> {
    if metadata.is_dir() {
        Some(DIRECTORY)
    } else if metadata.is_file() {
        Some(FILE)
    } else {
        None
    }
}

/// A request may be written by any hand, whose mask it then has.
fn is_by_hand(name: &OsStr) -> bool {
    matches!(Name::in_job(name.as_bytes()), Name::Control | Name::Taken)
}

/// Whether a job's directory may hold a file of this name.
fn is_ours(name: &OsStr) -> bool {
    let known = !matches!(Name::in_job(name.as_bytes()), Name::Other(_));
    known
        || name
            .to_str()
            .is_some_and(|name| is_output(name) || is_of_fetcher(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_job_are_known_and_no_others() {
        for ours in [
            "job.json",
            "lock",
            "log",
            "log.1",
            "stderr.log.12",
            ".log.new",
            "parts",
        ] {
            assert!(is_ours(OsStr::new(ours)), "{ours}");
        }
        for strange in ["log.", "log.x", "log1", "notes", "job.json~", ".."] {
            assert!(!is_ours(OsStr::new(strange)), "{strange}");
        }
        assert!(!is_ours(OsStr::from_bytes(b"log.\xff")));
    }
}
