//! The slots of pools, and the sessions in them.

use state_machine::disk::{Dir, Disk, Name, Read};
use state_machine::id::{PoolName, Token};
use state_machine::protocol::slot::look::{LookSlot, Standing, look_at_slots};

use super::{Finding, modes};
use crate::error::Result;
use crate::store::Store;

/// Every slot that was made, and every session that is open.
pub(super) fn examine(store: &Store) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut disk = store.disk();
    for name in disk.list(&Dir::Pools)?.unwrap_or_default() {
        let parsed = name.to_text().map(|word| PoolName::parse(&word));
        let Some(Ok(pool)) = parsed else {
            let shown = String::from_utf8_lossy(&name.to_bytes()).into_owned();
            findings.push(Finding::note(
                format!("pools/{shown} is nothing of ours"),
                "move it away if it is of use",
            ));
            continue;
        };
        for (number, look) in look_at_slots(&mut disk, &pool)? {
            findings.extend(of_slot(&pool, number, look));
            let dir = store.disk().dir(&Dir::Slot(pool.clone(), number));
            findings.extend(modes::of_entry(&dir, &format!("the slot {pool}/{number}")));
        }
    }
    for name in disk.list(&Dir::Sessions)?.unwrap_or_default() {
        let shown = String::from_utf8_lossy(&name.to_bytes()).into_owned();
        let word = shown.strip_suffix(".json").map(Token::parse);
        let Some(Ok(token)) = word else {
            findings.push(Finding::note(
                format!("sessions/{shown} is nothing of ours"),
                "move it away if it is of use",
            ));
            continue;
        };
        findings.extend(of_session(store, &token, &shown)?);
    }
    Ok(findings)
}

fn of_slot(pool: &PoolName, number: u32, look: LookSlot) -> Option<Finding> {
    match look {
        LookSlot::Damaged(why) => Some(Finding::problem(
            format!("a record of the slot {pool}/{number} cannot be read: {why}"),
            "nobody gets it; see to what is in it, and remove its directory",
        )),
        LookSlot::Slot(view) => match view.standing {
            Standing::Broken(why) => Some(Finding::note(
                format!("the slot {pool}/{number} is broken: {why}"),
                format!("mend it with: outlive pool repair {pool}/{number}"),
            )),
            _ => None,
        },
        LookSlot::Gone => None,
    }
}

fn of_session(store: &Store, token: &Token, shown: &str) -> Result<Option<Finding>> {
    let mut disk = store.disk();
    let session = match disk.read_session(token)? {
        Read::Value(session) => session,
        Read::Absent => return Ok(None),
        Read::Damaged(why) => {
            return Ok(Some(Finding::problem(
                format!("sessions/{shown} cannot be read: {why}"),
                "its slot is nobody else's; see to what is in it, and remove the file",
            )));
        }
    };
    let record = disk.read_slot(&session.pool, session.slot)?;
    let is_void = match &record {
        Read::Value(record) => record
            .claim
            .as_ref()
            .is_none_or(|claim| claim.token != *token),
        Read::Absent => true,
        Read::Damaged(_) => false,
    };
    // One that is just being closed is void for a moment.
    let still_there = disk.exists(&Dir::Sessions.at(Name::Session(token.clone())))?;
    Ok((is_void && still_there).then(|| {
        Finding::note(
            format!("the session {token} is void: its slot is not its own any more"),
            format!("forget it with: outlive pool close {token} --force"),
        )
    }))
}
