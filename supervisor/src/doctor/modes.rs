//! Who can read what: a job's environment and output are its owner's alone. And what stands in a place where it does
//! not belong.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use state_machine::disk::Name;
use state_machine::id::JobId;

use super::{Finding, Mend, kind};
use crate::output::is_output;
use crate::pull::is_of_fetcher;

/// The mode of a file.
const FILE: u32 = 0o600;
/// The mode of a directory.
const DIRECTORY: u32 = 0o700;

/// The directory of a job and what is in it.
pub(super) fn of_job(id: &JobId, dir: &Path) -> Vec<Finding> {
    let mut findings: Vec<Finding> = of_entry(dir, "its directory").into_iter().collect();
    for_each(dir, |path, name, shown, metadata| {
        let odd = |mend| {
            let what = format!("{shown} is no plain file");
            let advice = "move it away; what it stands for is lost";
            Finding::new(kind::ODD_FILE, what, advice)
                .at(path)
                .mended_by(mend)
        };
        findings.extend(match Name::in_job(name.as_bytes()) {
            Name::Other(_) if !is_ours(name) => Some(no_file_of_a_job(path, shown)),
            // What else is wrong where one of these is no plain file is said by whoever reads it.
            Name::Lock | Name::Descriptor | Name::Status if !metadata.is_file() => None,
            // The next holder throws it away.
            Name::Control | Name::Taken => None,
            Name::Events if !metadata.is_file() => Some(odd(Mend::Rewrite(id.clone()))),
            _ if !metadata.is_file() => Some(odd(Mend::SetFileAside(id.clone(), name.to_owned()))),
            _ => of_entry(path, shown),
        });
    });
    findings
}

/// A directory that is laid in, and what is in it.
pub(super) fn of_spare(dir: &Path) -> Vec<Finding> {
    let mut findings: Vec<Finding> = of_entry(dir, "its directory").into_iter().collect();
    for_each(dir, |path, name, shown, metadata| {
        findings.extend(if is_ours(name) && metadata.is_file() {
            of_entry(path, shown)
        } else {
            Some(no_file_of_a_job(path, shown))
        });
    });
    findings
}

fn for_each(dir: &Path, mut see: impl FnMut(&Path, &OsStr, &str, &Metadata)) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if let Ok(metadata) = path.symlink_metadata() {
            see(&path, &name, &name.display().to_string(), &metadata);
        }
    }
}

fn no_file_of_a_job(path: &Path, shown: &str) -> Finding {
    Finding::new(
        kind::STRAY,
        format!("{shown} is no file of a job"),
        "harmless; it goes when the job is cleaned",
    )
    .at(path)
}

/// A directory or plain file, by its owner and mode.
pub(super) fn of_entry(path: &Path, shown: &str) -> Option<Finding> {
    let metadata = path.symlink_metadata().ok()?;
    let user = rustix::process::geteuid().as_raw();
    if metadata.uid() != user {
        let finding = Finding::new(
            kind::OWNER,
            format!("{shown} belongs to user {}", metadata.uid()),
            format!(
                "see who put it there; then give it back to the owner of the store, as root: chown -h {user} {}",
                path.display()
            ),
        );
        return Some(finding.at(path));
    }
    let (mode, wanted) = (metadata.mode() & 0o7777, wanted(&metadata)?);
    (mode != wanted).then(|| {
        Finding::new(
            kind::MODE,
            format!("{shown} has mode {mode:04o} and not {wanted:04o}"),
            "'outlive doctor --fix' sets it",
        )
        .at(path)
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

/// Whether a job's directory may hold a file of this name.
fn is_ours(name: &OsStr) -> bool {
    let known = !matches!(Name::in_job(name.as_bytes()), Name::Other(_));
    known
        || name
            .to_str()
            .is_some_and(|name| is_output(name) || is_of_fetcher(name) || is_displaced(name))
}

/// Whether it is what a worker found in the place of a log and moved out of its way.
fn is_displaced(name: &str) -> bool {
    name.split_once(".displaced")
        .is_some_and(|(log, _)| is_output(log))
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
            "log.displaced-2",
        ] {
            assert!(is_ours(OsStr::new(ours)), "{ours}");
        }
        for strange in ["log.", "log.x", "log1", "notes", "job.json~", ".."] {
            assert!(!is_ours(OsStr::new(strange)), "{strange}");
        }
        assert!(!is_ours(OsStr::from_bytes(b"log.\xff")));
    }
}
