//! Taking a lock file, as every protocol does it that needs one alone: of a job, of the supervisor, of a key, of a pool. Which
//! file it is, and what having it means, is theirs.

use crate::disk::{Create, Disk, Mode, Open, Place};

/// How often a claimer tries again while only readers are in its way (R5), or while the file that it locked
/// is no longer the one at the path (F17).
pub const CLAIM_ROUNDS: u32 = 12;

/// How often a lock is tried that others have in turn, a few ms each.
const TURN_ROUNDS: u32 = 60;

/// What taking a lock came to that somebody has for long.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken<H> {
    /// It is ours.
    Mine(H),
    /// Somebody else has it.
    Owned,
    /// There is no such file.
    Absent,
}

/// Take a lock that whoever has it has for long.
///
/// A reader's probe can be in the way for a moment, so a refusal is looked into: where a shared lock is
/// granted, only readers are there and we try again (R5); where it is refused too, somebody has it. The
/// lock counts only on the file that stands at the path now (R1): one on an unlinked file is a lock on nothing.
pub(super) fn take_lock<D: Disk>(
    disk: &mut D,
    place: &Place,
) -> Result<Taken<D::Handle>, D::Fault> {
    for round in 0..CLAIM_ROUNDS {
        let handle = match disk.open(place, Mode::Exclusive)? {
            Open::Opened(handle) => handle,
            Open::Absent => return Ok(Taken::Absent),
            // R3: what cannot be opened counts as held.
            Open::Denied => return Ok(Taken::Owned),
        };
        if disk.lock(&handle, Mode::Exclusive)? {
            if disk.stands(&handle, place)? {
                return Ok(Taken::Mine(handle));
            }
            disk.close(handle)?;
        } else {
            // Asked once: two claimers that ask again and again take each other for readers until both give up.
            let only_readers = round > 0 || disk.lock(&handle, Mode::Shared)?;
            disk.close(handle)?;
            if !only_readers {
                return Ok(Taken::Owned);
            }
            disk.give_way(round)?;
        }
    }
    Ok(Taken::Owned)
}

/// Wait for a lock that others have for a moment each, making its file where there is none; `None` when they have had it all
/// the time. Its file is never removed, so there is only ever one (F18).
pub(super) fn lock_in_turn<D: Disk>(
    disk: &mut D,
    place: &Place,
) -> Result<Option<D::Handle>, D::Fault> {
    for round in 0..TURN_ROUNDS {
        let handle = match disk.open(place, Mode::Exclusive)? {
            Open::Opened(handle) => handle,
            Open::Denied => return Ok(None),
            Open::Absent => match disk.create(place)? {
                Create::Created(handle) => handle,
                Create::Exists => continue,
                Create::Absent => return Ok(None),
            },
        };
        if disk.lock(&handle, Mode::Exclusive)? {
            if disk.stands(&handle, place)? {
                return Ok(Some(handle));
            }
            disk.close(handle)?;
            continue;
        }
        disk.close(handle)?;
        disk.give_way(round)?;
    }
    Ok(None)
}
