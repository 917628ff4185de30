//! The root of a store: its directories, its locks, its configuration, and what else stands in it.

use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use super::{Finding, Mend, kind, modes, names, stray};
use crate::dial::reach;
use crate::error::Result;
use crate::store::{DIRECTORIES, Store};

/// Where what cannot be read is set aside.
pub(super) const BROKEN: &str = "broken";

/// What may stand in the root of a store.
const ROOT: [&str; 17] = [
    "format",
    "listing",
    "supervisor.lock",
    "supervisor.log",
    "supervisor.log.1",
    "supervisor.sock",
    "supervisor.sock.new",
    "config.toml",
    "jobs",
    "keys",
    "pools",
    "sessions",
    "spares",
    "artifacts",
    "staging",
    "trash",
    "lost+found",
];

/// Without these nothing can be done.
const NEEDED: [&str; 4] = ["jobs", "keys", "staging", "trash"];

/// What in there may have any mode.
const FREE: [&str; 4] = [
    "config.toml",
    "lost+found",
    "supervisor.sock",
    "supervisor.sock.new",
];

/// Everything worth saying about the root.
pub(super) fn examine(store: &Store) -> Result<Vec<Finding>> {
    let root = store.root();
    let mut findings = Vec::new();
    for name in names(root)? {
        let (path, shown) = (root.join(&name), name.display().to_string());
        // The format of a store is written aside first; what a crash leaves of that is never read.
        let known =
            ROOT.contains(&shown.as_str()) || shown == BROKEN || shown.starts_with("format.");
        if !known {
            findings.push(stray(&path, &format!("{shown} in the store")));
        // What people write is theirs; a socket has no mode that matters in a closed directory.
        } else if !FREE.contains(&shown.as_str()) {
            findings.extend(modes::of_entry(&path, &shown));
        }
    }
    findings.extend(directories(root));
    findings.extend(of_lock(&root.join("supervisor.lock"), "supervisor.lock"));
    findings.extend(of_socket(root));
    findings.extend(set_aside(root)?);
    if let Err(error) = store.config() {
        findings.push(
            Finding::new(
                kind::CONFIG,
                super::told(&error),
                "correct it; until then nothing new is started, as nobody knows what was wanted",
            )
            .at(root.join("config.toml")),
        );
    }
    Ok(findings)
}

fn directories(root: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in DIRECTORIES.into_iter().chain([BROKEN]) {
        let path = root.join(name);
        let advice = "'outlive doctor --fix' makes it";
        let finding = match path.symlink_metadata() {
            // One that somebody has put elsewhere is his affair.
            _ if path.is_dir() => continue,
            Ok(_) => Finding::new(
                kind::NOT_DIRECTORY,
                format!("{name} in the store is no directory"),
                advice,
            ),
            Err(_) if NEEDED.contains(&name) => Finding::new(
                kind::MISSING_DIRECTORY,
                format!("the directory {name} of the store is missing"),
                advice,
            ),
            Err(_) => continue,
        };
        let mend = Mend::Directory(path.clone());
        findings.push(finding.at(path).mended_by(mend));
    }
    findings
}

/// A lock file that is made when it is first needed and never removed. What is no plain file counts as held for ever (R3).
pub(super) fn of_lock(path: &Path, shown: &str) -> Option<Finding> {
    let is_odd = path.symlink_metadata().is_ok_and(|found| !found.is_file());
    is_odd.then(|| {
        Finding::new(
            kind::LOCK_ODD,
            format!("{shown} is no plain file, so that it counts as held for ever"),
            "'outlive doctor --fix' puts an empty file there",
        )
        .at(path)
        .mended_by(Mend::Lock(path.to_owned()))
    })
}

/// A socket that nobody serves. A client finds that out by itself, and goes on without.
fn of_socket(root: &Path) -> Option<Finding> {
    let path = root.join("supervisor.sock");
    let found = path.symlink_metadata().ok()?;
    let what = if !found.file_type().is_socket() {
        "supervisor.sock is no socket"
    } else if is_dead(&path) {
        "supervisor.sock is that of a supervisor that is gone"
    } else {
        return None;
    };
    let advice = "harmless; the next supervisor, or 'outlive doctor --fix', removes it";
    let finding = Finding::new(kind::DEAD_SOCKET, what, advice).at(path);
    Some(finding.mended_by(Mend::Socket))
}

/// Whether nobody listens at a socket that is there.
pub(super) fn is_dead(socket: &Path) -> bool {
    reach(socket).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

/// Whether somebody may listen at a socket: one that cannot be reached is not known to be served by nobody.
pub(super) fn may_be_served(socket: &Path) -> bool {
    let by_nobody = [ErrorKind::ConnectionRefused, ErrorKind::NotFound];
    !reach(socket).is_err_and(|error| by_nobody.contains(&error.kind()))
}

fn set_aside(root: &Path) -> Result<Option<Finding>> {
    let path = root.join(BROKEN);
    let runs = names(&path)?.len();
    Ok((runs > 0).then(|| {
        Finding::new(
            kind::SET_ASIDE,
            format!("{BROKEN}/ holds what was set aside, {runs} times"),
            "look whether anything in it is of use; nobody reads it, and it may be removed",
        )
        .at(path)
    }))
}
