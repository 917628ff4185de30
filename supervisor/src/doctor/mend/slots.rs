//! Mending pools, slots and sessions. What is in a slot is neither looked at nor changed here: that is for whoever is given it, or
//! for `pool repair`.

use state_machine::disk::{Dir, Disk, Name, Read};
use state_machine::id::{PoolName, Token};
use state_machine::protocol::slot::give_back::{Condition, give_back};
use state_machine::protocol::slot::occupy::{Occupy, Why, leave, occupy};
use state_machine::protocol::slot::place::{numbers, placement_lock};
use state_machine::protocol::slot::session::{TakenBack, take_back};
use state_machine::record::{Claim, Holder, Pool, Session, Slot};
use state_machine::slot::claimed;

use super::aside::Aside;
use super::held::{alone, alone_or_made};
use crate::clock;
use crate::error::{DiskError, Error, Result};
use crate::store::Store;

/// Set the record of a pool aside, and pause the pool: by what is configured, or by nothing, no job is to be admitted that
/// nobody wanted so (R21).
pub(super) fn pause(store: &Store, aside: &mut Aside, pool: &PoolName) -> Result<()> {
    let mut disk = store.disk();
    let lock = alone_or_made(&disk.path(&placement_lock(pool)))?;
    if let Read::Damaged(_) = disk.read_pool(pool)? {
        let paused = Pool {
            paused: true,
            ..Pool::default()
        };
        let path = disk.path(&Dir::Pool(pool.clone()).at(Name::Pool));
        aside.put_in_place_of(&path, &paused.encode())?;
    }
    disk.release(lock)?;
    Ok(())
}

/// Set the record of a slot aside that nobody works in. A session that says that it is its own has it from now on; else nothing
/// is known of the slot, and it is looked into before anybody gets it.
pub(super) fn set_record_aside(
    store: &Store,
    aside: &mut Aside,
    pool: &PoolName,
    number: u32,
) -> Result<()> {
    let mut disk = store.disk();
    let dir = Dir::Slot(pool.clone(), number);
    let lock = alone(&disk.path(&dir.at(Name::Occupancy)))?;
    if let Read::Damaged(_) = disk.read_slot(pool, number)? {
        let path = disk.path(&dir.at(Name::Slot));
        match sessions_in(store, pool, number)?.as_slice() {
            [] => drop(aside.take(&path)?),
            [session] => {
                let record = claimed_by(number, session);
                aside.put_in_place_of(&path, &record.encode())?;
            }
            [one, other, ..] => {
                return Err(Error::NotNow(format!(
                    "the sessions {} and {} both say that it is theirs; close one of them",
                    one.token, other.token
                )));
            }
        }
    }
    disk.release(lock)?;
    Ok(())
}

/// The record of a slot in which this session is open. Which process has opened it is not known any more, and is for people only.
fn claimed_by(number: u32, session: &Session) -> Slot {
    let claim = Claim {
        token: session.token.clone(),
        holder: Holder::Session,
        pid: 0,
        started: 0,
        boot_id: String::new(),
        since: session.since.clone(),
    };
    // A new one is idle, and can be claimed.
    claimed(Slot::new(number), claim).unwrap_or_else(|_| Slot::new(number))
}

fn sessions_in(store: &Store, pool: &PoolName, number: u32) -> Result<Vec<Session>> {
    let mut disk = store.disk();
    let mut found = Vec::new();
    for name in disk.list(&Dir::Sessions)?.unwrap_or_default() {
        let text = name.to_text().unwrap_or_default();
        let token = text.strip_suffix(".json").map(Token::parse);
        if let Some(Ok(token)) = token {
            match disk.read_session(&token)? {
                // It may be of this slot.
                Read::Damaged(_) => {
                    return Err(Error::NotNow(format!(
                        "the session {token} cannot be read either, and may be that of the slot; bring one of both back from a copy"
                    )));
                }
                Read::Value(session)
                    if session.token == token
                        && (&session.pool, session.slot) == (pool, number) =>
                {
                    found.push(session);
                }
                Read::Value(_) | Read::Absent => {}
            }
        }
    }
    Ok(found)
}

/// Record that a slot is broken, and why.
pub(super) fn call_broken(store: &Store, pool: &PoolName, number: u32, why: &str) -> Result<()> {
    let mut disk = store.disk();
    match occupy(&mut disk, pool, number, clock::now_ms())? {
        Occupy::Mine(occupant) if occupant.expired().is_none() => {
            give_back(&mut disk, occupant, Condition::Broken(why.to_owned()))?;
            Ok(())
        }
        Occupy::Mine(occupant) => {
            leave(&mut disk, occupant)?;
            Err(Error::NotNow(
                "a session that has expired is open in it".into(),
            ))
        }
        Occupy::Taken(Why::Broken(_)) | Occupy::Gone => Ok(()),
        Occupy::Taken(_) => Err(Error::NotNow(format!(
            "somebody has the slot {pool}/{number}"
        ))),
    }
}

