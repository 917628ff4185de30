//! Working in the slot of a session, and giving a session more time.

use std::path::{Path, PathBuf};
use std::time::Duration;

use state_machine::id::Token;
use state_machine::protocol::slot::enter::{Entered, enter};
use state_machine::protocol::slot::renew::{Renewed, renew};
use state_machine::record::{Ground, Session};
use state_machine::stamp;

use super::yard::{is_there, lock_path, place, slot_dir, workspace_of};
use super::{OpenSession, Slots, ms};
use crate::clock;
use crate::disk::LockFile;
use crate::error::{Error, Result};
use crate::store::{os_string, ticket};

/// Being in the slot of a session, together with its other commands. Nobody else can have the slot for as long as this, or
/// whatever has inherited its lock, is there.
#[derive(Debug)]
pub struct Inside {
    /// Where to work.
    pub path: PathBuf,
    /// The directory of the slot, for the environment of what is run in it.
    pub(crate) slot_dir: PathBuf,
    pub(crate) lock: LockFile,
}

impl Slots {
    /// Enter the slot of an open session.
    ///
    /// # Errors
    ///
    /// [`Error::NoSession`] where none is open with this token; [`Error::Kept`] where its slot was taken away, or is not what it was;
    /// [`Error::NotNow`] where it is just being given back.
    pub fn enter(&self, token: &Token) -> Result<Inside> {
        match enter(&mut self.store.disk(), token)? {
            Entered::In(lock, session) => self.inside(&session, lock),
            other => Err(self.not_entered(token, other)),
        }
    }

    fn inside(&self, session: &Session, lock: LockFile) -> Result<Inside> {
        self.require_place(session)?;
        Ok(Inside {
            path: place(&self.store, &session.pool, session.slot),
            slot_dir: slot_dir(&self.store, &session.pool, session.slot),
            lock,
        })
    }

    /// Refuse a session in whose slot there is not any more what it was given: a command that is run there all the same would have
    /// whatever repository that place happens to be in.
    fn require_place(&self, session: &Session) -> Result<()> {
        let Session { pool, slot, .. } = session;
        // Of a pool that is not set up any more nobody knows what its slots hold, but that they are there.
        let ground = self.store.pool(pool).map(|setup| setup.ground);
        let ground = ground.unwrap_or_default();
        let amiss = workspace_of(&self.store, pool, *slot, &ground).amiss();
        let amiss = amiss.map_err(|trouble| Error::Place {
            slot: format!("{pool}/{slot}"),
            why: trouble.to_string(),
        })?;
        let path = place(&self.store, pool, *slot);
        match amiss {
            None => Ok(()),
            Some(_) if !is_there(&path) => Err(self.taken_away(session)),
            Some(why) => Err(Error::Kept {
                slot: format!("{pool}/{slot}"),
                why: format!(
                    "{why}; {}, or give it up with: outlive pool close {} --force",
                    put_right(&path, &ground),
                    session.token
                ),
            }),
        }
    }

    /// Let an open session expire so long from now, or never.
    ///
    /// # Errors
    ///
    /// As [`Slots::enter`].
    pub fn renew(&self, token: &Token, expires: Option<Duration>) -> Result<OpenSession> {
        let expires_at_ms = expires.map(|time| clock::now_ms().saturating_add(ms(time)));
        let expires = expires_at_ms.map(stamp::of_ms);
        let inside = self.enter(token)?;
        match renew(&mut self.store.disk(), token, expires, &ticket())? {
            Renewed::Is(session) => Ok(OpenSession {
                token: session.token,
                path: inside.path,
                pool: session.pool,
                slot: session.slot,
                expires_at_ms,
                work: Duration::ZERO,
            }),
            Renewed::Not(entered) => Err(self.not_entered(token, entered)),
            Renewed::Busy => Err(Error::Busy(format!("the session {token}"))),
        }
    }

    fn not_entered(&self, token: &Token, entered: Entered<LockFile>) -> Error {
        match entered {
            Entered::InUse(session) => Error::NotNow(format!(
                "the slot {}/{} of session {token} is just being given back",
                session.pool, session.slot
            )),
            Entered::Gone(session) => self.taken_away(&session),
            Entered::Damaged(place, why) => Error::Damaged {
                path: self.store.disk().path(&place),
                why: why.0,
            },
            Entered::Over(_) | Entered::NotOpen | Entered::In(..) => {
                Error::NoSession(token.clone())
            }
        }
    }

    /// The error for a session whose slot is not there any more. Nothing is ever done elsewhere in its place.
    pub(super) fn taken_away(&self, session: &Session) -> Error {
        let lock = lock_path(&self.store, &session.pool, session.slot);
        let what = if is_there(&lock) { "worktree" } else { "slot" };
        Error::Kept {
            slot: format!("{}/{}", session.pool, session.slot),
            why: format!(
                "the {what} of session {} was taken away ({}); put it back, or give it up with: outlive pool close {} --force",
                session.token,
                place(&self.store, &session.pool, session.slot).display(),
                session.token
            ),
        }
    }
}

/// What helps where something else stands at the place of a slot than what it was given.
fn put_right(path: &Path, ground: &Ground) -> String {
    let is_dir = path.symlink_metadata().is_ok_and(|found| found.is_dir());
    match &ground.source {
        Some(source) if is_dir && !is_there(&path.join(".git")) => format!(
            "have git write it anew (git -C {} worktree repair)",
            Path::new(&os_string(source)).display()
        ),
        _ => "put back what was there".into(),
    }
}
