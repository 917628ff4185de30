//! Giving an open session another time at which it expires.

use super::enter::{Entered, enter};
use crate::call::Call;
use crate::disk::{Change, Content, Dir, Disk, Name, Place};
use crate::id::{Ticket, Token};
use crate::record::Session;

/// What renewing a session came to.
#[derive(Debug)]
pub enum Renewed<H> {
    /// It is open, and this is its record now.
    Is(Box<Session>),
    /// It could not be entered, for this reason.
    Not(Entered<H>),
    /// Others were in the way.
    Busy,
}

/// Let a session expire at this stamp from now on, or never. One that has expired and is still open is renewed as well: until
/// somebody has closed it nothing in its slot was touched.
///
/// Under the slot's lock, shared with its commands: nobody closes it meanwhile, and it does not come back after that (R23).
pub fn renew<D: Disk>(
    disk: &mut D,
    token: &Token,
    expires: Option<String>,
    ticket: &Ticket,
) -> Result<Renewed<D::Handle>, D::Fault> {
    disk.begins(|_| Call::Renew {
        token: token.clone(),
        expires: expires.clone(),
        ticket: ticket.clone(),
    });
    let (lock, mut session) = match enter(disk, token)? {
        Entered::In(lock, session) => (lock, session),
        other => return Ok(Renewed::Not(other)),
    };
    // Read before the lock was there; but for a renewal nobody changes it.
    session.expires = expires;
    let written = replace(disk, &session, ticket)?;
    disk.close(lock)?;
    Ok(if written {
        Renewed::Is(session)
    } else {
        Renewed::Busy
    })
}

fn replace<D: Disk>(disk: &mut D, session: &Session, ticket: &Ticket) -> Result<bool, D::Fault> {
    let place = Dir::Sessions.at(Name::Session(session.token.clone()));
    let staged = Dir::Staging.at(Name::Request(ticket.clone()));
    if disk.write(&staged, &Content::Session(Box::new(session.clone())))? != Change::Done {
        return Ok(false);
    }
    disk.sync(&staged)?;
    // A collector may have taken the staged file away, as any client's.
    if disk.rename(&staged, &place)? != Change::Done {
        return Ok(false);
    }
    disk.sync(&Place::Dir(Dir::Sessions))?;
    Ok(true)
}
