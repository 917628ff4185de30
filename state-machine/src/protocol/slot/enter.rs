//! Working in a slot with a session's token: each command of it has the slot's lock together with the others.

use super::session::{is_of, session_file};
use crate::call::Call;
use crate::disk::{Dir, Disk, Mode, Name, Open, Place, Read};
use crate::id::Token;
use crate::record::{Damaged, Session};

/// What entering a slot came to.
#[derive(Debug)]
pub enum Entered<H> {
    /// With this lock, which whatever works in there inherits.
    In(H, Box<Session>),
    /// No such session is open.
    NotOpen,
    /// The slot is another one's by now (R23).
    Over(Box<Session>),
    /// Somebody has it alone: it is being given back.
    InUse(Box<Session>),
    /// The slot was taken away.
    Gone(Box<Session>),
    /// The session, or the slot's record, cannot be read (R21).
    Damaged(Place, Damaged),
}

/// Enter the slot of an open session. The record is read under the lock: nobody can take the slot from then on (R14).
pub fn enter<D: Disk>(disk: &mut D, token: &Token) -> Result<Entered<D::Handle>, D::Fault> {
    disk.begins(|_| Call::Enter {
        token: token.clone(),
    });
    let session = match disk.read_session(token)? {
        Read::Value(session) => Box::new(session),
        Read::Absent => return Ok(Entered::NotOpen),
        Read::Damaged(why) => return Ok(Entered::Damaged(session_file(token), why)),
    };
    let dir = Dir::Slot(session.pool.clone(), session.slot);
    let place = dir.at(Name::Occupancy);
    // Opened as one that is locked alone: its last close is then a notice to whoever waits for the slot.
    let lock = match disk.open(&place, Mode::Exclusive)? {
        Open::Opened(lock) => lock,
        Open::Absent => return Ok(Entered::Gone(session)),
        Open::Denied => return Ok(Entered::InUse(session)),
    };
    if !disk.lock(&lock, Mode::Shared)? {
        disk.close(lock)?;
        return Ok(Entered::InUse(session));
    }
    if !disk.stands(&lock, &place)? {
        disk.close(lock)?;
        return Ok(Entered::Gone(session));
    }
    // Others may have it too, so what is not to be had is closed, and never given up for them.
    match disk.read_slot(&session.pool, session.slot)? {
        Read::Value(record) if is_of(&record, token) => Ok(Entered::In(lock, session)),
        Read::Damaged(why) => {
            disk.close(lock)?;
            Ok(Entered::Damaged(dir.at(Name::Slot), why))
        }
        Read::Value(_) | Read::Absent => {
            disk.close(lock)?;
            Ok(Entered::Over(session))
        }
    }
}
