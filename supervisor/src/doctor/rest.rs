//! The store around the jobs: its root, its keys, and what is on its way in or out.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use state_machine::disk::{Dir, Disk, Name, Place, Read};
use state_machine::id::{Key, Ticket};
use state_machine::protocol::claim::{Held, probe};
use state_machine::protocol::spare::SPARES;

use super::{Finding, Mend, modes};
use crate::error::{DiskError, Result};
use crate::store::Store;

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

/// What in there may have any mode.
const FREE: [&str; 4] = [
    "config.toml",
    "lost+found",
    "supervisor.sock",
    "supervisor.sock.new",
];

/// How long something on its way in or out may take before it counts as left behind.
const PASSAGE: Duration = Duration::from_millis(100);

/// The root and the keys.
pub(super) fn examine(store: &Store) -> Result<Vec<Finding>> {
    let root = store.root();
    let mut findings = Vec::new();
    for name in names(root)? {
        let shown = name.display().to_string();
        // The format of a store is written aside first; what a crash leaves of that is never read.
        let known = ROOT.contains(&shown.as_str()) || shown.starts_with("format.");
        if !known {
            findings.push(Finding::note(
                format!("{shown} in the store is nothing of ours"),
                "move it away if it is of use",
            ));
        // What people write is theirs; a socket has no mode that matters in a closed directory.
        } else if !FREE.contains(&shown.as_str()) {
            findings.extend(modes::of_entry(&root.join(&name), &shown));
        }
    }
    for needed in ["jobs", "keys", "staging", "trash"] {
        if !root.join(needed).is_dir() {
            findings.push(Finding::problem(
                format!("the directory {needed} of the store is missing"),
                format!("make it: mkdir -m 0700 {}", root.join(needed).display()),
            ));
        }
    }
    if let Err(error) = store.config() {
        findings.push(Finding::problem(
            super::told(&error),
            "correct it; until then nothing new is started",
        ));
    }
    findings.extend(keys(store)?);
    findings.extend(spares(store)?);
    Ok(findings)
}

/// The directories that are laid in. One that is not as it should be costs the next start a little time and is not used.
fn spares(store: &Store) -> Result<Vec<Finding>> {
    let dir = store.root().join("spares");
    let mut findings = Vec::new();
    for name in names(&dir)? {
        let (path, shown) = (dir.join(&name), format!("spares/{}", name.display()));
        let is_number = |number: &u8| name.to_str() == Some(number.to_string().as_str());
        let number = (0..SPARES).find(is_number);
        let is_dir = path.symlink_metadata().is_ok_and(|found| found.is_dir());
        let Some(number) = number.filter(|_| is_dir) else {
            findings.push(Finding::note(
                format!("{shown} is nothing of ours"),
                "move it away if it is of use",
            ));
            continue;
        };
        if let Read::Value(descriptor) = store.disk().read_descriptor(&Dir::Spare(number))?
            && !store.disk().exists(&Place::Dir(Dir::Job(descriptor.id)))?
        {
            let what = format!("{shown} was taken, and a loss of power has brought it back");
            findings.push(Finding::note(what, "it is not used").mended_by(Mend::Collect));
        }
        let in_it = modes::of_job(&path).into_iter();
        findings.extend(in_it.map(|finding| Finding {
            what: format!("{shown}: {}", finding.what),
            ..finding
        }));
    }
    Ok(findings)
}

fn keys(store: &Store) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut stale = 0;
    let dir = store.root().join("keys");
    let mut disk = store.disk();
    for name in names(&dir)? {
        let shown = format!("keys/{}", name.display());
        let text = name.to_str().unwrap_or_default();
        // The next pointer of a start that was killed is written over by the next start.
        if text.ends_with(".lock") || text.ends_with(".json.new") {
            findings.extend(modes::of_entry(&dir.join(&name), &shown));
            continue;
        }
        let key = text
            .strip_suffix(".json")
            .and_then(|word| Key::parse(word).ok());
        let Some(key) = key else {
            findings.push(Finding::note(
                format!("{shown} is nothing of ours"),
                "move it away if it is of use",
            ));
            continue;
        };
        findings.extend(modes::of_entry(&dir.join(&name), &shown));
        match disk.read_pointer(&key)? {
            Read::Value(pointer) => {
                let there = disk.exists(&Place::Dir(Dir::Job(pointer.job)))?;
                stale += usize::from(!there);
            }
            Read::Absent => {}
            Read::Damaged(why) => findings.push(Finding::note(
                format!("{shown} cannot be read: {why}"),
                "no job can be started under that name; remove the file once no job of that name is under way",
            )),
        }
    }
    if stale > 0 {
        findings.push(Finding::note(
            format!("{stale} names were last used by jobs that are cleaned"),
            "harmless; they number the next jobs of a task",
        ));
    }
    Ok(findings)
}

/// What was on its way in or out when the look began: what is there at its end too, and nobody uses, was left behind.
pub(super) struct Passing {
    staged: Vec<OsString>,
    trashed: Vec<OsString>,
}

impl Passing {
    pub(super) fn begin(store: &Store) -> Result<Passing> {
        Ok(Passing {
            staged: names(&store.root().join("staging"))?,
            trashed: names(&store.root().join("trash"))?,
        })
    }

    pub(super) fn end(self, store: &Store) -> Result<Vec<Finding>> {
        if self.staged.is_empty() && self.trashed.is_empty() {
            return Ok(Vec::new());
        }
        std::thread::sleep(PASSAGE);
        let now = Passing::begin(store)?;
        let stayed = |before: &[OsString], now: Vec<OsString>| -> Vec<OsString> {
            now.into_iter()
                .filter(|name| before.contains(name))
                .collect()
        };
        let mut findings = Vec::new();
        for name in stayed(&self.staged, now.staged) {
            findings.extend(of_staged(store, &name)?);
        }
        for name in stayed(&self.trashed, now.trashed) {
            findings.push(left("trash", &name));
        }
        Ok(findings)
    }
}

fn of_staged(store: &Store, name: &OsString) -> Result<Option<Finding>> {
    let ticket = name.to_str().and_then(|word| Ticket::parse(word).ok());
    let Some(ticket) = ticket else {
        return Ok(Some(Finding::note(
            format!("staging/{} is nothing of ours", name.display()),
            "move it away if it is of use",
        )));
    };
    // Its maker holds its lock as long as it lives (R8).
    let lock = Place::File(Dir::Staged(ticket), Name::Lock);
    let used = probe(&mut store.disk(), &lock)? == Held::Yes;
    Ok((!used).then(|| left("staging", name)))
}

fn left(directory: &str, name: &OsString) -> Finding {
    Finding::note(
        format!("{directory}/{} was left by a crash", name.display()),
        "'outlive clean' and 'outlive doctor --fix' remove it",
    )
    .mended_by(Mend::Collect)
}

/// The names in a directory; none where there is no such directory.
fn names(dir: &Path) -> Result<Vec<OsString>> {
    let failed = |error| DiskError::new("list", dir, error);
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error).into()),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry.map_err(failed)?.file_name());
    }
    names.sort();
    Ok(names)
}
