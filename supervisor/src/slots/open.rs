//! Opening a session.

use state_machine::id::PoolName;
use state_machine::protocol::slot::find::{Found, find};
use state_machine::protocol::slot::occupy::{Occupant, Why};
use state_machine::protocol::slot::session::{Opened, open_session};
use state_machine::record::{Holder, Session};
use state_machine::stamp;

use super::claimant::claim;
use super::inspect::Notes;
use super::token::new_token;
use super::who::in_the_way;
use super::yard::Yard;
use super::{OpenSession, SessionSpec, Slots, ms};
use crate::clock;
use crate::disk::LockFile;
use crate::error::{Error, Result};
use crate::store::ticket;

/// How often a slot is looked for that is taken away before it can be had.
const ROUNDS: u32 = 3;

impl Slots {
    /// Open a session in an idle slot of a pool, making one while there are fewer than there may be. It belongs to no process
    /// and stays open until it is closed, or has expired and somebody looks.
    ///
    /// Nobody is waited for: what takes time is git's work for this very slot, if there is any.
    ///
    /// # Errors
    ///
    /// [`Error::NoSlot`] where none is idle; [`Error::Kept`] where all are broken; [`Error::Place`] where none can be made.
    pub fn open_session(&self, pool: &PoolName, spec: &SessionSpec) -> Result<OpenSession> {
        let mut yard = self.yard(pool)?;
        if yard.setup.paused {
            return Err(Error::NotNow(format!(
                "the pool {pool} is paused; resume it with: outlive pool resume {pool}"
            )));
        }
        let mut disk = self.store.disk();
        for _ in 0..ROUNDS {
            let occupant = yard.find()?;
            let number = occupant.number();
            let (token, now_ms) = (new_token(pool)?, clock::now_ms());
            let expires_at_ms = spec.expires.map(|time| now_ms.saturating_add(ms(time)));
            let session = Session {
                token: token.clone(),
                pool: pool.clone(),
                slot: number,
                since: stamp::of_ms(now_ms),
                expires: expires_at_ms.map(stamp::of_ms),
                note: spec.note.clone(),
            };
            let claim = claim(token.clone(), Holder::Session);
            match open_session(&mut disk, occupant, claim, &session, &ticket())? {
                Opened::Yes => {
                    return Ok(OpenSession {
                        token,
                        pool: pool.clone(),
                        slot: number,
                        path: yard.place(number),
                        expires_at_ms,
                        work: yard.spent,
                    });
                }
                Opened::Gone => {}
            }
        }
        Err(yard.busy())
    }
}

impl Yard<'_> {
    /// An idle slot, fit to be used.
    pub(super) fn find(&mut self) -> Result<Occupant<LockFile>> {
        let mut disk = self.store.disk();
        let (pool, most) = (self.pool.clone(), self.most());
        let mut is_second = false;
        loop {
            let mut notes = Notes::default();
            let found = find(
                &mut disk,
                &pool,
                most,
                clock::now_ms(),
                &mut |_, occupant| Ok(self.inspect(occupant, &mut notes)),
            )?;
            match found {
                Found::Slot(occupant) => return Ok(occupant),
                Found::Busy => return Err(self.busy()),
                Found::None(whys) if is_second || !self.end_all_orphans(&whys) => {
                    return Err(self.none(&whys, &notes));
                }
                Found::None(_) => is_second = true,
            }
        }
    }

    /// Kill what dead maintenances have left in slots; whether one of them may be had now.
    fn end_all_orphans(&self, whys: &[(u32, Why)]) -> bool {
        let ended = whys
            .iter()
            .filter(|(number, why)| self.end_orphans(*number, why));
        ended.count() > 0
    }

    /// Why there is none.
    fn none(&self, whys: &[(u32, Why)], notes: &Notes) -> Error {
        // There could be one more, whoever has the others.
        if let Some((number, why)) = &notes.unmade {
            return Error::Place {
                slot: self.name_of(*number),
                why: why.clone(),
            };
        }
        let is_broken = |(_, why): &(u32, Why)| matches!(why, Why::Broken(_) | Why::Damaged(_));
        let in_trouble = |(number, _): &(u32, Why)| notes.trouble.contains_key(number);
        let who: Vec<String> = whys
            .iter()
            .map(
                |(number, why)| match (notes.trouble.get(number), notes.busy.get(number)) {
                    (Some(trouble), _) => format!("{number}: {trouble}"),
                    (None, Some(who)) => format!("{number} is nobody's, but in it works {who}"),
                    (None, None) => match (why, self.who_locks(*number)) {
                        (Why::Held(None), Some(pid)) => {
                            format!("{number} is being taken or given back by process {pid}")
                        }
                        _ => in_the_way(*number, why),
                    },
                },
            )
            .collect();
        if !whys.is_empty() && whys.iter().all(is_broken) {
            return Error::Kept {
                slot: self.pool.to_string(),
                why: format!(
                    "no slot can be used: {}; mend one with: outlive pool repair {}/N",
                    who.join("; "),
                    self.pool
                ),
            };
        }
        if let Some((number, _)) = whys.iter().find(|why| in_trouble(why))
            && whys.iter().all(|why| in_trouble(why) || is_broken(why))
        {
            return Error::Place {
                slot: self.name_of(*number),
                why: notes.trouble.get(number).cloned().unwrap_or_default(),
            };
        }
        Error::NoSlot {
            pool: self.pool.clone(),
            who,
        }
    }
}
