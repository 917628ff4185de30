//! Taking a slot out of its pool.

use super::occupy::Occupant;
use crate::call::Call;
use crate::disk::{Change, Dir, Disk, Place};
use crate::id::Ticket;

/// Take a slot out of its pool that one has alone, in one step (R8), and let its lock go. `false` where it was taken away
/// already. What is in the trash under the ticket is to be deleted.
pub fn remove_slot<D: Disk>(
    disk: &mut D,
    occupant: Occupant<D::Handle>,
    ticket: &Ticket,
) -> Result<bool, D::Fault> {
    disk.begins(|number| Call::RemoveSlot {
        occupant: occupant.on_tape(number),
        ticket: ticket.clone(),
    });
    let slots = Dir::Slots(occupant.pool.clone());
    let dir = Dir::Slot(occupant.pool.clone(), occupant.number());
    let trashed = Place::Dir(Dir::Trashed(ticket.clone()));
    let moved = disk.rename_new(&Place::Dir(dir), &trashed)? == Change::Done;
    if moved {
        disk.sync(&Place::Dir(Dir::Trash))?;
        disk.sync(&Place::Dir(slots))?;
    }
    disk.release(occupant.lock)?;
    Ok(moved)
}
