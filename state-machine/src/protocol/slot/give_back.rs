//! Giving a slot back: to its pool, or, where that would lose something or hand on what does not work, to a person.

use super::occupy::Occupant;
use super::session::end_session;
use super::write::write;
use crate::call::Call;
use crate::disk::Disk;
use crate::record::Holder;
use crate::slot;

/// How a slot is given back.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// Nothing of its last holder is in it: whoever is next may have it.
    Clean,
    /// This is wrong with it, or would be lost. It is nobody's until a person has seen to it.
    Broken(String),
}

/// Give a slot back that one has alone, and let its lock go. If a session is open in it, that is over then.
///
/// The record first: a session that is still open then is void, as its slot is not its own any more, and whoever looks for
/// its slot finds that (R23).
pub fn give_back<D: Disk>(
    disk: &mut D,
    mut occupant: Occupant<D::Handle>,
    condition: Condition,
) -> Result<(), D::Fault> {
    disk.begins(|number| Call::GiveBack {
        occupant: occupant.on_tape(number),
        condition: condition.clone(),
    });
    let before = occupant.record.clone();
    let session = before
        .claim
        .as_ref()
        .filter(|claim| claim.holder == Holder::Session);
    let session = session.map(|claim| claim.token.clone());
    let record = match condition {
        Condition::Clean => slot::returned(before),
        Condition::Broken(why) => slot::broken(before, why),
    };
    let written = match record {
        Ok(record) if record == occupant.record => true,
        Ok(record) => write(disk, &mut occupant, record)?,
        Err(_) => false,
    };
    if let Some(token) = session
        && written
    {
        end_session(disk, &token)?;
    }
    disk.release(occupant.lock)
}