/// Write the file of a session that cannot be read anew from the claim on its slot, in one step: without one its slot would be
/// taken for idle. Where no slot is claimed by it, it is set aside.
pub(super) fn write_session(store: &Store, aside: &mut Aside, token: &Token) -> Result<()> {
    let mut disk = store.disk();
    let path = disk.path(&Dir::Sessions.at(Name::Session(token.clone())));
    if !matches!(disk.read_session(token)?, Read::Damaged(_)) {
        return Ok(());
    }
    match its_claim(store, token)? {
        Some(session) => aside.put_in_place_of(&path, &session.encode())?,
        None => aside.take(&path)?,
    };
    Ok(())
}

/// The session as the claim on its slot has it.
fn its_claim(store: &Store, token: &Token) -> Result<Option<Session>> {
    let mut disk = store.disk();
    for name in disk.list(&Dir::Pools)?.unwrap_or_default() {
        let Some(Ok(pool)) = name.to_text().map(|word| PoolName::parse(&word)) else {
            continue;
        };
        for number in numbers(&mut disk, &pool)? {
            let record = disk.read_slot(&pool, number)?;
            // It may be its slot.
            if let Read::Damaged(_) = record {
                return Err(Error::NotNow(format!(
                    "the record of the slot {pool}/{number} cannot be read either, and may be that of its slot; bring one of both back from a copy"
                )));
            }
            if let Read::Value(Slot {
                claim: Some(claim), ..
            }) = record
                && claim.token == *token
            {
                return Ok(Some(Session {
                    token: token.clone(),
                    pool,
                    slot: number,
                    since: claim.since,
                    expires: None,
                    note: None,
                }));
            }
        }
    }
    Ok(None)
}

/// Let a session be over whose slot is not its own any more. What it said is kept, before it is gone from where it stands.
pub(super) fn end_void(store: &Store, aside: &mut Aside, token: &Token) -> Result<()> {
    let mut disk = store.disk();
    let path = disk.path(&Dir::Sessions.at(Name::Session(token.clone())));
    let said = match std::fs::read(&path) {
        Ok(said) => said,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(DiskError::new("read", &path, error).into()),
    };
    let kept = aside.keep(&path, &said)?;
    let taken = take_back(&mut disk, token);
    match &taken {
        // It is removed first, and that is synced after: where it failed, it may be gone as well.
        Ok(TakenBack::Over(_)) | Err(_) => {}
        // It still stands where it was, or somebody else has ended it.
        Ok(_) => aside.discard(&kept),
    }
    match taken? {
        TakenBack::Over(_) | TakenBack::NotOpen => Ok(()),
        TakenBack::Mine(occupant) => {
            leave(&mut disk, occupant)?;
            Err(Error::NotNow("its slot is its own by now".into()))
        }
        TakenBack::InUse(_) => Err(Error::NotNow("somebody works in the slot".into())),
        TakenBack::Gone(_) => Err(Error::NotNow("the slot is gone by now".into())),
        TakenBack::Damaged(place, why) => Err(Error::Damaged {
            path: disk.path(&place),
            why: why.0,
        }),
    }
}

/// Set a session aside whose slot is gone: nothing is left that it could be closed of.
pub(super) fn set_orphan_aside(store: &Store, aside: &mut Aside, token: &Token) -> Result<()> {
    let mut disk = store.disk();
    let path = disk.path(&Dir::Sessions.at(Name::Session(token.clone())));
    let Read::Value(session) = disk.read_session(token)? else {
        return Ok(());
    };
    let dir = Dir::Slot(session.pool, session.slot);
    if disk.exists(&dir.at(Name::Occupancy))? {
        return Err(Error::NotNow("its slot is there by now".into()));
    }
    aside.take(&path).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_cannot_be_kept_is_not_ended() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().join("store")).unwrap();
        let pool = PoolName::parse("w").unwrap();
        let slot = store.root().join("pools/w/slots/1");
        std::fs::create_dir_all(&slot).unwrap();
        std::fs::write(slot.join("occupancy"), "").unwrap();
        let token = Token::parse("w-0123456789abcdef0123456789abcdef").unwrap();
        let session = Session {
            token: token.clone(),
            pool,
            slot: 1,
            since: "2026-11-30T12:00:00Z".into(),
            expires: None,
            note: Some("mine".into()),
        };
        let path = store.root().join(format!("sessions/{token}.json"));
        std::fs::write(&path, session.encode()).unwrap();
        // Where it would be kept stands a file.
        let other = store.root().join("other");
        std::fs::write(&other, "").unwrap();
        let mut aside = Aside::new(&store);
        let moved = aside.take(&other).unwrap();
        std::fs::write(moved.with_file_name("sessions"), "").unwrap();
        assert!(end_void(&store, &mut aside, &token).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), session.encode());

        std::fs::remove_file(moved.with_file_name("sessions")).unwrap();
        // Somebody works in the slot: it is not ended, and no copy is left.
        let occupancy = slot.join("occupancy");
        let held = alone(&occupancy).unwrap();
        let mut other = Aside::new(&store);
        assert!(end_void(&store, &mut other, &token).is_err());
        let runs = std::fs::read_dir(store.root().join("broken")).unwrap();
        assert_eq!((runs.count(), path.exists()), (1, true));
        drop(held);

        end_void(&store, &mut aside, &token).unwrap();
        assert!(!path.exists());
        let kept = moved.with_file_name(format!("sessions/{token}.json"));
        assert_eq!(std::fs::read(kept).unwrap(), session.encode());
    }
}
