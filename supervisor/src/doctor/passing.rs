//! What is on its way in or out of a store, and what of that a crash has left behind.

use std::ffi::OsString;
use std::time::Duration;

use state_machine::disk::{Dir, Name, Place};
use state_machine::id::Ticket;
use state_machine::protocol::claim::{Held, probe};

use super::{Finding, Mend, kind, names, stray};
use crate::error::Result;
use crate::store::Store;

/// How long something on its way in or out may take before it counts as left behind.
const PASSAGE: Duration = Duration::from_millis(100);

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
            findings.push(match ticket_of(&name) {
                Some(_) => left(store, "trash", &name),
                None => unknown(store, "trash", &name),
            });
        }
        Ok(findings)
    }
}

fn ticket_of(name: &OsString) -> Option<Ticket> {
    Ticket::parse(name.to_str()?).ok()
}

fn of_staged(store: &Store, name: &OsString) -> Result<Option<Finding>> {
    let Some(ticket) = ticket_of(name) else {
        return Ok(Some(unknown(store, "staging", name)));
    };
    // Its maker holds its lock as long as it lives (R8).
    let lock = Place::File(Dir::Staged(ticket), Name::Lock);
    let used = probe(&mut store.disk(), &lock)? == Held::Yes;
    Ok((!used).then(|| left(store, "staging", name)))
}

fn unknown(store: &Store, directory: &str, name: &OsString) -> Finding {
    let shown = format!("{directory}/{}", name.display());
    stray(&store.root().join(directory).join(name), &shown)
}

fn left(store: &Store, directory: &str, name: &OsString) -> Finding {
    Finding::new(
        kind::LEFT_BEHIND,
        format!("{directory}/{} was left by a crash", name.display()),
        "'outlive clean' and 'outlive doctor --fix' remove it",
    )
    .at(store.root().join(directory).join(name))
    .mended_by(Mend::Collect)
}
