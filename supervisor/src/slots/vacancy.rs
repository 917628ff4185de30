//! Which slots were given back and are nobody's: what a supervisor looks at before it has anybody look for one.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;

use state_machine::disk::{Dir, Name};
use state_machine::id::PoolName;
use state_machine::protocol::slot::look::{LookSlot, Standing, look_at_slots};

use super::Slots;
use crate::error::Result;

/// One giving back of a slot: each writes a record of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GivenBack(u64, i64);

/// How the slots of a pool are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Vacancies {
    /// All that there are.
    pub(crate) numbers: Vec<u32>,
    /// Those that are nobody's, and by which giving back.
    pub(crate) idle: BTreeMap<u32, GivenBack>,
}

impl Slots {
    /// How the slots of a pool are. Looking is nothing that anybody is told of who watches them.
    pub(crate) fn vacancies(&self, pool: &PoolName) -> Result<Vacancies> {
        let mut disk = self.store.disk();
        let mut vacancies = Vacancies::default();
        for (number, look) in look_at_slots(&mut disk, pool)? {
            vacancies.numbers.push(number);
            let LookSlot::Slot(view) = look else {
                continue;
            };
            let record = disk.path(&Dir::Slot(pool.clone(), number).at(Name::Slot));
            if view.standing == Standing::Idle
                && let Ok(found) = std::fs::metadata(record)
            {
                let given_back = GivenBack(found.ino(), found.mtime_nsec());
                vacancies.idle.insert(number, given_back);
            }
        }
        Ok(vacancies)
    }
}
