//! How slots stand, as files and locks have it. Nothing is changed, and nobody is asked.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use state_machine::config::PoolSetup;
use state_machine::id::PoolName;
use state_machine::protocol::slot::look::{LookSlot, SlotView, Standing, look_at_slots};
use state_machine::record::{Bytes, Holder, Outcome};
use state_machine::slot::State;

use super::Slots;
use super::yard::{place, workspace_of};
use crate::error::Result;
use crate::store::{Store, os_string};

/// How the slots of a pool stand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PoolSlots {
    /// The pool.
    pub pool: String,
    /// What its slots are copies of, by the name under which it is maintained: the pool's own.
    pub identity: String,
    /// The repository that they are worktrees of, if they are that.
    #[serde(serialize_with = "optional_path")]
    pub source: Option<PathBuf>,
    /// Those that were made, by number.
    pub slots: Vec<SlotStanding>,
}

impl PoolSlots {
    /// How many of them somebody has: a job, a session, or maintenance.
    pub(crate) fn taken(&self) -> u32 {
        let is_taken = |state: State| matches!(state, State::Claimed | State::Maintaining);
        let taken = self.slots.iter().filter(|slot| is_taken(slot.state));
        u32::try_from(taken.count()).unwrap_or(u32::MAX)
    }
}

/// How a slot stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SlotStanding {
    /// Its number.
    pub number: u32,
    /// What it is.
    pub state: State,
    /// Who has it: the token of a session, the id of a job, the process of a maintenance run.
    pub holder: Option<String>,
    /// Since when, as an RFC 3339 stamp.
    pub since: Option<String>,
    /// Where one works in it.
    #[serde(serialize_with = "any_path")]
    pub path: PathBuf,
    /// When it was last maintained, however that ended.
    pub last_maintained: Option<String>,
    /// How that ended.
    pub last_outcome: Option<Outcome>,
    /// When maintenance last succeeded.
    pub last_succeeded: Option<String>,
    /// What is wrong with it, or would be lost.
    pub broken: Option<String>,
    /// What is wrong with what stands in it, while a session or a job has it.
    pub astray: Option<String>,
    /// What its holder wants others to read.
    pub note: Option<String>,
    /// When its session expires, as an RFC 3339 stamp.
    pub expires: Option<String>,
    /// Whether its last holder has given it back; one that was not is looked into before anybody gets it.
    pub returned: bool,
}

impl Slots {
    /// How the slots of every pool stand whose slots have a place, or of one pool, whatever its slots have.
    ///
    /// # Errors
    ///
    /// [`Error::NoPool`](crate::Error::NoPool) where there is none of this name.
    pub fn standings(&self, pool: Option<&PoolName>) -> Result<Vec<PoolSlots>> {
        match pool {
            Some(pool) => Ok(vec![standing_of(
                &self.store,
                pool,
                &self.store.pool(pool)?,
            )?]),
            None => standings(&self.store, &self.store.pools()?),
        }
    }
}

/// How the slots of those of these pools stand whose slots have a place.
pub(crate) fn standings(
    store: &Store,
    pools: &BTreeMap<PoolName, PoolSetup>,
) -> Result<Vec<PoolSlots>> {
    pools
        .iter()
        .filter(|(_, setup)| setup.ground.has_place())
        .map(|(pool, setup)| standing_of(store, pool, setup))
        .collect()
}

fn standing_of(store: &Store, pool: &PoolName, setup: &PoolSetup) -> Result<PoolSlots> {
    let looks = look_at_slots(&mut store.disk(), pool)?;
    let slots = looks
        .into_iter()
        .filter_map(|(number, look)| {
            let path = place(store, pool, number);
            match look {
                LookSlot::Slot(view) => Some(SlotStanding {
                    astray: astray(store, pool, setup, &view),
                    ..standing(*view, path)
                }),
                LookSlot::Damaged(why) => Some(SlotStanding {
                    state: State::Broken,
                    broken: Some(format!("its record cannot be read: {why}")),
                    ..blank(number, path)
                }),
                LookSlot::Gone => None,
            }
        })
        .collect();
    Ok(PoolSlots {
        pool: pool.to_string(),
        identity: pool.to_string(),
        source: setup.ground.source.as_ref().map(|it| os_string(it).into()),
        slots,
    })
}

/// What is wrong with what somebody has, as far as that can be seen without git.
fn astray(store: &Store, pool: &PoolName, setup: &PoolSetup, view: &SlotView) -> Option<String> {
    let has_place = setup.ground.has_place();
    match view.standing {
        Standing::Session(_) | Standing::Claimed(_) if has_place => {
            let workspace = workspace_of(store, pool, view.record.number, &setup.ground);
            workspace.amiss().ok().flatten()
        }
        _ => None,
    }
}

fn blank(number: u32, path: PathBuf) -> SlotStanding {
    SlotStanding {
        number,
        state: State::Idle,
        holder: None,
        since: None,
        path,
        last_maintained: None,
        last_outcome: None,
        last_succeeded: None,
        broken: None,
        astray: None,
        note: None,
        expires: None,
        returned: false,
    }
}

fn standing(view: SlotView, path: PathBuf) -> SlotStanding {
    let SlotView { record, standing } = view;
    let known = SlotStanding {
        last_maintained: record.last_maintained,
        last_outcome: record.last_outcome,
        last_succeeded: record.last_succeeded,
        returned: record.returned,
        ..blank(record.number, path)
    };
    match standing {
        Standing::Idle | Standing::Left => known,
        Standing::Session(session) => SlotStanding {
            state: State::Claimed,
            holder: Some(session.token.to_string()),
            since: Some(session.since),
            note: session.note,
            expires: session.expires,
            ..known
        },
        Standing::Claimed(claim) => {
            let (state, holder) = match claim.holder {
                Holder::Job(job) => (State::Claimed, job.to_string()),
                Holder::Session => (State::Claimed, claim.token.to_string()),
                Holder::Maintenance => (State::Maintaining, format!("process {}", claim.pid)),
            };
            SlotStanding {
                state,
                holder: Some(holder),
                since: Some(claim.since),
                ..known
            }
        }
        Standing::Held => SlotStanding {
            state: State::Claimed,
            ..known
        },
        Standing::Broken(why) => SlotStanding {
            state: State::Broken,
            broken: Some(why),
            ..known
        },
    }
}

/// A path as JSON: a string, or `{"hex": "…"}` where it is no text.
pub(crate) fn any_path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    Bytes(path.as_os_str().as_bytes().to_vec()).serialize(serializer)
}

fn optional_path<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => any_path(path, serializer),
        None => serializer.serialize_none(),
    }
}
