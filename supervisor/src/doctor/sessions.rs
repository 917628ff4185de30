//! The sessions that are open: whether each has its slot.

use state_machine::disk::{Dir, Disk, Name, Read};
use state_machine::id::Token;
use state_machine::record::Session;

use super::{Finding, Mend, kind, modes, or_unreadable, stray};
use crate::error::Result;
use crate::store::Store;

/// Every session that is open.
pub(super) fn examine(store: &Store) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut disk = store.disk();
    for name in disk.list(&Dir::Sessions)?.unwrap_or_default() {
        let shown = String::from_utf8_lossy(&name.to_bytes()).into_owned();
        let path = disk.path(&Dir::Sessions.at(name));
        let word = shown.strip_suffix(".json").map(Token::parse);
        let Some(Ok(token)) = word else {
            findings.push(stray(&path, &format!("sessions/{shown}")));
            continue;
        };
        findings.extend(modes::of_entry(&path, &format!("sessions/{shown}")));
        let found = or_unreadable(of_session(store, &token, &shown));
        findings.extend(found.into_iter().map(|finding| finding.at(&path)));
    }
    Ok(findings)
}

fn of_session(store: &Store, token: &Token, shown: &str) -> Result<Option<Finding>> {
    let session = match store.disk().read_session(token)? {
        Read::Value(session) => session,
        Read::Absent => return Ok(None),
        Read::Damaged(why) => {
            let finding = Finding::new(
                kind::SESSION_GARBAGE,
                format!("sessions/{shown} cannot be read: {why}"),
                "its slot is nobody else's; bring the file back from a copy, or have 'outlive doctor --fix' write it anew from what its slot says",
            );
            return Ok(Some(finding.mended_by(Mend::Session(token.clone()))));
        }
    };
    if session.token != *token {
        let finding = Finding::new(
            kind::SESSION_NAME,
            format!("sessions/{shown} is that of {}", session.token),
            "move it away; 'outlive doctor --fix' does",
        );
        let path = store.disk().path(&session_file(token));
        return Ok(Some(finding.mended_by(Mend::SetAside(path))));
    }
    of_its_slot(store, token, &session)
}

fn of_its_slot(store: &Store, token: &Token, session: &Session) -> Result<Option<Finding>> {
    let mut disk = store.disk();
    let dir = Dir::Slot(session.pool.clone(), session.slot);
    let record = disk.read_slot(&session.pool, session.slot)?;
    let is_its_own = match &record {
        Read::Value(record) => record
            .claim
            .as_ref()
            .is_some_and(|claim| claim.token == *token),
        Read::Absent => false,
        // Said of the slot.
        Read::Damaged(_) => true,
    };
    // One that is just being closed is void for a moment.
    if is_its_own || !disk.exists(&session_file(token))? {
        return Ok(None);
    }
    let slot = format!("{}/{}", session.pool, session.slot);
    let is_there = disk.exists(&dir.at(Name::Occupancy))?;
    Ok(Some(if is_there {
        Finding::new(
            kind::SESSION_VOID,
            format!("the session {token} is void: its slot {slot} is not its own any more"),
            format!("forget it with: outlive pool close {token} --force"),
        )
        .mended_by(Mend::Void(token.clone()))
    } else {
        Finding::new(
            kind::SESSION_SLOT_GONE,
            format!("the slot {slot} of the session {token} is gone"),
            format!("put it back, or give it up with: outlive pool close {token} --force"),
        )
        .mended_by(Mend::Orphan(token.clone()))
    }))
}

fn session_file(token: &Token) -> state_machine::disk::Place {
    Dir::Sessions.at(Name::Session(token.clone()))
}
