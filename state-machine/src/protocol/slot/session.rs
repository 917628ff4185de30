//! Opening a session in a slot, and taking the slot back from one.

use super::occupy::Occupant;
use super::write::write;
use crate::call::Call;
use crate::disk::{Change, Content, Dir, Disk, Name, Place, Read};
use crate::id::{Ticket, Token};
use crate::protocol::lock::{Taken, take_lock};
use crate::record::{Claim, Damaged, Session};
use crate::slot;

/// What opening a session came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// It is open, and stays so through everything but its close.
    Yes,
    /// The slot was taken away.
    Gone,
}

/// Open a session in a slot that one has alone, and let the slot's lock go.
///
/// The slot's record first: a session that is open always has its slot, and a slot that is claimed by one that never came to
/// be open is free once our lock is.
pub fn open_session<D: Disk>(
    disk: &mut D,
    mut occupant: Occupant<D::Handle>,
    claim: Claim,
    session: &Session,
    ticket: &Ticket,
) -> Result<Opened, D::Fault> {
    disk.begins(|number| Call::OpenSession {
        occupant: occupant.on_tape(number),
        claim: claim.clone(),
        session: session.clone(),
        ticket: ticket.clone(),
    });
    let opened = match slot::claimed(occupant.record.clone(), claim) {
        Ok(record) => write(disk, &mut occupant, record)? && publish(disk, session, ticket)?,
        Err(_) => false,
    };
    disk.release(occupant.lock)?;
    Ok(if opened { Opened::Yes } else { Opened::Gone })
}

fn publish<D: Disk>(disk: &mut D, session: &Session, ticket: &Ticket) -> Result<bool, D::Fault> {
    let place = Dir::Sessions.at(Name::Session(session.token.clone()));
    let staged = Dir::Staging.at(Name::Request(ticket.clone()));
    // A collector may take the staged file away, as any client's; then it is written again.
    for _ in 0..2 {
        if disk.write(&staged, &Content::Session(Box::new(session.clone())))? != Change::Done {
            return Ok(false);
        }
        disk.sync(&staged)?;
        match disk.rename_new(&staged, &place)? {
            Change::Done => {
                disk.sync(&Place::Dir(Dir::Sessions))?;
                return Ok(true);
            }
            Change::Absent => {
                // A store that is older than sessions.
                disk.mkdir(&Dir::Sessions)?;
                disk.sync(&Place::Dir(Dir::Root))?;
            }
            Change::Exists | Change::NotEmpty | Change::NotDirectory => {
                disk.unlink(&staged)?;
                return Ok(false);
            }
        }
    }
    Ok(false)
}

/// What taking a slot back from its session came to.
#[derive(Debug)]
pub enum TakenBack<H> {
    /// We have the slot alone, and the session is still open: it is over once the slot is given back.
    Mine(Occupant<H>),
    /// No such session is open.
    NotOpen,
    /// The slot is another one's by now, and stays so (R23); of this session nothing is left.
    Over(Box<Session>),
    /// Something works in the slot.
    InUse(Box<Session>),
    /// The slot was taken away.
    Gone(Box<Session>),
    /// A record cannot be read, and was left as it is (R21).
    Damaged(Place, Damaged),
}

/// Take a slot back from the session with this token, and from no other (R23).
pub fn take_back<D: Disk>(disk: &mut D, token: &Token) -> Result<TakenBack<D::Handle>, D::Fault> {
    disk.begins(|_| Call::TakeBack {
        token: token.clone(),
    });
    let session = match disk.read_session(token)? {
        Read::Value(session) => session,
        Read::Absent => return Ok(TakenBack::NotOpen),
        Read::Damaged(why) => return Ok(TakenBack::Damaged(session_file(token), why)),
    };
    let dir = Dir::Slot(session.pool.clone(), session.slot);
    let lock = match take_lock(disk, &dir.at(Name::Occupancy))? {
        Taken::Mine(lock) => lock,
        Taken::Owned => return Ok(TakenBack::InUse(Box::new(session))),
        Taken::Absent => return Ok(TakenBack::Gone(Box::new(session))),
    };
    match disk.read_slot(&session.pool, session.slot)? {
        Read::Value(record) if is_of(&record, token) => Ok(TakenBack::Mine(Occupant {
            pool: session.pool.clone(),
            lock,
            record,
            expired: None,
            is_new: false,
        })),
        Read::Damaged(why) => {
            disk.release(lock)?;
            Ok(TakenBack::Damaged(dir.at(Name::Slot), why))
        }
        Read::Value(_) | Read::Absent => {
            end_session(disk, token)?;
            disk.release(lock)?;
            Ok(TakenBack::Over(Box::new(session)))
        }
    }
}

/// Whether the claim on a slot is the one with this token (R23).
pub(super) fn is_of(record: &crate::record::Slot, token: &Token) -> bool {
    record
        .claim
        .as_ref()
        .is_some_and(|claim| claim.token == *token)
}

/// Let a session be over.
pub(super) fn end_session<D: Disk>(disk: &mut D, token: &Token) -> Result<(), D::Fault> {
    disk.unlink(&session_file(token))?;
    disk.sync(&Place::Dir(Dir::Sessions))?;
    Ok(())
}

pub(super) fn session_file(token: &Token) -> Place {
    Dir::Sessions.at(Name::Session(token.clone()))
}

/// Let a session be over whose slot was taken away.
pub fn forget_session<D: Disk>(disk: &mut D, token: &Token) -> Result<(), D::Fault> {
    disk.begins(|_| Call::ForgetSession {
        token: token.clone(),
    });
    end_session(disk, token)
}
