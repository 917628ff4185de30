//! Looking at what stands in a slot that one has alone, and making it fit for the next holder where that loses nothing.

use std::collections::BTreeMap;
use std::os::fd::AsFd;

use state_machine::protocol::slot::find::Finding;
use state_machine::protocol::slot::occupy::Occupant;

use super::yard::Yard;
use crate::disk::LockFile;
use crate::process::named;
use crate::workspace::{Judgement, Trouble};

/// What was found out beside what slots are like.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// Why slots could not be looked at or made, which may have nothing to do with them, by number.
    pub(super) trouble: BTreeMap<u32, String>,
    /// Who works in slots that nobody holds, by number.
    pub(super) busy: BTreeMap<u32, String>,
    /// The first slot that could not be made, by no fault of its own, and why.
    pub(super) unmade: Option<(u32, String)>,
    /// Why a slot could not be made, where the same would come of any other: no more are begun then.
    cannot_make: Option<String>,
}

impl Yard<'_> {
    /// Look at a slot. One that was given back clean is only glanced at: is it what it was, and as new as its source? One that
    /// was not is looked through for processes and for work, and reset. One that holds nothing yet is made.
    pub(super) fn inspect(&mut self, occupant: &Occupant<LockFile>, notes: &mut Notes) -> Finding {
        let number = occupant.number();
        let held = occupant.lock().as_fd();
        let was_returned = occupant.record().returned && occupant.expired().is_none();
        if was_returned {
            let workspace = self.workspace(number);
            match self.with_hands(held, |hands| workspace.glance(hands)) {
                Ok(glance) if glance.is_current => return Finding::Sound,
                // Its source has moved on.
                Ok(_) => {}
                Err(trouble) => return self.made_of(number, &trouble, notes),
            }
        }
        // Of one that was given back nobody is left; but somebody may stand in it all the same.
        let tenants = self.tenancy(number).tenants();
        if !tenants.is_empty() {
            let who = named(&tenants);
            notes.busy.insert(number, who.clone());
            return Finding::Busy(who);
        }
        if occupant.expired().is_some()
            && let Err(trouble) = self.workspace(number).disown_reset()
        {
            return self.made_of(number, &trouble, notes);
        }
        let made = if self.was_never_had(number) {
            self.make(occupant, notes)
        } else {
            self.reset(number, held)
        };
        match made {
            Ok(()) => Finding::Sound,
            Err(Trouble::Kept(Judgement::Unfinished(_))) => match self.make(occupant, notes) {
                Ok(()) => Finding::Sound,
                Err(trouble) => self.made_of(number, &trouble, notes),
            },
            Err(trouble) => self.made_of(number, &trouble, notes),
        }
    }

    fn make(&mut self, occupant: &Occupant<LockFile>, notes: &mut Notes) -> Result<(), Trouble> {
        let number = occupant.number();
        // One that was begun is gone on with: what is left of it may be what git stumbles over.
        if let Some(why) = &notes.cannot_make
            && !self.workspace(number).is_begun()
        {
            return Err(Trouble::Lost {
                what: "commands".into(),
                why: why.clone(),
            });
        }
        let made = self.cut(number, occupant.lock().as_fd());
        if let Err(trouble) = &made
            && !Yard::is_of_slot(trouble)
        {
            let why = self.describe(trouble);
            notes.unmade.get_or_insert((number, why));
            if let Trouble::Git { .. } | Trouble::TimedOut { .. } = trouble {
                notes.cannot_make = Some(trouble.to_string());
            }
        }
        made
    }

    /// What a slot is called for which this was met.
    fn made_of(&self, number: u32, trouble: &Trouble, notes: &mut Notes) -> Finding {
        let why = self.describe(trouble);
        if Yard::is_of_slot(trouble) {
            return Finding::Broken(why);
        }
        // It may be no fault of the slot: the next one to look may have better luck.
        notes.trouble.insert(number, why.clone());
        Finding::Busy(why)
    }
}
